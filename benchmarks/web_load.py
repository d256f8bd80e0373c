"""A load generator in a process of its own: `python -m benchmarks.web_load < plan > times`.

Requests leave at their planned times whether or not earlier ones were answered (an open loop),
and a latency counts from the planned time: a server that stalls cannot hide it by holding up
its clients. The plan is JSON: ``url``, ``headers``, ``cookies`` and ``requests``, each with
``at`` (seconds), ``kind``, ``path`` and, where it has them, ``headers`` and a posted ``form``.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import aiohttp

_TIMEOUT = aiohttp.ClientTimeout(total=30)


async def run(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Send everything; for each request its status (0: no answer) and its milliseconds."""
    client = aiohttp.ClientSession(
        plan["url"],
        headers=plan["headers"],
        # As they are: a jar would keep none for an address without a name.
        cookie_jar=aiohttp.CookieJar(unsafe=True),
        cookies=plan["cookies"],
        timeout=_TIMEOUT,
        connector=aiohttp.TCPConnector(limit=0),
    )
    async with client:
        start = time.perf_counter() + 0.5
        return await asyncio.gather(*[_send(client, start, each) for each in plan["requests"]])


async def _send(
    client: aiohttp.ClientSession, start: float, asked: dict[str, Any]
) -> dict[str, Any]:
    planned = start + asked["at"]
    await asyncio.sleep(planned - time.perf_counter())
    late = time.perf_counter() - planned
    method = "POST" if "form" in asked else "GET"
    try:
        request = client.request(
            method,
            asked["path"],
            data=asked.get("form"),
            headers=asked.get("headers"),
            allow_redirects=False,
        )
        async with request as answer:
            await answer.read()
            status = answer.status
    except (aiohttp.ClientError, TimeoutError):
        status = 0
    taken = time.perf_counter() - planned
    return {"status": status, "milliseconds": 1e3 * taken, "late": 1e3 * late}


if __name__ == "__main__":
    json.dump(asyncio.run(run(json.load(sys.stdin))), sys.stdout)

"""A load generator in a process of its own: `python -m benchmarks.web_load < plan > times`.

Requests leave at their planned times whether or not earlier ones were answered (an open loop),
and a latency counts from the planned time: a server that stalls cannot hide it by holding up
its clients. The plan is JSON: ``url``, ``headers``, ``cookies`` and ``requests``, each with
``at`` (seconds), ``kind``, ``path`` and, where it is posted, ``form``.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import httpx

_TIMEOUT = 30.0


async def run(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Send everything; for each request its status (0: no answer) and its milliseconds."""
    client = httpx.AsyncClient(
        base_url=plan["url"],
        headers=plan["headers"],
        cookies=plan["cookies"],
        timeout=_TIMEOUT,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=200),
    )
    async with client:
        start = time.perf_counter() + 0.5
        return await asyncio.gather(*[_send(client, start, each) for each in plan["requests"]])


async def _send(client: httpx.AsyncClient, start: float, asked: dict[str, Any]) -> dict[str, Any]:
    planned = start + asked["at"]
    await asyncio.sleep(planned - time.perf_counter())
    late = time.perf_counter() - planned
    method = "POST" if "form" in asked else "GET"
    try:
        answer = await client.request(method, asked["path"], data=asked.get("form"))
        status = answer.status_code
    except httpx.HTTPError:
        status = 0
    taken = time.perf_counter() - planned
    return {"status": status, "milliseconds": 1e3 * taken, "late": 1e3 * late}


if __name__ == "__main__":
    json.dump(asyncio.run(run(json.load(sys.stdin))), sys.stdout)

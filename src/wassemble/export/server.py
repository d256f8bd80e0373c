"""A head over HTTP: the Open Inference Protocol, version 2, and metrics for Prometheus.

Health, metadata and inference as KServe and Triton have them. For each model it counts how far
it was from the consensus: a model that drifts shows there before anybody knows the truth.
"""

from __future__ import annotations

import asyncio
import json
import math
import operator
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from wassemble import __version__
from wassemble._checks import fail
from wassemble.errors import InvalidInputError
from wassemble.export.design import ANSWERED
from wassemble.export.head import Head, load_head
from wassemble.labels import enumerate_names

_MAX_CONNECTIONS = 200
# Upper bounds of the buckets of seconds that an answer took.
_BUCKETS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0)


@dataclass(frozen=True)
class Limits:
    """What a request may ask for."""

    max_samples: int = 10_000
    max_bytes: int = 50_000_000
    max_seconds: float = 10.0


@dataclass
class Metrics:
    """What was counted since the start."""

    models: list[str]
    n_samples: int = 0
    n_refused: int = 0
    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(_BUCKETS) + 1))
    answers: dict[str, int] = field(default_factory=dict)
    disagreements: dict[str, int] = field(default_factory=dict)
    lock: Any = field(default_factory=Lock)

    def count(self, seconds: float, n_samples: int, told: Mapping[str, tuple[int, int]]) -> None:
        """Add a request: per model, its answers and how many of them were not the consensus."""
        with self.lock:
            self.n_samples += n_samples
            self.seconds += seconds
            self.buckets[int(np.searchsorted(_BUCKETS, seconds))] += 1
            for model, (n_answers, n_off) in told.items():
                self.answers[model] = self.answers.get(model, 0) + n_answers
                self.disagreements[model] = self.disagreements.get(model, 0) + n_off

    def to_text(self) -> str:
        """In the text format of Prometheus."""
        below = np.cumsum(self.buckets).tolist()
        bounds = [*map(str, _BUCKETS), "+Inf"]
        lines = ["# TYPE wassemble_request_seconds histogram"]
        lines += [
            f'wassemble_request_seconds_bucket{{le="{bound}"}} {n}'
            for bound, n in zip(bounds, below, strict=True)
        ]
        lines += [f"wassemble_request_seconds_sum {self.seconds:.6f}"]
        lines += [f"wassemble_request_seconds_count {below[-1]}"]
        for name, value in {"samples": self.n_samples, "refused_requests": self.n_refused}.items():
            lines += [f"# TYPE wassemble_{name}_total counter", f"wassemble_{name}_total {value}"]
        for name, by_model in {
            "model_answers": self.answers,
            "model_disagreements": self.disagreements,
        }.items():
            lines.append(f"# TYPE wassemble_{name}_total counter")
            lines += [
                f'wassemble_{name}_total{{model="{_escape(model)}"}} {by_model.get(model, 0)}'
                for model in self.models
            ]
        return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    """A text as the value of a label of Prometheus."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def count_disagreements(
    head: Head, inputs: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]
) -> dict[str, tuple[int, int]]:
    """Of each model, its answers, and those whose best label is not the best of the consensus.

    Labels are compared by name; answers are counted where the model has the consensus's label.
    """
    target = np.array(head.about["target"], dtype=object)
    best = target[found["scores"].argmax(axis=1)]
    has_best = found["scores"].any(axis=1)
    told = {}
    for place, (model, labels) in enumerate(head.about["models"].items()):
        scores = np.nan_to_num(inputs[model])
        said = scores.any(axis=1) & has_best & np.isin(best, labels)
        if ANSWERED in inputs:
            said &= inputs[ANSWERED][:, place] > 0
        own = np.array(labels, dtype=object)[scores.argmax(axis=1)]
        told[model] = int(said.sum()), int((said & (own != best)).sum())
    return told


def create_app(head: Head, name: str, limits: Limits = Limits()) -> FastAPI:  # noqa: B008
    """The app as ASGI: `/v2` of the protocol, and `/metrics`."""
    app = FastAPI(
        title=f"wassemble head {name}", version=__version__, docs_url=None, redoc_url=None
    )
    metrics = Metrics(list(head.about["models"]))

    def refuse(message: str, code: int) -> JSONResponse:
        with metrics.lock:
            metrics.n_refused += 1
        return JSONResponse({"error": message}, status_code=code)

    @app.get("/v2/health/live")
    @app.get("/v2/health/ready")
    @app.get("/v2/models/{model}/ready")
    async def ready(model: str = name) -> Response:
        return Response(status_code=200 if model == name else 404)

    @app.get("/v2")
    async def about_server() -> dict[str, Any]:
        return {"name": "wassemble", "version": __version__, "extensions": []}

    @app.get("/v2/models/{model}")
    async def about_model(model: str) -> Any:
        if model != name:
            return refuse(f"there is no model {model!r} here; {name!r} is.", 404)
        return describe(head, name)

    @app.get("/metrics")
    async def show_metrics() -> PlainTextResponse:
        return PlainTextResponse(metrics.to_text(), media_type="text/plain; version=0.0.4")

    @app.post("/v2/models/{model}/infer")
    async def infer(model: str, request: Request) -> Any:
        if model != name:
            return refuse(f"there is no model {model!r} here; {name!r} is.", 404)
        try:
            body = await asyncio.wait_for(_read_body(request, limits), limits.max_seconds)
        except TimeoutError:
            return refuse(f"a request must arrive within {limits.max_seconds:g} seconds.", 408)
        if body is None:
            return refuse(f"a request may have {limits.max_bytes:,} bytes at most.", 413)
        try:
            work = asyncio.to_thread(_answer, head, name, body, limits, metrics)
            return JSONResponse(await asyncio.wait_for(work, limits.max_seconds))
        except InvalidInputError as error:
            return refuse(str(error), 400)
        except TimeoutError:
            return refuse(f"the answer took longer than {limits.max_seconds:g} seconds.", 504)

    return app


async def _read_body(request: Request, limits: Limits) -> bytes | None:
    """The whole of a request; None if it is too large."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limits.max_bytes:
            return None
    return bytes(body)


def describe(head: Head, name: str) -> dict[str, Any]:
    """The head as the protocol describes a model; labels are parameters of their tensors."""
    about = head.about
    kind = {"float32": "FP32", "float64": "FP64"}[about["dtype"]]
    inputs = [
        {
            "name": model,
            "datatype": kind,
            "shape": [-1, len(labels)],
            "parameters": {"labels": labels},
        }
        for model, labels in about["models"].items()
    ]
    if about["abstentions"]:
        inputs.append({"name": ANSWERED, "datatype": kind, "shape": [-1, len(about["models"])]})
    target = {"labels": about["target"]}
    shape = [-1, len(about["target"])]
    outputs: list[dict[str, Any]] = [
        {"name": "scores", "datatype": kind, "shape": shape, "parameters": target}
    ]
    if about["decides"]:
        one = about["task"] == "multiclass"
        outputs.append(
            {
                "name": "label",
                "datatype": "INT64" if one else "BOOL",
                "shape": [-1] if one else shape,
                "parameters": target,
            }
        )
    return {
        "name": name,
        "versions": [about["ensemble"][:12]],
        "platform": "onnxruntime_onnx",
        "inputs": inputs,
        "outputs": outputs,
        "parameters": {key: about[key] for key in ("rule", "sweeps", "gap", "arithmetic")},
    }


def _answer(head: Head, name: str, body: bytes, limits: Limits, metrics: Metrics) -> dict[str, Any]:
    """The answer to a request for inference."""
    started = time.perf_counter()
    tensors, wanted, identity = _read_request(body)
    answered = tensors.pop(ANSWERED, None)
    if any(table.shape[:1] > (limits.max_samples,) for table in tensors.values()):
        fail(f"a request may have {limits.max_samples:,} samples at most.")
    inputs = head.read(tensors, answered)
    found = head.run(inputs)
    if not set(wanted) <= set(found):
        fail(f"outputs must be among {enumerate_names(found)}; got {enumerate_names(wanted)}.")
    outputs = [
        _to_tensor(key, array) for key, array in found.items() if key in wanted or not wanted
    ]
    told = count_disagreements(head, inputs, found)
    metrics.count(time.perf_counter() - started, len(found["scores"]), told)
    more = {} if identity is None else {"id": identity}
    return {"model_name": name, "outputs": outputs, **more}


def _read_request(body: bytes) -> tuple[dict[str, np.ndarray], list[str], str | None]:
    """Tensors by name, the outputs that are wanted, and the id of the request."""
    try:
        said = json.loads(body)
        named = [(str(each["name"]), _read_tensor(each)) for each in said["inputs"]]
        if len(tensors := dict(named)) < len(named):
            fail("a request must have each input once; got one of them again.")
        wanted = [str(each["name"]) for each in said.get("outputs", [])]
        return tensors, wanted, None if said.get("id") is None else str(said["id"])
    except InvalidInputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        fail(
            'a request must be JSON: {"inputs": [{"name": ..., "shape": [...], "datatype": ...,'
            ' "data": [...]}, ...]}.'
        )


def _read_tensor(said: Mapping[str, Any]) -> np.ndarray:
    """A tensor whose data may be nested or flat; null is nan."""
    shape = tuple(map(operator.index, said["shape"]))
    try:
        data = np.array(said["data"])
    except ValueError:  # rows of different lengths, which the head refuses
        return np.array(said["data"], dtype=object)
    if data.size != math.prod(shape) or min(shape, default=0) < 0:
        fail(f"the data of {said['name']!r} must fill its shape {shape}; got {data.size} numbers.")
    return data.reshape(shape)


def _to_tensor(name: str, array: np.ndarray) -> dict[str, Any]:
    datatype = {"f4": "FP32", "f8": "FP64", "i8": "INT64", "b1": "BOOL"}[array.dtype.str[1:]]
    data = array.ravel().tolist()
    return {"name": name, "shape": list(array.shape), "datatype": datatype, "data": data}


def run(
    path: Path,
    host: str,
    port: int,
    limits: Limits,
    *,
    talk: Callable[[str], None],
    guard: Callable[[FastAPI, float], Any],
) -> None:
    """Serve a head until interrupted; ``talk`` says where.

    ``guard`` wraps the app and closes connections that do nothing: `web.connections.Connections`.
    """
    head, name = load_head(path), path.stem
    app = guard(create_app(head, name, limits), limits.max_seconds)
    try:
        listener = socket.create_server((host, port))
    except OSError as error:
        fail(f"{host}:{port} cannot be listened on: {error.strerror}.", hint="another --port")
    config = uvicorn.Config(
        app, http=app.make_protocol, limit_concurrency=_MAX_CONNECTIONS, log_level="warning",
        access_log=False, ws="none",
    )  # fmt: skip
    server = uvicorn.Server(config)
    with listener:
        talk(f"serving {name} at http://{host}:{listener.getsockname()[1]}/v2/models/{name}")
        server.run(sockets=[listener])

"""What a run into a folder writes down, so that the next one knows what is done.

The manifest names the request that the folder answers; it is there before any partition.
Each finished partition has a record, written when its file is in its place. When all are
finished, the records move into the manifest.
"""

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from wassemble import __version__
from wassemble._checks import fail
from wassemble.ensemble import Fusion, FusionAccount
from wassemble.errors import WassembleError
from wassemble.inputs.folders import Folder, Found
from wassemble.inputs.part_files import DataSet, PartFile
from wassemble.labels import enumerate_names

_FORMAT = "wassemble partitions 3"
_FOLDER = "_wassemble"
MANIFEST = f"{_FOLDER}/manifest.json"
LOCK = f"{_FOLDER}/lock"
RUN = f"{_FOLDER}/run"
_RECORDS = f"{_FOLDER}/partitions"

# Counts of each model that partitions add up.
_SUMS = ("n_answered", "n_partial", "n_rounded", "unobserved_mass", "lost_mass")
# What a record has.
_RECORD = {
    *("request", "file", "n_bytes", "stamp", "sha256", "inputs"),
    *("counts", "shared", "some_ids"),
}

# What a person can make something of when it differs; the rest are digests.
_TOLD = ("version", "models", "kind", "fusion")


def describe_request(
    sets: Sequence[DataSet], parts: Sequence[str], fusion: Fusion
) -> dict[str, Any]:
    """All that the consensus depends on, but for the versions of files, which records hold."""
    plan = fusion.plan(sets)
    how = fusion.to_dict()
    del how["allow_disjoint"]  # changes no bit
    return {
        "version": __version__,
        "models": {each.model: str(each.reader.folder) for each in sets},
        "reading": {each.model: _reading(each) for each in sets},
        "partitions": list(parts),
        "kind": plan.kind,
        "labels": {each.model: _digest_texts(each.labels) for each in sets},
        "fused as": {m.model: [m.describe(i) for i in range(len(m.fused))] for m in plan.members},
        "target": _digest_texts(plan.target),
        "kernels": {m.model: _digest_arrays(m.kernel.to_arrays()) for m in plan.members},
        "weights": _digest_arrays({"weights": plan.label_weights}),
        "fusion": how,
    }


def refuse_foreign(out: Folder) -> None:
    """Refuse a folder with files that no run has put there."""
    files = out.find()
    if files and _read(out) is None:
        fail(
            f"{out}: must be an empty folder, or one that the same request began; it holds other"
            f" files: {enumerate_names(files)}.",
            hint="choose another folder",
        )


class Manifest:
    """The manifest of a folder, held against a request from `describe_request`.

    If the folder has a part, it must be one of the same request.
    """

    def __init__(self, out: Folder, request: dict[str, Any]) -> None:
        self._out = out
        self._request = json.loads(json.dumps(request))
        # Each record has it.
        self.digest = hashlib.sha256(json.dumps(request).encode()).hexdigest()[:16]
        self._finished: dict[str, Any] = {}
        # A folder without parts is free, whatever was asked for before.
        text = _read(out) if out.find() else None
        if text is not None:
            before = _parse(text, out)
            self._finished = before["partitions"]
            self._refuse_another(before["request"])
        # A name for this run, in the folder until it is over or another begins.
        self.run = secrets.token_hex(8)
        self._store(RUN, self.run)  # from here on, tasks of earlier runs write nothing
        if text is None:
            out.remove(_RECORDS)
            self._write({})

    def _refuse_another(self, before: dict[str, Any]) -> None:
        differing = [key for key, asked in self._request.items() if before.get(key) != asked]
        if differing:
            first = differing[0]
            was, now = before.get(first), self._request[first]
            keys = []
            while isinstance(was, dict) and isinstance(now, dict):
                keys.append(next(k for k in {**was, **now} if was.get(k) != now.get(k)))
                was, now = was.get(keys[-1]), now.get(keys[-1])
            if keys:
                first = f"{first} ({', '.join(keys)})"
            said = ""
            if differing[0] in _TOLD:
                said = f"; it has {_short(was)}, and {_short(now)} was asked for"
            fail(
                f"{self._out}: an earlier run made this folder with other {first}{said}.",
                hint="choose another folder, or remove this one",
            )

    def find_done(
        self,
        is_same: Mapping[str, Callable[[Sequence[Mapping[str, str]]], bool]],
        expected: Iterable[str],
    ) -> tuple[dict[str, Any], list[str]]:
        """Records of the finished partitions, and the names of those whose inputs have changed.

        ``is_same`` says of each partition whether its inputs are those that a record tells of.
        Parts made from others are removed: a new record must never meet an old file. Files that
        are neither ``expected`` nor in a record are refused.
        """
        files = self._out.find()
        records = dict(self._finished)
        for name in self._out.find(_RECORDS):
            partition = name.removesuffix(".json")
            record = read_record(self._out, partition)
            # Tasks of another request may have outlived it.
            if record is not None and record["request"] == self.digest:
                records[partition] = record
        self._refuse_others({*expected, *(record["file"] for record in records.values())})
        done, changed = {}, []
        for name, are_same in is_same.items():
            record = records.get(name)
            if record is None or record["file"] not in files:
                continue
            if not are_same(record["inputs"]):
                self._out.remove(record["file"])
                changed.append(name)
            elif is_as_recorded(self._out, record, files[record["file"]]):
                done[name] = record
        return done, changed

    def _refuse_others(self, parts: set[str]) -> None:
        """Refuse files that are no part of the consensus: whoever reads the folder reads them."""
        others = sorted(set(self._out.find()) - parts)
        if others:
            fail(
                f"{self._out}: must hold nothing but parts of the consensus; got"
                f" {enumerate_names(others)}.",
                hint="move it away, or choose another folder",
            )

    def finish(self, records: Mapping[str, Any]) -> None:
        """Move the records into the manifest: every partition is there."""
        files = self._out.find()
        partitions = {name: records[name] for name in self._request["partitions"]}
        others = [
            record["file"]
            for record in partitions.values()
            if not is_as_recorded(self._out, record, files.get(record["file"]))
        ]
        if others:
            raise WassembleError(
                f"{self._out}: only this run may write here; gone or not what it has written:"
                f" {enumerate_names(others)}.\nhint: wait for tasks of an earlier run, or restart"
                " the workers; then the same call makes these parts again"
            )
        self._write(partitions)
        self._out.remove(_RECORDS)
        self._out.remove(RUN)

    def _write(self, partitions: dict[str, Any]) -> None:
        whole = {"format": _FORMAT, "request": self._request, "partitions": partitions}
        self._store(MANIFEST, json.dumps(whole, indent=1) + "\n")

    def _store(self, name: str, text: str) -> None:
        try:
            with self._out.store(name, durable=name == MANIFEST) as path:
                path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise WassembleError(
                f"{self._out}: {name} cannot be written; {error.strerror or error}. What is"
                " finished is kept.\nhint: put it right; the same call does only what is missing"
            ) from error


def find_record(out: Folder, partition: str) -> dict[str, Any] | None:
    """A partition's record, of whatever run was the last to write one."""
    record = read_record(out, partition)
    if record is None and (text := _read(out)) is not None:
        record = _parse(text, out)["partitions"].get(partition)
    return record


def _read(out: Folder) -> str | None:
    """The text of the manifest; None if there is none."""
    try:
        return out.read(MANIFEST)
    except (UnicodeDecodeError, IsADirectoryError) as error:
        _refuse_damaged(out, str(error))


def _refuse_damaged(out: Folder, why: str) -> NoReturn:
    fail(
        f"{out}: {MANIFEST} must be whole; it is cut off or damaged ({why}).",
        hint="remove the folder: what its parts were made from is not known any more",
    )


def _parse(text: str, out: Folder) -> dict[str, Any]:
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        _refuse_damaged(out, str(error))
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        fail(
            f"{out}: {MANIFEST} must be a manifest of this version; it is not.",
            hint="choose another folder, or remove this one",
        )
    request, partitions = manifest.get("request"), manifest.get("partitions")
    if not (isinstance(request, dict) and isinstance(partitions, dict)):
        _refuse_damaged(out, "it does not say what was asked for, or which parts are finished")
    strange = [name for name, record in partitions.items() if not _is_whole(record)]
    if strange:
        _refuse_damaged(out, f"what it says of {enumerate_names(strange)} is not whole")
    return manifest


def _reading(given: DataSet) -> dict[str, Any]:
    how = given.reader.reading
    return {
        "columns": {"id": how.id_column, "label": how.label_column, "score": how.score_column},
        "labels": None if how.labels is None else _digest_texts(how.labels),
        "kind": how.kind,
        "normalize": how.normalize,
    }


def _digest_texts(texts: Sequence[str] | Any) -> str:
    return hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()[:16]


def _digest_arrays(arrays: Mapping[str, Any]) -> str:
    digest = hashlib.sha256()
    for name, values in arrays.items():
        array = np.ascontiguousarray(values)
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# -- records of finished partitions ------------------------------------------------------


def read_record(out: Folder, partition: str) -> dict[str, Any] | None:
    """A partition's record; None if there is none, or only half of one."""
    try:
        record = json.loads(out.read(f"{_RECORDS}/{partition}.json") or "")  # bad UTF-8 too
    except ValueError:
        return None
    return record if _is_whole(record) else None


def _is_whole(record: Any) -> bool:
    """Whether something that was read is a record, with all that one has."""
    if not isinstance(record, dict) or not record.keys() >= _RECORD:
        return False
    inputs = record["inputs"]
    return isinstance(inputs, list) and all(
        isinstance(each, dict) and each.keys() >= {"stamp", "sha256"} for each in inputs
    )


def write_record(out: Folder, partition: str, record: Mapping[str, Any]) -> None:
    """Write a partition's record; if the power fails just then, the partition is made again."""
    with out.store(f"{_RECORDS}/{partition}.json") as path:
        path.write_text(json.dumps(record), encoding="utf-8")


def is_as_recorded(out: Folder, record: dict[str, Any], found: Found | None) -> bool:
    """Whether a part is what its record says: of the same version or else of the same bytes.

    A part of the same bytes that was put there again has its new version noted in the record.
    """
    if found is None or found.n_bytes != record["n_bytes"]:
        return False
    if found.stamp != record["stamp"]:
        with out.fetch(record["file"]) as path:
            if digest_file(path) != record["sha256"]:
                return False
        record["stamp"] = found.stamp
    return True


def describe_input(found: Found, path: Path) -> dict[str, str]:
    """The version and the content of an input, for a record; ``path`` is where it was read."""
    return {"stamp": found.stamp if found.is_sure else "", "sha256": digest_file(path)}


def is_same_input(folder: Folder, part: PartFile, before: Mapping[str, str]) -> bool:
    """Whether an input is what a record says: of the same version, or else of the same bytes."""
    if before["stamp"] and part.stamp == before["stamp"]:
        return True
    try:
        with folder.fetch(part.file) as path:
            return digest_file(path) == before["sha256"]
    except (OSError, WassembleError):  # told when it is read
        return False


def digest_file(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def counts_of(account: FusionAccount) -> dict[str, Any]:
    """What an account has counted, ready for JSON."""
    return {
        "n_samples": account.n_samples,
        "n_tied": account.n_tied,
        "n_compared": account.n_compared,
        "n_same_as_mean": account.n_same_as_mean,
        "ends": {str(code): count for code, count in sorted(account.ends.items())},
        # Without any answer there is no least.
        "mass": [account.least_mass, account.most_mass] if account.most_mass else None,
        "models": [
            {name: getattr(model, name) for name in ("is_hard", *_SUMS)} for model in account.models
        ],
        "reported": [reported.to_dict() for reported in account.reported],
    }


def add_counts(account: FusionAccount, counts: Mapping[str, Any]) -> None:
    """Add the counts of a partition to an account of the same plan."""
    account.n_samples += counts["n_samples"]
    account.n_tied += counts["n_tied"]
    account.n_compared += counts["n_compared"]
    account.n_same_as_mean += counts["n_same_as_mean"]
    account.ends.update(Counter({int(code): n for code, n in counts["ends"].items()}))
    if counts["mass"] is not None:
        account.least_mass = min(account.least_mass, counts["mass"][0])
        account.most_mass = max(account.most_mass, counts["mass"][1])
    for model, added in zip(account.models, counts["models"], strict=True):
        model.is_hard |= added["is_hard"]
        for name in _SUMS:
            setattr(model, name, getattr(model, name) + added[name])
    for model, reported, more in zip(
        account.models, account.reported, counts["reported"], strict=True
    ):
        reported.add_dict(more, model.n_labels)

"""Records of finished partitions: what is in the file, what it was made from, what it holds."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wassemble.ensemble import FusionAccount
from wassemble.errors import WassembleError
from wassemble.inputs.folders import Folder, Found
from wassemble.inputs.part_files import PartFile

__all__ = [
    "RECORDS",
    "add_counts",
    "counts_of",
    "describe_input",
    "digest_file",
    "is_as_recorded",
    "is_same_input",
    "is_whole",
    "read_record",
    "write_record",
]

RECORDS = "_wassemble/partitions"

# Counts of each model that partitions add up.
_SUMS = ("n_answered", "n_partial", "n_rounded", "unobserved_mass", "lost_mass")
# What a record has.
_RECORD = {
    *("request", "file", "n_bytes", "stamp", "sha256", "inputs"),
    *("counts", "shared", "some_ids"),
}


def read_record(out: Folder, partition: str) -> dict[str, Any] | None:
    """A partition's record; None if there is none, or only half of one."""
    try:
        record = json.loads(out.read(f"{RECORDS}/{partition}.json") or "")  # bad UTF-8 too
    except ValueError:
        return None
    return record if is_whole(record) else None


def is_whole(record: Any) -> bool:
    """Whether something that was read is a record, with all that one has."""
    if not isinstance(record, dict) or not record.keys() >= _RECORD:
        return False
    inputs = record["inputs"]
    return isinstance(inputs, list) and all(
        isinstance(each, dict) and each.keys() >= {"stamp", "sha256"} for each in inputs
    )


def write_record(out: Folder, partition: str, record: Mapping[str, Any]) -> None:
    """Write a partition's record; if the power fails just then, the partition is made again."""
    with out.store(f"{RECORDS}/{partition}.json") as path:
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

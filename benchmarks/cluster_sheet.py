"""From rates measured on a small cluster to a plan for a large one: arithmetic, no measurement."""

from __future__ import annotations

from typing import Any

__all__ = ["work_out"]

N_SAMPLES = 10**9
N_WORKERS = 100
# Bytes per second that a store is taken to give, all workers together.
STORE = 10e9


def work_out(record: dict[str, Any]) -> list[list[str]]:
    """Rows of the sheet: what, how much, and from what."""
    one = record["workers"][0]
    rate = one["samples_per_second"]
    size = record["n_samples"]
    bytes_in = record["n_bytes_in"] / size
    bytes_out = record["n_bytes_out"] / size
    per_partition = size / rate
    n_partitions = N_SAMPLES / size
    seconds = N_SAMPLES / rate / N_WORKERS
    scheduler = record["telling"]["scheduler_seconds_per_partition"]
    client = record["telling"]["client_seconds_per_partition"]
    overhead = one["seconds_per_tiny_partition"]
    needed = N_SAMPLES * bytes_in / seconds
    smallest = 20 * overhead * rate  # of which the overhead is 5 %
    return [
        ["to read", f"{N_SAMPLES * bytes_in / 1e12:.2f} TB", f"{bytes_in:,.0f} bytes a sample"],
        ["to write", f"{N_SAMPLES * bytes_out / 1e12:.2f} TB", f"{bytes_out:,.0f} bytes a sample"],
        ["partitions", f"{n_partitions:,.0f}", f"of {size:,} samples each"],
        [
            "time of one worker",
            f"{N_SAMPLES / rate / 3600:,.1f} h",
            f"{rate:,.0f} samples a second",
        ],
        [
            f"time of {N_WORKERS} workers",
            f"{seconds / 60:,.1f} min",
            "if each has a core and its share of the store, as below",
        ],
        [
            "cut off and started again",
            f"{2 * per_partition:.1f} s of each worker's work",
            "at most two partitions per thread are under way",
        ],
        [
            "memory of a worker",
            f"{one['megabytes_after_all']:,.0f} MB",
            "does not grow with the number of partitions",
        ],
        [
            "busy time of the scheduler",
            f"{N_WORKERS * scheduler / per_partition:.2%}",
            f"{1e3 * scheduler:.2f} ms a partition, {N_WORKERS / per_partition:,.0f} partitions a"
            " second",
        ],
        [
            "limit: scheduler",
            f"{per_partition / scheduler:,.0f} workers",
            "it is busy all the time; larger partitions move the limit",
        ],
        [
            "limit: client",
            f"{per_partition / client:,.0f} workers",
            f"{1 / client:,.0f} partitions a second from the command to workers and back, all on"
            " this machine; larger partitions move the limit",
        ],
        [
            "limit: reading",
            f"{STORE / (bytes_in * rate):,.0f} workers",
            f"a store of {STORE / 1e9:.0f} GB/s; {N_WORKERS} workers read {needed / 1e9:.1f} GB/s",
        ],
        [
            "limit: small partitions",
            f"{smallest:,.0f} samples",
            f"below, more than 5 % goes into opening, naming and telling:"
            f" {1e3 * overhead:.0f} ms each",
        ],
        [
            "limit: large partitions",
            f"{per_partition:.1f} s",
            f"how long others wait for the last one, {per_partition / seconds:.2%} of the run;"
            " twice the samples, twice the wait",
        ],
    ]

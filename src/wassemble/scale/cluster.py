"""Partitions on a Dask cluster: a few at a time, each worker with its own copy of the plan."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from wassemble._extras import load_extra
from wassemble.errors import WassembleError
from wassemble.scale.partition import Job, Outcome, Partition, fuse_partition, in_words

__all__ = ["ClusterError", "run_on_cluster"]

# Partitions under way per thread: one at work, one next.
_PER_THREAD = 2
# Seconds.
_TO_CONNECT = 10
_WITHOUT_WORKERS = 60
_BETWEEN_LOOKS = 2


class ClusterError(WassembleError):
    """The cluster cannot be reached, or was lost on the way."""


def run_on_cluster(scheduler: Any, job: Job, partitions: Sequence[Partition]) -> Generator[Outcome]:
    """Outcomes of the partitions in the order in which they end.

    Never more tasks than the workers' threads can take on soon: what is not under way costs
    no memory, of the scheduler or of anybody.
    """
    if not partitions:
        return
    distributed = load_extra("distributed", "scale", purpose="running on a Dask cluster")
    with _client(distributed, scheduler) as client:
        workers = _Workers(client)
        shared = _share(distributed, client, job, workers)
        waiting = deque(partitions)
        running: dict[Any, Partition] = {}
        try:
            while waiting or running:
                n_free = _PER_THREAD * workers.count_threads() - len(running)
                for _ in range(min(n_free, len(waiting))):
                    partition = waiting.popleft()
                    future = client.submit(fuse_partition, shared, partition, pure=False)
                    running[future] = partition
                for future in _ended(distributed, client, list(running)):
                    yield _outcome(future, running.pop(future))
        finally:
            # Whoever gave the client goes on with it, perhaps after an error.
            if client.status == "running":
                client.cancel([*running, shared])


@contextmanager
def _client(distributed: Any, scheduler: Any) -> Iterator[Any]:
    """A client of the scheduler; a connection that breaks is one clear error."""
    if isinstance(scheduler, distributed.Client):
        client, own = scheduler, False
    else:
        try:
            client = distributed.Client(scheduler, timeout=_TO_CONNECT, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ClusterError(f"no Dask scheduler answers at {scheduler} ({error}).") from error
        own = True
    address = client.scheduler.address
    try:
        yield client
    # A failed call, and futures whose scheduler has gone.
    except (OSError, CancelledError) as error:
        raise ClusterError(
            f"the Dask scheduler at {address} was lost; what is finished is kept.\n"
            "hint: start the cluster and the same call again"
        ) from error
    finally:
        if own:
            client.close()


def _share(distributed: Any, client: Any, job: Job, workers: _Workers) -> Any:
    """The job on every worker, as a future.

    It is a task and not scattered data: if the workers that hold it die, another makes it
    again.
    """
    dask = load_extra("dask", "scale", purpose="running on a Dask cluster")
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        shared = client.submit(_keep, job, pure=False)
    while not _ended(distributed, client, [shared]):
        workers.count_threads()  # complains if there are none
    if shared.status == "error":
        raise ClusterError(
            f"a worker cannot take on the work ({in_words(shared.exception())}).\n"
            "hint: workers need the wassemble and the Python of this machine"
        )
    return shared


def _keep(job: Job) -> Job:
    return job


class _Workers:
    """Counts the workers' threads, which come and go."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._n_threads = 0
        self._looked = self._seen = time.monotonic()
        try:
            client.wait_for_workers(1, timeout=_WITHOUT_WORKERS)
        except TimeoutError:
            raise self._none() from None

    def count_threads(self) -> int:
        """Threads of all workers, of a moment ago."""
        now = time.monotonic()
        if self._n_threads == 0 or now - self._looked > _BETWEEN_LOOKS:
            self._looked = now
            self._n_threads = sum(self._client.nthreads().values())
            if self._n_threads:
                self._seen = now
            elif now - self._seen > _WITHOUT_WORKERS:
                raise self._none()
        return self._n_threads

    def _none(self) -> ClusterError:
        return ClusterError(
            f"the Dask scheduler at {self._client.scheduler.address} has had no worker for"
            f" {_WITHOUT_WORKERS} seconds.\n"
            "hint: start some: dask worker ADDRESS --nthreads 1"
        )


def _ended(distributed: Any, client: Any, running: list[Any]) -> list[Any]:
    """The futures that have ended, after a while perhaps none."""
    if not running:  # no worker to give anything to
        time.sleep(_BETWEEN_LOOKS)
    with suppress(TimeoutError), client.as_current():
        distributed.wait(running, timeout=_BETWEEN_LOOKS, return_when="FIRST_COMPLETED")
    # One is lost for a while when its worker dies; the scheduler has it done again.
    return [future for future in running if future.status in ("finished", "error")]


def _outcome(future: Any, partition: Partition) -> Outcome:
    error = future.exception()
    if error is not None:  # of Dask: whatever fusing raises is an outcome
        return Outcome(partition.name, None, in_words(error))
    outcome: Outcome = future.result()
    return outcome

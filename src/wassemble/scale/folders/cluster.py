"""Partitions on a Dask cluster: a few at a time, each worker with its own copy of the plan."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any

from wassemble._extras import load_extra
from wassemble.errors import WassembleError
from wassemble.scale.folders.worker import Job, Outcome, Partition, fuse_partition, in_words

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
        shared = _share(client, job, workers)
        waiting = deque(partitions)
        running: dict[Any, Partition] = {}
        done: dict[Any, Partition] = {}
        ended: SimpleQueue[Any] = SimpleQueue()
        try:
            while waiting or running:
                n_free = max(0, _PER_THREAD * workers.count_threads() - len(running))
                batch = [waiting.popleft() for _ in range(min(n_free, len(waiting)))]
                running.update(_submit(client, shared, batch, ended))
                yield from _outcomes(client, done)  # while the next ones are under way
                done = {future: running.pop(future) for future in _take(ended)}
            yield from _outcomes(client, done)
        finally:
            # Whoever gave the client goes on with it, perhaps after an error.
            if client.status == "running":
                client.cancel([*running, *done, shared])


@contextmanager
def _client(distributed: Any, scheduler: Any) -> Iterator[Any]:
    """A client of the scheduler; a connection that breaks is one clear error."""
    own = not isinstance(scheduler, distributed.Client)
    # What Dask says of a lost connection, at length, is said here in a sentence.
    logger = logging.getLogger("distributed.client")
    was_disabled, logger.disabled = logger.disabled, True
    try:
        client = _connect(distributed, scheduler) if own else scheduler
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
    finally:
        logger.disabled = was_disabled


def _connect(distributed: Any, scheduler: Any) -> Any:
    # In two steps, for a client that cannot connect has threads that only `close` ends.
    client = distributed.Client.__new__(distributed.Client)
    try:
        client.__init__(scheduler, timeout=_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError, ImportError) as error:
        client.close()
        raise ClusterError(
            f"no Dask scheduler answers at {scheduler} ({error}).\n"
            "hint: an address is like tcp://10.0.0.1:8786"
        ) from error
    return client


def _share(client: Any, job: Job, workers: _Workers) -> Any:
    """The job on every worker, as a future.

    It is a task and not scattered data: if the workers that hold it die, another makes it
    again.
    """
    dask = load_extra("dask", "scale", purpose="running on a Dask cluster")
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        shared = client.submit(_keep, job, pure=False)
    ended: SimpleQueue[Any] = SimpleQueue()
    shared.add_done_callback(ended.put)
    while not _take(ended):
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


def _submit(
    client: Any, shared: Any, batch: list[Partition], ended: SimpleQueue[Any]
) -> dict[Any, Partition]:
    """Futures of a batch, sent together; each goes to ``ended`` by itself."""
    if not batch:
        return {}
    futures = client.map(fuse_partition, [shared] * len(batch), batch, pure=False)
    for future in futures:
        future.add_done_callback(ended.put)
    return dict(zip(futures, batch, strict=True))


def _take(ended: SimpleQueue[Any]) -> list[Any]:
    """All futures that have ended, after a while perhaps none."""
    taken = []
    with suppress(Empty):
        taken.append(ended.get(timeout=_BETWEEN_LOOKS))
        while True:
            taken.append(ended.get_nowait())
    if any(future.cancelled() for future in taken):  # by Dask, when the scheduler has gone
        raise CancelledError
    done = []
    for future in taken:
        if future.done():
            done.append(future)
        else:  # the worker that held the result has died; the scheduler has it done again
            ended.put(future)
    if taken and not done:
        time.sleep(0.1)
    return done


def _outcomes(client: Any, done: Mapping[Any, Partition]) -> Iterator[Outcome]:
    """What came of futures that have ended; the results come together."""
    if not done:
        return
    results = client.gather({part.name: future for future, part in done.items()}, errors="skip")
    for future, partition in done.items():
        if results[partition.name] is not None:
            yield results[partition.name]
            continue
        error = future.exception()
        if isinstance(error, WassembleError):  # the worker refuses, whatever the partition
            raise ClusterError(str(error))
        # Of Dask: whatever fusing raises is an outcome.
        yield Outcome(partition.name, None, in_words(error))

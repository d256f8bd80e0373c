"""Workers come and go, and questions are answered all the same."""

import asyncio
import os
import signal
import time

import numpy as np
import psutil
import pytest
from fastapi import HTTPException
from patience import SECONDS
from web.explorer.small import histograms

from wassemble import InvalidInputError, Predictions, write_predictions
from wassemble.web.explorer.questions import Question
from wassemble.web.explorer.view import View
from wassemble.web.settings import Settings
from wassemble.web.workers import Workers

SMALL = View(file=("small.npz",))
LARGE = View(file=("large.npz",))
SLOW = View(file=("slow.csv",))


@pytest.fixture(scope="module")
def asking(tmp_path_factory):
    """`ask(view, ...)` asks workers for an answer; `ask.workers` are they."""
    folder = tmp_path_factory.mktemp("served")
    write_predictions(folder / "small.npz", histograms(1)[0])
    names = [f"w{i}" for i in range(10_000)]
    scores = np.full((4000, len(names)), 1e-4, dtype=np.float32)
    write_predictions(folder / "large.npz", Predictions("large", range(4000), names, scores))
    rows = "".join(f"{i},0.5,0.5\n" for i in range(300_000))
    (folder / "slow.csv").write_text(f"sample,cat,dog\n{rows}")
    workers = Workers(Settings(folder=folder, max_memory=150, n_processes=2, examples=()))
    with asyncio.Runner() as runner:

        async def stays():
            return False

        def ask(*views, seconds=SECONDS, is_gone=stays):
            async def all_at_once():
                asked = [Question(what="answer", view=view) for view in views]
                return await asyncio.gather(*[workers.ask(q, seconds, is_gone) for q in asked])

            return runner.run(all_at_once())

        ask.workers = workers
        yield ask
    workers.close()


def worker_pids():
    """Of workers, which are what the zygote has forked."""
    own = psutil.Process()
    return [p.pid for child in own.children() for p in child.children(recursive=True)]


def test_what_is_open_is_asked_of_who_has_it_open(asking):
    of_others = set(worker_pids())  # of servers that other tests left running
    asking(SMALL, SMALL)
    before = set(worker_pids()) - of_others
    assert len(before) == 2
    for _ in range(4):
        assert asking(SMALL)[0].status == 200
    assert set(worker_pids()) - of_others == before


def test_a_worker_that_died_is_replaced_and_nobody_notices(asking):
    asking(SMALL)
    for pid in worker_pids():
        os.kill(pid, signal.SIGKILL)
    assert asking(SMALL)[0].status == 200


def test_a_zygote_that_died_is_replaced_too(asking):
    asking(SMALL)
    asking.workers._zygote.kill()
    asking.workers._zygote.join()
    for worker in asking.workers._idle:
        worker.close()
    asking.workers._idle.clear()
    assert asking(SMALL)[0].status == 200


def test_too_much_is_one_clear_error_also_for_who_is_asked_often(asking):
    asking(SMALL, SMALL)
    with pytest.raises(InvalidInputError, match=r"more than 150 MB(.|\n)*hint: .*--max-memory"):
        asking(LARGE, LARGE)
    assert asking(SMALL)[0].status == 200


def test_the_clock_ends_a_worker_whatever_it_does(asking):
    with pytest.raises(HTTPException) as caught:
        asking(SLOW, seconds=0.02)
    assert caught.value.status_code == 503
    end = time.monotonic() + SECONDS
    while len(worker_pids()) > 2:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert asking(SMALL)[0].status == 200


def test_who_has_gone_is_not_computed_for(asking):
    async def gone():
        return True

    before = worker_pids()
    with pytest.raises(HTTPException, match="did not wait"):
        asking(LARGE, is_gone=gone)
    assert worker_pids() == before


def test_after_the_end_nothing_is_computed(tmp_path):
    workers = Workers(Settings(folder=tmp_path, examples=()))
    workers.close()

    async def ask():
        async def stays():
            return False

        await workers.ask(Question(what="page", view=SMALL), 1.0, stays)

    with pytest.raises(HTTPException, match="ending"):
        asyncio.run(ask())

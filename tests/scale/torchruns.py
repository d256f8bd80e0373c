"""Real ranks that torchrun starts on this machine."""

import os
import subprocess
import sys
from pathlib import Path

from patience import SECONDS

WORKER = str(Path(__file__).parent / "rank_worker.py")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")


def start(*arguments, **options):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "WASSEMBLE_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*TORCHRUN, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def start_ranks(n_ranks, *arguments):
    return start("--standalone", "--nproc-per-node", str(n_ranks), *arguments)


def end(process, seconds=SECONDS):
    """Exit code and standard error; nothing is left behind."""
    with process:
        try:
            _, talk = process.communicate(timeout=seconds)
        finally:
            process.terminate()  # torchrun passes it on to its ranks
    return process.returncode, talk


def run_ranks(n_ranks, *arguments):
    return end(start_ranks(n_ranks, *arguments))

"""`Ranks`: what the processes of a torch.distributed group tell each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from wassemble._arrays import Array, convert_like, is_torch_array
from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble.errors import WassembleError

# Groups made of the default group, by their members, for as long as it lives.
_subsets: WeakKeyDictionary[Any, dict[tuple[int, ...], Any]] = WeakKeyDictionary()


class RankError(WassembleError, RuntimeError):
    """Another rank ended, cannot be reached, or refused its share."""


class Ranks:
    """The `Exchange` of a process group, or of the default one: by gloo, NCCL or what it speaks."""

    def __init__(self, group: Any = None) -> None:
        self._torch = load_extra("torch", "torch", purpose="solving on several ranks")
        self._dist = load_extra("torch.distributed", "torch", purpose="solving on several ranks")
        if not (self._dist.is_available() and self._dist.is_initialized()):
            fail(
                "torch.distributed must be initialised before ranks can solve together.",
                hint='torch.distributed.init_process_group("gloo") under torchrun',
            )
        self._group = self._dist.group.WORLD if group is None else group
        self.rank: int = self._dist.get_rank(self._group)
        self.n_ranks: int = self._dist.get_world_size(self._group)
        self.is_alone = self.n_ranks == 1
        # NCCL moves what lies on a GPU; the others take what lies in memory.
        on_gpu = "nccl" in self._dist.get_backend(self._group)
        self._device = self._torch.device("cuda" if on_gpu else "cpu")

    def sum(self, values: Array) -> Array:
        return self._reduce(values, self._dist.ReduceOp.SUM)

    def largest(self, values: Array) -> Array:
        return self._reduce(values, self._dist.ReduceOp.MAX)

    def gather(self, values: np.ndarray) -> np.ndarray:
        """Every rank's values, ``(n_ranks, ...)``; of one shape everywhere."""
        mine = self._to_send(values)
        all_of_them = [self._torch.empty_like(mine) for _ in range(self.n_ranks)]
        self._talk(lambda: self._dist.all_gather(all_of_them, mine, group=self._group))
        return np.stack([each.cpu().numpy() for each in all_of_them])

    def broadcast(self, values: np.ndarray, source: int) -> np.ndarray:
        """The values of the rank ``source``; others give an array of the same shape."""
        sent = self._to_send(values)
        place = self._dist.get_global_rank(self._group, source)
        self._talk(lambda: self._dist.broadcast(sent, place, group=self._group))
        return np.asarray(sent.cpu().numpy())

    @contextmanager
    def together(self) -> Iterator[None]:
        """Ranks leave the block together: if one fails in it, the others fail after it.

        Nothing may be exchanged in this group inside. Without this, ranks would wait for one
        that has refused its input.
        """
        try:
            yield
        except BaseException:
            self.largest(np.ones(1))
            raise
        if self.largest(np.zeros(1))[0]:
            raise RankError("another rank refused its share; its own message says why.")

    def subset(self, members: Sequence[int]) -> Ranks | None:
        """Only the ranks ``members``, None on the others; every rank calls it."""
        if self._group is not self._dist.group.WORLD:  # torch wants every process to take part
            fail(
                "every rank of a group of your own must hold a model of weight above 0; got"
                f" {len(members)} of {self.n_ranks} that do.",
                hint="the default group may have ranks without",
            )
        known = _subsets.setdefault(self._group, {})
        if tuple(members) not in known:
            known[tuple(members)] = self._dist.new_group(list(members), timeout=self.timeout)
        return Ranks(known[tuple(members)]) if self.rank in members else None

    @property
    def timeout(self) -> timedelta:
        """How long an exchange waits for a silent rank."""
        # torch has no public way to ask.
        seconds: timedelta = self._group._get_backend(self._device).options._timeout
        return seconds

    def to_tensor(self, values: np.ndarray) -> Array:
        """A tensor on the device of the group."""
        return self._torch.from_numpy(values).to(self._device)

    def _reduce(self, values: Array, how: Any) -> Array:
        sent = self._to_send(values)
        self._talk(lambda: self._dist.all_reduce(sent, op=how, group=self._group))
        return convert_like(sent, values)

    def _to_send(self, values: Array) -> Array:
        """A copy to send and to receive into."""
        if is_torch_array(values):
            return values.detach().to(self._device, copy=True).contiguous()
        return self._torch.from_numpy(np.array(values, order="C")).to(self._device)

    def _talk(self, call: Callable[[], object]) -> None:
        try:
            call()
        except RuntimeError as error:
            first_line = str(error).partition("\n")[0]
            raise RankError(
                f"the exchange with the other ranks broke off at rank {self.rank}: one of them"
                f" ended or cannot be reached ({first_line}).\n"
                "hint: the rank that ended first says why; start all of them again"
            ) from error

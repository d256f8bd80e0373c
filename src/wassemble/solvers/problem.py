"""A barycenter problem: checked shapes, weights and kernels; entries are checked tile by tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, get_args

import numpy as np

from wassemble._arrays import (
    Array,
    convert_like,
    detached,
    find_torch,
    has_tangent,
    is_array,
    is_on_host,
    log_of,
    namespace,
    widest_float,
)
from wassemble._checks import (
    OneOf,
    as_float_array,
    check_nonnegative,
    fail,
    near_one,
    option,
    refuse_names,
)
from wassemble.kernels import IdentityKernel, Kernel, as_kernel
from wassemble.solvers.components import Components
from wassemble.solvers.exchange import ALONE, Exchange
from wassemble.solvers.mass import say_unbalanced
from wassemble.solvers.rules import Barycenter, Holds
from wassemble.solvers.tiles import PRODUCT_ROWS, Group, Tile, rows_per_tile
from wassemble.solvers.weights import check_weights, take_rows, with_three_axes

if TYPE_CHECKING:
    from wassemble.solvers.result import BarycenterResult


class _Histograms:
    """The predictions of several models on the same samples, each over its own labels.

    Everything goes to the library and device of ``like``, a torch tensor; None for NumPy.
    """

    def __init__(self, histograms: Any, like: Array | None) -> None:
        if isinstance(histograms, dict):
            fail(
                "`histograms` must be one array per model; got a dict.",
                hint="list(predictions.values()) drops the names",
            )
        # Models that already lie in one array need no copy to share a product.
        self._stacked: Array | None = None
        is_one = not isinstance(histograms, list | tuple) and is_array(histograms)
        if is_one and histograms.ndim in (2, 3) and histograms.shape[0]:
            self._read_stacked(as_float_array(histograms, "histograms", like=like), like)
        else:
            self._read_each(histograms, like)

    def _read_stacked(self, histograms: Array, like: Array | None) -> None:
        self.drops_sample_axis = histograms.ndim == 2
        self._stacked = histograms[:, None, :] if self.drops_sample_axis else histograms
        self.n_models, self.n_samples, n_labels = self._stacked.shape
        self.n_labels = [n_labels] * self.n_models
        self.eps = [_eps(histograms.dtype, like)] * self.n_models
        xp = np if like is None else namespace(like)
        self.dtype = xp.result_type(xp.float32, histograms.dtype)
        self.arrays: Any = self._stacked

    def _read_each(self, histograms: Sequence[Any] | Array, like: Array | None) -> None:
        refuse_names(histograms, "histograms")
        try:
            arrays = [as_float_array(h, "histograms", like=like) for h in histograms]
        except TypeError:
            fail(f"`histograms` must be one array per model; got {type(histograms).__name__}.")
        if not arrays:
            fail("`histograms` must hold at least one model; got none.")
        axes = {array.ndim for array in arrays}
        if axes not in ({1}, {2}):
            fail(
                "`histograms` must hold one array of shape (n_samples, n_source), or (n_source,)"
                " for one sample, per model; got shapes"
                f" {_listed(tuple(array.shape) for array in arrays)}."
            )
        self.drops_sample_axis = axes == {1}
        if self.drops_sample_axis:
            arrays = [array[None, :] for array in arrays]
        sizes = [int(array.shape[0]) for array in arrays]
        if len(set(sizes)) > 1:
            fail(
                "`histograms` must hold the same samples for every model;"
                f" got {_listed(sizes)} samples."
            )
        self.n_models, self.n_samples = len(arrays), sizes[0]
        self.n_labels = [int(array.shape[1]) for array in arrays]
        eps = {dtype: _eps(dtype, like) for dtype in {array.dtype for array in arrays}}
        self.eps = [eps[array.dtype] for array in arrays]
        if like is None:
            self.dtype = np.result_type(np.float32, *{array.dtype for array in arrays})
        else:
            xp = namespace(like)
            self.dtype = xp.result_type(xp.float32, *arrays)
            arrays = [xp.astype(array, self.dtype, copy=False) for array in arrays]
        self.arrays = arrays

    def tensors(self) -> list[Array]:
        """One of all models, or one per model."""
        return self.arrays if self._stacked is None else [self._stacked]

    def detached(self) -> _Histograms:
        """The same in NumPy, in the same memory."""
        other = copy(self)
        if self._stacked is None:
            other.arrays = [detached(array) for array in self.arrays]
        else:
            other.arrays = other._stacked = detached(self._stacked)
        other.dtype = np.dtype(str(self.dtype).removeprefix("torch."))
        return other

    def read(self, models: Sequence[int], start: int, stop: int, *, checked: bool = True) -> Array:
        """Entries of some models with the same labels, ``(n_models, n_rows, n_labels)``."""
        xp = namespace(self.arrays[0])
        if self._stacked is not None and len(models) == self.n_models:
            stack = self._stacked[:, start:stop]
        else:
            stack = xp.stack([self.arrays[model][start:stop] for model in models])
        if not checked:
            return xp.astype(stack, self.dtype, copy=False)

        def place(model: int, sample: int, label: int) -> str:
            return f"model {models[model]}, sample {start + sample}, source label {label}"

        check_nonnegative(stack, "histograms", place)
        return xp.astype(stack, self.dtype, copy=False)


class FusionProblem:
    """Predictions, the kernels that they go through and the weights: shapes checked, grouped.

    With an ``exchange`` it is the share of one rank: its own models, with weights that sum
    to 1 only together with those of the other ranks. Whoever deals out shares checks that.

    ``holds`` says what rows are: "histograms", which must sum to 1, or "partial" ones, of which
    some mass may be missing; "scores" of any mass; or "either": ``are_histograms`` then tells,
    once all rows were read.
    """

    #: Where sweeps start, (n_models, n_samples, n_target); None: at v = 1.
    initial: Array | None = None
    #: Entries of each row that are used; None: all.
    n_top: int | None = None
    #: Whether rows must be histograms because mass is kept.
    _is_balanced: bool = False

    def __init__(
        self,
        histograms: Sequence[Any] | Array,
        kernels: Any,
        *,
        weights: Any = None,
        normalize: bool = False,
        holds: Holds = "scores",
        exchange: Exchange = ALONE,
    ) -> None:
        self.exchange = exchange
        self.normalize = normalize
        self._holds = OneOf(get_args(Holds))(holds, "holds")
        self.are_histograms = holds != "scores"
        each = kernels if isinstance(kernels, list | tuple) else [kernels]
        tensors = [kernel.tensor for kernel in each if isinstance(kernel, Kernel)]
        self.like = find_torch(histograms, weights, kernels, tensors)
        self._hold(_Histograms(histograms, self.like))
        self.kernels = self._read_kernels(kernels)
        self.n_target = self.kernels[0].shape[1]
        self.weights = check_weights(
            weights,
            self.n_models,
            self.n_target,
            like=self.like,
            whole=exchange.is_alone,
            # Ranks tell each other one sum of weights for all samples.
            n_samples=self.n_samples if exchange.is_alone else None,
        )
        broadcast = with_three_axes(self.weights)
        # Whether a model has a say on a sample, (n_models, 1 or n_samples).
        self._votes: np.ndarray = np.ones((self.n_models, 1), dtype=bool)
        if weights is not None and self.n_samples:
            self._votes = np.any(detached(broadcast) > 0, axis=2)
        self._group_models()
        self._tile_weights = broadcast[self.model_order]

    def _hold(self, histograms: _Histograms) -> None:
        self._histograms = histograms
        self.n_models, self.n_samples = histograms.n_models, histograms.n_samples
        self.drops_sample_axis, self.dtype = histograms.drops_sample_axis, histograms.dtype

    def with_histograms(self, histograms: Any) -> Self:
        """The same kernels and weights with other samples, of the same type."""
        other = copy(self)
        given = _Histograms(histograms, self.like)
        sizes = [kernel.shape[0] for kernel in self.kernels]
        if given.n_labels != sizes:
            fail(
                f"there must be {len(sizes)} models of {_listed(dict.fromkeys(sizes))} labels, as"
                f" was prepared; got {len(given.n_labels)} of"
                f" {_listed(dict.fromkeys(given.n_labels))}."
            )
        given.dtype = self.dtype
        other._hold(given)
        other.are_histograms = self._holds != "scores"
        return other

    # -- reading ---------------------------------------------------------------------

    def _read_kernels(self, kernels: Any) -> list[Kernel]:
        """One kernel per model; None stands for the identity of one label set."""
        if kernels is None:
            kernels = self._identity()
        if not is_list_of_kernels(kernels):
            kernel = self._convert(kernels)
            for model, n_labels in enumerate(self._histograms.n_labels):
                if n_labels != kernel.shape[0] or model == 0:
                    self._check_kernel(kernel, model, n_labels)
            return [kernel] * self.n_models
        each = convert_each(kernels, self._convert)
        if len(each) != self.n_models:
            fail(
                f"`kernels` must be one kernel for all {self.n_models} models or one per model;"
                f" got {len(each)}."
            )
        for model, kernel in enumerate(each):
            self._check_kernel(kernel, model, self._histograms.n_labels[model])
        targets = [kernel.shape[1] for kernel in each]
        if len(set(targets)) > 1:
            fail(
                "every kernel must have the same target labels (columns);"
                f" got {_listed(targets)} of them."
            )
        return each

    def _identity(self) -> IdentityKernel:
        n_labels = self._histograms.n_labels
        if len(set(n_labels)) > 1 or n_labels[0] == 0:
            fail(
                "models without kernels must have the same label set, not empty;"
                f" got {_listed(n_labels)} labels.",
                hint="label sets that differ need a kernel each, in a list: [first, second, ...]",
            )
        return IdentityKernel(n_labels[0])

    def _convert(self, kernel: Any) -> Kernel:
        kernel = as_kernel(kernel)
        return kernel.convert(self.like, self._kernel_dtype(kernel))

    def _kernel_dtype(self, kernel: Kernel) -> Any:
        """The type in which a kernel's products are taken: its own, if there is a choice."""
        return self.dtype if self.like is not None or kernel.dtype is None else kernel.dtype

    def _check_kernel(self, kernel: Kernel, model: int, n_labels: int) -> None:
        if kernel.shape[0] != n_labels:
            fail(
                f"the kernel of model {model} must have one row per source label;"
                f" got {kernel.shape[0]} rows and {n_labels} labels.",
                hint=self._hint_for(kernel, n_labels),
            )
        if kernel.n_samples is not None and kernel.n_samples != self.n_samples:
            fail(
                f"the kernel of model {model} must have one diagonal for each of the"
                f" {self.n_samples} samples; got {kernel.n_samples}."
            )

    def _hint_for(self, kernel: Kernel, n_labels: int) -> str | None:
        if len(set(self._histograms.n_labels)) > 1:
            return (
                "models with different labels need a kernel each, in a list: [first, second, ...]"
            )
        if kernel.shape[1] == n_labels:
            return "a kernel's rows are source labels, its columns target labels: `kernel.T` swaps"
        return None

    def _group_models(self) -> None:
        """Order the models that vote by kernel; a model of weight 0 takes no part."""
        by_kernel: dict[int, list[int]] = {}
        for model in np.flatnonzero(np.any(self._votes, axis=1)).tolist():
            by_kernel.setdefault(id(self.kernels[model]), []).append(model)
        self._members = list(by_kernel.values())
        self.model_order = [model for members in self._members for model in members]

    # -- what solvers ask ------------------------------------------------------------

    def votes(self, model: int, sample: int) -> bool:
        """Whether a model has a say on a sample."""
        return bool(self._votes[model, sample if self._votes.shape[1] > 1 else 0])

    def weights_of(self, sample: int) -> Array:
        """Weights on one sample, ``(n_models,)`` or ``(n_models, n_target)``."""
        if self.weights.ndim < 3:
            return self.weights
        own = self.weights[:, sample]
        return own[:, 0] if own.shape[1] == 1 else own

    @property
    def has_empty_labels(self) -> bool:
        """Whether some kernel has a row or a column of zeros."""
        return any(kernel.has_empty_labels for kernel in self.voting_kernels)

    @property
    def voting_kernels(self) -> list[Kernel]:
        """One kernel per group of voting models."""
        return [self.kernels[members[0]] for members in self._members]

    def rows_per_tile(self, size: int, product_rows: int = PRODUCT_ROWS) -> int:
        """Samples that are solved together, of about ``size`` numbers; all of them in torch."""
        if self.like is not None:  # gradients need every step anyway
            return self.n_samples
        n_labels = max(self.n_target, *(kernel.shape[0] for kernel in self.voting_kernels))
        return rows_per_tile(len(self.model_order), n_labels, size, product_rows)

    def may_share_memory(self, out: np.ndarray) -> bool:
        """Whether writing into ``out`` may change what is still to be read."""
        read = [*self._histograms.arrays, self.weights]
        for kernel in dict.fromkeys(self.kernels):
            read += vars(kernel).values()
        return any(isinstance(x, np.ndarray) and np.may_share_memory(x, out) for x in read)

    def check_out(self, out: Any) -> None:
        """Refuse an ``out`` that cannot take the consensus."""
        shape = (self.n_samples, self.n_target)
        if self.like is not None or self.drops_sample_axis:
            fail("`out` serves batches of NumPy arrays; got torch tensors or a single sample.")
        if isinstance(out, np.ndarray) and not out.flags.writeable:
            fail("`out` must be writeable; got a read-only array.")
        if not (isinstance(out, np.ndarray) and out.shape == shape and out.dtype.kind == "f"):
            got = f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else type(out)
            fail(f"`out` must be a floating NumPy array of shape {shape}; got {got}.")

    def tile(self, start: int, stop: int, *, checked: bool = True, known: bool = False) -> Tile:
        """The samples from ``start`` to ``stop``, their entries checked.

        Otherwise whoever reads them sees to it that `Tile.check` refuses what is no number. Those
        that are ``known`` were checked before, as arrays of NumPy in the same memory.
        """
        # Sums are taken of checked entries alone.
        checked = checked or self.normalize or self.are_histograms or self.n_top is not None
        groups = []
        first = 0
        worst = np.zeros(stop - start)
        for members in self._members:
            models = slice(first, first + len(members))
            histograms, dropped = self._read_entries(
                members, start, stop, checked=checked, known=known
            )
            kernel = self.kernels[members[0]].take(slice(start, stop))
            if dropped is not None:
                worst = np.maximum(worst, dropped.max(axis=0))
                used = histograms.any(axis=(0, 1))
                used[0] |= not used.any()  # a kernel has at least one source label
                if not kernel.is_diagonal and not used.all():
                    kernel, histograms = kernel.select(used), histograms[..., used]
            groups.append(Group(kernel, histograms, models))
            first = models.stop
        log_v = None
        if self.initial is not None:
            log_v = self.initial[self.model_order, start:stop]
        dropped_mass = None if self.n_top is None else worst
        samples = slice(start, stop)
        weights = take_rows(self._tile_weights, samples)
        tile = Tile(groups, self.model_order, samples, dropped_mass, weights, log_v, self.exchange)
        if not checked:
            tile.check = lambda: self._check_numbers(start, stop)
        return tile

    def _check_numbers(self, start: int, stop: int) -> None:
        for members in self._members:
            self._histograms.read(members, start, stop)

    def rows(self, model: int, start: int, stop: int) -> Array:
        """Checked entries of one model on the samples from ``start`` to ``stop``."""
        return self._read_entries([model], start, stop)[0][0]

    def log_histogram(self, model: int, sample: int) -> Array:
        """Log of one histogram as it was solved, in the widest floating type."""
        row = self._read_entries([model], sample, sample + 1)[0][0, 0]
        return log_of(namespace(row).astype(row, widest_float(row)))

    def find_out_whether_histograms(self, n_rows: int) -> None:
        """Read all rows, ``n_rows`` at a time, if only they tell whether they are histograms."""
        if self._holds == "either" and not self.normalize:
            self.check_entries(self.model_order, n_rows)

    def check_entries(self, models: Sequence[int], n_rows: int, *, sums: bool = True) -> None:
        """Check every entry of ``models`` now, and the sums, ``n_rows`` samples at a time."""
        read = self._read_entries if sums else self._histograms.read
        for model in models:
            for start in range(0, self.n_samples, n_rows):
                read([model], start, min(start + n_rows, self.n_samples))

    def _read_entries(
        self,
        members: list[int],
        start: int,
        stop: int,
        *,
        checked: bool = True,
        known: bool = False,
    ) -> tuple[Array, np.ndarray | None]:
        """Histograms of some models as they are solved, and the share of mass dropped."""
        stack = self._histograms.read(members, start, stop, checked=checked and not known)
        sums_matter = self.are_histograms and self._holds != "partial" and not known
        if self.normalize or sums_matter:
            sums = namespace(stack).sum(stack, axis=-1)
            sums = self.kernels[members[0]].add_parts(sums)
            votes = self._votes[members]
            if votes.shape[1] > 1 and not votes[:, start:stop].all():  # sums that nobody asks for
                sums = namespace(sums).where(convert_like(votes[:, start:stop], sums), sums, 1.0)
            if self.normalize:
                self._check_some_mass(detached(sums), members, start)
                stack = stack / sums[..., None]
            elif self._holds == "either":
                pairs = zip(members, detached(sums), strict=True)
                # Tiles on other threads may have found some: it is never set back.
                if any(self._off(row, model).any() for model, row in pairs):
                    self.are_histograms = False
            else:
                self._check_sums(detached(sums), members, start)
        if self.n_top is None:
            return stack, None
        kept, dropped = _keep_top(stack, self.n_top, rescale=self._is_balanced)
        return kept, dropped * take_rows(self._votes[members], slice(start, stop))

    def _check_some_mass(self, sums: np.ndarray, members: list[int], start: int) -> None:
        if not sums.all():
            model, sample = np.argwhere(sums == 0)[0]
            fail(
                "`histograms` must have some mass in each row to be normalised; got a row of"
                f" zeros at model {members[model]}, sample {start + sample}.",
                hint="leave such samples out, or give the model weight 0",
            )

    def _off(self, sums: np.ndarray, model: int) -> np.ndarray:
        """Which rows of a model do not sum to 1."""
        eps, n_source = self._histograms.eps[model], self.kernels[model].n_source
        return np.abs(sums - 1) > _sum_tolerance(eps, n_source)

    def _check_sums(self, sums: np.ndarray, members: list[int], start: int) -> None:
        for model, row in zip(members, sums, strict=True):
            wrong = self._off(row, model)
            if wrong.any():
                sample = int(np.argmax(wrong))
                any_mass = say_unbalanced() if self._is_balanced else option("kind", "multilabel")
                fail(
                    "`histograms` must sum to 1 in each row; got"
                    f" {near_one(row[sample])} at model {model}, sample {start + sample}.",
                    hint=f"{option('normalize', True)} divides each row by its sum;"
                    f" {any_mass} takes scores of any mass",
                )


class BarycenterProblem(FusionProblem):
    """What `solve_barycenter` solves; takes the same arguments.

    Balanced, rows are always histograms, whatever ``holds`` says.

    Ask `select_solver` about it to learn which arithmetic would run, and why.

    Examples
    --------
    >>> problem = BarycenterProblem([[0.5, 0.5], [0.9, 0.1]], [[1.0, 0.2], [0.2, 1.0]])
    >>> problem
    BarycenterProblem(2 models, 1 samples, 2 target labels, Balanced())
    """

    def __init__(
        self,
        histograms: Sequence[Any] | Array,
        kernels: Any,
        rule: Barycenter = Barycenter(),
        *,
        weights: Any = None,
        normalize: bool = False,
        initial: BarycenterResult | None = None,
        holds: Holds = "scores",
        exchange: Exchange = ALONE,
    ) -> None:
        if not isinstance(rule, Barycenter):
            fail(f"`rule` must be a Barycenter; got {rule!r}.")
        self.rule = rule
        self.mass = rule.mass
        self._is_balanced = rule.is_balanced
        super().__init__(
            histograms,
            kernels,
            weights=weights,
            normalize=normalize,
            holds="histograms" if self._is_balanced else holds,
            exchange=exchange,
        )
        #: The tolerance in force.
        self.tolerance = self._attainable(rule.tolerance)
        self._components: dict[tuple[int, ...], Components] = {}
        if rule.debias:
            self._check_debias()
        if rule.mixed_precision:
            self._check_mixed_precision()
        self._read_initial(initial)
        self.n_top = rule.n_top
        if self.n_top is not None and self.like is not None:
            fail("`n_top` serves NumPy arrays only; got torch tensors.", hint="leave `n_top` out")

    def _kernel_dtype(self, kernel: Kernel) -> Any:
        # Debiasing takes steps too small for float32 products.
        return widest_float(self.like) if self.rule.debias else self.dtype

    def _attainable(self, tolerance: float | None) -> float | None:
        """The tolerance, raised to what sums of this floating type can resolve."""
        if tolerance is None:
            return None
        info = np.finfo(self.dtype) if self.like is None else namespace(self.like).finfo(self.dtype)
        return max(tolerance, 16 * float(info.eps))

    def _check_debias(self) -> None:
        if len(self._members) > 1 or not self.kernels[self.model_order[0]].is_symmetric:
            fail(
                "`debias=True` must go with one kernel, declared symmetric, for all models;"
                f" got {_listed(str(k) for k in dict.fromkeys(self.kernels))}.",
                hint="DenseKernel(matrix, symmetric=True) and kernels.from_cost(...,"
                " symmetric=True) declare it",
            )

    def _check_mixed_precision(self) -> None:
        if self.like is None:
            fail(
                "`mixed_precision=True` must go with torch tensors; got NumPy arrays.",
                hint="torch.as_tensor(array, device=...) puts predictions on a GPU",
            )
        if not self.has_one_fixed_point:
            fail(
                "`mixed_precision=True` must go with one weight per model, or with a mass_penalty"
                " below 2.4 epsilon: else sweeps have several fixed points, and the rounding of"
                f" half precision would choose among them; got {self.mass} and weights per label."
            )
        if all(kernel.tensor is None or kernel.is_diagonal for kernel in self.voting_kernels):
            fail(
                "`mixed_precision=True` must go with a dense or low-rank kernel; got"
                f" {_listed(str(kernel) for kernel in dict.fromkeys(self.kernels))}."
            )

    def _read_initial(self, initial: BarycenterResult | None) -> None:
        if initial is None:
            return
        if not hasattr(initial, "log_scalings"):
            fail(f"`initial` must be an earlier BarycenterResult; got {type(initial).__name__}.")
        log_v = initial.log_scalings()
        expected = (self.n_models, self.n_samples, self.n_target)
        if tuple(log_v.shape) != expected:
            fail(
                f"`initial` must have the shape of this problem, (n_models, n_samples, n_target) ="
                f" {expected}; got {tuple(log_v.shape)}."
            )
        xp = namespace(log_v)
        # A label that was out of reach then may be reachable now: start it at v = 1.
        log_v = xp.where(xp.isfinite(log_v), log_v, 0.0)
        self.initial = convert_like(log_v, self.like)

    # -- what solvers ask ------------------------------------------------------------

    def in_numpy(self) -> BarycenterProblem:
        """A problem of tensors in NumPy, in the same memory; itself where NumPy does not serve.

        Torch has the derivatives of what is not dense, and those in forward mode.
        """
        rule = self.rule
        if rule.debias or rule.mixed_precision or not self.exchange.is_alone:
            return self
        if not is_on_host(self.like) or not all(kernel.is_matrix for kernel in self.voting_kernels):
            return self
        if any(has_tangent(tensor) for tensor in self.tensors()):
            return self
        other = copy(self)
        other.like = None
        other._hold(self._histograms.detached())
        other.kernels = convert_each(self.kernels, lambda kernel: kernel.convert(None, other.dtype))
        other.weights, other._tile_weights = detached(self.weights), detached(self._tile_weights)
        other.initial = None if self.initial is None else detached(self.initial)
        other._components = {}
        return other

    def tensors(self) -> list[Array]:
        """All tensors of a problem in torch."""
        start = [] if self.initial is None else [self.initial]
        kernels = [kernel.tensor for kernel in self.voting_kernels if kernel.tensor is not None]
        return [*self._histograms.tensors(), self.weights, *start, *kernels]

    def accepts(self, tile: Tile) -> bool:
        """Whether the sums of a tile, whose entries are fine, are those that must be there."""
        if self.normalize:
            return False
        if not self._is_balanced:
            return True
        return all(
            not self._off(sums, tile.models[place]).any()
            for group in tile.groups
            for place, sums in enumerate(group.histograms.sum(axis=-1), group.models.start)
        )

    def components(self, models: Sequence[int]) -> Components | None:
        """Components of the target labels under the kernels of ``models``.

        None where mass need not stay inside them.
        """
        if not self._is_balanced:
            return None
        kernels = {id(self.kernels[model]): self.kernels[model] for model in models}
        key = tuple(kernels)
        if key not in self._components:
            self._components[key] = Components(list(kernels.values()), self.exchange)
        return self._components[key]

    @cached_property
    def has_one_fixed_point(self) -> bool:
        """Whether the sweeps have one fixed point at most, wherever they start.

        With one weight per model a fixed point minimises a convex function. With weights per
        label it need not. Balanced, each model's v is free up to a factor of its own, so that
        the fixed points are a family with one dimension less than there are models, and the
        first v decides where sweeps end. Unbalanced, with f the exponent and Q_l the Markov
        chain of a label to a source label and back under model l's coupling, a change of
        log p moves the log of line p's right side by (I - S) times as much, where row j of S
        is the mean over models of (1 - f) (I - f^2 Q_l)^-1. S has non-negative entries, at
        least 1 - f on its diagonal and f^2 / (1 + f) at most in the rest of a row: for
        2 f^2 < 1 the diagonal outweighs the rest everywhere, and two fixed points would
        contradict that. Nothing is known of larger f; near 1 the balanced family is near.
        """
        return self._weighs_labels_alike or (
            not self._is_balanced and 2 * self.mass.exponent**2 < 1
        )

    @property
    def has_one_minimum(self) -> bool:
        """Whether a fixed point is where a convex function is smallest: not of debiased sweeps."""
        return self.has_one_fixed_point and self._weighs_labels_alike and not self.rule.debias

    @cached_property
    def _weighs_labels_alike(self) -> bool:
        weights = detached(self.weights)
        return weights.ndim == 1 or bool((weights == weights[..., :1]).all())

    def __repr__(self) -> str:
        return (
            f"BarycenterProblem({self.n_models} models, {self.n_samples} samples,"
            f" {self.n_target} target labels, {self.mass})"
        )


def is_list_of_kernels(kernels: Any) -> bool:
    """Whether there is one kernel per model; a matrix may be written as nested lists."""
    if not (isinstance(kernels, list | tuple) and kernels):
        return False
    first = kernels[0]
    return not (isinstance(first, list | tuple) and all(np.isscalar(x) for x in first))


def convert_each(kernels: Sequence[Any], convert: Callable[[Any], Kernel]) -> list[Kernel]:
    """One kernel per model; of several models it stays one object: they share its products."""
    distinct = {id(kernel): kernel for kernel in kernels}
    converted = {key: convert(kernel) for key, kernel in distinct.items()}
    return [converted[id(kernel)] for kernel in kernels]


def _sum_tolerance(eps: float, n_source: int) -> float:
    """How far from 1 a histogram may sum: what others' rounding leaves, and no more."""
    if eps < 1e-10:
        return 1e-6
    if eps < 1e-6:
        return 1e-4
    # Entries in half precision are each off by less than that, and so is their sum.
    return min(10 * eps * n_source**0.5, 0.01)


def _keep_top(stack: np.ndarray, n_top: int, *, rescale: bool) -> tuple[np.ndarray, np.ndarray]:
    """``stack`` with all but the ``n_top`` largest entries of each row set to 0.

    Of equal ones at the border all are kept, whatever the order of labels. Also returns the share
    of each row's mass that was dropped, ``(n_models, n_rows)``; ``rescale`` gives what is left the
    mass of the whole.
    """
    n_labels = stack.shape[-1]
    if n_top >= n_labels:
        return stack, np.zeros(stack.shape[:-1])
    least = np.partition(stack, n_labels - n_top, axis=-1)[..., n_labels - n_top, None]
    kept = np.where(stack >= least, stack, 0)
    before, after = stack.sum(axis=-1), kept.sum(axis=-1)
    share = np.divide(after, before, out=np.ones_like(before), where=before > 0)
    if rescale:
        kept /= share[..., None]
    return kept, np.maximum(1 - share, 0)


def _eps(dtype: Any, like: Array | None) -> float:
    return float((np if like is None else namespace(like)).finfo(dtype).eps)


def _listed(values: Any) -> str:
    """Values in a row, for a message."""
    return ", ".join(str(value) for value in values)

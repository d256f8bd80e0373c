"""`fuse`: predictions in, consensus out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypedDict, TypeVar, Unpack, overload

import numpy as np

from wassemble._arrays import Array
from wassemble.ensemble.completion import Unobserved
from wassemble.ensemble.fusion import Fusion
from wassemble.inputs import Kind, Predictions
from wassemble.labels import LabelSpace
from wassemble.solvers import USUAL_RULE, Rule


class Frame(Protocol):
    """A data frame, of whatever library."""

    @property
    def columns(self) -> Any:
        """Its columns, or their names."""

    @property
    def shape(self) -> Any:
        """How many rows and columns it has."""


FrameT = TypeVar("FrameT", bound=Frame)


class Matching(TypedDict, total=False):
    """What a `Fusion` says besides its rule, kernel and weights."""

    kind: Kind | None
    normalize: bool
    target: LabelSpace | Iterable[str] | None
    aliases: Any
    fold: bool
    other: str | Mapping[str, str] | None
    samples: Literal["all", "common"]
    allow_disjoint: bool
    by_row: bool
    id_column: str | Mapping[str, str] | None
    leftover: float
    unobserved: Unobserved
    hard_confidence: float


class FuseOptions(Matching, total=False):
    """Everything that `fuse` takes besides predictions."""

    kernel: Any
    rule: Rule
    weights: Any
    n_threads: int | None
    progress: Callable[[int, int], None] | None
    out: np.ndarray | None


@overload
def fuse(
    predictions: Mapping[str, Predictions] | Sequence[Predictions], **options: Unpack[FuseOptions]
) -> Predictions: ...
@overload
def fuse(
    predictions: Mapping[str, FrameT] | Sequence[FrameT], **options: Unpack[FuseOptions]
) -> FrameT: ...
@overload
def fuse(
    predictions: np.ndarray | Sequence[np.ndarray] | Sequence[Sequence[float]],
    **options: Unpack[FuseOptions],
) -> np.ndarray: ...
@overload
def fuse(predictions: Any, **options: Unpack[FuseOptions]) -> Any: ...
def fuse(
    predictions: Mapping[str, Any] | Sequence[Any] | Array,
    *,
    kernel: Any = None,
    rule: Rule = USUAL_RULE,
    weights: Any = None,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    out: np.ndarray | None = None,
    **matching: Unpack[Matching],
) -> Array:
    """Consensus of several models' predictions.

    Parameters
    ----------
    predictions : array of shape (n_models, n_samples, n_labels), or one array per model
        Non-negative: histograms, whose consensus is a histogram, or scores of any mass (see
        ``kind``). A single sample may drop the sample axis.
        Or predictions with names, which are matched by them: a dict of model names to data
        frames or `Predictions`, or a list of either; `Fusion.run` gives an account of what was
        matched. What is larger than memory goes to `wassemble.scale.fuse_lazily`.
    kernel : Kernel, array or sparse matrix of shape (n_source, n_target), or one per model
        How similar each source label is to each target label. Without one, labels are
        similar to themselves alone and nothing is transported.
    rule : Rule
        The paper's ``Barycenter(Unbalanced(2, epsilon=0.3))`` if not given, in which no model
        can rule a label out by itself; ``Barycenter()`` is Algorithm 1. Or a mean to compare
        with: `ARITHMETIC`, `GEOMETRIC`, `HELLINGER`, any `PowerMean`, of what each model says
        once its own kernel has been applied.
    weights : array of shape (n_models,) or (n_models, n_target), optional
        On the simplex over models; uniform if not given. Arrays may have weights per sample
        too, of shape (n_models, n_samples, 1) or (n_models, n_samples, n_target).
    n_threads : int, optional
        Threads for large batches; $WASSEMBLE_NUM_THREADS or all cores if not given.
    progress : callable, optional
        Called as ``progress(n_done, n_samples)`` while a large batch of arrays is under way.
    out : array of shape (n_samples, n_target), optional
        Where to write the consensus, such as a memory-mapped file: with memory-mapped
        predictions a batch larger than memory goes through in flat memory.
    **matching
        The other parameters of `Fusion`, which says what they mean. ``kind`` and ``normalize``
        go with arrays too; the rest with predictions that have names: ``target``, ``aliases``,
        ``fold``, ``other``, ``samples``, ``allow_disjoint``, ``by_row``, ``id_column``,
        ``leftover``, ``unobserved``, ``hard_confidence``.

    Returns
    -------
    consensus : array of shape (n_samples, n_target)
        A data frame of the library that came in, or `Predictions`, for predictions with
        names.

    Warns
    -----
    ConvergenceWarning
        If rows did not converge or lost mass that could not arrive;
        `solve_barycenter` says which.

    Examples
    --------
    >>> kernel = [[1.0, 0.5, 0.1], [0.5, 1.0, 0.5], [0.1, 0.5, 1.0]]
    >>> fuse([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], kernel=kernel).round(3)
    array([0.305, 0.39 , 0.305])
    >>> fuse([[1.0, 0.0], [0.0, 1.0]])  # a geometric mean would leave nothing
    array([0.5, 0.5])
    """
    if strange := [name for name in matching if name not in Matching.__annotations__]:
        of_rule = {"mass", "mass_penalty", "epsilon", "balanced"} & set(strange)
        hint = "; hint: rule=Barycenter(Unbalanced(2, epsilon=0.3))" if of_rule else ""
        hint = (
            "; hint: kernel=..., one or a list of one per model" if "kernels" in strange else hint
        )
        raise TypeError(f"fuse() got an unexpected keyword argument {strange[0]!r}{hint}")
    fusion = Fusion(rule, kernel, weights=weights, **matching)
    consensus: Array = fusion.fuse(predictions, n_threads=n_threads, progress=progress, out=out)
    return consensus

"""Whether a claim of the paper holds on our data, fails or cannot be decided, and how sure that is.

A claim of a gain *holds* if its whole interval lies above 0. It *fails* if the interval lies below
0, or below the gain that the paper states where our data would have shown that much. Otherwise our
data *cannot tell*, which says as little against the claim as for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scipy.stats import binomtest

from paper.record.findings import Claim, Figure

# From the width of a 95 % interval to the true gain that would be told from 0 in four draws of
# five: (1.96 + 0.84) standard errors, where the interval is 2 * 1.96 of them wide.
_TOLD = (1.96 + 0.84) / (2 * 1.96)


def smallest_visible(gain: Figure) -> float:
    """The power of a comparison: the smallest gain that would have shown four times out of five.

    Examples
    --------
    >>> round(smallest_visible(Figure(0.010, -0.004, 0.024, is_gain=True)), 3)
    0.02
    """
    return _TOLD * (gain.high - gain.low)


def held(gain: Figure, stated: float | None = None) -> bool | None:
    """Whether a claim of a gain holds; None if these data cannot tell.

    ``stated`` is the gain that the paper reports, where it reports one.

    Examples
    --------
    >>> gain = Figure(0.001, -0.004, 0.006, is_gain=True)
    >>> print(held(gain), held(gain, stated=0.012), held(gain, stated=0.005))
    None False None
    """
    if gain.low > 0:
        return True
    would_show = stated is not None and gain.high < stated and smallest_visible(gain) <= stated
    return False if gain.high < 0 or would_show else None


def is_within(change: Figure, low: float, high: float) -> bool | None:
    """Whether a change is between two bounds; None if its interval has a bound inside."""
    if low <= change.low and change.high <= high:
        return True
    return False if change.high < low or change.low > high else None


def all_hold(verdicts: Sequence[bool | None]) -> bool | None:
    """The verdict on several statements at once: one that fails is enough to fail."""
    return False if False in verdicts else None if None in verdicts else True


EXACT = "exact"
"""In place of the power of a claim of an identity, which no sample decides."""


def share(n_true: int, n_all: int) -> Figure:
    """A share of independent cases, with its 95 % interval (Wilson).

    Examples
    --------
    >>> share(35, 45).words(2)
    '0.78 [0.64, 0.87]'
    """
    interval = binomtest(n_true, n_all).proportion_ci(method="wilson")
    return Figure(n_true / n_all, float(interval.low), float(interval.high))


def smallest_exception(n_all: int) -> float:
    """The smallest share of exceptions of which ``n_all`` cases show one four times out of five.

    The power of a claim that something holds in every case.

    Examples
    --------
    >>> round(smallest_exception(100), 3)
    0.016
    """
    return float(1 - (1 - 0.8) ** (1 / n_all))


def claim_all(statement: str, source: str, n_true: int, n_all: int, what: str) -> Claim:
    """A claim that something holds in every case, which one exception refutes.

    Examples
    --------
    >>> claim = claim_all("it is convex", "proposition 1", 71, 100, "images")
    >>> print(claim.held, "|", claim.found, "|", claim.power)
    False | 71 of 100 images, a share of 0.71 [0.61, 0.79] | 1.6 % of images
    """
    each = share(n_true, n_all).words(2)
    power = f"{100 * smallest_exception(n_all):.2g} % of {what}"
    found = f"{n_true} of {n_all} {what}, a share of {each}"
    return Claim(statement, source, n_true == n_all, found, power)


def claim_gains(
    statement: str,
    source: str,
    gains: Mapping[str, Figure],
    *,
    stated: Mapping[str, float | None] | None = None,
    beside: str = "",
    digits: int = 3,
) -> Claim:
    """A claim that each of ``gains`` is one, with its verdict and power.

    Parameters
    ----------
    statement, source : str
        What the paper says, and where.
    gains : dict of str to Figure
        Paired gains by what they are over.
    stated : dict of str to float, optional
        The paper's own gains, by the same names.
    beside : str, optional
        More words on what was seen.
    digits : int, default 3
        Behind the point.

    Examples
    --------
    >>> gains = {"the best mean": Figure(0.001, -0.004, 0.006, is_gain=True)}
    >>> claim = claim_gains("it gains", "table 6", gains, stated={"the best mean": 0.012})
    >>> print(claim.held, "|", claim.found, "|", claim.power)
    False | +0.001 [-0.004, +0.006] over the best mean (paper +0.012) | 0.007
    """
    stated = stated or {}
    verdicts = [held(gain, stated.get(over)) for over, gain in gains.items()]
    words = []
    for over, gain in gains.items():
        papers = stated.get(over)
        beyond = "" if papers is None else f" (paper {papers:+.{digits}f})"
        words.append(f"{gain.words(digits)} over {over}{beyond}")
    power = ", ".join(f"{smallest_visible(gain):.{digits}f}" for gain in gains.values())
    found = ", ".join(words) + (f"; {beside}" if beside else "")
    return Claim(statement, source, all_hold(verdicts), found, power)


_WORDS = {True: "holds", False: "fails", None: "cannot be decided"}
_COUNTED = {True: "hold", False: "fail", None: "cannot be decided"}


def conclude(claims: Sequence[Claim], why: str, *, whose: str = "the paper's") -> str:
    """One sentence on an experiment: what became of the claims here, and why.

    ``whose`` claims they are: the paper's, or "our" where an experiment goes beyond it.

    Examples
    --------
    >>> conclude([Claim("it gains", "table 6", None, "+0.001")], "1,300 images are too few")
    "The paper's claim cannot be decided here: 1,300 images are too few."
    >>> both = [Claim("a", "table 6", True, ""), Claim("b", "table 6", False, "")]
    >>> conclude(both, "the gate does it")
    "Of the paper's 2 claims, 1 holds and 1 fails here: the gate does it."
    >>> conclude([Claim("a", "table 6", None, "")] * 3, "there are few images")
    "None of the paper's 3 claims can be decided here: there are few images."
    >>> conclude([Claim("a", "beyond", True, "")], "it is so", whose="our")
    'Our claim holds here: it is so.'
    """
    verdicts = [claim.held for claim in claims]
    if len(verdicts) == 1:
        return f"{whose[0].upper()}{whose[1:]} claim {_WORDS[verdicts[0]]} here: {why}."
    if len(set(verdicts)) == 1:
        each, none = ("Both", "Neither") if len(verdicts) == 2 else (f"All {len(verdicts)}", "None")
        if verdicts[0] is None:
            return f"{none} of {whose} {len(verdicts)} claims can be decided here: {why}."
        return f"{each} of {whose} claims {_COUNTED[verdicts[0]]} here: {why}."
    counts = {verdict: n for verdict in _WORDS if (n := verdicts.count(verdict))}
    *most, last = (f"{n} {(_WORDS if n == 1 else _COUNTED)[each]}" for each, n in counts.items())
    return f"Of {whose} {len(verdicts)} claims, {', '.join(most)} and {last} here: {why}."

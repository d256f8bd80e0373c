"""Where predictions were read from, and what looked odd on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Origin"]


@dataclass(frozen=True)
class Origin:
    """What an account says of how a table was read.

    Attributes
    ----------
    file : str or None
        Its name; None for what is no file.
    id_column : str or None
        Name of the column or index with the sample ids, if they have one.
    ids : str or None
        In words, where the ids were.
    has_ids : bool
        Whether the table has ids; if not, its rows were counted.
    doubts : tuple of str
        What makes one doubt that the table means what was read.
    """

    file: str | None = None
    id_column: str | None = None
    ids: str | None = None
    has_ids: bool = True
    doubts: tuple[str, ...] = ()

    def of_normalized(self) -> Origin:
        """The same, of a table whose rows were divided by their sums."""
        done = "each row divided by its sum"
        return replace(self, ids=done if self.ids is None else f"{self.ids}, {done}")

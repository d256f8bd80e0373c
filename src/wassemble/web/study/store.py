"""Studies, raters and answers in a database: SQLite, or PostgreSQL by its URL.

Every method is one short transaction; when it returns, what it wrote is on disk.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import Annotated, Any, NoReturn

import sqlalchemy as sa
from fastapi import Depends, FastAPI, Request
from sqlalchemy.dialects import postgresql, sqlite

from wassemble.errors import fail
from wassemble.web.study import tables
from wassemble.web.study.answers import Answer, Given, Participant, Snapshot
from wassemble.web.study.design import Design, Shown, assign, check_raters
from wassemble.web.study.items import Item, read_item

_opening = Lock()


@dataclass(frozen=True)
class Study:
    """A study without its items."""

    id: int
    design: Design
    created_at: str
    is_closed: bool
    n_items: int
    n_raters: int


@dataclass(frozen=True)
class Link:
    """A rater as the operator sees one."""

    id: int
    number: int
    secret: str
    has_begun: bool
    is_closed: bool
    n_done: int
    n_shown: int


@dataclass(frozen=True)
class Rater:
    """A rater as the rater's own pages need one."""

    id: int
    study: int
    design: Design
    shown: tuple[Shown, ...]
    has_consented: bool
    is_closed: bool
    done: frozenset[int]
    """Items, by their place in the study, that are answered in full."""

    @property
    def next_number(self) -> int | None:
        """The first item, counted from 1, that is not answered; None at the end."""
        for number, shown in enumerate(self.shown, start=1):
            if shown.item not in self.done:
                return number
        return None


class Store:
    """Studies in the database at ``url``."""

    def __init__(self, url: str) -> None:
        self._engine = tables.open_engine(url)
        self._writer = self._engine.execution_options(writes=True)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def create_study(self, design: Design, items: list[Item], n_raters: int) -> int:
        """The number of a new study, with links for so many raters."""
        design.check_items(items)
        # Made before the database is locked: raters' answers wait for who has the lock.
        raters = _make_raters(design, items, 0, n_raters)
        records = [{"place": place, "record": item.record()} for place, item in enumerate(items)]
        with self._writer.begin() as connection:
            row = {"design": design.record(), "created_at": _now()}
            study: int = connection.execute(
                tables.studies.insert().values(row).returning(tables.studies.c.id)
            ).scalar_one()
            for table, rows in ((tables.items, records), (tables.raters, raters)):
                connection.execute(table.insert(), [each | {"study": study} for each in rows])
        return study

    def add_raters(self, study: int, n_raters: int) -> None:
        """Links for so many raters more."""
        with self._engine.begin() as connection:
            query = sa.select(tables.studies.c.design).where(tables.studies.c.id == study)
            design = Design.from_record(connection.scalar(query) or _fail_deleted())
            items, first = _read_items(connection, study), _count_raters(connection, study)
        while True:
            raters = _make_raters(design, items, first, n_raters)
            with self._writer.begin() as connection:
                # PostgreSQL: the study's row is the lock under which numbers are given.
                lock = sa.select(tables.studies.c.id).where(tables.studies.c.id == study)
                if connection.scalar(lock.with_for_update()) is None:
                    _fail_deleted()
                count = _count_raters(connection, study)
                if count == first:
                    rows = [each | {"study": study} for each in raters]
                    connection.execute(tables.raters.insert(), rows)
                    return
            first = count  # others were faster

    def list_studies(self) -> list[Study]:
        """All studies, the newest first."""
        return self._find_studies(sa.true())

    def get_study(self, study: int) -> Study | None:
        """The study of that number, if there is one."""
        return next(iter(self._find_studies(tables.studies.c.id == study)), None)

    def set_study_closed(self, study: int, *, is_closed: bool) -> None:
        """Close all links of a study, or open those again that are not closed themselves."""
        self._write(
            tables.studies.update().where(tables.studies.c.id == study).values(is_closed=is_closed)
        )

    def delete_study(self, study: int) -> None:
        """Delete a study with everything that belongs to it."""
        self._write(tables.studies.delete().where(tables.studies.c.id == study))

    def list_links(self, study: int) -> list[Link]:
        """The raters of a study, in order."""
        done = (
            sa.select(tables.answers.c.rater, sa.func.count().label("n_done"))
            .where(tables.answers.c.is_complete)
            .group_by(tables.answers.c.rater)
            .subquery()
        )
        columns = tables.raters.c
        query = (
            sa.select(
                columns.id,
                columns.number,
                columns.secret,
                columns.consented_at.is_not(None).label("has_begun"),
                columns.is_closed,
                sa.func.coalesce(done.c.n_done, 0).label("n_done"),
                sa.func.json_array_length(columns.shown).label("n_shown"),
            )
            .outerjoin(done, done.c.rater == columns.id)
            .where(columns.study == study)
            .order_by(columns.number)
        )
        return [Link(*row) for row in self._read(query)]

    def set_link_closed(self, study: int, rater: int, *, is_closed: bool) -> bool:
        """Close or open one link; whether the study has such a rater."""
        which = (tables.raters.c.study == study) & (tables.raters.c.id == rater)
        return self._write(tables.raters.update().where(which).values(is_closed=is_closed)) == 1

    def find_rater(self, secret: str) -> Rater | None:
        """The rater with that secret, if there is one."""
        columns = tables.raters.c
        query = (
            sa.select(
                tables.raters,
                tables.studies.c.design,
                tables.studies.c.is_closed.label("is_study_closed"),
            )
            .join(tables.studies, tables.studies.c.id == columns.study)
            .where(columns.secret == secret)
        )
        rows = self._read(query)
        if not rows:
            return None
        [row] = rows
        which = (tables.answers.c.rater == row.id) & tables.answers.c.is_complete
        done = self._read(sa.select(tables.answers.c.item).where(which))
        return Rater(
            row.id,
            row.study,
            Design.from_record(row.design),
            _read_shown(row.shown),
            row.consented_at is not None,
            row.is_closed or row.is_study_closed,
            frozenset(each.item for each in done),
        )

    def consent(self, rater: int) -> None:
        """Remember that a rater agreed, and when first."""
        which = (tables.raters.c.id == rater) & tables.raters.c.consented_at.is_(None)
        self._write(tables.raters.update().where(which).values(consented_at=_now()))

    def get_item(self, study: int, place: int) -> Item:
        """One item of a study."""
        which = (tables.items.c.study == study) & (tables.items.c.place == place)
        rows = self._read(sa.select(tables.items.c.record).where(which)) or _fail_deleted()
        return read_item(rows[0].record, f"item {place} of study {study}")

    def get_answer(self, rater: int, item: int) -> Answer | None:
        """What a rater said of an item so far."""
        which = (tables.answers.c.rater == rater) & (tables.answers.c.item == item)
        rows = self._read(sa.select(tables.answers.c.record).where(which))
        return Answer.from_record(rows[0].record) if rows else None

    def save_answer(self, rater: int, item: int, answer: Answer) -> bool:
        """Keep an answer in place of an earlier one; a part never replaces a whole one.

        The same answer twice is the same as once. A part comes from a page that was left, or
        from a second tab that knows less. Returns whether the answer was kept.
        """
        is_sqlite = self._engine.dialect.name == "sqlite"
        insert: Any = (sqlite.insert if is_sqlite else postgresql.insert)(tables.answers)
        row = {
            "rater": rater,
            "item": item,
            "record": answer.record(),
            "is_complete": answer.is_complete,
            "answered_at": _now(),
        }
        new = insert.excluded
        statement = insert.values(row).on_conflict_do_update(
            index_elements=["rater", "item"],
            set_={name: new[name] for name in ("record", "is_complete", "answered_at")},
            where=new.is_complete | ~tables.answers.c.is_complete,
        )
        try:
            with self._writer.begin() as connection:
                written = connection.execute(statement.returning(tables.answers.c.item))
                return written.one_or_none() is not None
        except sa.exc.IntegrityError:  # the rater went with the study
            _fail_deleted()

    def take_snapshot(self, study: int, *, only_answered: bool = False) -> Snapshot:
        """All of a study at this moment, or without raters who gave no answer."""
        raters = tables.raters.c
        which = raters.study == study
        if only_answered:
            which &= sa.exists().where(tables.answers.c.rater == raters.id)
        with self._engine.begin() as connection:
            if self._engine.dialect.name == "postgresql":  # all queries see the same moment
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            query = sa.select(tables.studies).where(tables.studies.c.id == study)
            head = connection.execute(query).one_or_none() or _fail_deleted()
            items = _read_items(connection, study)
            people = connection.execute(
                sa.select(tables.raters).where(which).order_by(raters.number)
            ).all()
            said = connection.execute(
                sa.select(tables.answers)
                .join(tables.raters, raters.id == tables.answers.c.rater)
                .where(raters.study == study)
                .order_by(tables.answers.c.item)
            ).all()
        given: dict[int, list[Given]] = {row.id: [] for row in people}
        for row in said:
            answer = Answer.from_record(row.record)
            given[row.rater].append(Given(answer.scores, answer.best, row.item, row.answered_at))
        return Snapshot(
            Design.from_record(head.design),
            head.created_at,
            head.is_closed,
            tuple(items),
            tuple(
                Participant(
                    row.number,
                    _read_shown(row.shown),
                    row.consented_at,
                    row.is_closed,
                    tuple(given[row.id]),
                )
                for row in people
            ),
        )

    def _find_studies(self, which: sa.ColumnElement[bool]) -> list[Study]:
        studies = tables.studies.c
        counts = [
            sa.select(sa.func.count()).where(each.c.study == studies.id).scalar_subquery()
            for each in (tables.items, tables.raters)
        ]
        return [
            Study(row.id, Design.from_record(row.design), row.created_at, row.is_closed, *row[-2:])
            for row in self._read(
                sa.select(tables.studies, *counts).where(which).order_by(studies.id.desc())
            )
        ]

    def _read(self, query: sa.Select) -> Sequence[sa.Row]:
        with self._engine.begin() as connection:
            return connection.execute(query).all()

    def _write(self, statement: Any) -> int:
        with self._writer.begin() as connection:
            return connection.execute(statement).rowcount


def _make_raters(
    design: Design, items: list[Item], first: int, n_raters: int
) -> list[dict[str, Any]]:
    """Rows of raters from number ``first``, counted from 0, on."""
    check_raters(items, design, first, n_raters)
    return [
        {
            "number": number + 1,
            "secret": secrets.token_urlsafe(24),
            "shown": [[each.item, list(each.order)] for each in assign(items, design, number)],
        }
        for number in range(first, first + n_raters)
    ]


def _count_raters(connection: sa.Connection, study: int) -> int:
    query = sa.select(sa.func.count()).where(tables.raters.c.study == study)
    return connection.scalar(query) or 0


def _read_items(connection: sa.Connection, study: int) -> list[Item]:
    columns = tables.items.c
    query = sa.select(columns.record).where(columns.study == study).order_by(columns.place)
    return [read_item(record, f"study {study}") for record in connection.scalars(query)]


def _read_shown(record: list[Any]) -> tuple[Shown, ...]:
    return tuple(Shown(item, tuple(order)) for item, order in record)


def _fail_deleted() -> NoReturn:
    """A study may be deleted while one of its pages is being made."""
    fail("the study must still be there; it was deleted.")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _open_store(request: Request) -> Store:
    """The app's store, opened when it is first asked for."""
    state = request.app.state
    with _opening:
        if not hasattr(state, "study_store"):
            state.study_store = Store(state.settings.database)
    store: Store = state.study_store
    return store


def close_store(app: FastAPI) -> None:
    """Close the app's store, if it was opened."""
    if hasattr(app.state, "study_store"):
        app.state.study_store.close()


OpenStore = Annotated[Store, Depends(_open_store)]

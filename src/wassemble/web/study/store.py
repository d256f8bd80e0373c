"""Studies, raters and answers in a database: SQLite, or PostgreSQL by its URL.

Every method is one short transaction; when it returns, what it wrote is on disk.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Annotated, Any, NoReturn

import sqlalchemy as sa
from fastapi import Depends, FastAPI, Request
from sqlalchemy.dialects import postgresql, sqlite

from wassemble.errors import fail
from wassemble.web.study import tables
from wassemble.web.study.answers import Answer, Given, Participant, Person, Snapshot
from wassemble.web.study.design import Design, Shown, assign, check_raters
from wassemble.web.study.items import Item, read_item
from wassemble.web.study.pictures import Picture

SECRET = re.compile(r"[\w-]{32}", re.ASCII)
"""What links of raters end in."""

_opening = Lock()


@dataclass(frozen=True)
class Study:
    """A study without its items."""

    id: int
    design: Design
    created_at: str
    is_closed: bool
    join_key: str | None  # what the link ends in by which anybody may join
    n_declined: int  # of those who came by that link
    n_items: int
    n_raters: int


@dataclass(frozen=True)
class Link:
    """A rater, or a place that is free, as the operator sees one."""

    id: int
    number: int
    secret: str
    person: Person
    has_begun: bool
    has_joined: bool
    is_closed: bool
    is_finished: bool
    left: str | None
    n_done: int
    n_shown: int
    seconds: float

    @property
    def state(self) -> str:
        """Where the rater is, in a word or two."""
        if self.is_finished:
            return "closed, finished" if self.is_closed else "finished"
        if self.left is not None:
            return self.left
        if self.is_closed:
            return "closed"
        return "begun" if self.has_begun else "not begun"


@dataclass(frozen=True)
class Rater:
    """A rater as the rater's own pages need one."""

    id: int
    study: int
    design: Design
    shown: tuple[Shown, ...]
    has_consented: bool
    is_closed: bool
    left: str | None
    person: Person
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

    def create_study(
        self,
        design: Design,
        items: list[Item],
        n_raters: int,
        *,
        pictures: Mapping[str, Picture] | None = None,
        is_joinable: bool = False,
    ) -> int:
        """The number of a new study, with links for so many raters, or places to join."""
        design.check_items(items)
        # Made before the database is locked: raters' answers wait for who has the lock.
        raters = _make_raters(design, items, n_raters)
        records = [{"place": place, "record": item.record()} for place, item in enumerate(items)]
        sent = [{"name": name, **vars(picture)} for name, picture in (pictures or {}).items()]
        key = secrets.token_urlsafe(9) if is_joinable else None
        with self._writer.begin() as connection:
            row = {"design": design.record(), "created_at": _now(), "join_key": key}
            study: int = connection.execute(
                tables.studies.insert().values(row).returning(tables.studies.c.id)
            ).scalar_one()
            of_study = ((tables.items, records), (tables.raters, raters), (tables.pictures, sent))
            for table, rows in of_study:
                if rows:
                    connection.execute(table.insert(), [each | {"study": study} for each in rows])
        return study

    def add_raters(self, study: int, n_raters: int) -> None:
        """Links for so many raters more."""
        with self._engine.begin() as connection:
            query = sa.select(tables.studies.c.design).where(tables.studies.c.id == study)
            design = Design.from_record(connection.scalar(query) or _fail_deleted())
            items, before = _read_items(connection, study), _count_raters(connection, study)
        while True:
            raters = _make_raters(design, items, n_raters, *before)
            with self._writer.begin() as connection:
                _lock(connection, study)
                now = _count_raters(connection, study)
                if now == before:
                    rows = [each | {"study": study} for each in raters]
                    connection.execute(tables.raters.insert(), rows)
                    return
            before = now  # others were faster

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
            sa.select(
                tables.answers.c.rater,
                sa.func.count().label("n_done"),
                sa.func.sum(tables.answers.c.seconds).label("seconds"),
            )
            .where(tables.answers.c.is_complete)
            .group_by(tables.answers.c.rater)
            .subquery()
        )
        columns = tables.raters.c
        query = (
            sa.select(
                tables.raters,
                sa.func.coalesce(done.c.n_done, 0).label("n_done"),
                sa.func.json_array_length(columns.shown).label("n_shown"),
                sa.func.coalesce(done.c.seconds, 0).label("seconds"),
            )
            .outerjoin(done, done.c.rater == columns.id)
            .where(columns.study == study)
            .order_by(columns.number)
        )
        return [
            Link(
                row.id,
                row.number,
                row.secret,
                _read_person(row),
                row.consented_at is not None,
                row.joined_at is not None,
                row.is_closed,
                row.finished_at is not None,
                row.left_study,
                row.n_done,
                row.n_shown,
                row.seconds,
            )
            for row in self._read(query)
        ]

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
            row.left_study,
            _read_person(row),
            frozenset(each.item for each in done),
        )

    def consent(self, rater: int) -> None:
        """Remember that a rater agreed, and when first."""
        which = (tables.raters.c.id == rater) & tables.raters.c.consented_at.is_(None)
        new = {"consented_at": _now(), "left_study": None}
        self._write(tables.raters.update().where(which).values(new))

    def decline(self, rater: int) -> None:
        """Remember that the owner of a link does not want to begin; they may still."""
        which = (tables.raters.c.id == rater) & tables.raters.c.consented_at.is_(None)
        self._write(tables.raters.update().where(which).values(left_study="declined"))

    def withdraw(self, rater: int) -> None:
        """Delete what a rater answered, and close the link; a joined place is free again."""
        columns = tables.raters.c
        own = sa.select(columns.study).where(columns.id == rater).scalar_subquery()
        with self._writer.begin() as connection:
            _lock(connection, own)
            connection.execute(tables.answers.delete().where(tables.answers.c.rater == rater))
            self._give_back(connection, columns.id == rater, "withdrawn")

    def find_open_study(self, key: str) -> Study | None:
        """The study that may be joined by a link which ends in ``key``."""
        return next(iter(self._find_studies(tables.studies.c.join_key == key)), None)

    def find_secret(self, study: int, participant: str) -> str | None:
        """The secret of a participant's place, if they joined before and did not withdraw."""
        with self._engine.begin() as connection:
            return _find_secret(connection, study, participant)

    def count_free(self, study: Study) -> int:
        """How many places could be joined now."""
        columns = tables.raters.c
        free = (columns.study == study.id) & ~columns.is_closed
        free &= columns.joined_at.is_(None) | _is_late(study.design)
        [[count]] = self._read(sa.select(sa.func.count()).where(free))
        return int(count)

    def join(self, study: Study, person: Person) -> str | None:
        """The secret of the place of a person who agrees; None if all places are taken.

        Who comes again, under the same name, comes to the same place. Places of those who did
        not finish in time are given to others only when there is no free one.
        """
        columns = tables.raters.c
        free = (columns.study == study.id) & columns.joined_at.is_(None) & ~columns.is_closed
        first = sa.select(columns.id, columns.secret).where(free).order_by(columns.number).limit(1)
        with self._writer.begin() as connection:
            _lock(connection, study.id)
            known = _find_secret(connection, study.id, person.participant)
            if known is not None:
                return known
            row = connection.execute(first).one_or_none()
            if row is None:
                late = (columns.study == study.id) & _is_late(study.design)
                self._give_back(connection, late, "late")
                row = connection.execute(first).one_or_none()
            if row is None:
                return None
            now = _now()
            new = asdict(person) | {"joined_at": now, "consented_at": now}
            connection.execute(tables.raters.update().where(columns.id == row.id).values(new))
            secret: str = row.secret
            return secret

    def count_declined(self, study: int) -> None:
        """One more of those who came to join does not want to."""
        columns = tables.studies.c
        more = {"n_declined": columns.n_declined + 1}
        self._write(tables.studies.update().where(columns.id == study).values(more))

    def _give_back(
        self, connection: sa.Connection, which: sa.ColumnElement[bool], why: str
    ) -> None:
        """Close links that are open, and make a free place like each of those that were joined."""
        columns = tables.raters.c
        rows = connection.execute(sa.select(tables.raters).where(which & ~columns.is_closed)).all()
        connection.execute(
            tables.raters.update()
            .where(columns.id.in_([row.id for row in rows]))
            .values(is_closed=True, left_study=why)
        )
        for row in rows:
            if row.joined_at is not None:
                last = sa.select(sa.func.max(columns.number)).where(columns.study == row.study)
                new = {"study": row.study, "number": last.scalar_subquery() + 1}
                new |= {"secret": secrets.token_urlsafe(24), "shown": row.shown}
                connection.execute(tables.raters.insert().values(new))

    def get_picture(self, study: int, name: str) -> Picture | None:
        """A picture that was sent with a study."""
        which = (tables.pictures.c.study == study) & (tables.pictures.c.name == name)
        columns = (tables.pictures.c.media_type, tables.pictures.c.content)
        rows = self._read(sa.select(*columns).where(which))
        return Picture(*rows[0]) if rows else None

    def list_items(self, study: int) -> list[Item]:
        """All items of a study."""
        with self._engine.begin() as connection:
            return _read_items(connection, study)

    def count_shown(self, study: int) -> int:
        """How many items each rater sees."""
        columns = tables.raters.c
        length = sa.func.json_array_length(columns.shown)
        rows = self._read(sa.select(length).where(columns.study == study).limit(1))
        return int(rows[0][0]) if rows else _fail_deleted()

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

    def save_answer(
        self,
        rater: int,
        item: int,
        answer: Answer,
        *,
        seconds: float | None = None,
        visit: str = "",
    ) -> bool:
        """Keep an answer in place of an earlier one; a part never replaces a whole one.

        The same answer twice is the same as once. A part comes from a page that was left, or
        from a second tab that knows less. ``seconds`` of each ``visit`` of the item's page add up.
        Returns whether the answer was kept.
        """
        is_sqlite = self._engine.dialect.name == "sqlite"
        insert: Any = (sqlite.insert if is_sqlite else postgresql.insert)(tables.answers)
        row = {
            "rater": rater,
            "item": item,
            "record": answer.said,
            "is_complete": answer.is_complete,
            "answered_at": _now(),
            "seconds": seconds,
            "visit": visit,
        }
        new, old = insert.excluded, tables.answers.c
        more = sa.case((old.visit == new.visit, None), else_=new.seconds)
        spent = sa.func.coalesce(old.seconds + more, old.seconds, more)
        statement = insert.values(row).on_conflict_do_update(
            index_elements=["rater", "item"],
            set_={name: new[name] for name in ("record", "is_complete", "answered_at", "visit")}
            | {"seconds": spent},
            where=new.is_complete | ~old.is_complete,
        )
        try:
            with self._writer.begin() as connection:
                written = connection.execute(statement.returning(old.item))
                is_kept = written.one_or_none() is not None
                if is_kept and answer.is_complete:
                    connection.execute(tables.finish_raters().where(tables.raters.c.id == rater))
                return is_kept
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
            given[row.rater].append(Given(answer.said, row.item, row.answered_at, row.seconds))
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
                    _read_person(row),
                    row.finished_at,
                    row.left_study,
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
            Study(
                row.id,
                Design.from_record(row.design),
                row.created_at,
                row.is_closed,
                row.join_key,
                row.n_declined,
                *row[-2:],
            )
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
    design: Design, items: list[Item], n_raters: int, n_before: int = 0, n_given_back: int = 0
) -> list[dict[str, Any]]:
    """Rows of raters beside those that there are, some of whom gave back what they were shown."""
    first = n_before - n_given_back
    check_raters(items, design, first, n_raters)
    return [
        {
            "number": n_before + more + 1,
            "secret": secrets.token_urlsafe(24),
            "shown": [
                [each.item, list(each.order)] for each in assign(items, design, first + more)
            ],
        }
        for more in range(n_raters)
    ]


def _count_raters(connection: sa.Connection, study: int) -> tuple[int, int]:
    """How many raters a study has, and how many of their places were given to others."""
    columns = tables.raters.c
    is_given = columns.joined_at.is_not(None) & columns.left_study.is_not(None)
    counts = (sa.func.count(), sa.func.coalesce(sa.func.sum(sa.case((is_given, 1), else_=0)), 0))
    [n_all, n_given] = connection.execute(sa.select(*counts).where(columns.study == study)).one()
    return n_all, n_given


def _lock(connection: sa.Connection, study: Any) -> None:
    """Let nobody else number raters or give places of a study meanwhile."""
    query = sa.select(tables.studies.c.id).where(tables.studies.c.id == study)
    # SQLite has one writer at a time; in PostgreSQL the study's row is the lock.
    if connection.scalar(query.with_for_update()) is None:
        _fail_deleted()


def _read_items(connection: sa.Connection, study: int) -> list[Item]:
    columns = tables.items.c
    query = sa.select(columns.record).where(columns.study == study).order_by(columns.place)
    return [read_item(record, f"study {study}") for record in connection.scalars(query)]


def _read_shown(record: list[Any]) -> tuple[Shown, ...]:
    return tuple(Shown(item, tuple(order)) for item, order in record)


def _find_secret(connection: sa.Connection, study: int, participant: str) -> str | None:
    if not participant:
        return None
    columns = tables.raters.c
    which = (columns.study == study) & (columns.participant == participant)
    which &= sa.func.coalesce(columns.left_study, "") != "withdrawn"
    query = sa.select(columns.secret).where(which).order_by(columns.number.desc())
    return connection.scalar(query.limit(1))


def _read_person(row: sa.Row) -> Person:
    return Person(row.participant, row.task, row.session)


def _is_late(design: Design) -> sa.ColumnElement[bool]:
    """Of raters who joined: whether they should have finished by now."""
    before = _tell(datetime.now(UTC) - timedelta(minutes=design.hold_minutes))
    return (tables.raters.c.joined_at < before) & tables.raters.c.finished_at.is_(None)


def _fail_deleted() -> NoReturn:
    """A study may be deleted while one of its pages is being made."""
    fail("the study must still be there; it was deleted.")


def _now() -> str:
    return _tell(datetime.now(UTC))


def _tell(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


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

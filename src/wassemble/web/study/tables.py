"""The database of studies: its tables, and an engine that keeps what it has acknowledged."""

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from wassemble import __version__
from wassemble.errors import InvalidInputError, fail
from wassemble.web.study.questions import PAPER

SCHEMA_VERSION = 3
_LOCK = 0x7761737365  # any number that PostgreSQL's other users will not take
_WAIT_SECONDS = 10

_metadata = sa.MetaData()

_schema = sa.Table(
    "study_schema",
    _metadata,
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("written_by", sa.Text, nullable=False),  # the version of wassemble
)

studies = sa.Table(
    "studies",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("design", sa.JSON, nullable=False),
    sa.Column("created_at", sa.Text, nullable=False),
    sa.Column("is_closed", sa.Boolean, nullable=False, default=False),
    # What the link ends in by which anybody may join; none where each rater has a link.
    sa.Column("join_key", sa.Text),
    sa.Column("n_declined", sa.Integer, nullable=False, server_default="0"),
    sqlite_autoincrement=True,  # an old address never shows a newer study
)
_join_keys = sa.Index("study_join_keys", studies.c.join_key, unique=True)


def _study() -> sa.Column[int]:
    return sa.Column("study", sa.ForeignKey("studies.id", ondelete="CASCADE"), nullable=False)


items = sa.Table(
    "study_items",
    _metadata,
    _study(),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("record", sa.JSON, nullable=False),
    sa.PrimaryKeyConstraint("study", "place"),
)

# Pictures that were sent with a study go with it, and have no paths.
pictures = sa.Table(
    "study_pictures",
    _metadata,
    _study(),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.PrimaryKeyConstraint("study", "name"),
)

# The secret is kept as it is: the operator must be able to show a link again. Whoever reads
# the database has the answers anyway, so a hash would protect nothing more.
raters = sa.Table(
    "study_raters",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    _study(),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("secret", sa.Text, nullable=False, unique=True),
    sa.Column("shown", sa.JSON, nullable=False),
    sa.Column("consented_at", sa.Text),
    sa.Column("is_closed", sa.Boolean, nullable=False, default=False),
    sa.Column("participant", sa.Text, nullable=False, server_default=""),
    sa.Column("task", sa.Text, nullable=False, server_default=""),
    sa.Column("session", sa.Text, nullable=False, server_default=""),
    sa.Column("joined_at", sa.Text),  # none: the place is free, or the link was handed out by hand
    sa.Column("finished_at", sa.Text),
    sa.Column("left_study", sa.Text),  # late, declined or withdrawn
    sa.UniqueConstraint("study", "number"),
    sqlite_autoincrement=True,
)

answers = sa.Table(
    "study_answers",
    _metadata,
    sa.Column("rater", sa.ForeignKey("study_raters.id", ondelete="CASCADE"), nullable=False),
    sa.Column("item", sa.Integer, nullable=False),
    sa.Column("record", sa.JSON, nullable=False),
    sa.Column("is_complete", sa.Boolean, nullable=False),
    sa.Column("answered_at", sa.Text, nullable=False),
    sa.Column("seconds", sa.Float),
    sa.Column("visit", sa.Text),  # of the page that was last counted: a form may be sent twice
    sa.PrimaryKeyConstraint("rater", "item"),
)


def open_engine(url: str) -> sa.Engine:
    """An engine for the database at ``url``, with the tables of this version in it."""
    engine = _make_engine(url)
    try:
        # All or nothing: what is cut off while tables change leaves them as they were.
        with engine.execution_options(writes=True).begin() as connection:
            if engine.dialect.name == "postgresql":  # two servers may start at once
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            _bring_up_to_date(connection)
    except sa.exc.DBAPIError as error:
        engine.dispose()
        reason = str(error.orig).strip().split("\n")[0]
        fail(f"the database {engine.url!r} must be one that can be opened; got: {reason}.")
    except InvalidInputError:
        engine.dispose()
        raise
    return engine


def _bring_up_to_date(connection: sa.Connection) -> None:
    version = 0
    if sa.inspect(connection).has_table(_schema.name):
        version = connection.scalar(sa.select(sa.func.max(_schema.c.version))) or 0
    if version > SCHEMA_VERSION:
        writer = connection.scalar(sa.select(sa.func.max(_schema.c.written_by)))
        fail(
            f"the studies in {connection.engine.url!r} must be of version {SCHEMA_VERSION} or"
            f" before; got version {version}.",
            hint=f"wassemble {writer} wrote them; use that one, or another database",
        )
    for step in range(version, SCHEMA_VERSION) if version else ():
        _STEPS[step](connection)
    _metadata.create_all(connection)
    if version < SCHEMA_VERSION:
        connection.execute(_schema.delete())
        connection.execute(_schema.insert().values(version=SCHEMA_VERSION, written_by=__version__))


def _add_writer(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE study_schema ADD written_by TEXT NOT NULL DEFAULT ''")


def _add_questions(connection: sa.Connection) -> None:
    """Designs with questions instead of scales; columns for those who join."""
    for column in (
        *("studies ADD join_key TEXT", "studies ADD n_declined INTEGER NOT NULL DEFAULT 0"),
        *(
            f"study_raters ADD {name} TEXT NOT NULL DEFAULT ''"
            for name in ("participant", "task", "session")
        ),
        *(f"study_raters ADD {name} TEXT" for name in ("joined_at", "finished_at", "left_study")),
        *("study_answers ADD seconds FLOAT", "study_answers ADD visit TEXT"),
    ):
        connection.exec_driver_sql(f"ALTER TABLE {column}")
    _join_keys.create(connection)
    _rewrite(connection, studies, (studies.c.id,), "design", _with_questions)
    _rewrite(connection, answers, (answers.c.rater, answers.c.item), "record", _by_question)
    connection.execute(finish_raters())


def finish_raters() -> sa.Update:
    """Note of all raters who have answered everything that they did, and when they last did."""
    own = (answers.c.rater == raters.c.id) & answers.c.is_complete
    count = sa.select(sa.func.count()).where(own).scalar_subquery()
    last = sa.select(sa.func.max(answers.c.answered_at)).where(own).scalar_subquery()
    is_done = count == sa.func.json_array_length(raters.c.shown)
    return raters.update().where(raters.c.finished_at.is_(None) & is_done).values(finished_at=last)


def _rewrite(
    connection: sa.Connection,
    table: sa.Table,
    key: tuple[sa.Column[int], ...],
    name: str,
    change: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    """Change the JSON of one column, in all rows."""
    for *place, record in connection.execute(sa.select(*key, table.c[name])).all():
        which = sa.and_(*(column == value for column, value in zip(key, place, strict=True)))
        connection.execute(table.update().where(which).values({name: change(record)}))


_BEST = {"correctness": "most correct", "detail": "most detailed"}


def _with_questions(design: dict[str, Any]) -> dict[str, Any]:
    scales = design.pop("scales")
    wanted = {*scales, *(_BEST[scale] for scale in scales)}
    return design | {"questions": [asdict(each) for each in PAPER if each.name in wanted]}


def _by_question(answer: dict[str, Any]) -> dict[str, Any]:
    return answer["scores"] | {_BEST[scale]: best for scale, best in answer["best"].items()}


# What makes the tables of a version those of the next.
_STEPS = {1: _add_writer, 2: _add_questions}


def _make_engine(url: str) -> sa.Engine:
    # Parameters, which may be secrets of links, are hidden: errors go into the log.
    try:
        parsed = sa.make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() not in ("sqlite", "postgresql"):
            fail(f"`database` must be a sqlite or postgresql URL; got {parsed!r}.")
        if parsed.get_backend_name() == "postgresql":
            return sa.create_engine(parsed, pool_pre_ping=True, hide_parameters=True)
        if not parsed.database or parsed.database == ":memory:":
            fail(f"`database` must name a file, as sqlite:///study.db; got {url!r}.")
        path = Path(parsed.database)
        try:  # links are in it: only its owner may read it
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            fail(f"`database` must be a file that can be written; got {path}: {error.strerror}.")
        engine = sa.create_engine(
            parsed, hide_parameters=True, connect_args={"timeout": _WAIT_SECONDS}
        )
    except sa.exc.ArgumentError:
        fail("`database` must be a URL, as sqlite:///study.db or postgresql://user@host/name.")
    except ModuleNotFoundError as error:
        fail(f"`database` needs {error.name}.", hint="pip install 'psycopg[binary]'")
    sa.event.listen(engine, "connect", _set_up_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # the driver begins nothing on its own
    connection.execute("PRAGMA journal_mode=WAL")
    # FULL: each commit is on disk before it is acknowledged, so it outlives a power cut too.
    # NORMAL would be enough for a killed process, but saves only milliseconds per answer.
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")


def _begin_sqlite(connection: sa.Connection) -> None:
    # A transaction that will write takes the lock first: one that reads and then writes could
    # find that another was faster, and fail instead of waiting.
    is_writer = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writer else "BEGIN")

"""The same on SQLite and on PostgreSQL."""

import random
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from web.study.people import make_items, random_answer

from wassemble import __version__
from wassemble.errors import InvalidInputError
from wassemble.web.study import tables
from wassemble.web.study.answers import Answer
from wassemble.web.study.design import Design, assign
from wassemble.web.study.questions import PAPER
from wassemble.web.study.store import Store

DESIGN = Design("Ein Versuch: ü < 'x'")


@pytest.fixture
def study(store):
    return store.create_study(DESIGN, make_items(), 3)


def raters(store, study):
    return [store.find_rater(link.secret) for link in store.list_links(study)]


def test_a_study_is_as_it_was_made(store, study):
    [found] = store.list_studies()
    assert found == store.get_study(study)
    assert (found.id, found.design, found.n_items, found.n_raters) == (study, DESIGN, 7, 3)
    assert not found.is_closed
    assert [store.get_item(study, place) for place in range(7)] == make_items()


def test_each_rater_has_an_own_long_link_and_an_own_order(store, study):
    links = store.list_links(study)
    assert [link.number for link in links] == [1, 2, 3]
    assert len({link.secret for link in links}) == 3
    assert all(len(link.secret) == 32 for link in links)
    for number, rater in enumerate(raters(store, study)):
        assert rater.shown == assign(make_items(), DESIGN, number)
        assert not rater.has_consented
        assert rater.next_number == 1


def test_more_raters_go_on_where_the_others_ended(store, study):
    store.add_raters(study, 2)
    assert [link.number for link in store.list_links(study)] == [1, 2, 3, 4, 5]
    assert raters(store, study)[4].shown == assign(make_items(), DESIGN, 4)


def test_an_unknown_secret_finds_nobody(store, study):
    assert store.find_rater("x" * 32) is None
    assert store.get_study(study + 1) is None


def test_an_answer_is_there_for_who_opens_the_database_again(store, study, open_store):
    rater = raters(store, study)[0]
    said = {}
    for place in (0, 2, 5):
        said[place] = random_answer(make_items()[place], random.Random(place))
        store.save_answer(rater.id, place, said[place])
    store.consent(rater.id)
    again = open_store()
    assert {place: again.get_answer(rater.id, place) for place in said} == said
    found = raters(again, study)[0]
    assert found.done == {0, 2, 5}
    assert found.has_consented
    assert found.shown[found.next_number - 1].item not in found.done
    assert all(shown.item in found.done for shown in found.shown[: found.next_number - 1])
    assert again.list_links(study)[0].n_done == 3


def test_the_last_whole_answer_counts(store, study):
    rater = raters(store, study)[0]
    first, second = (random_answer(make_items()[0], random.Random(seed)) for seed in (1, 2))
    assert first != second
    for answer in (first, second, second):
        store.save_answer(rater.id, 0, answer)
    assert store.get_answer(rater.id, 0) == second


def test_a_part_is_kept_but_never_replaces_a_whole_answer(store, study):
    rater = raters(store, study)[0]
    said = {q.name: (3, None, None) if q.kind == "grade" else None for q in PAPER}
    part = Answer(said)
    whole = random_answer(make_items()[0], random.Random(1))
    store.save_answer(rater.id, 0, part)
    assert store.get_answer(rater.id, 0) == part
    assert raters(store, study)[0].done == frozenset()
    assert store.save_answer(rater.id, 0, whole)
    assert not store.save_answer(rater.id, 0, part)
    assert store.get_answer(rater.id, 0) == whole
    assert raters(store, study)[0].done == {0}


def test_consent_is_remembered_from_the_first_time(store, study):
    rater = raters(store, study)[0]
    store.consent(rater.id)
    before = store.take_snapshot(study).raters[0].consented_at
    store.consent(rater.id)
    assert store.take_snapshot(study).raters[0].consented_at == before is not None


def test_links_and_studies_close_and_open(store, study):
    first = store.list_links(study)[0]
    assert store.set_link_closed(study, first.id, is_closed=True)
    assert [rater.is_closed for rater in raters(store, study)] == [True, False, False]
    store.set_study_closed(study, is_closed=True)
    assert all(rater.is_closed for rater in raters(store, study))
    store.set_study_closed(study, is_closed=False)
    assert store.set_link_closed(study, first.id, is_closed=False)
    assert not any(rater.is_closed for rater in raters(store, study))
    other = store.create_study(DESIGN, make_items(), 1)
    assert not store.set_link_closed(other, first.id, is_closed=True)


def test_a_study_goes_with_everything_that_belongs_to_it(store, study, database):
    other = store.create_study(DESIGN, make_items(), 1)
    rater = raters(store, study)[0]
    store.save_answer(rater.id, 0, random_answer(make_items()[0], random.Random(0)))
    store.delete_study(study)
    assert [found.id for found in store.list_studies()] == [other]
    engine = tables.open_engine(database)
    with engine.connect() as connection:
        for table in (tables.items, tables.raters):
            owners = connection.scalars(sa.select(table.c.study).distinct()).all()
            assert owners == [other]
        assert connection.execute(sa.select(tables.answers)).all() == []
    engine.dispose()
    store.delete_study(other)
    assert store.create_study(DESIGN, make_items(), 1) not in (study, other)  # no number again
    for late in (
        lambda: store.save_answer(rater.id, 0, Answer({})),
        lambda: store.take_snapshot(study),
        lambda: store.add_raters(study, 1),
        lambda: store.get_item(study, 0),
    ):
        with pytest.raises(InvalidInputError, match="it was deleted"):
            late()


def test_a_study_that_cannot_be_is_not_half_made(store):
    design = Design("A study", is_repeated=False)
    with pytest.raises(InvalidInputError, match="`n_raters` must be at most 1"):
        store.create_study(design, make_items(), 2)
    with pytest.raises(InvalidInputError, match="`n_raters` must be from 1 to 10000; got 0"):
        store.create_study(DESIGN, make_items(), 0)
    assert store.list_studies() == []


def test_a_study_that_shows_too_much_is_refused(store, study, monkeypatch):
    monkeypatch.setattr("wassemble.web.study.design._MAX_SHOWN", 28)
    store.add_raters(study, 1)
    for late in (
        lambda: store.add_raters(study, 1),
        lambda: store.create_study(DESIGN, make_items(), 5),
    ):
        with pytest.raises(InvalidInputError, match=r"at most 28 items .* 5 raters with 7 items"):
            late()


def test_nothing_is_assigned_while_the_database_is_locked(store, study, open_store, monkeypatch):
    """Another writer gets through at any moment in which raters are given their items."""
    other, real = open_store(), assign

    def assign_and_write(*arguments):
        other.set_study_closed(study, is_closed=False)
        return real(*arguments)

    monkeypatch.setattr("wassemble.web.study.store.assign", assign_and_write)
    store.add_raters(study, 1)
    store.create_study(DESIGN, make_items(), 1)
    assert [link.n_shown for link in store.list_links(study)] == [7] * 4


def test_results_leave_out_who_gave_no_answer(store, study):
    rater = raters(store, study)[1]
    store.save_answer(rater.id, 0, random_answer(make_items()[0], random.Random(0)))
    whole, part = store.take_snapshot(study), store.take_snapshot(study, only_answered=True)
    assert [each.number for each in part.raters] == [2]
    assert part.raters[0] == whole.raters[1]


def test_errors_do_not_tell_secrets(database):
    engine = tables.open_engine(database)
    with engine.connect() as connection, pytest.raises(sa.exc.DBAPIError) as caught:
        connection.execute(
            sa.text("SELECT missing FROM study_raters WHERE secret = :s"), {"s": "x7"}
        )
    engine.dispose()
    assert "x7" not in str(caught.value)


def test_a_snapshot_has_everything_but_the_secrets(store, study):
    rater = raters(store, study)[1]
    answer = random_answer(make_items()[3], random.Random(0))
    store.save_answer(rater.id, 3, answer)
    found = store.take_snapshot(study)
    assert found.items == tuple(make_items())
    assert found.design == DESIGN
    assert [each.number for each in found.raters] == [1, 2, 3]
    complete = [
        {place: Answer(each.said) for place, each in rater.complete.items()}
        for rater in found.raters
    ]
    assert complete == [{}, {3: answer}, {}]
    assert not any(link.secret in str(found) for link in store.list_links(study))


def test_many_writers_at_once_lose_nothing(store, study, open_store):
    stores = [store, open_store()]
    people = raters(store, study)
    said = {
        (rater.id, place): random_answer(make_items()[place], random.Random(f"{rater.id} {place}"))
        for rater in people
        for place in range(7)
    }

    def write(job):
        number, ((rater, place), answer) = job
        stores[number % 2].save_answer(rater, place, answer)
        if number % 7 == 0:
            stores[number % 2].add_raters(study, 1)

    jobs = list(enumerate(list(said.items()) * 3))
    random.Random(0).shuffle(jobs)
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(write, jobs))
    assert {key: store.get_answer(*key) for key in said} == said
    assert [link.number for link in store.list_links(study)] == list(range(1, 13))


def test_two_servers_may_start_at_once(database):
    with ThreadPoolExecutor(4) as pool:
        for store in pool.map(Store, [database] * 4):
            assert store.list_studies() == []
            store.close()


def test_a_later_version_is_one_clear_error(store, database):
    engine = tables.open_engine(database)
    with engine.execution_options(writes=True).begin() as connection:
        connection.exec_driver_sql("UPDATE study_schema SET version = 7, written_by = '9.8'")
    engine.dispose()
    with pytest.raises(
        InvalidInputError,
        match=r"version 3 or before; got version 7(.|\n)*wassemble 9\.8 wrote them",
    ):
        Store(database)


def test_studies_of_the_version_before_are_all_there(tmp_path):
    path = tmp_path / "studies.db"
    with sqlite3.connect(path) as connection:
        connection.executescript((Path(__file__).parent / "version_1.sql").read_text())
    connection.close()
    for _ in range(2):  # the second time there is nothing to change
        store = Store(f"sqlite:///{path}")
        [study] = store.list_studies()
        assert study.design.title == "A study of the version before"
        assert study.design.questions == PAPER
        found = store.take_snapshot(study.id)
        assert [len(rater.complete) for rater in found.raters] == [1, 0]
        assert found.raters[0].complete[0].said == {
            "correctness": (5, 4, 3),
            "detail": (2, 3, 3),
            "most correct": 1,
            "most detailed": 1,
        }
        [first, _] = store.list_links(study.id)
        assert (first.state, first.n_done, first.n_shown) == ("begun", 1, 2)
        store.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT * FROM study_schema").fetchall() == [(3, __version__)]
    connection.close()


def test_tables_of_the_version_before_are_changed_in_either_database(store, study, database):
    rater = raters(store, study)[0]
    for place, item in enumerate(make_items()):
        store.save_answer(rater.id, place, random_answer(item, random.Random(place)))
    before = store.take_snapshot(study)
    engine = tables.open_engine(database)
    with engine.execution_options(writes=True).begin() as connection:
        make_as_before(connection)
    engine.dispose()
    again = Store(database)
    assert again.take_snapshot(study) == before
    assert again.get_study(study) == store.get_study(study)
    assert [link.state for link in again.list_links(study)] == ["finished", *["not begun"] * 2]
    again.close()


def make_as_before(connection):
    """Make the tables those of version 2, with what is in them."""
    for table, name in ((tables.studies, "design"), (tables.answers, "record")):
        key = table.primary_key.columns
        for *place, now in connection.execute(sa.select(*key, table.c[name])).all():
            which = sa.and_(*(column == value for column, value in zip(key, place, strict=True)))
            before = {k: v for k, v in now.items() if k in BEFORE} | {"scales": list(BEST)}
            if name == "record":
                before = {"scores": {scale: now[scale] for scale in BEST}}
                before["best"] = {scale: now[best] for scale, best in BEST.items()}
            connection.execute(table.update().where(which).values({name: before}))
    connection.exec_driver_sql("DROP INDEX study_join_keys")
    connection.exec_driver_sql("DROP TABLE study_pictures")
    for table, names in NEW.items():
        for name in names.split():
            connection.exec_driver_sql(f"ALTER TABLE {table} DROP COLUMN {name}")
    connection.exec_driver_sql("UPDATE study_schema SET version = 2")


BEST = {"correctness": "most correct", "detail": "most detailed"}
BEFORE = ("title", "consent", "items_per_rater", "is_repeated", "seed")
NEW = {
    "studies": "join_key n_declined",
    "study_raters": "participant task session joined_at finished_at left_study",
    "study_answers": "seconds visit",
}


def test_sqlite_keeps_every_commit_and_its_file_to_itself(tmp_path):
    path = tmp_path / "studies.db"
    engine = tables.open_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 10_000
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
    engine.dispose()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense", "`database` must be a URL"),
        ("mysql://root@localhost/x", "`database` must be a sqlite or postgresql URL"),
        ("sqlite://", "`database` must name a file"),
        ("sqlite:////nowhere/at/all.db", "`database` must be a file that can be written"),
        ("postgresql://x:hidden@127.0.0.1:1/x", "must be one that can be opened; got: "),
    ],
)
def test_a_database_that_cannot_be_opened_is_one_clear_error(url, words):
    with pytest.raises(InvalidInputError, match=words) as caught:
        Store(url)
    assert "hidden" not in str(caught.value)


def test_a_file_that_is_no_database_is_one_clear_error(tmp_path):
    path = Path(tmp_path / "notes.txt")
    path.write_text("not a database\n" * 100)
    with pytest.raises(InvalidInputError, match="must be one that can be opened; got: file is not"):
        Store(f"sqlite:///{path}")
    assert path.read_text() == "not a database\n" * 100
    with pytest.raises(sqlite3.DatabaseError):
        sqlite3.connect(path).execute("PRAGMA journal_mode").fetchall()

import pytest
from web.study.people import make_items

from wassemble.errors import InvalidInputError
from wassemble.web.study.answers import Answer, fails_check, read_answer
from wassemble.web.study.design import Shown

BOTH = ("correctness", "detail")
FORM = {
    "correctness-A": "1",
    "correctness-B": "2",
    "correctness-C": "3",
    "detail-A": "4",
    "detail-B": "5",
    "detail-C": "1",
    "best-correctness": "C",
    "best-detail": "A",
    "csrf": "x",
    "go": "next",
}


def test_letters_become_choices_by_the_raters_own_order():
    answer = read_answer(FORM, Shown(0, (2, 0, 1)), BOTH)
    assert answer == Answer(
        {"correctness": (2, 3, 1), "detail": (5, 1, 4)}, {"correctness": 1, "detail": 2}
    )
    assert answer.is_complete


@pytest.mark.parametrize("name", [name for name in FORM if name not in ("csrf", "go")])
def test_an_answer_without_any_one_field_is_not_complete(name):
    form = {key: value for key, value in FORM.items() if key != name}
    assert not read_answer(form, Shown(0, (0, 1, 2)), BOTH).is_complete


def test_only_what_is_asked_for_is_read():
    answer = read_answer(FORM, Shown(0, (0, 1, 2)), ("detail",))
    assert answer == Answer({"detail": (4, 5, 1)}, {"detail": 0})


def test_one_choice_alone_is_the_best_without_a_question():
    answer = read_answer({"detail-A": "3"}, Shown(0, (0,)), ("detail",))
    assert answer == Answer({"detail": (3,)}, {"detail": 0})


@pytest.mark.parametrize("value", ["0", "6", "A", "", "1.0", "٣"])
def test_a_score_out_of_range_is_refused(value):
    with pytest.raises(InvalidInputError, match="`detail-A` must be one of 1, 2, 3, 4, 5; got"):
        read_answer({"detail-A": value}, Shown(0, (0, 1)), ("detail",))


def test_a_letter_that_is_not_shown_is_refused():
    with pytest.raises(InvalidInputError, match="`best-detail` must be one of A, B; got 'C'"):
        read_answer({"best-detail": "C"}, Shown(0, (0, 1)), ("detail",))


def test_a_record_reads_back_as_the_same_answer():
    answer = read_answer({"detail-A": "3", "best-detail": "B"}, Shown(0, (1, 0)), BOTH)
    assert Answer.from_record(answer.record()) == answer


@pytest.mark.parametrize(
    ("wrong_score", "best", "is_failed"), [(1, 0, False), (2, 0, False), (3, 0, True), (1, 1, True)]
)
def test_a_check_is_failed_by_a_wrong_score_or_a_wrong_choice(wrong_score, best, is_failed):
    item = make_items()[1]
    answer = Answer(
        {"correctness": (5, wrong_score), "detail": (1, 5)}, {"correctness": best, "detail": 0}
    )
    assert fails_check(item, answer) is is_failed

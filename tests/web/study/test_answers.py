import pytest
from web.study.people import make_items

from wassemble.errors import InvalidInputError
from wassemble.web.study.answers import TIE, Answer, fails_check, read_answer
from wassemble.web.study.design import Shown
from wassemble.web.study.items import Item
from wassemble.web.study.questions import PAPER, Question

ITEM, ALIKE = make_items()[0], make_items(3, n_checks=0)[2]
FORM = {
    "q1-A": "1",
    "q1-B": "2",
    "q1-C": "3",
    "q2-A": "4",
    "q2-B": "5",
    "q2-C": "1",
    "q3": "C",
    "q4": "A",
    "csrf": "x",
    "go": "next",
}
PAIR = Question("better", "best", "Which one?", ("about the same",))
LABEL = Question("animal", "label", "What is it?", ("cat", "dog"))
WORDS = Question("why", "words", "Why?")


def test_letters_become_choices_by_the_raters_own_order():
    answer = read_answer(FORM, ITEM, Shown(0, (2, 0, 1)), PAPER)
    assert answer == Answer(
        {
            "correctness": (2, 3, 1),
            "detail": (5, 1, 4),
            "most correct": 1,
            "most detailed": 2,
        }
    )
    assert answer.is_complete


@pytest.mark.parametrize("name", [name for name in FORM if name.startswith("q")])
def test_an_answer_without_any_one_field_is_not_complete(name):
    form = {key: value for key, value in FORM.items() if key != name}
    assert not read_answer(form, ITEM, Shown(0, (0, 1, 2)), PAPER).is_complete


def test_one_choice_alone_is_the_best_without_a_question():
    answer = read_answer({"q1-A": "3"}, ALIKE, Shown(0, (0,)), (PAPER[1], PAPER[3]))
    assert answer == Answer({"detail": (3,), "most detailed": 0})


def test_captions_that_are_not_shown_are_not_missed():
    """Of pairs, the grade of the third caption is not asked for."""
    form = {"q1-A": "5", "q1-B": "1", "q2": "tie"}
    answer = read_answer(form, ITEM, Shown(0, (2, 0)), (PAPER[0], PAIR))
    assert answer == Answer({"correctness": (1, 0, 5), "better": TIE})
    assert answer.is_complete


def test_a_label_and_words_are_kept_as_texts():
    item, questions = Item("1", {}, text="Miau."), (LABEL, WORDS)
    answer = read_answer({"q1": "1", "q2": " It says so. "}, item, Shown(0, ()), questions)
    assert answer == Answer({"animal": "cat", "why": "It says so."})
    assert not read_answer({"q1": "1", "q2": " "}, item, Shown(0, ()), questions).is_complete
    for form in ({"q1": "3"}, {"q1": "cat"}, {"q2": "a" * 5001}, {"q2": "a\0b"}):
        with pytest.raises(InvalidInputError, match="must be"):
            read_answer(form, item, Shown(0, ()), questions)


@pytest.mark.parametrize("value", ["0", "6", "A", "", "1.0", "٣"])
def test_a_grade_out_of_range_is_refused(value):
    with pytest.raises(InvalidInputError, match="`q2-A` must be one of 1, 2, 3, 4, 5; got"):
        read_answer({"q2-A": value}, ITEM, Shown(0, (0, 1, 2)), PAPER)


def test_a_letter_that_is_not_shown_is_refused():
    with pytest.raises(InvalidInputError, match="`q4` must be one of A, B; got 'C'"):
        read_answer({"q4": "C"}, ITEM, Shown(0, (0, 1)), PAPER)
    with pytest.raises(InvalidInputError, match="`q4` must be one of A, B; got 'tie'"):
        read_answer({"q4": "tie"}, ITEM, Shown(0, (0, 1)), PAPER)


@pytest.mark.parametrize(
    ("wrong_grade", "best", "is_failed"), [(1, 0, False), (2, 0, False), (3, 0, True), (1, 1, True)]
)
def test_a_check_is_failed_by_a_wrong_grade_or_a_wrong_choice(wrong_grade, best, is_failed):
    item = make_items()[1]
    said = {"correctness": (5, wrong_grade), "detail": (1, 5)}
    answer = Answer(said | {"most correct": best, "most detailed": 0})
    assert fails_check(item, answer, PAPER) is is_failed


def test_a_check_is_failed_by_a_wrong_label():
    line = {"id": "1", "text": "Miau.", "check": {"animal": ["cat"]}}
    from wassemble.web.study.items import read_item

    item = read_item(line, "here")
    assert not fails_check(item, Answer({"animal": "cat"}), (LABEL,))
    assert fails_check(item, Answer({"animal": "dog"}), (LABEL,))

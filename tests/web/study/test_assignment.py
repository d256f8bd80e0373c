from collections import Counter

import pytest
from hypothesis import given, strategies as st
from web.study.people import make_items

from wassemble.errors import InvalidInputError
from wassemble.web.study.design import Design, assign

SEEDS = st.integers(0, 1000)


def rated(items, shown):
    return [each.item for each in shown if items[each.item].check is None]


@given(
    n_items=st.integers(1, 9), per_rater=st.integers(1, 9), n_raters=st.integers(1, 20), seed=SEEDS
)
def test_items_are_rated_equally_often_but_for_one(n_items, per_rater, n_raters, seed):
    items = make_items(n_items)
    design = Design("A study", items_per_rater=min(per_rater, n_items), seed=seed)
    counts = Counter({place: 0 for place, item in enumerate(items) if item.check is None})
    for number in range(n_raters):
        seen = rated(items, assign(items, design, number))
        assert len(seen) == len(set(seen)) == design.items_per_rater
        counts.update(seen)
    assert max(counts.values()) - min(counts.values()) <= 1


@given(n_items=st.integers(1, 9), n_checks=st.integers(0, 3), number=st.integers(0, 50), seed=SEEDS)
def test_a_rater_sees_every_check_once_and_every_choice_under_one_letter(
    n_items, n_checks, number, seed
):
    items = make_items(n_items, n_checks=n_checks)
    shown = assign(items, Design("A study", seed=seed), number)
    assert sorted(each.item for each in shown) == list(range(len(items)))
    for each in shown:
        assert sorted(each.order) == list(range(len(items[each.item].choices)))


def test_the_same_seed_gives_the_same_order_and_raters_differ():
    items = make_items(9)
    design = Design("A study", seed=3)
    assert assign(items, design, 1) == assign(items, design, 1)
    assert assign(items, design, 1) != assign(items, design, 2)
    assert assign(items, design, 1) != assign(items, Design("A study", seed=4), 1)


def test_no_letter_favours_a_system():
    items = make_items(1, n_checks=0)
    orders = Counter(assign(items, Design("A study"), number)[0].order for number in range(600))
    assert len(orders) == 6
    assert min(orders.values()) > 60  # 100 expected; 60 is four standard deviations below


def test_checks_are_mixed_in():
    items = make_items(9, n_checks=1)
    places = {
        [each.item for each in assign(items, Design("A study"), number)].index(1)
        for number in range(60)
    }
    assert len(places) > 6


def test_without_repetition_no_two_raters_share_an_item():
    items = make_items(7)
    design = Design("A study", items_per_rater=3, is_repeated=False)
    first, second = (set(rated(items, assign(items, design, number))) for number in (0, 1))
    assert len(first) == len(second) == 3
    assert not first & second
    with pytest.raises(InvalidInputError, match=r"`n_raters` must be at most 2, .*got 3 raters"):
        assign(items, design, 2)

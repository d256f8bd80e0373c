"""A view goes to an address and back."""

from dataclasses import fields
from urllib.parse import urlsplit

import pytest
from hypothesis import given, strategies as st

from wassemble.errors import InvalidInputError
from wassemble.web.explorer.view import View

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
numbers = st.floats(1e-6, 1e6)
views = st.builds(
    View,
    example=names | st.just(""),
    file=st.lists(names, max_size=4).map(tuple),
    kernel=names | st.just(""),
    kernel_file=names | st.just(""),
    sample=names | st.just(""),
    epsilon=st.none() | numbers,
    mass=st.sampled_from(["", "balanced", "unbalanced"]),
    mass_penalty=st.none() | numbers,
    weight=st.lists(st.floats(0, 1e6), max_size=4).map(tuple),
    label=names | st.just(""),
    model=names | st.just(""),
    page=st.integers(1, 1000),
    search=names | st.just(""),
)


@given(views)
def test_a_view_comes_back_from_its_address(view):
    assert View.from_query(view.to_query()) == view
    assert View.from_query(urlsplit(view.address()).query) == view


@given(views)
def test_an_address_is_plain_text_on_one_line(view):
    address = view.address()
    assert address.isascii()
    assert not set(address) & set(" <>\"'\n\r")


def test_every_part_of_a_view_is_generated():
    assert {field.name for field in fields(View)} == set(View.__dataclass_fields__)
    assert View().to_query() == ""


def test_a_view_refuses_what_it_does_not_know():
    with pytest.raises(InvalidInputError, match="got 'colour'"):
        View.from_query("colour=red")

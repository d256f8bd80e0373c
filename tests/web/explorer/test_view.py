"""A view goes to an address and back."""

from typing import Annotated
from urllib.parse import parse_qs

import pytest
from fastapi import FastAPI, Query
from fastapi.testclient import TestClient
from hypothesis import given, strategies as st
from pydantic import ValidationError

from wassemble.web.explorer.view import View

app = FastAPI()


@app.get("/explorer/view")
def echo(view: Annotated[View, Query()]) -> View:
    return view


client = TestClient(app)

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
    truth=names | st.just(""),
    show=st.sampled_from(["", "gained", "apart"]),
    about=names | st.just(""),
    sort=st.sampled_from(["", "truth", "unsure"]),
    than=names | st.just(""),
    pair=st.lists(names, max_size=2).map(tuple),
)


@given(views)
def test_a_view_comes_back_from_its_address(view):
    assert View(**client.get(view.address()).json()) == view


@given(views)
def test_a_view_comes_back_from_its_query(view):
    assert View.from_query(view.to_query()) == view


@given(views)
def test_an_address_is_plain_text_on_one_line(view):
    address = view.address()
    assert address.isascii()
    assert not set(address) & set(" <>\"'\n\r")


@given(views)
def test_a_form_sends_what_an_address_says(view):
    sent = client.get("/explorer/view", params=[(name, str(value)) for name, value in view.pairs()])
    assert View(**sent.json()) == view
    assert "label" not in dict(view.pairs("label", "model"))


def test_a_view_left_as_it_was_has_an_empty_address():
    assert View().to_query() == ""
    assert parse_qs(View(epsilon=0.5, weight=(1, 0.25)).to_query()) == {
        "epsilon": ["0.5"],
        "weight": ["1.0", "0.25"],
    }


def test_a_view_refuses_what_it_does_not_know():
    with pytest.raises(ValidationError, match="colour"):
        View(colour="red")
    assert client.get("/explorer/view?colour=red").status_code == 422


@pytest.mark.parametrize("name", ["epsilon", "mass_penalty"])
@pytest.mark.parametrize("value", [-1, 0, 1e7, "nan", "inf", "much"])
def test_a_view_refuses_numbers_out_of_range(name, value):
    with pytest.raises(ValidationError, match=name):
        View(**{name: value})

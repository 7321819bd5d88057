"""What is asked of a source: which columns, and which numbers per row."""

from __future__ import annotations

import numpy as np
import pytest

from boostbins.sources.request import PLAIN, Request, check_column, listed, nearest

NAMES = ["a", "b", "weight", "y"]


def test_all_columns_are_chosen_but_those_per_row():
    assert PLAIN.chosen(NAMES) == PLAIN.needed(NAMES) == NAMES
    request = Request(None, {"sample_weight": "weight", "y": "y"})
    assert request.chosen(NAMES) == ["a", "b"]
    assert request.needed(NAMES) == ["a", "b", "weight", "y"]
    assert request.named == {"sample_weight": "weight", "y": "y"}
    assert request.arrays == {}


def test_columns_are_chosen_in_the_order_that_they_are_asked_for():
    request = Request(["b", "a"], {"sample_weight": [1, 2], "y": None})
    assert request.chosen(NAMES) == request.needed(NAMES) == ["b", "a"]
    assert request.named == {}
    assert list(request.arrays) == ["sample_weight"]
    np.testing.assert_array_equal(request.arrays["sample_weight"], [1, 2])


def test_a_column_per_row_is_not_cut_even_if_it_is_asked_for():
    assert Request(["a", "y"], {"y": "y"}).chosen(NAMES) == ["a"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"columns": "a"}, TypeError, "columns must be a list of names, got 'a'"),
        ({"columns": ["a", "b", "a"]}, ValueError, "columns names 'a' more than once"),
        ({"non_numeric": "drop"}, ValueError, "non_numeric must be 'error' or 'skip', got 'drop'"),
        ({"per_row": {"sample_weight": "y", "y": "y"}}, ValueError, "'y' cannot be both the target and the weights"),
    ],
)
def test_what_contradicts_itself_is_refused_at_once(options, error, message):
    with pytest.raises(error, match=message):
        Request(**options)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(["c"]), "columns: there is no column 'c'; there are 'a', 'b', 'weight', 'y'"),
        (Request(["Weight"]), "columns: there is no column 'Weight': did you mean 'weight'?"),
        (Request(None, {"y": "target"}), "y: there is no column 'target'"),
        (Request(["a"], {"sample_weight": "weihgt"}), "sample_weight: there is no column 'weihgt': did you mean 'weig"),
    ],
)
def test_columns_that_are_not_there_are_named_with_the_argument(request_, message):
    for ask in (request_.chosen, request_.needed):
        with pytest.raises(ValueError, match=message.replace("?", r"\?")):
            ask(NAMES)


def test_a_number_alone_is_no_array():
    with pytest.raises(ValueError, match="sample_weight must be a column's name, or an array .*, got 3"):
        _ = Request(None, {"sample_weight": 3}).arrays


def test_names_are_suggested_and_listed():
    assert nearest("WEIGHT", NAMES) == ": did you mean 'weight'?"
    assert listed(list("abcdefg")) == "a, b, c, d, e and 2 more"
    check_column("a", NAMES, "columns")
    with pytest.raises(ValueError, match="--target: there is no column 'c'"):
        check_column("c", NAMES, "--target")

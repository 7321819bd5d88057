"""Ranges of columns: of all rows, from their summaries as from themselves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from boostbins.sources.table import read_table
from boostbins.summary.ranges import ranges_of, ranges_of_summary
from boostbins.summary.table import summarize_table

FORMS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "frame": lambda x: pd.DataFrame(x, columns=["a", "b"]),
    "sparse": sparse.csc_array,
}
numbers = st.sampled_from([0.0, 0.0, -0.0, 1.5, -2.0, 1e300, np.nan, np.inf, -np.inf])


@pytest.mark.parametrize("form", FORMS)
@given(rows=st.lists(st.tuples(numbers, numbers, st.sampled_from([0.0, 0.0, 1.0])), min_size=1, max_size=12))
def test_a_summary_has_the_ranges_of_its_table_whatever_the_weights(form, rows):
    x, y, weight = (np.array(values) for values in zip(*rows, strict=True))
    dense = np.column_stack([x, y])
    table = read_table(FORMS[form](dense))
    expected = np.fmin.reduce(dense), np.fmax.reduce(dense), np.isnan(dense).any(axis=0)
    for found in (ranges_of(table), *(ranges_of_summary(summarize_table(table, w)) for w in (None, weight))):
        for mine, want in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, want)

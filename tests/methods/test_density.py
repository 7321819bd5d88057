"""hybrid and mixtures: cuts by densities."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from boostbins import (
    ColumnSummary,
    fit_bins,
    hybrid,
)
from boostbins.methods import find_cuts
from boostbins.methods.density import placed_gaps
from tests import naive

# ---- where cuts are placed

masses = st.lists(st.integers(0, 1000), min_size=3, max_size=40).filter(lambda m: sum(map(bool, m)) > 2)


@given(masses, st.integers(1, 38))
def test_cuts_are_placed_as_by_definition(density, n_cuts):
    n_cuts = min(n_cuts, sum(map(bool, density)) - 1)
    expected = naive.placed(density, n_cuts)
    found = placed_gaps(np.array(density, float), n_cuts + 1)
    assert len(found) == n_cuts
    held = np.cumsum([0, *density])
    # Where a wanted share ends just at a gap's end, rounding decides between it and the next that holds anything.
    for got, want in zip(found, expected, strict=True):
        assert got == want or held[max(got, want)] == held[min(got, want) + 1] or abs(got - want) == 1


def test_placing_ends_where_rounding_fills_a_gap_in_every_other_round():
    # With the gaps of 0.4 full, 3 cuts are left for 1.2: a gap of 0.4 is worth just 1, or by rounding a bit more.
    density = np.array([4, 4, 4, 2, 3, 3, 3, 1]) / 10
    assert len(placed_gaps(density, 7)) == 6


@given(
    st.lists(st.integers(-50, 50), min_size=8, max_size=300).filter(lambda x: len(set(x)) > 5),
    st.integers(2, 60),
    st.data(),
)
def test_hybrid_spends_all_bins_and_keeps_near_to_quantiles(values, max_bins, data):
    scale = data.draw(st.sampled_from([1, 1e-300, 1e300]))
    x = np.array(values, float) ** 3 * scale
    counts = dict(zip(*np.unique(x, return_counts=True), strict=True))
    cuts = find_cuts(ColumnSummary(x), hybrid, max_bins)
    assert len(cuts) == min(max_bins, len(counts)) - 1
    if len(counts) <= max_bins:
        return
    each = np.array(list(counts))
    for code in range(max_bins):
        held = each[np.searchsorted(cuts, each) == code]
        rows = [counts[v] for v in held]
        inside = sum(rows) - (rows[0] + rows[-1]) / 2
        assert len(held) == 1 or inside <= (4 / 3) * len(x) / (max_bins - 1) * (1 + 1e-9)


def test_hybrid_reaches_into_the_tail_where_quantiles_do_not():
    x = np.append(np.random.default_rng(0).normal(size=10_000), [1e3, 2e3, 3e3, 4e3])
    tail = fit_bins(x[:, None], "hybrid", 32).encode(x[:, None])[-4:, 0]
    assert len(set(tail.tolist())) >= 3
    assert len(set(fit_bins(x[:, None], "quantile", 32).encode(x[:, None])[-4:, 0].tolist())) == 1

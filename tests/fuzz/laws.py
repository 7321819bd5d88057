"""What holds of the bins of any table."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse as sp

from boostbins import Binner, Bins, TableSummary, fit_bins, summarize
from boostbins.methods import needs_target
from boostbins.summary.column import MAX_CELLS
from tests.fuzz.running import telling
from tests.fuzz.tables import any_case, any_numbers

_AT_A_TIME = 5  # laws, besides those that are always looked at


def case(r):
    asked = any_case(r)
    with telling(asked):
        try:
            bins = asked.bins
        except (TypeError, ValueError) as error:
            allowed = [asked.refusal(), "infinity" if asked.may_overflow() else None]
            if not any(words and words in str(error) for words in allowed):
                raise
            return
        assert asked.refusal() is None, f"not refused: {asked.refusal()}"
        check_budget(asked, bins)
        check_codes(asked, bins, r)
        for law in r.choice(LAWS, _AT_A_TIME, replace=False):
            with telling(law.__name__):
                law(asked, bins, r)


def check_same(found, expected, *, names=True):
    """The same cuts and statistics, to the last bit."""
    assert [c.tobytes() for c in found.cuts] == [c.tobytes() for c in expected.cuts], first_difference(found, expected)
    assert found.stats == expected.stats
    if names:
        assert found == expected
        assert found.choices == expected.choices
        assert found.shares == expected.shares
    else:
        assert list(found.choices.values()) == list(expected.choices.values())
        assert list(found.shares.values()) == list(expected.shares.values())


def first_difference(found, expected):
    for name, a, b in zip(expected.names, found.cuts, expected.cuts, strict=True):
        if a.tobytes() != b.tobytes():
            return f"column {name!r}: {len(a)} cuts {a[:9]}, and {len(b)} cuts {b[:9]}"
    return "none"


def counted(asked, name):
    """The finite values of a column's rows that count."""
    x = asked.numbers[name].astype(np.float64)
    return x[np.isfinite(x) & (True if asked.weight is None else asked.weight > 0)]


def check_budget(asked, bins):
    assert bins.names == tuple(asked.numbers)
    if asked.total:
        check_shares(asked, bins)
    for name, cuts, budget in zip(bins.names, bins, asked.budgets, strict=True):
        assert len(cuts) < budget
        assert np.isfinite(cuts).all()
        assert (cuts[1:] > cuts[:-1]).all()
        values = np.unique(counted(asked, name))
        if len(cuts):
            assert values[0] <= cuts[0] <= cuts[-1] < values[-1]
        if len(values) <= budget and not asked.total:
            assert len(cuts) == max(len(values) - 1, 0)
            assert (np.searchsorted(cuts, values) == np.arange(len(values))).all()


def check_shares(asked, bins):
    shares = bins.shares.values()
    assert list(bins.shares) == list(bins.names)
    given = sum(share.bins for share in shares)
    useful = sum(share.useful for share in shares)
    assert sum(bins.n_bins) <= given == min(given if asked.total_bins == "auto" else asked.most, useful)
    assert all(n <= share.bins <= share.useful for n, share in zip(bins.n_bins, shares, strict=True))
    np.testing.assert_allclose(sum(share.value for share in shares), 1)


def check_codes(asked, bins, r):
    """X is in bin i if and only if cuts[i-1] < x <= cuts[i]."""
    codes = bins.encode(asked.numbers, order=r.choice(["C", "F"]), n_threads=int(r.integers(1, 3)))
    assert codes.shape == (asked.n_rows, len(bins))
    for i, (cuts, x) in enumerate(zip(bins, asked.numbers.values(), strict=True)):
        check_rule(codes[:, i], x.astype(np.float64), cuts, bins.missing_code)
        with np.errstate(over="ignore", under="ignore"):
            near = [cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf), -cuts, cuts.astype(np.float32)]
        values = np.concatenate([*near, any_numbers(r, 9), [0.0, -0.0, np.nan, np.inf, -np.inf]])
        alone = Bins([cuts])
        check_rule(alone.encode(values)[:, 0], values, cuts, alone.missing_code)


def check_rule(codes, x, cuts, missing_code):
    expected = np.where(np.isnan(x), missing_code, np.searchsorted(cuts, x, side="left"))
    np.testing.assert_array_equal(codes, expected)


def bins_hold_what_the_statistics_say(asked, bins, r):
    codes = bins.encode(asked.numbers)
    weight = np.ones(asked.n_rows) if asked.weight is None else asked.weight.astype(np.float64)
    exact = 0.0 if asked.has_whole_weights else 1e-9
    for i, (name, cuts, stats) in enumerate(zip(bins.names, bins, bins.stats, strict=True)):
        values = counted(asked, name)
        assert (stats.low, stats.high) == ((values.min(), values.max()) if len(values) else (None, None))
        ends = zip([stats.low, *cuts], [*cuts, stats.high], strict=True)
        for (low, high), mean in zip(ends, stats.mean, strict=True):
            assert mean is None or low <= mean <= high
        if len(np.unique(values)) > MAX_CELLS:
            continue
        held = np.bincount(codes[:, i], weight, bins.missing_code + 1)
        np.testing.assert_allclose(stats.weight, held[: len(cuts) + 1], rtol=exact)
        np.testing.assert_allclose(stats.missing, held[bins.missing_code], rtol=exact)
        distinct = np.bincount(np.searchsorted(cuts, np.unique(values)), minlength=len(cuts) + 1)
        assert stats.distinct == tuple(distinct)
        if asked.weight is None:
            assert all((n > 0) == (mean is not None) for n, mean in zip(distinct, stats.mean, strict=True))
    lost = bins.costs()
    assert lost["lost"].between(0, 1).all()
    assert lost["largest_bin"].between(0, 1).all()
    assert len(bins.table()) >= sum(bins.n_bins)


def observed_is_fitted(asked, bins, r):
    if asked.has_whole_weights and all(len(np.unique(counted(asked, name))) <= MAX_CELLS for name in asked.numbers):
        assert bins.observed(asked.numbers, asked.weight).stats == bins.stats


def what_is_decoded_is_in_its_bin(asked, bins, r):
    known = [i for i, stats in enumerate(bins.stats) if stats.low is not None]
    codes = bins.encode(asked.numbers)
    for kind in ("mean", "center"):
        decoded = bins.decode(codes, kind=kind)
        again = bins.encode(dict(zip(bins.names, decoded.T, strict=True)))
        np.testing.assert_array_equal(again[:, known], codes[:, known], err_msg=kind)


def what_is_written_is_read(asked, bins, r):
    for again in (Bins.from_json(bins.to_json()), pickle.loads(pickle.dumps(bins))):
        check_same(again, bins)
        assert (again.digest, hash(again), repr(again)) == (bins.digest, hash(bins), repr(bins))


def the_order_of_rows_does_not_matter(asked, bins, r):
    if asked.has_exact_sums:
        mixed = asked.rows(r.permutation(asked.n_rows))
        check_same(mixed.bins, bins)


def whole_weights_are_repeated_rows(asked, bins, r):
    if asked.weight is None or not asked.has_whole_weights or asked.weight.sum() > 200_000:
        return
    # k-means gives an empty cluster a row, whole; what is by chance knows that a row with a weight is one.
    if asked.method == "kmeans" or asked.target is not None:
        return
    repeated = asked.rows(np.repeat(np.arange(asked.n_rows), asked.weight.astype(np.intp)))
    found = fit_bins(repeated.numbers, **repeated.options(sample_weight=None))
    check_same(bins, found)


def rows_without_weight_are_absent(asked, bins, r):
    if asked.weight is not None:
        check_same(asked.rows(np.flatnonzero(asked.weight)).bins, bins)


def sparse_is_dense(asked, bins, r):
    X = asked.matrix
    stored = (X != 0) | (r.random(X.shape) < r.choice([0.0, 0.3]))  # with zeros among them
    rows, places = np.nonzero(stored)
    order = r.permutation(len(rows))
    coo = sp.coo_array((X[rows, places][order], (rows[order], places[order])), shape=X.shape)
    for form in r.choice(["csc", "csr", "coo"], 1):
        sparse = coo.asformat(form)
        found = fit_bins(sparse, **asked.options())
        if asked.has_whole_weights:
            check_same(found, bins, names=False)
        np.testing.assert_array_equal(found.encode(sparse), found.encode(X))


# The frames hold dates and texts too.
_FRAMES = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda c: pd.DataFrame(c).convert_dtypes(dtype_backend="numpy_nullable"),
    "pandas Arrow": lambda c: pd.DataFrame(c).convert_dtypes(dtype_backend="pyarrow"),
    "pandas categories": lambda c: pd.DataFrame(c).astype({k: "category" for k, v in c.items() if v.dtype == object}),
    "polars": pl.DataFrame,
    "polars with nulls": lambda c: pl.DataFrame(c).fill_nan(None),
    "Arrow": pa.table,
    "Arrow with nulls": lambda c: pa.table({k: pa.array(v, from_pandas=True) for k, v in c.items()}),
    "Arrow in chunks": lambda c: pa.concat_tables([pa.table(c).slice(0, 3), pa.table(c).slice(3)]),
}
_PLAIN = {
    "matrix": lambda asked: asked.matrix,
    "Fortran": lambda asked: np.asfortranarray(asked.matrix),
    "backwards": lambda asked: np.ascontiguousarray(asked.matrix[:, ::-1])[:, ::-1],
    "other bytes": lambda asked: asked.matrix.astype(">f8"),
    "masked": lambda asked: np.ma.masked_invalid(asked.matrix) if np.isfinite(asked.matrix).all() else asked.matrix,
    "columns": lambda asked: list(asked.numbers.values()),
    "lists": lambda asked: [x.tolist() for x in asked.matrix.T],
}


def every_container_has_the_same_bins(asked, bins, r):
    for name in r.choice([*_FRAMES, *_PLAIN], 4, replace=False):
        with telling(name):
            if name in _PLAIN:
                X = _PLAIN[name](asked)
                check_same(fit_bins(X, **asked.options()), bins, names=False)
                np.testing.assert_array_equal(bins.encode(X), bins.encode(asked.numbers))
                continue
            X, reading = _FRAMES[name](asked.columns), {"non_numeric": "skip", "dates_as_numbers": True}
            found = fit_bins(X, **asked.options(), **reading)
            check_same(found, bins, names=False)
            assert found.names == bins.names
            assert set(found.units) == {n for n, x in asked.columns.items() if x.dtype.kind == "M" and n in bins.names}
            np.testing.assert_array_equal(found.encode(X, non_numeric="skip"), bins.encode(asked.numbers))


def threads_change_nothing(asked, bins, r):
    for n_threads in (1, 2):
        check_same(fit_bins(asked.numbers, **asked.options(n_threads=n_threads)), bins)


def a_summary_is_as_good_as_its_rows(asked, bins, r):
    if asked.target is not None and (asked.target.dtype.kind in "OU" or asked.may_overflow()):
        return
    summary = summarize(asked.numbers, asked.weight, y=asked.target)
    for held in (summary, TableSummary.from_bytes(summary.to_bytes())):
        assert held == summary
        found = fit_bins(held, asked.method, asked.budgets, **asked.total)
        check_same(found, bins)


def exact_is_the_same_where_all_values_are_held(asked, bins, r):
    if all(len(np.unique(counted(asked, name))) <= MAX_CELLS for name in asked.numbers):
        check_same(fit_bins(asked.numbers, **asked.options(exact=True)), bins)


def a_column_does_not_know_the_others(asked, bins, r):
    if not asked.total:
        name = r.choice(bins.names)
        at = bins.names.index(name)
        alone = fit_bins(asked.numbers, **asked.options(columns=[name], max_bins=asked.budgets[at]))
        assert alone[0].tobytes() == bins[at].tobytes()
        assert alone.stats[0] == bins.stats[at]


def the_transformer_is_the_function(asked, bins, r):
    X = asked.matrix
    with np.errstate(all="ignore"):
        if not np.isfinite(np.nansum(X)):  # scikit-learn refuses infinities, and warns where a sum is one
            return
    target = asked.target if needs_target(asked.method, asked.total) else None
    binner = Binner(asked.method, asked.budgets, **asked.total)
    codes = binner.fit(X, asked.target, asked.weight).transform(X)
    check_same(binner.bins_, fit_bins(X, **asked.options(y=target)))
    np.testing.assert_array_equal(codes, binner.bins_.encode(X))


LAWS = [
    bins_hold_what_the_statistics_say,
    observed_is_fitted,
    what_is_decoded_is_in_its_bin,
    what_is_written_is_read,
    the_order_of_rows_does_not_matter,
    whole_weights_are_repeated_rows,
    rows_without_weight_are_absent,
    sparse_is_dense,
    every_container_has_the_same_bins,
    threads_change_nothing,
    a_summary_is_as_good_as_its_rows,
    exact_is_the_same_where_all_values_are_held,
    a_column_does_not_know_the_others,
    the_transformer_is_the_function,
]

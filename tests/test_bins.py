from __future__ import annotations

import json
import pickle
import re
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostbins import Bins, TableSummary, encode, fit_bins
from boostbins import bins as bins_module
from boostbins.methods.budget import BinShare
from tests import naive
from tests.conftest import EDGES, any_float, finite, skewed

FIXTURES = Path(__file__).parent / "fixtures"
cut_lists = st.lists(finite, max_size=12, unique=True).map(lambda v: sorted({x + 0.0 for x in v}))


def table(n=2000):
    r = np.random.default_rng(0)
    X = np.column_stack([r.lognormal(0, 2, n), r.integers(0, 9, n), r.standard_normal(n)])
    X[::50, 2] = np.nan
    return X


@given(cut_lists, st.lists(any_float, max_size=30))
def test_codes_follow_the_rule(cuts, values):
    bins = Bins([cuts])
    # Every cut, its neighbours, and whatever comes.
    with np.errstate(over="ignore"):
        x = np.array([*values, *cuts, *np.nextafter(cuts, np.inf), *np.nextafter(cuts, -np.inf)])
    if len(x) == 0:
        return
    expected = [naive.encode(v, cuts, bins.missing_code) for v in x]
    assert bins.encode(x)[:, 0].tolist() == expected
    many = -(-1000 // max(len(x), 1))  # above some hundred rows, by a table
    assert bins.encode(np.tile(x, many))[:, 0].tolist() == expected * many


@pytest.mark.parametrize("n_cuts", [1, 2, 30, 254, 255, 256, 5000, 65_534])
@pytest.mark.parametrize("scale", ["even", "skewed", "crowded", "signed"])
def test_codes_equal_searchsorted(n_cuts, scale):
    r = np.random.default_rng(n_cuts)
    cuts = {
        "even": np.linspace(-3, 3, n_cuts),
        "skewed": r.lognormal(0, 3, n_cuts),
        "crowded": 1.0 + np.arange(n_cuts) * 2.0**-52,
        "signed": r.standard_normal(n_cuts) * 10.0 ** r.uniform(-300, 300, n_cuts),
    }[scale]
    cuts = np.unique(cuts)
    x = np.concatenate([cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf), r.standard_normal(3000)])
    x = np.concatenate([x, -x, EDGES, [np.inf, -np.inf]])
    bins = Bins([cuts])
    codes = bins.encode(x)[:, 0]
    np.testing.assert_array_equal(codes, np.searchsorted(cuts, x, side="left"))
    assert codes.dtype == (np.uint8 if n_cuts <= 254 else np.uint16)
    assert bins.encode([[np.nan]])[0, 0] == bins.missing_code == len(cuts) + 1


@pytest.mark.parametrize("order", ["C", "F"])
def test_codes_have_the_order_asked_for(order):
    X = table(40_000)
    bins = fit_bins(X, max_bins=31)
    codes = bins.encode(X, order=order, n_threads=2)
    assert codes.flags[f"{order}_CONTIGUOUS"]
    for i, cuts in enumerate(bins):
        expected = np.where(np.isnan(X[:, i]), bins.missing_code, np.searchsorted(cuts, X[:, i]))
        np.testing.assert_array_equal(codes[:, i], expected)
    np.testing.assert_array_equal(encode(np.asfortranarray(X), bins), codes)
    np.testing.assert_array_equal(encode(X[::-1], bins), codes[::-1])
    np.testing.assert_array_equal(encode(X.astype("f4"), bins), encode(X.astype("f4").astype(float), bins))


def test_codes_of_other_types():
    bins = Bins([[2.5, 7.0]])
    for dtype in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">f8"]:
        for n in (1, 1000):
            column = np.tile(np.arange(10), n).astype(dtype)[:, None]
            assert bins.encode(column)[:, 0].tolist() == ([0] * 3 + [1] * 5 + [2] * 2) * n
    assert Bins([[0.5]]).encode(np.array([[True], [False]]))[:, 0].tolist() == [1, 0]


def test_decoding_gives_means_or_centers():
    x = np.array([1.0, 2.0, 3.0, 10.0, np.nan])
    bins = fit_bins({"x": x}, "kmeans", 2)
    codes = bins.encode({"x": x})
    np.testing.assert_array_equal(bins.decode(codes)[:, 0], [2, 2, 2, 10, np.nan])
    np.testing.assert_array_equal(bins.decode(codes, kind="center")[:, 0], [3.5, 3.5, 3.5, 8, np.nan])
    # Encoding what was decoded changes nothing.
    np.testing.assert_array_equal(bins.encode({"x": bins.decode(codes)[:, 0]}), codes)


@pytest.mark.parametrize("start", [1.0, -1.0, 0.0, -5e-324, -1e-322, 1e308])
def test_centers_of_the_narrowest_bins_lie_in_them(start):
    x = np.array([start])
    while len(x) < 5:
        x = np.append(x, np.nextafter(x[-1], np.inf))
    bins = fit_bins(x)
    codes = bins.encode(x)
    assert bins.n_bins == (5,)
    for kind in ("mean", "center"):
        np.testing.assert_array_equal(bins.encode(bins.decode(codes, kind=kind)), codes)


def test_columns_by_position_and_by_name():
    bins = Bins([[1.0], [2.0, 3.0]], ["a", "b"])
    assert len(bins) == 2
    assert bins[1] is bins["b"] is bins[-1]
    assert [len(c) for c in bins] == [1, 2]
    assert bins.n_bins == (2, 3)
    assert repr(bins) == "Bins(a: 2, b: 3)"
    with pytest.raises(KeyError, match="no column 'c'; there are 'a', 'b'"):
        bins["c"]
    with pytest.raises(IndexError):
        bins[2]


def test_they_cannot_be_changed():
    bins = Bins([[1.0]])
    with pytest.raises(AttributeError, match="immutable"):
        bins.cuts = ()
    with pytest.raises(ValueError, match="read-only"):
        bins[0][0] = 5


def test_equality_and_digest_are_of_names_and_cuts():
    a = fit_bins(table())
    same = Bins(a.cuts, a.names)
    assert a == same
    assert hash(a) == hash(same)
    assert a.digest == same.digest == pickle.loads(pickle.dumps(a)).digest
    assert a != Bins(a.cuts, ["p", "q", "r"])
    assert a != Bins([np.nextafter(a[0], 0), *a.cuts[1:]], a.names)
    assert Bins([[0.0]]) == Bins([[-0.0]])
    # On every machine, in every version.
    assert Bins([[0.1, 2.5]], ["x"]).digest == "b5cb528f28c8dbb44df40be1a840f944a94913716c32116449da0faa048ac3f7"


@pytest.mark.slow
@given(st.lists(cut_lists, min_size=1, max_size=3), st.data())
def test_json_is_exact_to_the_last_bit(cuts, data):
    names = data.draw(st.lists(st.text(max_size=5), min_size=len(cuts), max_size=len(cuts), unique=True))
    bins = Bins(cuts, names)
    again = Bins.from_json(bins.to_json())
    assert again == bins
    assert all(a.tobytes() == b.tobytes() for a, b in zip(again, bins, strict=True))


def test_json_keeps_the_statistics(tmp_path):
    bins = fit_bins(table())
    bins.save(tmp_path / "bins.json")
    again = Bins.load(tmp_path / "bins.json")
    assert again.stats == bins.stats
    assert list(tmp_path.iterdir()) == [tmp_path / "bins.json"]
    assert stat.S_IMODE((tmp_path / "bins.json").stat().st_mode) & 0o444


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "bins.json"
    first = fit_bins(table(), max_bins=7)
    first.save(path)

    def full(self, target):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        first.save(tmp_path / "none" / "bins.json")
    with pytest.raises(OSError, match="disk full"):
        fit_bins(table(), max_bins=9).save(path)
    assert Bins.load(path) == first
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("bins-v*.json")), ids=lambda p: p.stem)
def test_files_of_every_version_are_read(path):
    bins = Bins.load(path)
    assert bins.names == ("price", "rooms", "<é>")
    assert bins["price"].tolist() == [1e-310, 0.1, 2.5, 1.7976931348623157e308]
    assert bins["rooms"].tolist() == []
    assert bins.stats is not None
    assert bins.stats[0].missing == 1
    assert bins.units == ({} if path.stem.endswith("v1") else {"rooms": "seconds"})
    share = BinShare(5, 0.75, 255, "target")
    assert bins.shares == ({"price": share} if path.stem.endswith("v3") else {})


def test_json_that_was_cut_short_or_edited_is_refused(tmp_path):
    text = fit_bins(table(), max_bins=5).to_json()
    cases = {
        text[:-30]: "cut short",
        "": "cut short",
        "[]": "not the JSON of boostbins",
        '{"a": 1}': "not the JSON of boostbins",
        text.replace('"version": 3', '"version": 99'): "version 99",
        text.replace('"x0"', '"y0"'): "changed after it was written",
        json.dumps({**json.loads(text), "sha256": None}): "changed after it was written",
    }
    for bad, message in cases.items():
        with pytest.raises(ValueError, match=message):
            Bins.from_json(bad)
    (tmp_path / "b.json").write_text(text[:-30])
    with pytest.raises(ValueError, match=r"b\.json: .*cut short"):
        Bins.load(tmp_path / "b.json")


def forged(column):
    """Return the JSON of bins with one column's fields changed, and the checksum made right."""
    r = np.random.default_rng(0)
    whole = fit_bins({"a": r.lognormal(size=300), "b": r.lognormal(size=300)}, "auto", 8, y=r.normal(size=300))
    content = json.loads(whole.to_json())
    del content["sha256"]
    content["columns"][1] |= column
    return json.dumps({**content, "sha256": bins_module._checksum(content)})


@pytest.mark.parametrize(
    "column",
    [
        {"stats": None},
        {"stats": {}},
        {"stats": {"weight": [1, 2]}},
        {"stats": []},
        {"stats": "many"},
        {"name": None},
        {"name": ["b"]},
        {"name": "a"},
        {"cuts": None},
        {"cuts": "1"},
        {"cuts": [[1.0]]},
        {"cuts": [2.0, 1.0]},
        {"cuts": [10**400]},
        {"cuts": {"0": 1.0}},
        {"choice": None},
        {"choice": {}},
        {"choice": {"chosen": "hybrid", "explained": {"quantile": 0.5}, "noise": {}}},
        {"choice": {"chosen": 5, "explained": {}, "noise": {}}},
        {"choice": {"chosen": "hybrid", "explained": {"hybrid": "much"}, "noise": {}}},
        {"choice": {"chosen": "hybrid", "explained": None, "noise": {}}},
        {"choice": {"chosen": "hybrid", "explained": {}, "noise": {}, "more": 1}},
    ],
)
def test_forged_json_is_refused(column):
    assert len(Bins.from_json(forged({}))) == 2
    with pytest.raises(ValueError, match=r"not the JSON of boostbins' bins: \S"):
        Bins.from_json(forged(column))


def test_shares_are_written_and_read():
    r = np.random.default_rng(0)
    X = {"a": r.lognormal(size=300), "b": r.integers(0, 2, 300), "c": np.full(300, np.nan)}
    for y in (None, X["a"]):
        bins = fit_bins(X, y=y, average_bins=20)
        assert list(bins.shares) == ["a", "b", "c"]
        assert bins.shares["a"].by == ("spread" if y is None else "target")
        for copy in (Bins.from_json(bins.to_json()), pickle.loads(pickle.dumps(bins)), bins.observed(X)):
            assert copy == bins
            assert copy.shares == bins.shares
            assert [share.why for share in copy.shares.values()] == [share.why for share in bins.shares.values()]
    assert fit_bins(X).shares == {}
    with pytest.raises(ValueError, match="shares must be one per column, got 1 for 2 columns"):
        Bins([[1.0], [2.0]], shares=[None])


@pytest.mark.parametrize(
    "odd",
    [
        None, [], {}, "much", {"bins": 1}, {"bins": 0}, {"bins": -5}, {"bins": 2.5}, {"bins": "2"}, {"bins": True},
        {"bins": None}, {"bins": 70_000}, {"bins": 10**400}, {"bins": 300}, {"useful": 1}, {"useful": 1e9},
        {"value": -0.1}, {"value": 1.1}, {"value": 10**400}, {"value": "0.5"}, {"value": None}, {"value": True},
        {"value": float("nan")},        {"by": "luck"}, {"by": []}, {"by": None}, {"more": 1},
    ],
)  # fmt: skip
def test_forged_shares_are_refused(odd):
    share = {"bins": 20, "value": 0.25, "useful": 255, "by": "target"}
    assert Bins.from_json(forged({"share": share})).shares["b"].why == "25.0% of what bins gain for the target"
    with pytest.raises(ValueError, match=r"not the JSON of boostbins' bins: \S"):
        Bins.from_json(forged({"share": share | odd if isinstance(odd, dict) and odd else odd}))


def test_what_holds_no_bins_is_named_and_endless_files_are_not_read(tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "latin").write_bytes(b'{"format": "gr\xf6\xdfe"}')
    (tmp_path / "binary").write_bytes(bytes(range(128, 256)))
    for path in (tmp_path / "empty", tmp_path / "latin", tmp_path / "binary", Path("/dev/zero")):
        with pytest.raises(ValueError, match=f"{path}: not the JSON of boostbins' bins"):
            Bins.load(path)
        with pytest.raises(ValueError, match=f"{path}: these bytes are not a summary of boostbins'"):
            TableSummary.load(path)
    for load in (Bins.load, TableSummary.load):
        with pytest.raises(IsADirectoryError, match=re.escape(str(tmp_path))):
            load(tmp_path)
    fit_bins({"a": [1.0, 2.0]}).save(tmp_path / "bins.json")
    text = json.loads((tmp_path / "bins.json").read_text())
    (tmp_path / "bins.json").write_text("\n  " + json.dumps(text, indent=8))  # laid out anew
    assert Bins.load(tmp_path / "bins.json") == fit_bins({"a": [1.0, 2.0]})


@pytest.mark.parametrize("value", [[1.0], "1", {"a": 1}, float("inf"), float("nan")])
@pytest.mark.parametrize("field", ["weight", "distinct", "mean", "variance", "low", "missing"])
def test_forged_statistics_are_refused(field, value):
    stats = json.loads(forged({}))["columns"][1]["stats"]
    bad = value if field in ("low", "missing") or isinstance(value, list) else [value] * 8
    with pytest.raises(ValueError, match=r"not the JSON of boostbins' bins: \S"):
        Bins.from_json(forged({"stats": {**stats, field: bad}}))


@pytest.mark.parametrize(
    "odd",
    [
        {"low": 2.0},
        {"high": 0.1},
        {"low": None},
        {"high": None},
        {"low": None, "high": None},
        {"mean": [1e300] * 8},
        {"variance": [1e300] * 8},
        {"weight": [0.0] * 8},
        {"weight": [1e308] * 8},
    ],
)
def test_statistics_that_contradict_each_other_are_refused(odd):
    stats = json.loads(forged({}))["columns"][1]["stats"]
    assert Bins.from_json(forged({"stats": stats})).stats[1].low == stats["low"]
    with pytest.raises(ValueError, match="weights for all means, and means and variances of values from low to high"):
        Bins.from_json(forged({"stats": {**stats, **odd}}))


def test_table_says_what_each_bin_holds():
    X = table()
    bins = fit_bins(X, "quantile", 10)
    frame = bins.table("x2")
    codes = bins.encode(X)[:, 2]
    assert frame["weight"].tolist() == np.bincount(codes).tolist()
    assert frame["share"].sum() == pytest.approx(1)
    assert frame["bin"].tolist() == [*range(10), bins.missing_code]
    for i in range(10):
        held = X[codes == i, 2]
        assert frame["mean"][i] == pytest.approx(held.mean())
        assert frame["variance"][i] == pytest.approx(held.var())
    assert (frame["high"][:9].to_numpy() == frame["low"][1:10].to_numpy()).all()
    assert len(bins.table()) == sum(bins.n_bins) + 1


def test_a_name_that_no_frame_can_hold_is_escaped():
    bins = fit_bins({"\ud800": [1.0, 2.0], "é": [1.0, 2.0]})
    assert set(bins.table()["column"]) == set(bins.costs()["column"]) == {r"\ud800", "é"}


@pytest.mark.parametrize("weighted", [False, True])
def test_explained_says_what_binning_costs(weighted):
    X = table()
    w = np.random.default_rng(1).random(len(X)) if weighted else np.ones(len(X))
    bins = fit_bins(X, "quantile", 10, sample_weight=w if weighted else None)
    frame = bins.costs()
    codes = bins.encode(X)
    for i in range(3):
        x, c, v = (a[~np.isnan(X[:, i])] for a in (X[:, i], codes[:, i], w))
        mean = np.bincount(c, v * x) / np.bincount(c, v)
        lost = (v * (x - mean[c]) ** 2).sum() / (v * (x - np.average(x, weights=v)) ** 2).sum()
        assert frame["lost"][i] == pytest.approx(lost, abs=1e-12)
        largest = np.bincount(c, v).argmax()
        assert frame["largest_bin"][i] == pytest.approx(np.bincount(c, v).max() / v.sum())
        assert frame["hidden"][i] == len(np.unique(x[c == largest]))


def test_statistics_of_another_table_and_of_infinities():
    bins = Bins([[0.0]], ["x"]).observed({"x": [-np.inf, -1.0, 1.0, 3.0, np.inf, np.nan]})
    assert bins.stats[0].weight == (2.0, 3.0)
    assert bins.stats[0].mean == (-1.0, 2.0)
    assert bins.stats[0].missing == 1
    with pytest.raises(ValueError, match="not fitted on data"):
        Bins([[0.0]]).table()
    empty = fit_bins({"x": [np.nan, np.inf]})
    assert empty.costs()["lost"][0] == 0
    assert empty.table()["weight"].tolist() == [1.0, 1.0]


def test_statistics_of_large_columns_are_right_to_within_a_cell():
    x = skewed(400_000)
    bins = fit_bins({"x": x}, "kmeans", 63)
    exact = bins.observed({"x": x})
    np.testing.assert_allclose(bins.stats[0].weight, exact.stats[0].weight, rtol=0.2, atol=2e-4 * len(x))
    np.testing.assert_allclose(bins.costs()["lost"], exact.costs()["lost"], rtol=1e-2)


@pytest.mark.parametrize(
    ("cuts", "names", "message"),
    [
        ([[2.0, 1.0]], None, "column 0 must be finite and ascending"),
        ([[1.0, 1.0]], None, "without duplicates"),
        ([[np.nan]], None, "finite"),
        ([["a"]], None, "numbers"),
        ([[[1.0]]], None, "ascending"),
        ([[1.0]], ["a", "b"], "1 different names"),
        ([[1.0], [1.0]], ["a", "a"], "2 different names"),
        ([np.arange(65_535.0)], None, "at most 65534"),
    ],
)
def test_bad_cuts_are_refused(cuts, names, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Bins(cuts, names)


@pytest.mark.parametrize(
    ("codes", "message"),
    [([[3]], "0 to 1, or 2"), ([[-1]], "got -1"), ([[0.5]], "whole numbers"), ([0], "shape"), ([[0, 0]], "shape")],
)
def test_bad_codes_are_refused(codes, message):
    bins = fit_bins([[1.0, 2.0]])
    with pytest.raises(ValueError, match=message):
        bins.decode(np.array(codes))


def test_bad_options_are_refused():
    bins = fit_bins([[1.0, 2.0]])
    for call in (lambda: bins.encode([[1.0]], order="A"), lambda: bins.decode([[0]], kind="median")):
        with pytest.raises(ValueError, match="order must be|kind must be"):
            call()


def test_constant_and_empty_columns_decode():
    bins = fit_bins([[5.0, 5.0], [np.nan, np.nan]])
    np.testing.assert_array_equal(bins.decode([[0, 1], [1, 1]]), [[5.0, np.nan], [np.nan, np.nan]])


def test_statistics_of_extreme_columns_can_be_written():
    for x, w in (
        ([-1e200, 0, 1e200], [1e-300, 1e300, 1e300]),
        ([-1.7e308, *np.linspace(1.6e308, 1.7e308, 9)], None),
        ([-1.7e308, 1.7e308, 1.75e308], [1e-10, 1, 1e10]),
    ):
        for method in ("quantile", "optimal", "kmeans"):
            bins = fit_bins([np.array(x)], method, 2, w)
            assert Bins.from_json(bins.to_json()).stats == bins.stats
            assert bins.costs()["lost"][0] <= 1


def test_stats_must_fit_the_cuts():
    stats = fit_bins([[1.0, 2.0]]).stats
    with pytest.raises(ValueError, match="stats must be one per column"):
        Bins([[1.0], [2.0]], stats=stats)
    with pytest.raises(ValueError, match="cut short"):
        Bins.from_json("[" * 100_000)

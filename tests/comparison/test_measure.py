"""compare: real libraries on the same splits, and a verdict that says no more than they do."""

from __future__ import annotations

import decimal
import json
from contextlib import nullcontext

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import ShuffleSplit

from boostbins import compare, kmeans
from boostbins.comparison import measure
from boostbins.comparison.measure import MIN_ROWS
from boostbins.comparison.result import Comparison
from boostbins.comparison.trainers import TRAINERS
from boostbins.sources.features import numbers_and_categories

FEW = {
    "lightgbm": {"n_estimators": 15, "n_jobs": 1},
    "xgboost": {"n_estimators": 15, "n_jobs": 1},
    "catboost": {"iterations": 15, "thread_count": 1},
    "sklearn": {"max_iter": 15},
}


def skewed_frame(n=600, seed=0):
    r = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "price[€] <x>": r.lognormal(0, 2, n),
            "sensor": np.where(r.random(n) < 0.1, np.nan, r.standard_normal(n)),
            "kind": r.choice(["a", "b", "c", None], n),
            "is_new": r.random(n) < 0.5,
            "sold": pd.date_range("2020-01-01", periods=n, freq="h"),
            "id": [f"id-{i}" for i in range(n)],
            "weight": r.integers(1, 4, n),
        }
    )
    frame["y"] = frame["price[€] <x>"] + (frame["kind"] == "a") + r.standard_normal(n)
    return frame


@pytest.mark.parametrize("library", TRAINERS)
@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_every_library_and_task(library, task):
    frame = skewed_frame()
    if task != "regression":
        n = 2 if task == "binary" else 3
        frame["y"] = pd.qcut(frame["y"], n, labels=["low", "middle", "high"][:n]).astype(str)
    result = compare(frame, "y", library, ["kmeans", "auto", "hybrid"], 31, splits=2, params=FEW[library])
    assert result.task == task
    assert result.n_columns == 6
    assert list(result.table["method"]) == ["native", "kmeans", "auto", "hybrid"]
    assert result.scores["score"].notna().all()
    assert (result.scores["seconds"] > 0).all()
    assert "'sold'" in "".join(result.notes)
    assert "'id' (600 values)" in "".join(result.notes)
    assert result.metric == {"regression": "neg_root_mean_squared_error", "binary": "roc_auc"}.get(task, "neg_log_loss")


@pytest.mark.parametrize("library", TRAINERS)
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_auto_sees_the_target_of_training_rows_only(library, task, monkeypatch):
    r = np.random.default_rng(0)
    X = r.lognormal(0, 2, (1000, 2))
    y = X[:, 0] if task == "regression" else np.searchsorted([0.5, 2.0], X[:, 0])
    splits = list(ShuffleSplit(2, test_size=0.2, random_state=0).split(X))
    monkeypatch.setattr(measure, "_split_rows", lambda *_: splits)

    def bins_of_splits(target):
        seen = []
        monkeypatch.setattr(measure, "_scorer", lambda _: lambda model, *_: seen.append(model) or -1.0)
        compare(X, target, library, ["auto"], 63, task=task, splits=2, params=FEW[library])
        return [model.bins_ for model in seen if model.bin_method is not None]

    other = y.copy()
    other[splits[0][1]] = r.permutation(y[splits[0][1]])
    (first, second), (same, another) = bins_of_splits(y), bins_of_splits(other)
    assert first.choices
    assert first == same  # its test rows have other targets
    assert second != another  # it was trained on some of them


def test_by_default_all_but_hybrid_are_compared():
    X = np.random.default_rng(0).lognormal(0, 2, (200, 2))
    result = compare(X, X[:, 0], "sklearn", max_bins=15, splits=2, params={"max_iter": 2})
    usual = ["auto", "kmeans", "optimal", "quantile", "uniform", "shared", "auto-bins"]
    assert list(result.table["method"]) == ["native", *usual]


def test_shared_bins_are_those_of_as_many_on_average():
    from boostbins.lightgbm import LGBMRegressor

    r = np.random.default_rng(0)
    day = r.integers(0, 600, 4000)
    X = {"day": day, "noise": r.normal(size=4000), "flag": r.integers(0, 2, 4000)}
    y = np.cumsum(r.normal(size=600))[day]
    result = compare(X, y, "lightgbm", ["shared", "kmeans"], 31, splits=4, params={"n_estimators": 30})
    assert result.best == ("shared", 31)
    assert "shared lowers the error" in result.verdict
    assert result.snippet.endswith('LGBMRegressor(bin_method="kmeans", average_bins=31, n_estimators=30)')
    model = LGBMRegressor(bin_method="kmeans", average_bins=31, n_estimators=30).fit(
        np.column_stack(list(X.values())), y
    )
    assert model.bins_.n_bins[0] > 40
    with pytest.raises(ValueError, match="or 'auto-bins'"):
        compare(X, y, "lightgbm", ["share"])
    enough = compare(X, y, "lightgbm", ["auto-bins"], 31, splits=4, params={"n_estimators": 30})
    assert enough.best == ("auto-bins", 31)
    assert enough.snippet.endswith("LGBMRegressor(bin_method=\"kmeans\", total_bins='auto', n_estimators=30)")
    with pytest.raises(ValueError, match="params must not hold 'total_bins': the method 'auto-bins' is"):
        compare(X, y, "lightgbm", ["shared"], params={"total_bins": 900})
    with pytest.raises(ValueError, match="params must not hold 'average_bins': it is set by max_bins"):
        compare(X, y, "lightgbm", ["shared"], params={"average_bins": 9})


def test_native_scores_are_those_of_the_library_itself():
    r = np.random.default_rng(0)
    X = r.lognormal(0, 2, (500, 3))
    y = X.sum(axis=1)
    result = compare(X, y, "sklearn", ["kmeans"], 31, splits=3, params=FEW["sklearn"], random_state=7)
    for split, (train, test) in enumerate(ShuffleSplit(3, test_size=0.2, random_state=7).split(X)):
        model = HistGradientBoostingRegressor(max_iter=15, max_bins=31, random_state=7).fit(X[train], y[train])
        own = result.scores.query(f"method == 'native' and split == {split}")["score"].item()
        assert own == pytest.approx(root_mean_squared_error(y[test], model.predict(X[test])), rel=1e-12)


def test_intervals_are_those_of_nadeau_and_bengio():
    r = np.random.default_rng(0)
    X = r.lognormal(0, 2, (500, 2))
    result = compare(X, X.sum(axis=1), "sklearn", ["kmeans", "optimal"], 31, splits=4, params=FEW["sklearn"])
    scores = result.scores.pivot(index="split", columns="method", values="error")
    n, table = 4, result.table.set_index("method")
    spread = np.sqrt((1 / n + 0.25) * scores["kmeans"].var(ddof=1)) * stats.t.ppf(0.975, n - 1)
    assert table.loc["kmeans", "score_high"] - table.loc["kmeans", "score"] == pytest.approx(spread)
    ratio = scores["optimal"].mean() / scores["native"].mean()
    rest = scores["optimal"] - ratio * scores["native"]
    reach = np.sqrt((1 / n + 0.25) * rest.var(ddof=1)) * stats.t.ppf(1 - 0.025 / 2, n - 1) / scores["native"].mean()
    assert table.loc["optimal", "change"] == pytest.approx(100 * (ratio - 1))
    assert table.loc["optimal", "change_high"] == pytest.approx(100 * (ratio - 1 + reach))


def test_the_tail_makes_the_change_worth_it():
    r = np.random.default_rng(0)
    X = r.lognormal(0, 2, (2000, 2))
    result = compare(X, X.sum(axis=1), "sklearn", ["kmeans"], 15, params={"max_iter": 30})
    assert "kmeans lowers the error by" in result.verdict
    assert "worth the change" in result.verdict
    assert result.best == ("kmeans", 15)
    assert 'HistGradientBoostingRegressor(bin_method="kmeans", max_bins=15, max_iter=30)' in result.snippet
    exec(result.snippet)


def compared(**errors):
    """Return a comparison of given errors, by method, at 63 bins (or more, as a dict)."""
    rows = [
        {"split": split, "max_bins": max_bins, "method": method, "score": error, "error": error, "seconds": 0.1}
        for method, given in errors.items()
        for max_bins, values in (given if isinstance(given, dict) else {63: given}).items()
        for split, error in enumerate(values)
    ]
    frame = pd.DataFrame(rows).sort_values("max_bins", ascending=False, kind="stable")
    return Comparison("lightgbm", "regression", "neg_mean_squared_error", frame, 1000, 3, ())


def test_what_the_library_does_better_with_more_bins_is_not_recommended():
    few, many = [2.0, 2.1, 1.9, 2.0, 2.05], [1.0, 1.05, 0.95, 1.0, 1.02]
    half = [1.5, 1.6, 1.45, 1.5, 1.52]
    result = compared(native={255: many, 8: few}, kmeans={255: many, 8: half})
    assert result.best is None
    assert result.snippet == ""
    assert "At 8 bins kmeans lowers the error" in result.verdict
    assert "LightGBM's own 255 bins make a lower error still" in result.verdict


def test_no_certainty_from_splits_that_do_not_vary():
    for n in range(1, 20):
        alike = compared(native=[0.01 * n] * 5, kmeans=[0.007 * n] * 5)
        assert list(alike.table["meaning"]) == ["", "unclear"]
    same = compared(native=[0.02] * 5, kmeans=[0.01] * 5)
    assert list(same.table["meaning"]) == ["", "unclear"]
    assert "the data cannot tell: kmeans changes the error by -50.0 % (no interval)" in same.verdict
    one = compared(native=[0, 0, 0, 1e-5, 0], kmeans=[0] * 5)
    assert one.best is None
    assert "cannot tell" in one.verdict
    wide = compared(native=[1.0, 2.0, 3.0], kmeans=[0.1, 0.9, 0.1])
    assert (wide.table["change_low"] >= -100).all()
    perfect = compared(native=[0.0] * 5, kmeans=[0.0, 0.0, 0.1, 0.0, 0.0])
    assert "make no error at all: there is nothing to gain" in perfect.verdict
    for result in (same, one, wide, perfect):
        json.dumps(result.to_dict(), allow_nan=False)
        assert "nan" not in result.verdict
        assert "inf " not in result.verdict


def test_noise_is_not_called_a_gain():
    verdicts = []
    for seed in range(6):
        r = np.random.default_rng(seed)
        X, y = r.standard_normal((300, 2)), r.standard_normal(300)
        result = compare(X, y, "sklearn", ["kmeans", "quantile"], 63, params=FEW["sklearn"], random_state=seed)
        assert result.best is None
        assert result.snippet == ""
        verdicts.append(result.verdict)
    assert any("cannot tell" in verdict for verdict in verdicts)


def test_where_every_value_has_its_bin_no_method_matters():
    r = np.random.default_rng(0)
    X = r.integers(0, 10, (400, 3))
    result = compare(X, X.sum(axis=1) + r.standard_normal(400), "sklearn", params=FEW["sklearn"])
    assert (result.table["change"] == 0).all()
    assert result.verdict.count("stay with scikit-learn's own") == 2


def test_the_same_from_every_kind_of_table():
    frame = skewed_frame()
    options = {"library": "lightgbm", "methods": ["kmeans"], "max_bins": 31, "splits": 2, "params": FEW["lightgbm"]}
    expected = compare(frame, "y", **options).scores["score"]
    for table in (pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        found = compare(table, "y", **options)
        pd.testing.assert_series_equal(found.scores["score"], expected)
    apart = compare(frame.drop(columns="y"), frame["y"].to_numpy(), **options)
    pd.testing.assert_series_equal(apart.scores["score"], expected)


def test_weights_by_name_or_as_an_array_change_training_and_scores():
    frame = skewed_frame()
    options = {"library": "sklearn", "methods": ["kmeans"], "max_bins": 31, "splits": 2, "params": FEW["sklearn"]}
    plain = compare(frame.drop(columns="weight"), "y", **options).scores["score"]
    named = compare(frame, "y", sample_weight="weight", **options)
    given = compare(frame.drop(columns="weight"), "y", sample_weight=frame["weight"], **options)
    assert named.n_columns == given.n_columns
    pd.testing.assert_series_equal(named.scores["score"], given.scores["score"])
    assert (named.scores["score"] != plain).all()


def test_an_own_function_and_names():
    def thirds(summary, max_bins):
        return summary.quantile([1 / 3, 2 / 3])

    r = np.random.default_rng(0)
    X = r.lognormal(0, 2, (300, 2))
    options = {"max_bins": 31, "splits": 2, "params": FEW["sklearn"]}
    assert list(compare(X, X[:, 0], "sklearn", [thirds], **options).table["method"]) == ["native", "thirds"]
    assert list(compare(X, X[:, 0], "sklearn", {"three": thirds}, **options).table["method"]) == ["native", "three"]


def test_the_snippet_names_functions_and_parameters():
    def mine(summary, max_bins):
        return kmeans(summary, max_bins)

    r = np.random.default_rng(0)
    X = r.lognormal(0, 2, (2000, 2))
    params = {"n_estimators": 60, "n_jobs": 1, "learning_rate": 0.3}
    result = compare(X, X.sum(axis=1), "catboost", [mine], 15, params=params)
    assert result.best == ("mine", 15)
    called = "CatBoostRegressor(bin_method=mine, border_count=14, iterations=60, thread_count=1, learning_rate=0.3)"
    assert result.snippet.endswith(called)
    with pytest.raises(ValueError, match="methods must have different names"):
        compare(X, X[:, 0], "sklearn", [lambda s, b: [1.0], lambda s, b: [2.0]])


@pytest.mark.parametrize("library", TRAINERS)
def test_the_number_of_trees_has_one_name(library):
    r = np.random.default_rng(0)
    X = r.lognormal(0, 2, (300, 2))
    own = {"catboost": "iterations", "sklearn": "max_iter"}.get(library, "n_estimators")

    def scores(name, n_trees):
        params = {name: n_trees, "random_state": 1}
        return compare(X, X[:, 0], library, ["kmeans"], 31, splits=2, params=params).scores["score"].tolist()

    assert scores("n_estimators", 3) == scores(own, 3) != scores(own, 4)


@pytest.mark.parametrize(
    "y",
    [
        pa.array([decimal.Decimal(i) / 4 for i in range(300)]),
        pa.array([float(i) for i in range(300)]).cast(pa.float32()),
        pd.Series([float(i) for i in range(300)], dtype=object),
        pd.Series(range(300), dtype="Int64"),
        [2**60 + i for i in range(300)],
    ],
    ids=["decimal", "float32", "object", "nullable", "huge"],
)
def test_numbers_of_every_kind_are_a_target(y):
    X = np.random.default_rng(0).lognormal(0, 2, (300, 2))
    for table in (pa.table({"a": X[:, 0], "b": X[:, 1], "y": pa.array(y)}),):
        result = compare(table, "y", "sklearn", ["kmeans"], 31, splits=2, params=FEW["sklearn"])
        assert result.task == "regression"
    assert compare(X, y, "sklearn", ["kmeans"], 31, splits=2, params=FEW["sklearn"]).task == "regression"


def test_missing_classes_are_told_of_in_every_kind_of_table():
    frame = pd.DataFrame({"a": GOOD[:, 0], "y": pd.Categorical([None] * 10 + ["x", "y", "z"] * 30)})
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        with pytest.raises(ValueError, match="the target has 10 missing values"):
            compare(table, "y", "sklearn")


def test_missing_categories_are_not_a_category_of_text():
    kinds = ["a", None, "b", float("nan"), "a"] * 40
    frame = pd.DataFrame({"x": np.arange(200.0), "k": pd.Series(kinds, dtype=object)})
    for table in (frame, frame.astype({"k": "category"}), pl.DataFrame({"k": [k if k == k else None for k in kinds]})):
        found, _ = numbers_and_categories(table, 100)
        assert list(found["k"].cat.categories) == ["a", "b"]
        assert found["k"].isna().sum() == 80


def test_rare_whole_numbers_are_no_classes():
    r = np.random.default_rng(0)
    counts = np.append(r.integers(0, 4, 299), 9)
    X = r.lognormal(0, 2, (300, 2))
    options = {"library": "sklearn", "methods": ["kmeans"], "max_bins": 31, "splits": 2, "params": FEW["sklearn"]}
    assert compare(X, counts, **options).task == "regression"
    assert compare(X, counts % 4, **options).task == "multiclass"
    with pytest.raises(ValueError, match="class '9' has one row only.*or choose the task 'regression'"):
        compare(X, counts, task="classification", **options)


def test_columns_without_a_value_are_left_out():
    frame = skewed_frame().assign(nothing=np.nan, nor_this=None)
    result = compare(frame, "y", "sklearn", ["kmeans"], 31, splits=2, params=FEW["sklearn"])
    assert "left out (nothing but missing values): 'nothing', 'nor_this'" in result.notes


@pytest.mark.parametrize("library", TRAINERS)
def test_infinite_values_train_or_are_named(library):
    X = np.random.default_rng(0).lognormal(0, 2, (300, 2))
    X[:9, 0] = np.inf
    refuses = (
        pytest.raises(ValueError, match=r"XGBoost could not be trained on this: .*inf")
        if library == "xgboost"
        else nullcontext()
    )
    with refuses:
        compare(X, X[:, 1], library, ["kmeans"], 31, splits=2, params=FEW[library])


def test_metrics_by_name():
    frame = skewed_frame()
    options = {"methods": ["kmeans"], "max_bins": 31, "splits": 2, "params": FEW["sklearn"]}
    result = compare(frame, "y", "sklearn", metric="r2", **options)
    assert not result.less_is_better
    assert np.allclose(result.scores["error"], 1 - result.scores["score"])
    assert compare(frame, "y", "sklearn", metric="neg_mean_absolute_error", **options).less_is_better


def test_a_sample_of_the_rows():
    r = np.random.default_rng(0)
    X = r.lognormal(0, 2, (1000, 2))
    result = compare(X, X[:, 0], "sklearn", ["kmeans"], 31, splits=2, params=FEW["sklearn"], max_rows=200)
    assert result.n_rows == 200
    assert "200 of 1,000" in result.notes[0]


def test_interrupted_after_two_splits_it_tells_what_it_knows():
    r = np.random.default_rng(0)
    X = r.lognormal(0, 2, (300, 2))

    def stopping(at):
        def progress(done, total, now):
            if done == at:
                raise KeyboardInterrupt

        return progress

    options = {"methods": ["kmeans"], "max_bins": [31, 15], "splits": 5, "params": FEW["sklearn"]}
    result = compare(X, X[:, 0], "sklearn", progress=stopping(10), **options)
    assert not result.is_complete
    assert result.n_splits == 2
    assert "interrupted: 2 of 5 splits" in result.notes
    with pytest.raises(KeyboardInterrupt):
        compare(X, X[:, 0], "sklearn", progress=stopping(7), **options)


def test_what_is_drawn_and_written(tmp_path):
    import matplotlib as mpl

    mpl.use("Agg")
    r = np.random.default_rng(0)
    X = r.lognormal(0, 2, (300, 2))
    result = compare(X, X[:, 0], "sklearn", ["kmeans"], [31, 15], splits=2, params=FEW["sklearn"], title="<b>")
    axes = result.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["kmeans, 15 bins", "kmeans, 31 bins"]
    text = result.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == text
    assert "<title>&lt;b&gt;" in text
    assert result._repr_html_().startswith("<iframe srcdoc=")
    assert "kmeans" in str(result)


GOOD = np.random.default_rng(0).lognormal(0, 2, (MIN_ROWS, 2))


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        (GOOD, GOOD[:, 0], {"library": "lightgbn"}, "library must be one of 'lightgbm'.*got 'lightgbn'"),
        (GOOD, GOOD[:, 0], {"methods": ["kmean"]}, "methods must be one of 'auto'.*got 'kmean'"),
        (GOOD, GOOD[:, 0], {"methods": []}, "methods must name one at least"),
        (GOOD, GOOD[:, 0], {"max_bins": 256}, "max_bins must be whole numbers from 2 to 255, got 256"),
        (GOOD, GOOD[:, 0], {"max_bins": []}, "max_bins must hold a number"),
        (GOOD, GOOD[:, 0], {"splits": 1}, "splits must be a whole number of at least 2, got 1"),
        (GOOD, GOOD[:, 0], {"task": "ranking"}, "task must be .*got 'ranking'"),
        (GOOD, GOOD[:50, 0], {}, r"the target must have one entry per row, shape \(100,\), got \(50,\)"),
        (GOOD, None, {}, "the target must have one entry per row"),
        (GOOD, GOOD[:, 0], {"params": {"max_bin": 7}}, "params must not hold 'max_bin': it is set by max_bins"),
        (GOOD, GOOD[:, 0], {"params": {"bin_method": "optimal"}}, "'bin_method': it is set by methods"),
        (GOOD, GOOD[:, 0], {"params": {"nope": 7}}, "scikit-learn could not be trained on this: .*'nope'"),
        (GOOD, GOOD[:, 0], {"max_rows": 5}, "max_rows must be a whole number of at least 100, got 5"),
        (GOOD, GOOD[:, 0], {"random_state": -1}, "random_state must be a whole number of at least 0, got -1"),
        (GOOD, GOOD[:, 0], {"sample_weight": np.zeros(100)}, "sample_weight is zero for every row"),
        (GOOD, np.arange(100).astype("datetime64[D]"), {}, "the target holds dates"),
        (GOOD[:, 0], GOOD[:, 0], {}, "X must be a table with rows and columns"),
        (pd.DataFrame(GOOD, columns=["a", "a"]), GOOD[:, 0], {}, "more than one column named 'a'"),
        (pd.DataFrame({"a": GOOD[:, 0], "b": 1}), "b", {"sample_weight": "b"}, "cannot be both the target and"),
        (GOOD, GOOD[:, 0], {"metric": "rmse"}, "did you mean 'neg_root_mean_squared_error'"),
        (GOOD, GOOD[:, 0], {"metric": "roc_auc"}, "metric 'roc_auc' cannot be used for this regression target"),
        (GOOD, GOOD[:, 0], {"sample_weight": -np.ones(100)}, "sample_weight must be finite and not negative"),
        (GOOD[:99], GOOD[:99, 0], {}, "there are 99 rows, and to compare methods takes at least 100"),
        (GOOD, np.ones(100), {}, "the target has one value only"),
        (GOOD, np.where(GOOD[:, 0] > 1, np.nan, 1.0), {}, "the target has [0-9]+ missing values"),
        (GOOD, np.where(np.arange(100) == 5, np.inf, GOOD[:, 0]), {}, "the target has infinite values"),
        (GOOD, [f"t{i}" for i in range(100)], {}, "too many to be classes"),
        (GOOD, ["a"] * 50 + ["b"] * 49 + ["c"], {}, "class 'c' has one row only"),
        (GOOD, ["a"] * 50 + ["b"] * 50, {"task": "regression"}, "not numbers: choose the task 'classification'"),
        (pd.DataFrame({"a": ["x", "y"] * 50}), GOOD[:, 0], {}, "no numeric column"),
        (pd.DataFrame({"price": GOOD[:, 0]}), "prize", {}, "no column 'prize': did you mean 'price'"),
        (pd.DataFrame({"price": GOOD[:, 0]}), "price", {}, "no column to train on besides the target"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(X, y, options, message):
    with pytest.raises(ValueError, match=message):
        compare(X, y, **{"library": "sklearn", "params": FEW["sklearn"], **options})

"""boostbins on Dask: the cuts of memory, whatever the partitions; on a real cluster, models of plain libraries."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost.dask
from distributed import Client, LocalCluster
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import boostbins.dask
import boostbins.lightgbm
import boostbins.xgboost
from boostbins import Bins, fit_bins, kmeans, summarize
from boostbins.adapters.features import feature_table
from boostbins.dask.lightgbm import _codes, _needed, _raw_booster, _RegressorOnCodes
from boostbins.summary.ranges import ranges_of
from tests.conftest import any_float, skewed
from tests.libraries import of_lightgbm, of_xgboost

pytestmark = [
    pytest.mark.dask,
    pytest.mark.filterwarnings(
        # The libraries' own, each met by their own classes too.
        "ignore:Parameter n_jobs will be ignored:UserWarning",
        "ignore:The argument 'eval_set' is deprecated",
        "ignore:.*was not allocated eval_set data:UserWarning",
        "ignore:X does not have valid feature names",
        "ignore:(.|\\n)*inplace keyword in DataFrame",
    ),
]

FEATURES = ["skewed", "signed", "count", "constant", "negative"]  # in no symmetric order
XGB = {"n_estimators": 12, "max_bin": 32, "random_state": 0}
# On workers of unequal numbers of rows, LightGBM starts from another average.
LGBM = {
    "n_estimators": 12,
    "max_bin": 32,
    "num_leaves": 8,
    "random_state": 0,
    "verbosity": -1,
    "deterministic": True,
    "boost_from_average": False,
}


def table(n=3000, seed=0, missing=True):
    r = np.random.default_rng(seed)
    df = pd.DataFrame(
        {
            "skewed": r.lognormal(0, 2, n),
            "signed": np.where(r.random(n) < 0.2, 0.0, r.standard_normal(n)),
            "count": r.poisson(3, n).astype(float),
            "constant": np.full(n, 7.0),
            "negative": -r.lognormal(0, 1, n),
        }
    )
    gone = r.random(n) < 0.2
    df["y"] = np.where(gone, 3, np.log1p(df["skewed"])) + df.signed + np.sqrt(df["count"]) - df.negative / 4
    df["y"] += 0.1 * r.standard_normal(n)
    if missing:
        df.loc[gone, "skewed"] = np.nan
        df.loc[r.random(n) < 0.1, "signed"] = np.nan
    df["weight"] = r.integers(1, 4, n)
    df["query"] = np.arange(n) // 30
    df["grade"] = pd.cut(df.y, [-np.inf, 1, 3, np.inf], labels=False).astype(int)
    return df


def in_parts(frame, bounds):
    """Return a frame in partitions with these bounds, some maybe without rows."""
    ends = [0, *sorted(bounds), len(frame)]
    parts = [dask.delayed(frame.iloc[a:b]) for a, b in pairwise(ends)]
    return dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as client:
        yield client


@pytest.fixture
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


# ---- the cuts


@given(st.data())
@hypothesis_settings(max_examples=20)
def test_cuts_do_not_depend_on_the_partitioning(data):
    n = data.draw(st.integers(1, 60))
    frame = pd.DataFrame({name: data.draw(st.lists(any_float, min_size=n, max_size=n)) for name in "ba"})
    frame["weight"] = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any))
    bounds = data.draw(st.lists(st.integers(0, n), max_size=12))
    method = data.draw(st.sampled_from(["kmeans", "quantile", "uniform", "hybrid"]))
    with dask.config.set(scheduler="synchronous"):
        parts = in_parts(frame, bounds)
        assert boostbins.dask.fit_bins(parts, method, 5) == fit_bins(frame, method, 5)
        weighted = boostbins.dask.fit_bins(parts, method, 5, "weight")
        assert weighted == fit_bins(frame, method, 5, "weight")
        assert boostbins.dask.summarize(parts) == summarize(frame)


@pytest.mark.usefixtures("synchronous")
def test_cuts_of_many_distinct_values_and_columns_are_those_of_memory():
    X = np.column_stack([skewed(90_000, seed) for seed in range(2)])
    wide = np.random.default_rng(0).lognormal(0, 1, (500, 40))  # more than one group of columns
    for array, chunks in [(X, (7000, 1)), (wide, (60, 7))]:
        parts = da.from_array(array, chunks=chunks)
        assert boostbins.dask.fit_bins(parts, max_bins=63) == fit_bins(array, max_bins=63)
        assert boostbins.dask.summarize(parts) == summarize(array)
    assert boostbins.dask.fit_bins(da.from_array(X, chunks=(9000, 2)), exact=True) == fit_bins(X, exact=True)


@pytest.mark.usefixtures("synchronous")
def test_statistics_targets_and_budgets_per_column_are_those_of_memory():
    frame = table()[[*FEATURES, "y", "weight"]].round({"y": 0})  # whole targets have exact sums
    parts = in_parts(frame, [700, 700, 1900])
    budgets = {"skewed": 9, "negative": 30}
    ours = boostbins.dask.fit_bins(parts, max_bins=budgets, columns=list(budgets))
    theirs = fit_bins(frame, max_bins=budgets, columns=list(budgets))
    assert ours == theirs
    assert ours.stats == theirs.stats

    def by_target(summary, max_bins):
        return [float(np.average(summary.points.middle, weights=summary.target_sums[:, 1] ** 2))]

    assert boostbins.dask.fit_bins(parts, by_target, 4, y="y") == fit_bins(frame, by_target, 4, y="y")
    per_row = boostbins.dask.fit_bins(parts[FEATURES], "kmeans", 9, parts.weight, y=parts.y)
    assert per_row == fit_bins(frame[FEATURES], "kmeans", 9, frame.weight, y=frame.y)


ASKED = [{"total_bins": 90}, {"average_bins": 45}, {"total_bins": "auto"}]


def check_shared(found, expected):
    assert found == expected
    assert found.shares == expected.shares != {}


@given(st.data())
@hypothesis_settings(max_examples=15)
def test_columns_share_a_total_whatever_the_partitions(data):
    n = data.draw(st.integers(1, 60))
    frame = pd.DataFrame({name: data.draw(st.lists(any_float, min_size=n, max_size=n)) for name in "ba"})
    frame["weight"] = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any))
    frame["y"] = data.draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n))
    asked = data.draw(st.sampled_from([{"total_bins": 7}, {"average_bins": 9.5}, {"total_bins": "auto"}]))
    bounds = data.draw(st.lists(st.integers(0, n), max_size=12))
    method = data.draw(st.sampled_from(["kmeans", "quantile", "auto"]))
    with dask.config.set(scheduler="synchronous"):
        parts = in_parts(frame, bounds)
        for weight in (None, "weight"):
            found = boostbins.dask.fit_bins(parts, method, sample_weight=weight, y="y", **asked)
            check_shared(found, fit_bins(frame, method, sample_weight=weight, y="y", **asked))
        assert boostbins.dask.summarize(parts, "weight", y="y") == summarize(frame, "weight", y="y")


@pytest.mark.usefixtures("synchronous")
def test_many_rows_and_columns_share_a_total():
    r = np.random.default_rng(0)
    tall = pd.DataFrame({"a": r.lognormal(size=20_000), "b": r.integers(0, 2, 20_000), "c": r.normal(size=20_000)})
    tall["y"] = np.round(10 * tall.a) + tall.b
    wide = pd.DataFrame(r.lognormal(0, 1, (500, 40)), columns=[f"c{i}" for i in range(40)])  # more than one group
    wide["y"] = np.round(10 * wide.c0) + np.round(wide.c30)
    for frame, bounds in ((tall, [3000, 3000, 19_000]), (wide, [60, 400])):
        parts = in_parts(frame, bounds)
        for asked in ({"average_bins": 45}, {"total_bins": "auto"}):
            check_shared(boostbins.dask.fit_bins(parts, y="y", **asked), fit_bins(frame, y="y", **asked))
        whole = boostbins.dask.summarize(parts, y="y")
        assert whole == summarize(frame, y="y")
        assert fit_bins(whole, average_bins=20) == fit_bins(frame, y="y", average_bins=20)
    check_shared(boostbins.dask.fit_bins(parts, average_bins=20), fit_bins(frame, average_bins=20))
    with pytest.raises(ValueError, match='total_bins="auto" needs a target'):
        boostbins.dask.fit_bins(parts, total_bins="auto")
    with pytest.raises(ValueError, match="total_bins=90 and average_bins=45 contradict each other"):
        boostbins.dask.fit_bins(parts, y="y", total_bins=90, average_bins=45)
    with pytest.raises(ValueError, match="average_bins must be a number from 2 to 65535, got 'auto'"):
        boostbins.dask.fit_bins(parts, y="y", average_bins="auto")


@pytest.mark.usefixtures("synchronous")
def test_partitions_without_rows_or_values_count_as_what_they_are():
    frame = pd.DataFrame({"a": [1.0, 2.0, np.nan], "n": pd.array([1, None, 3], "Int64"), "text": ["p", "q", "r"]})
    lost = pd.DataFrame({"a": [None, None], "n": [None, None], "text": ["s", "t"]}, dtype=object)
    parts = dd.from_delayed(
        [dask.delayed(part) for part in (frame.iloc[:0], frame, lost)], meta=frame.iloc[:0], verify_meta=False
    )
    whole = pd.DataFrame({"a": [1.0, 2.0, *[np.nan] * 3], "n": [1.0, np.nan, 3.0, np.nan, np.nan]})
    summary = boostbins.dask.summarize(parts, non_numeric="skip")
    assert summary == summarize(whole)
    assert summary["a"].missing == 3


def test_files_are_read_in_the_partitions_that_dask_makes(tmp_path, client):
    frame = table()
    dd.from_pandas(frame, npartitions=6).to_parquet(tmp_path)
    parts = dd.read_parquet(tmp_path)
    assert boostbins.dask.fit_bins(parts, columns=["skewed"]) == fit_bins(frame[["skewed"]])
    assert boostbins.dask.fit_bins(parts[["skewed"]], sample_weight=parts.weight) == fit_bins(
        frame[["skewed"]], sample_weight=frame.weight
    )
    # Dask merges partitions of a few columns, and those of X and y differently.
    model = boostbins.dask.XGBRegressor(**XGB).fit(parts[FEATURES], parts.y)
    assert model.bins_ == boostbins.xgboost.XGBRegressor(**XGB).fit(frame[FEATURES], frame.y).bins_


def killing(part, flag):
    if len(part) and part["skewed"].min() < 0 and not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return part


def test_cuts_are_the_same_when_a_worker_is_lost(tmp_path, client):
    frame = table()
    frame.loc[2000, "skewed"] = -1.0
    flag = tmp_path / "killed"
    parts = in_parts(frame, range(0, 3000, 250)).map_partitions(killing, str(flag), meta=frame.iloc[:0])
    client.wait_for_workers(2)
    assert boostbins.dask.fit_bins(parts, client=client) == fit_bins(frame)
    assert flag.exists()
    client.wait_for_workers(2)


@pytest.mark.usefixtures("synchronous")
@pytest.mark.parametrize("total_bins", [None, 20])
def test_dates_are_seconds_as_in_memory(total_bins):
    days = pd.date_range("2020-01-01", periods=60)
    frame = pd.DataFrame({"day": days, "n": np.arange(60.0), "span": days - days[0]})
    parts = in_parts(frame, [20, 30])
    known = {"day": "seconds since 1970", "span": "seconds"}
    found = boostbins.dask.fit_bins(parts, "quantile", 9, total_bins=total_bins, dates_as_numbers=True)
    assert found == fit_bins(frame, "quantile", 9, total_bins=total_bins, dates_as_numbers=True)
    assert found.units == known
    assert boostbins.dask.summarize(parts, dates_as_numbers=True) == summarize(frame, dates_as_numbers=True)
    assert boostbins.dask.summarize(parts, dates_as_numbers=True).units == known


@pytest.mark.usefixtures("synchronous")
def test_what_is_wrong_is_said():
    frame = table(50)
    parts, array = in_parts(frame, [20]), da.ones((50, 2), chunks=(20, 2))
    fit = boostbins.dask.fit_bins
    with pytest.raises(TypeError, match="Dask DataFrame or Array, got pandas.*boostbins.fit_bins"):
        fit(frame)
    for collection in (parts, array):
        with pytest.raises(TypeError, match="boostbins.dask"):
            fit_bins(collection)
    with pytest.raises(ValueError, match="columns: there is no column 'age': did you mean 'grade'"):
        fit(parts, columns=["age"])
    with pytest.raises(ValueError, match="sample_weight: there is no column 'w'"):
        fit(parts, sample_weight="w")
    with pytest.raises(TypeError, match="columns must be a list"):
        fit(parts, columns="skewed")
    with pytest.raises(TypeError, match="an array has no names"):
        fit(array, y="y")
    with pytest.raises(TypeError, match="sample_weight must be the name of a column, or a Dask"):
        fit(parts, sample_weight=frame.weight)
    with pytest.raises(ValueError, match="partitions of X: it has 3, and X 2"):
        fit(parts, sample_weight=da.ones(50, chunks=20))
    with pytest.raises(ValueError, match=r"one entry per row, shape \("):
        fit(parts, sample_weight=da.ones(50, chunks=25))
    with pytest.raises(TypeError, match="column 'text' of type String cannot be cut"):
        fit(parts.assign(text="a"))
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        fit(parts, sample_weight=parts.weight * 0)
    with pytest.raises(ValueError, match="X has no rows"):
        fit(in_parts(frame.iloc[:0], []))
    with pytest.raises(ValueError, match="method must be one of"):
        fit(parts, "kmean")
    with pytest.raises(AttributeError, match="no attribute 'CatBoostRegressor'"):
        boostbins.dask.CatBoostRegressor  # noqa: B018


def test_without_dask_the_extra_is_named():
    code = "import sys; sys.modules['distributed'] = None; import boostbins.dask"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'boostbins[dask]'" in done.stderr


# ---- the estimators


def trees_of_lightgbm(model):
    """Return all that decides where a row goes."""
    text = model.booster_.model_to_string()
    return re.findall(r"(?m)^((?:split_feature|threshold|decision_type|left_child|right_child)=.*)$", text)


def check_thresholds(thresholds, bins):
    assert thresholds
    for place, values in thresholds.items():
        assert set(values) <= set(bins.cuts[place])


KINDS = {
    "regressor": ("y", {}),
    "weighted regressor": ("y", {"sample_weight": "weight"}),
    "binary classifier": ("high", {}),
    "classifier": ("grade", {}),
}
of_each_kind = pytest.mark.parametrize("kind", KINDS)


def arguments(kind, frame):
    y, per_row = KINDS[kind]
    return frame[FEATURES], frame[y], {argument: frame[name] for argument, name in per_row.items()}


def predicted(model, X, kind):
    return np.asarray(model.predict_proba(X) if kind.endswith("classifier") else model.predict(X))


def raw_rows(frame):
    """Return what a model may meet: rows it was trained on, missing values everywhere, zeros, what is beyond."""
    odd = [dict.fromkeys(FEATURES, value) for value in (np.nan, 0.0, -0.0, 1e-36, -1e-36, 1e30, -1e30)]
    return pd.concat([frame[FEATURES], pd.DataFrame(odd)], ignore_index=True)


@of_each_kind
def test_xgboost_trains_the_model_of_one_machine(kind, client):
    frame = table()
    frame["high"] = (frame.y > 2) * 1
    parts = in_parts(frame, [400, 400, 1500, 2000])
    name = "XGBClassifier" if kind.endswith("classifier") else "XGBRegressor"
    X, y, per_row = arguments(kind, parts)
    model = getattr(boostbins.dask, name)(**XGB).fit(X, y, **per_row)
    X, y, per_row = arguments(kind, frame)
    one = getattr(boostbins.xgboost, name)(**XGB).fit(X, y, **per_row)
    assert model.bins_ == one.bins_
    ours = of_xgboost(model)
    assert {place: values.tolist() for place, values in ours.items()} == {
        place: values.tolist() for place, values in of_xgboost(one).items()
    }
    own = {place: values[np.isin(values, one.bins_.cuts[place])] for place, values in ours.items()}
    assert all(t > frame[FEATURES[p]].max() for p, values in ours.items() for t in values[~np.isin(values, own[p])])
    rows = raw_rows(frame)
    order = np.argsort(model.classes_) if kind.endswith("classifier") else None
    plain = xgboost.DMatrix(rows)
    np.testing.assert_allclose(
        model.get_booster().predict(plain), one.get_booster().predict(plain), rtol=1e-4, atol=1e-5
    )
    on_cluster = predicted(model, dd.from_pandas(rows, npartitions=3), kind)
    if order is not None:
        assert sorted(model.classes_) == list(one.classes_)
    np.testing.assert_allclose(on_cluster, predicted(one, rows, kind), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_estimators_share_a_total_on_a_cluster(asked, client):
    frame = table().round({"y": 1}) * 10  # whole targets have exact sums
    parts = in_parts(frame, [400, 400, 1500, 2000])
    for module, name, usual in (
        (boostbins.xgboost, "XGBRegressor", XGB),
        (boostbins.lightgbm, "LGBMRegressor", LGBM),
    ):
        params = {key: value for key, value in usual.items() if key != "max_bin"} | {"n_estimators": 3}
        model = getattr(boostbins.dask, name)(**params, **asked, bin_method="kmeans")
        model.fit(parts[FEATURES], parts["y"])
        one = getattr(module, name)(**params, **asked, bin_method="kmeans").fit(frame[FEATURES], frame["y"])
        check_shared(model.bins_, one.bins_)
        rows = frame[FEATURES][:200]
        found = model.to_local().predict(rows) if name.startswith("LGBM") else model.get_booster().inplace_predict(rows)
        np.testing.assert_allclose(found, one.predict(rows), rtol=1e-3, atol=1e-3)
        with pytest.raises(ValueError, match="is for cuts by a bin_method, got bin_method=None"):
            getattr(boostbins.dask, name)(**params, **asked, bin_method=None).fit(parts[FEATURES], parts["y"])


def test_auto_looks_at_the_target_on_a_cluster(client):
    frame = table().round({"y": 1}) * 10  # whole targets have exact sums
    parts = in_parts(frame, [400, 400, 1500, 2000])
    for module, name, params in (
        (boostbins.xgboost, "XGBRegressor", XGB),
        (boostbins.lightgbm, "LGBMRegressor", LGBM),
    ):
        model = getattr(boostbins.dask, name)(**params, bin_method="auto").fit(parts[FEATURES], parts["y"])
        one = getattr(module, name)(**params, bin_method="auto").fit(frame[FEATURES], frame["y"])
        assert model.bins_ == one.bins_
        assert model.bins_.choices == one.bins_.choices != {}
        shared = getattr(boostbins.dask, name)(**params, bin_method="kmeans", total_bins=50)
        shared.fit(parts[FEATURES], parts["y"])
        one = getattr(module, name)(**params, bin_method="kmeans", total_bins=50).fit(frame[FEATURES], frame["y"])
        assert shared.bins_ == one.bins_
        assert sum(shared.bins_.n_bins) <= 50
    found = boostbins.dask.fit_bins(parts[[*FEATURES, "y"]], "auto", y="y", total_bins=90)
    assert found == fit_bins(frame[[*FEATURES, "y"]], "auto", y="y", total_bins=90)
    found = boostbins.dask.fit_bins(parts[[*FEATURES, "y"]], "auto", 40, y="y")
    assert found.choices == fit_bins(frame[[*FEATURES, "y"]], "auto", 40, y="y").choices
    with pytest.raises(TypeError, match="y must hold numbers"):
        boostbins.dask.fit_bins(parts.assign(y=parts["y"].astype(str))[[*FEATURES, "y"]], "auto", 40, y="y")


@pytest.mark.parametrize(("kind", "missing"), [*((kind, True) for kind in KINDS), ("regressor", False)])
def test_lightgbm_trains_the_trees_of_one_machine(kind, missing, client):
    frame = table(missing=missing)
    frame["high"] = (frame.y > 2) * 1
    parts = in_parts(frame, [400, 1500, 2000])
    name = "LGBMClassifier" if kind.endswith("classifier") else "LGBMRegressor"
    X, y, per_row = arguments(kind, parts)
    model = getattr(boostbins.dask, name)(**LGBM).fit(X, y, **per_row)
    X, y, per_row = arguments(kind, frame)
    one = getattr(boostbins.lightgbm, name)(**LGBM).fit(X, y, **per_row)
    assert model.bins_ == one.bins_
    check_thresholds({p: v[v < 1e300] for p, v in of_lightgbm(model).items()}, model.bins_)
    rows = raw_rows(frame)
    ours, theirs = predicted(model, dd.from_pandas(rows, npartitions=3), kind), predicted(one, rows, kind)
    if kind != "regressor":  # from weights LightGBM guesses how many rows are in a leaf, and on a cluster differently
        assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.99
    else:
        assert trees_of_lightgbm(model) == trees_of_lightgbm(one)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_lightgbm_learns_of_missing_values_that_one_worker_has_not_met(client):
    frame = table().sort_values("skewed", na_position="last", ignore_index=True)  # no worker's rows show all
    parts = in_parts(frame, [1000, 2000, 2500])
    model = boostbins.dask.LGBMRegressor(**LGBM).fit(parts[FEATURES], parts.y)
    one = boostbins.lightgbm.LGBMRegressor(**LGBM).fit(frame[FEATURES], frame.y)
    assert trees_of_lightgbm(model) == trees_of_lightgbm(one)


def test_arrays_are_trained_on_as_frames_are(client):
    frame = table()
    X, y = frame[FEATURES].to_numpy(), frame.y.to_numpy()
    parts = da.from_array(X, chunks=(800, 2)), da.from_array(y, chunks=800)
    for name, module, params in [("XGBRegressor", boostbins.xgboost, XGB), ("LGBMRegressor", boostbins.lightgbm, LGBM)]:
        model = getattr(boostbins.dask, name)(**params).fit(*parts)
        one = getattr(module, name)(**params).fit(X, y)
        assert model.bins_ == one.bins_
        np.testing.assert_allclose(np.asarray(model.predict(parts[0])), one.predict(X), rtol=1e-4, atol=1e-5)
        ready = Bins(fit_bins(X, max_bins=8).cuts, list("abcde"))
        again = getattr(boostbins.dask, name)(**params, bin_method=ready).fit(*parts)
        assert again.bins_ == getattr(module, name)(**params, bin_method=ready).fit(X, y).bins_


def test_rankers_keep_queries_together(client):
    frame = table(900).assign(query=np.arange(900) // 50)
    parts = in_parts(frame, [300, 600])
    model = boostbins.dask.XGBRanker(**XGB).fit(parts[FEATURES], parts.grade, qid=parts["query"])
    one = boostbins.xgboost.XGBRanker(**XGB).fit(frame[FEATURES], frame.grade, qid=frame["query"])
    assert model.bins_ == one.bins_
    sizes = parts["query"].map_partitions(lambda part: part.groupby(part).size(), meta=("size", int))
    model = boostbins.dask.LGBMRanker(**LGBM).fit(parts[FEATURES], parts.grade, group=sizes)
    one = boostbins.lightgbm.LGBMRanker(**LGBM).fit(frame[FEATURES], frame.grade, group=np.full(18, 50))
    assert model.bins_ == one.bins_
    check_thresholds({p: v[v < 1e300] for p, v in of_lightgbm(model).items()}, model.bins_)


def test_training_stops_early_on_evaluation_sets(client):
    frame, other = table(), table(900, seed=1)
    parts, test = in_parts(frame, [1500]), in_parts(other, [300])
    fitted = boostbins.dask.XGBRegressor(**XGB | {"n_estimators": 60, "learning_rate": 1.0}, early_stopping_rounds=3)
    sets = [(parts[FEATURES], parts.y), (test[FEATURES], test.y)]
    fitted.fit(parts[FEATURES], parts.y, eval_set=sets, verbose=False)
    assert fitted.best_iteration < 50
    history = fitted.evals_result()["validation_1"]["rmse"]
    own = fitted.get_booster().predict(xgboost.DMatrix(other[FEATURES]), iteration_range=(0, len(history)))
    assert np.sqrt(np.mean((own - other.y) ** 2)) == pytest.approx(history[-1], rel=1e-4)

    X, y = parts[FEATURES], parts.y
    model = boostbins.dask.LGBMRegressor(**LGBM)
    model.fit(X, y, eval_set=[(X, y), (test[FEATURES], test.y)], eval_metric="l2")
    assert len(model.evals_result_["valid_0"]["l2"]) == LGBM["n_estimators"]

    # An evaluation set that is the training set, with other weights.
    weighted = boostbins.dask.XGBRegressor(**XGB, eval_metric="rmse")
    weighted.fit(X, y, eval_set=[(X, y)], sample_weight_eval_set=[parts.weight], verbose=False)
    off = (weighted.get_booster().predict(xgboost.DMatrix(frame[FEATURES])) - frame.y) ** 2
    rmse = np.sqrt(np.average(off, weights=frame.weight))
    assert weighted.evals_result()["validation_0"]["rmse"][-1] == pytest.approx(rmse, rel=1e-4)


def test_none_is_the_library_itself(client):
    frame = table()
    parts = client.persist(in_parts(frame, []))  # cuts of the libraries' own depend on who has which rows
    X, y = parts[FEATURES], parts.y
    ours = boostbins.dask.XGBRegressor(**XGB, bin_method=None).fit(X, y)
    native = xgboost.dask.DaskXGBRegressor(**XGB).fit(X, y)
    assert not hasattr(ours, "bins_")
    np.testing.assert_allclose(ours.predict(X).compute(), native.predict(X).compute(), rtol=1e-4)
    ours = boostbins.dask.LGBMRegressor(**LGBM, bin_method=None).fit(X, y)
    native = lightgbm.DaskLGBMRegressor(**LGBM).fit(X, y)
    assert not hasattr(ours, "bins_")
    np.testing.assert_allclose(ours.predict(X).compute(), native.predict(X).compute(), rtol=1e-6)


def own_method(summary, max_bins):
    return kmeans(summary, 5)


@pytest.mark.parametrize("name", ["XGBRegressor", "LGBMRegressor"])
def test_ready_bins_and_functions_and_plain_models(name, client, tmp_path):
    frame = table()
    parts = dd.from_pandas(frame, npartitions=2)
    params = XGB if name.startswith("XGB") else LGBM
    thresholds = of_xgboost if name.startswith("XGB") else of_lightgbm
    ready = fit_bins(frame[FEATURES[::-1]], "quantile", 6).observed(frame[FEATURES[::-1]] * 2)
    for bin_method in (ready, own_method):
        model = getattr(boostbins.dask, name)(**params, bin_method=bin_method).fit(parts[FEATURES], parts.y)
        assert model.bins_.names == tuple(FEATURES)
        assert model.bins_.n_bins[0] <= 8
        cut = {p: v[v < 1e3] for p, v in thresholds(model).items()}
        beyond = {p: v[v < frame[FEATURES[p]].max()] for p, v in cut.items()}
        check_thresholds(beyond, model.bins_)
    before = model.predict(parts[FEATURES]).compute()
    assert model.get_params()["bin_method"] is own_method
    assert "bin_cache" not in model.get_params()
    again = pickle.loads(pickle.dumps(model))
    assert again.bins_ == model.bins_
    np.testing.assert_array_equal(again.predict(parts[FEATURES]).compute(), before)
    plain = model.to_native()
    assert type(plain).__module__.split(".")[0] in ("xgboost", "lightgbm")
    np.testing.assert_array_equal(plain.predict(parts[FEATURES]).compute(), before)
    if name.startswith("LGBM"):
        local = model.to_local()
        assert type(local) is lightgbm.LGBMRegressor
        np.testing.assert_array_equal(local.predict(frame[FEATURES]), before)
        assert "bin_method" not in local.get_params()
        model.booster_.save_model(tmp_path / "model.txt")
        loaded = lightgbm.Booster(model_file=tmp_path / "model.txt")
        np.testing.assert_array_equal(loaded.predict(frame[FEATURES]), before)
        assert loaded.params["max_bin"] == LGBM["max_bin"]


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_rewritten_models_predict_as_the_models_of_codes_do(seed, missing):
    r = np.random.default_rng(seed)
    frame = table(1200, seed, missing)
    frame.loc[r.random(1200) < 0.01, "signed"] = np.inf
    frame.loc[r.random(1200) < 0.01, "count"] = -np.inf
    X = frame[FEATURES].to_numpy()
    one = boostbins.lightgbm.LGBMRegressor(**LGBM).fit(X, frame.y)
    bins, extent = one.bins_, ranges_of(feature_table(X))

    def coded(rows):
        return _codes(feature_table(rows), bins, extent.missing)

    model = _RegressorOnCodes(**LGBM | _needed(bins, extent)).fit(coded(X), frame.y)
    raw = _raw_booster(model.booster_, bins, extent, {})
    beyond_zero = [
        c[np.abs(c) > 1e-34] for c in bins.cuts
    ]  # -1e-35 itself is in the bin below zero's, but predicted as 0
    cuts = [np.concatenate([c, np.nextafter(c, np.inf), np.nextafter(c, -np.inf)]) for c in beyond_zero]
    odd = np.array([0.0, -0.0, 1e-36, -1e-36, 1e308, -1e308, np.inf, -np.inf, np.nan])
    probes = np.column_stack([r.choice(np.concatenate([c, odd, x]), 4000) for c, x in zip(cuts, X.T, strict=True)])
    np.testing.assert_array_equal(raw.predict(probes), model.predict(coded(probes)))
    np.testing.assert_allclose(raw.predict(probes), one.predict(probes), rtol=1e-9)


def test_categories_pass_through_xgboost(client):
    frame = table()
    frame.insert(1, "kind", pd.Categorical.from_codes(frame.grade, list("abc")))
    parts = in_parts(frame, [1500])
    chosen = ["skewed", "kind", "signed"]
    model = boostbins.dask.XGBRegressor(**XGB, enable_categorical=True).fit(parts[chosen], parts.y)
    one = boostbins.xgboost.XGBRegressor(**XGB, enable_categorical=True).fit(frame[chosen], frame.y)
    assert model.bins_ == one.bins_
    np.testing.assert_allclose(model.predict(parts[chosen]).compute(), one.predict(frame[chosen]), rtol=1e-4)


def test_a_number_may_stand_for_missing_in_xgboost(client):
    frame = table()
    filled = frame[FEATURES].fillna(-999.0)
    parts = in_parts(filled.assign(y=frame.y), [1500])
    model = boostbins.dask.XGBRegressor(**XGB, missing=-999.0).fit(parts[FEATURES], parts.y)
    one = boostbins.xgboost.XGBRegressor(**XGB).fit(frame[FEATURES], frame.y)
    assert model.bins_ == one.bins_
    assert model.missing == -999.0
    np.testing.assert_allclose(model.predict(parts[FEATURES]).compute(), one.predict(frame[FEATURES]), rtol=1e-4)


def test_estimators_say_what_does_not_work(client):
    frame = table(200)
    parts = in_parts(frame, [100])
    X, y = parts[FEATURES], parts.y

    def refused(name, match, error=ValueError, X=X, y=y, fit=None, **params):
        with pytest.raises(error, match=match):
            getattr(boostbins.dask, name)(**params).fit(X, y, **(fit or {}))

    asked = {"bin_method": "kmeans"}
    refused("XGBRegressor", "tree_method='approx' takes no ready cuts", tree_method="approx", **asked)
    refused("XGBRegressor", "gblinear.*no bins", booster="gblinear", **asked)
    refused("XGBRegressor", "bin_method must be one of", bin_method="kmean")
    refused("XGBRegressor", "xgb_model has thresholds", fit={"xgb_model": "model.json"}, **asked)
    refused("XGBRegressor", "'text' of type.*enable_categorical", TypeError, X=X.assign(text="a"))
    refused("XGBRegressor", "'skewed' holds infinite values", X=X.assign(skewed=np.inf))
    refused("XGBRegressor", "Dask DataFrame or Array", TypeError, X=frame[FEATURES])
    refused("XGBRegressor", "bins for other columns", bin_method=Bins([[1.0]], ["age"]))
    refused("XGBRegressor", "max_bin=4 has room for 3", bin_method=fit_bins(frame[FEATURES]), max_bin=4)
    refused("LGBMRegressor", "linear_tree=True does not work", linear_tree=True, **asked)
    refused("LGBMRegressor", "zero_as_missing=True.*replace zeros", zero_as_missing=True, **asked)
    refused("LGBMRegressor", "use_missing=False.*fill X", use_missing=False, **asked)
    refused("LGBMRegressor", "forcedbins_filename.*sets cuts of its own", forcedbins_filename="bins.json", **asked)
    refused("LGBMRegressor", "categorical_feature does not work", categorical_feature=[0], **asked)
    refused("LGBMRegressor", "categorical_feature does not work", fit={"categorical_feature": [0]}, **asked)
    refused("LGBMRegressor", "max_bin_by_feature does not work", max_bin_by_feature=np.full(3, 9), **asked)
    refused("LGBMRegressor", "min_data_in_bin does not work", min_data_in_bin=9, **asked)
    refused("LGBMRegressor", "init_model has thresholds", fit={"init_model": "model.txt"}, **asked)
    refused("LGBMRegressor", "'text' of type.*make it numbers", TypeError, X=X.assign(text="a"))
    refused("LGBMRegressor", "one entry per row", y=in_parts(frame, [90]).y)


def test_xgboost_goes_its_own_way_where_no_method_was_asked_for(client):
    frame = table(200)
    parts = in_parts(frame, [100])
    for params, fit in (({"tree_method": "approx"}, {}), ({}, {"xgb_model": True})):
        few = {**XGB, "n_estimators": 2, **params}
        own = boostbins.dask.XGBRegressor(**few, bin_method=None).fit(parts[FEATURES], parts.y)
        if fit:
            fit = {"xgb_model": own.get_booster()}
            own = boostbins.dask.XGBRegressor(**few, bin_method=None).fit(parts[FEATURES], parts.y, **fit)
        with pytest.warns(UserWarning, match="It was not given, so the library goes its own way"):
            model = boostbins.dask.XGBRegressor(**few).fit(parts[FEATURES], parts.y, **fit)
        assert model.get_booster().get_dump() == own.get_booster().get_dump()
        assert not hasattr(model, "bins_")


def test_lightgbm_goes_its_own_way_where_no_method_was_asked_for(client):
    frame = table(200)
    parts = in_parts(frame, [100])
    model = boostbins.dask.LGBMRegressor(n_estimators=2, verbosity=-1, min_data_in_bin=9)
    with pytest.warns(UserWarning, match="min_data_in_bin does not work with codes of bins: leave it out"):
        model.fit(parts[FEATURES], parts.y)
    assert not hasattr(model, "bins_")
    assert "[min_data_in_bin: 9]" in model.booster_.model_to_string()
    assert "[max_bin: 255]" in model.booster_.model_to_string()  # codes have another


def test_the_recipe_of_the_documentation_runs(client, tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "scale.md"
    if not page.exists():
        pytest.skip("the documentation is not in the sources of a release")
    (recipe,) = re.findall(r"```py\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "houses").mkdir()
    houses = pd.DataFrame({"area": skewed(3000), "rooms": np.arange(3000) % 7, "price": skewed(3000) * 3})
    for i in range(2):
        houses[i::2].to_parquet(tmp_path / "houses" / f"{i}.parquet")
    address = repr(client.scheduler.address)
    assert recipe.count("Client()") == 1
    names = {}
    exec(recipe.replace("Client()", f"Client({address})"), names)  # to this one: it may be any
    assert names["bins"] == fit_bins(houses, columns=["area", "rooms"])
    assert (tmp_path / "model.json").stat().st_size > 0
    names["client"].close()


@pytest.mark.parametrize("asked", [{"average_bins": 20}, {"bin_method": "auto", "max_bin": 20}], ids=str)
@pytest.mark.parametrize("module", ["lightgbm", "xgboost"])
def test_many_classes_are_classes_as_in_memory(client, module, asked):
    r = np.random.default_rng(0)
    X = r.lognormal(0, 1, (2000, 3)).astype(np.float32)
    labels = np.array([2, 0, 3, 1])[np.digitize(np.log(X[:, 0]) + np.log(X[:, 1]) / 2, [-0.7, 0.1, 0.8])]
    labels = labels * 10 + 5 if module == "lightgbm" else labels  # XGBoost takes numbers from 0 only
    few = {"n_estimators": 2, **asked} | ({"verbosity": -1} if module == "lightgbm" else {})
    name = "LGBMClassifier" if module == "lightgbm" else "XGBClassifier"
    one = getattr(getattr(boostbins, module), name)(**few).fit(X, labels)
    shared = getattr(boostbins.dask, name)(**few)
    shared.client = client
    shared.fit(da.from_array(X, chunks=(700, 3)), da.from_array(labels, chunks=700))
    assert shared.bins_ == one.bins_
    assert shared.bins_.choices == one.bins_.choices

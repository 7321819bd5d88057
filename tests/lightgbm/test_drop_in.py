"""What LightGBM's own Dataset and estimators take, ours take: files, Sequences, categories, parameters, the log."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest

import boostbins.lightgbm
from boostbins import Bins, fit_bins
from boostbins.lightgbm import Dataset, LGBMRegressor, from_native
from tests.lightgbm.test_same_cuts import Rows
from tests.same_cuts import mixed_table

QUIET = {"verbosity": -1, "num_threads": 1, "seed": 0, "deterministic": True}


def trees(booster):
    return booster.model_to_string().split("Tree=0")[1].split("end of trees")[0]


# ---- quantized gradients


@pytest.mark.parametrize("fill", [np.nan, 0.0, 5.0, -1e-3])
@pytest.mark.parametrize("way", [{}, {"force_col_wise": True}, {"force_row_wise": True}])
def test_quantized_gradients_where_one_value_fills_a_column(fill, way):
    if boostbins.lightgbm.LIBRARY.is_before("4.4"):
        pytest.skip("LightGBM 4.3 itself fails")
    r = np.random.default_rng(0)
    X = np.where(r.random((2000, 3)) < 0.8, fill, r.normal(size=(2000, 3)))
    y = np.nansum(X, axis=1)
    score = LGBMRegressor(use_quantized_grad=True, **QUIET, **way).fit(X, y).score(X, y)
    assert score > lgb.LGBMRegressor(use_quantized_grad=True, **QUIET, **way).fit(X, y).score(X, y) - 0.02


# ---- text files


def written(path, separator, header):
    """A file with the label in its third column, weights in the fifth, a text-like column to ignore in the sixth."""
    X, y = mixed_table(600)
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    names = [f"c{i}" for i in range(10)]
    frame = pd.DataFrame(X, columns=names)
    frame.insert(2, "y", y)
    frame.insert(4, "w", weight)
    frame.insert(5, "row", np.arange(len(y)))
    frame.to_csv(path, sep=separator, header=header, index=False, na_rep="nan", float_format="%.17g")
    return X, y, weight


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("method", ["kmeans", "auto"])
def test_a_text_file_is_read_as_lightgbm_does(separator, header, method, tmp_path):
    X, y, weight = written(tmp_path / "a.txt", separator, header)
    if header:
        told = {"header": True, "label_column": "name:y", "weight_column": "name:w", "ignore_column": "name:row"}
    else:
        told = {"label_column": "2", "weight_column": "3", "ignore_column": "4"}  # which do not count the label
    params = {**QUIET, **told, "precise_float_parser": True, "max_bin": 40}
    train = Dataset(str(tmp_path / "a.txt"), bin_method=method, params=dict(params))
    booster = lgb.train(params, train, 10)
    memory = Dataset(X, y, weight=weight, bin_method=method, params={**QUIET, "max_bin": 40})
    expected = lgb.train({**QUIET, "max_bin": 40}, memory, 10)
    assert [c.tolist() for c in train.bins_] == [c.tolist() for c in memory.bins_]
    assert np.array_equal(train.get_label(), memory.get_label())
    assert np.array_equal(train.get_weight(), memory.get_weight())
    both = np.insert(X, [3, 3], [[0.0, 0.0]], axis=1)  # the columns of the file without its label
    assert np.array_equal(booster.predict(both), expected.predict(X))


def test_text_files_with_the_label_first_and_libsvm(tmp_path):
    X, y = mixed_table(600, missing=False)
    np.savetxt(tmp_path / "a.csv", np.column_stack([y, X]), delimiter=",", fmt="%.17g")
    features = (" ".join(f"{i}:{x:.17g}" for i, x in enumerate(row) if x) for row in X)
    rows = [f"{label:.17g} {row}" for label, row in zip(y, features, strict=True)]
    (tmp_path / "a.svm").write_text("\n".join(rows) + "\n")
    params = {**QUIET, "precise_float_parser": True}
    expected = trees(lgb.train(QUIET, Dataset(X, y), 5))
    for name in ("a.csv", "a.svm"):
        for path in (tmp_path / name, str(tmp_path / name)):
            assert trees(lgb.train(params, Dataset(path), 5)) == expected
    valid = Dataset(tmp_path / "a.csv", params=dict(params)).create_valid(tmp_path / "a.csv", params=dict(params))
    assert valid.construct().num_data() == 600


def test_text_files_with_side_files_and_categories(tmp_path):
    X, y = mixed_table(600)
    np.savetxt(tmp_path / "a.csv", np.column_stack([y, X]), delimiter=",", fmt="%.17g")
    weight = np.arange(1.0, 601)
    np.savetxt(tmp_path / "a.csv.weight", weight)
    params = {**QUIET, "precise_float_parser": True, "categorical_column": "7,4"}
    train = Dataset(tmp_path / "a.csv", params=dict(params)).construct()
    memory = Dataset(X, y, weight=weight, params={**QUIET, "categorical_column": "7,4"}).construct()
    assert [c.tolist() for c in train.bins_] == [c.tolist() for c in memory.bins_]
    assert len(train.bins_) == 8
    assert Dataset(tmp_path / "a.csv", categorical_feature=[7, 4], params=dict(QUIET)).construct().bins_ == train.bins_


@pytest.mark.parametrize("two_round", [False, True])
def test_text_files_with_groups(two_round, tmp_path):
    X, y = mixed_table(600)
    grade, group = np.digitize(y, np.quantile(y, [0.5, 0.8])), np.repeat(np.arange(20), 30)
    np.savetxt(tmp_path / "a.csv", np.column_stack([grade, group, X]), delimiter=",", fmt="%.17g")
    params = {**QUIET, "objective": "lambdarank", "metric": "None"}
    told = {"group_column": "0", "precise_float_parser": True, "two_round": two_round}
    train = Dataset(tmp_path / "a.csv", params={**params, **told})
    booster = lgb.train({**params, **told}, train, 5)
    memory = Dataset(X, grade, group=[30] * 20)
    expected = lgb.train(params, memory, 5)
    assert [c.tolist() for c in train.bins_] == [c.tolist() for c in memory.bins_]
    assert np.array_equal(train.get_group(), memory.get_group())
    assert np.array_equal(booster.predict(np.column_stack([group, X])), expected.predict(X))


def test_text_files_that_cannot_be_read_so_are_refused_by_name(tmp_path):
    X, _, _ = written(tmp_path / "a.csv", ",", True)
    path = tmp_path / "a.csv"
    for params, message in (
        ({"header": True, "label_column": "name:z"}, "label_column: there is no column 'z'; there are 'c0', 'c1'"),
        ({"label_column": "name:y"}, "label_column='name:y': the file has no names without header=True"),
        ({"header": True, "label_column": "y"}, "label_column must be a number, or 'name:' and a name, got 'y'"),
        ({"header": True, "label_column": 99}, "label_column=99, and .* has 13 columns"),
        ({}, r"a\.csv cannot be read as numbers"),  # its first line
    ):
        with pytest.raises(ValueError, match=message):
            Dataset(path, params={**QUIET, **params}).construct()
    with pytest.raises(
        ValueError, match="label_column='0' tells LightGBM how to read the file, and label tells boostb"
    ):
        Dataset(path, label="y", params={**QUIET, "label_column": "0"}).construct()
    assert Dataset(path, label="y", weight="w", params=dict(QUIET)).construct().bins_.names[-1] == "c9"
    (tmp_path / "b.txt").write_text("1 2 3\n4 5 6\n")
    with pytest.raises(ValueError, match="neither commas, tabs nor colons"):
        Dataset(tmp_path / "b.txt", params=dict(QUIET)).construct()
    (tmp_path / "c.txt").write_text("")
    with pytest.raises(ValueError, match="empty|no rows"):
        Dataset(tmp_path / "c.txt", params=dict(QUIET)).construct()
    assert len(X)


def test_text_files_with_more_rows_than_lightgbm_samples(tmp_path):
    X, y = mixed_table(3000)
    X[:2990, 8] = 1.0
    X[2990:, 8] = np.nan
    np.savetxt(tmp_path / "a.csv", np.column_stack([y, X]), delimiter=",", fmt="%.17g")
    params = {**QUIET, "bin_construct_sample_cnt": 100}
    train = Dataset(tmp_path / "a.csv", params=dict(params)).construct()
    train.save_binary(tmp_path / "a.bin")
    assert lgb.Dataset(tmp_path / "a.bin", params=dict(params)).construct().num_data() == 3000


# ---- the log


def run(code):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    timed = re.sub(r"[\d.]+ seconds", "some seconds", done.stdout)
    return re.sub(r"Auto-choosing (col|row)-wise(.|\n)*?force_col_wise=true`.*\n", "the faster of two ways\n", timed)


MANY = """
    import logging, sys
    import lightgbm as lgb, numpy as np
    from boostbins.lightgbm import Dataset, LGBMRegressor
    r = np.random.default_rng(0)
    X = r.lognormal(0, 1, (500, 3)); y = X.sum(axis=1)
    def native():
        print("native:", flush=True)
        lgb.LGBMRegressor(n_estimators=1, n_jobs=1).fit(X, y)
"""


def test_the_log_goes_on_after_a_fit_of_ours():
    out = run(MANY + "    LGBMRegressor(n_estimators=1, n_jobs=1).fit(X, y)\n    native()")
    ours, native = out.split("native:")
    for said in (ours, native):
        assert "[Info] Number of data points in the train set: 500" in said
        assert "too small" not in said


@pytest.mark.slow
def test_a_quiet_fit_of_ours_is_as_quiet_as_lightgbms_and_no_quieter():
    code = MANY + "    {}(n_estimators=1, n_jobs=1, verbosity=-1).fit(X, y)\n    native()"
    assert run(code.format("LGBMRegressor")) == run(code.format("lgb.LGBMRegressor"))


def test_a_registered_logger_is_told():
    code = (
        MANY
        + """
    logging.basicConfig(stream=sys.stdout, format="logged %(message)s", level=logging.INFO)
    lgb.register_logger(logging.getLogger("mine"))
    LGBMRegressor(n_estimators=1, n_jobs=1).fit(X, y)
    Dataset(np.ones((100, 2)), np.zeros(100)).construct()
    """
    )
    out = run(code)
    assert "logged [LightGBM] [Info] Number of data points in the train set: 500" in out
    assert "logged [LightGBM] [Warning] There are no meaningful features" in out


# ---- categories


@pytest.mark.parametrize("named", [["A"], [0], [], ["A", "B"], "auto", ["n"]])
def test_pandas_categories_with_an_explicit_list(named):
    r = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "A": pd.Categorical.from_codes(r.integers(-1, 5, 800), list("abcde")),
            "B": pd.Categorical.from_codes(r.integers(0, 30, 800), [f"k{i}" for i in range(30)]),
            "n": r.integers(0, 4, 800),
            "x": r.lognormal(0, 1, 800),
        }
    )
    y = frame["A"].cat.codes + np.sqrt(frame["B"].cat.codes) + frame["x"]
    native = lgb.train(QUIET, lgb.Dataset(frame, y, categorical_feature=named), 8)
    own = from_native(lgb.Dataset(frame, y, categorical_feature=named, params=dict(QUIET)))
    ours = lgb.train({**QUIET, "max_bin": 257}, Dataset(frame, y, categorical_feature=named, bin_method=own), 8)
    assert np.array_equal(native.predict(frame), ours.predict(frame))
    made = LGBMRegressor(**QUIET).fit(frame, y, categorical_feature=named)
    assert made.bins_.names == own.names
    assert made.score(frame, y) > 0.9


# ---- Sequences and lists of arrays


@pytest.mark.parametrize("n_sampled", [200_000, 300])  # all rows, or a sample
def test_sequences_and_lists_have_the_cuts_of_an_array(n_sampled):
    X, y = mixed_table(1000)
    params = {**QUIET, "bin_construct_sample_cnt": n_sampled, "max_bin": 30}
    expected = Dataset(X, y, bin_method="auto", params=dict(params)).construct()
    for given in ([X[:10], X[10:600], X[600:]], Rows(X), [Rows(X[:450]), Rows(X[450:])]):
        made = Dataset(given, y, bin_method="auto", params=dict(params)).construct()
        assert [c.tolist() for c in made.bins_] == [c.tolist() for c in expected.bins_]
        assert np.corrcoef(lgb.train(params, made, 20).predict(X), y)[0, 1] > 0.9
        with_category = Dataset(list(given) if isinstance(given, list) else given, y, categorical_feature=[7])
        booster = lgb.train(params, with_category, 20)
        assert len(with_category.bins_) == 9
        limits = [20, 20, 20, 20, 20, 20, 20, 9, 7, 8]
        limited = Dataset(list(given) if isinstance(given, list) else given, y, categorical_feature=[7])
        lgb.train({**params, "max_bin_by_feature": limits}, limited, 1)
        assert max(limited.bins_.n_bins[7:]) <= 8
        assert limited.bins_.n_bins[0] > 8
        assert np.corrcoef(booster.predict(X), y)[0, 1] > 0.9
        assert any("==" in str(tree) for tree in booster.dump_model()["tree_info"])
    with pytest.raises(ValueError, match=r"arrays with \[3, 4\] columns"):
        Dataset([np.ones((5, 3)), np.ones((5, 4))], np.ones(10)).construct()


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([], TypeError, "data is a list, and holds neither rows, arrays"),
        ([np.ones((5, 2)), "a"], TypeError, "data is a list, and holds neither rows, arrays"),
        ([np.ones(5)], TypeError, "data is a list, and holds neither rows, arrays"),
        (Rows(np.ones((0, 2))), ValueError, "a Sequence without rows"),
        ([Rows(np.ones((9, 2))), Rows(np.ones((0, 2)))], ValueError, "a Sequence without rows"),
    ],
)
def test_lists_and_sequences_of_nothing_are_refused(data, error, message):
    with pytest.raises(error, match=message):
        Dataset(data, np.ones(9), params=dict(QUIET)).construct()


# ---- what LightGBM's sample does not show


def test_a_large_table_is_built_from_what_all_rows_show():
    """With pandas categories, a model to go on from, and names: as a table whose sample shows all."""
    r = np.random.default_rng(0)
    n = 4000
    frame = pd.DataFrame(
        {"a": r.lognormal(0, 1, n), "b": r.lognormal(0, 1, n), "k": pd.Categorical(r.choice(list("xyz"), n))}
    )
    params = {**QUIET, "bin_construct_sample_cnt": 300}
    sample = boostbins.lightgbm._native.sampled_rows(n, params)
    outside = np.setdiff1d(np.arange(n), sample)[:40]
    frame.loc[outside, "a"] = np.nan
    frame.loc[outside, "b"] = -5.0
    y = frame["a"].fillna(30) + frame["b"] + 3.0 * (frame["k"] == "y")
    first = lgb.train(params, lgb.Dataset(frame, y), 3)
    train = Dataset(frame, y, free_raw_data=False)
    booster = lgb.train(params, train, 40, init_model=first)
    assert train.data is frame
    assert booster.feature_name() == ["a", "b", "k"]
    assert booster.pandas_categorical == [["x", "y", "z"]]
    assert np.corrcoef(booster.predict(frame), y)[0, 1] > 0.99
    assert booster.predict(frame.loc[outside]).min() > 15
    again = lgb.train({**params, "bin_construct_sample_cnt": n}, Dataset(frame, y), 40, init_model=first)
    assert np.allclose(again.predict(frame), booster.predict(frame), rtol=0.2, atol=0.5)
    linear = lgb.train({**params, "linear_tree": True}, Dataset(frame[["a", "b"]].to_numpy(), y), 5)
    assert np.isfinite(linear.predict(frame[["a", "b"]].to_numpy())).all()


# ---- parameters


def test_max_bin_by_feature_in_any_form_is_the_limit_of_each():
    X, y = mixed_table()
    limits = [9, 30, 10, 11, 4, 5, 20, 8, 12, 40]
    for given in (limits, np.array(limits), tuple(limits), ",".join(map(str, limits))):
        train = Dataset(X, y, params={**QUIET, "max_bin_by_feature": given, "feature_pre_filter": False}).construct()
        for place, limit in enumerate(limits):
            assert train.feature_num_bin(place) <= limit
        assert train.feature_num_bin(1) == 30
        assert "max_bin_by_feature" in train.params
    model = LGBMRegressor(max_bin_by_feature=limits, **QUIET).fit(X, y)
    assert "[max_bin_by_feature: 9,30,10" in model.booster_.model_to_string()
    with pytest.raises(ValueError, match="max_bin_by_feature has 2 numbers, and there is a feature 2"):
        Dataset(X, y, params={**QUIET, "max_bin_by_feature": [9, 9]}).construct()
    with pytest.raises(ValueError, match="max_bin_by_feature must be whole numbers, got 'many'"):
        Dataset(X, y, params={**QUIET, "max_bin_by_feature": "many"}).construct()
    with pytest.raises(ValueError, match="max_bin_by_feature must be at least 2, got 1"):
        Dataset(X, y, params={**QUIET, "max_bin_by_feature": [1] * 10}).construct()


@pytest.mark.parametrize("method", ["kmeans", "uniform", "auto", "quantile"])
def test_min_data_in_bin_is_kept_to_if_it_is_given(method):
    X, y = mixed_table()
    weight = np.random.default_rng(0).random(len(y))  # rows count, not weights

    def least(**params):
        train = Dataset(X, y, weight=weight, bin_method=method, params={**QUIET, **params}).construct()
        here = X[:, 1]  # no zeros, which have a bin of their own
        return np.bincount(np.searchsorted(train.bins_.cuts[1], here))[1:].min()

    assert least(min_data_in_bin=25) >= 25
    assert least(min_data_in_bin=3) >= 3
    with pytest.raises(ValueError, match="min_data_in_bin=5 needs a table in memory"):
        Dataset(lambda: iter([X]), y, params={**QUIET, "min_data_in_bin": 5}).construct()
    few = Dataset(X[:20], y[:20], bin_method=method, params={**QUIET, "min_data_in_bin": 25}).construct()
    assert max(map(len, few.bins_)) <= 2  # those around zero


@pytest.mark.parametrize("name", ["max_bin", "min_data_in_bin", "bin_construct_sample_cnt"])
def test_parameters_that_are_no_numbers_are_named(name):
    X, y = mixed_table(100)
    with pytest.raises(ValueError, match=f"{name} must be a whole number, got 'many'"):
        LGBMRegressor(**{name: "many"}, **QUIET).fit(X, y)


def test_forced_bins_give_way_or_are_refused(tmp_path):
    X, y = mixed_table()
    (tmp_path / "forced.json").write_text('[{"feature": 0, "bin_upper_bound": [0.3, 0.4]}]')
    params = {**QUIET, "forcedbins_filename": str(tmp_path / "forced.json")}
    said = "forcedbins_filename=.* sets cuts of its own: give them as bin_method=Bins"
    with pytest.warns(UserWarning, match=said) as warned:
        model = LGBMRegressor(n_estimators=5, **params).fit(X, y)
    assert warned[0].filename == __file__
    assert np.array_equal(model.predict(X), lgb.LGBMRegressor(n_estimators=5, **params).fit(X, y).predict(X))
    assert not hasattr(model, "bins_")
    for method in ("kmeans", fit_bins(X), Bins([[0.0]] * 10)):
        with pytest.raises(ValueError, match="forcedbins_filename=.* sets cuts of its own"):
            Dataset(X, y, bin_method=method, params=dict(params)).construct()


def test_bundles_that_lightgbm_gets_wrong_are_not_made():
    """A column with a heavy bin at its end is bundled with another in spite of rows where both have values."""
    r = np.random.default_rng(8)
    n = 3000
    a = np.where(r.random(n) < 0.8, 9.0, r.uniform(0, 1, n))
    b = np.where(r.random(n) < 0.8, -9.0, r.uniform(0, 1, n))
    X = np.column_stack([a, b, r.standard_normal(n)])
    y = np.where(a < 9, a, 0) + np.where(b > -9, b, 0)
    params = {**QUIET, "min_data_in_leaf": 1, "metric": "l2"}
    for method in ("kmeans", "uniform", from_native(lgb.Dataset(X, y, params=dict(params)))):
        seen = {}
        train = Dataset(X, y, bin_method=method, params={"max_bin": 300})
        booster = lgb.train({**params, "max_bin": 300}, train, 20, [train], callbacks=[lgb.record_evaluation(seen)])
        assert np.isclose(seen["training"]["l2"][-1], np.mean((booster.predict(X) - y) ** 2), rtol=1e-6)


# ---- tables such as strangers have


def some_column(r, n):
    """A column of some kind: two-valued, constant, missing, mostly one value, ties, both signs, huge and tiny."""
    x, few, none = r.lognormal(0, 2, n), r.random(n) < 0.1, np.full(n, np.nan)
    kinds = [
        few.astype(float), np.full(n, 3.0), np.zeros(n), none, np.where(few, x, 0.0), np.where(few, x, np.nan),
        np.round(x), -x, np.where(few, x, 7.0), np.where(few, -x, -9.0), np.where(r.random(n) < 0.01, np.inf, x),
        r.standard_normal(n) * 1e-36, r.standard_normal(n) * 1e300, r.integers(-3, 4, n).astype(float),
    ]  # fmt: skip
    return kinds[r.integers(len(kinds))]


@pytest.mark.parametrize("method", ["kmeans", "auto", "uniform", "quantile", "optimal"])
def test_what_is_trained_on_any_table_is_what_predicts(method):
    for seed in range(16):
        r = np.random.default_rng(seed)
        n = int(r.choice([30, 300, 3000]))
        X = np.column_stack([some_column(r, n) for _ in range(r.integers(1, 8))])
        y = np.clip(np.nan_to_num(X, nan=3.0), -50, 50).sum(axis=1) + r.standard_normal(n)
        params = {
            **QUIET,
            "min_data_in_leaf": int(r.choice([1, 20])),
            "max_bin": int(r.choice([4, 63])),
            "metric": "l2",
        }
        for name in ("extra_trees", "use_missing", "enable_bundle", "feature_pre_filter"):
            if r.random() < 0.3:
                params[name] = name == "extra_trees"
        given = [X, pd.DataFrame(X), [X[:9], X[9:]], Rows(X)][r.integers(4)]
        train, seen = Dataset(given, y, bin_method=method), {}
        booster = lgb.train(params, train, 6, [train], callbacks=[lgb.record_evaluation(seen)])
        assert np.isclose(seen["training"]["l2"][-1], np.mean((booster.predict(X) - y) ** 2), rtol=1e-4), seed

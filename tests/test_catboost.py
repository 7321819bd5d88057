"""`Pool`: CatBoost's own object, with our cuts in it."""

from __future__ import annotations

from inspect import signature

import catboost
import numpy as np
import pandas as pd
import pytest

import boostbins.catboost
import boostbins.lightgbm
import boostbins.xgboost
from boostbins import Bins, fit_bins
from tests.adapters.test_matrix import data


def test_catboost_takes_probabilities_as_numbers():
    X, y = data()
    share = 1 / (1 + np.exp(-y / y.std()))
    expected = fit_bins(X.astype(np.float32), "auto", 40, y=share)
    quiet = {"iterations": 1, "verbose": False, "allow_writing_files": False, "border_count": 39}
    for params in ({"loss_function": "CrossEntropy"}, {"loss_function": "Logloss", "target_border": 0.5}):
        model = boostbins.catboost.CatBoostClassifier(bin_method="auto", **quiet, **params).fit(X, share)
        assert model.bins_.choices["x0"].explained == pytest.approx(dict(expected.choices["x0"].explained), rel=0.01)
    which = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    flat, column = (
        boostbins.catboost.CatBoostClassifier(bin_method="auto", **quiet).fit(X, labels).bins_
        for labels in (which, pd.DataFrame({"y": which}))
    )
    assert flat.choices == column.choices


# ---- CatBoost

BRIEF = {"iterations": 10, "verbose": False, "allow_writing_files": False}


SMALL = {**BRIEF, "loss_function": "RMSE"}


def test_catboost_trains_and_validates_on_the_cuts():
    X, y = data(missing=True)
    train = boostbins.catboost.Pool(X[:1000], y[:1000], border_count=30)
    model = catboost.train(train, SMALL, eval_set=catboost.Pool(X[1000:], y[1000:]))
    assert boostbins.catboost.from_native(train) == train.bins_
    assert max(train.bins_.n_bins) == 31
    for place, borders in model.get_borders().items():
        assert np.isin([b for b in borders if abs(b) < 3e38], train.bins_.cuts[place]).all()
    folds = catboost.cv(boostbins.catboost.Pool(X, y, border_count=30), SMALL, fold_count=3, logging_level="Silent")
    assert len(folds) == 10
    again = boostbins.catboost.CatBoostRegressor(iterations=5, verbose=False, allow_writing_files=False).fit(train)
    assert again.bins_ == train.bins_
    more = boostbins.catboost.CatBoostRegressor(iterations=5, verbose=False, allow_writing_files=False)
    assert more.fit(X, y, init_model=again).tree_count_ == 10


@pytest.mark.parametrize("mode", ["Min", "Max"])
def test_catboost_holds_missing_values_apart(mode):
    X, y = data(missing=True)
    y = y + 30 * np.isnan(X[:, 0])
    ours = boostbins.catboost.CatBoostRegressor(nan_mode=mode, iterations=30, verbose=False, allow_writing_files=False)
    ours.fit(X, y)
    native = catboost.CatBoostRegressor(nan_mode=mode, iterations=30, verbose=False, allow_writing_files=False).fit(
        X, y
    )
    there = np.isnan(X[:, 0])
    assert ours.predict(X[there]).min() > ours.predict(X[~there]).mean()
    assert np.corrcoef(ours.predict(X), native.predict(X))[0, 1] > 0.98


def test_catboost_refuses_missing_values_where_they_are_forbidden():
    X, y = data(missing=True)
    with pytest.raises(ValueError, match="nan_mode='Forbidden', and column 'x0' has missing values"):
        boostbins.catboost.CatBoostRegressor(nan_mode="Forbidden", verbose=False, allow_writing_files=False).fit(X, y)


def with_words(X):
    frame = pd.DataFrame(X, columns=list("abcde"))
    return frame.assign(text=np.where(X[:, 0] > 0, "up and away", "down below"))


def with_kinds(X):
    return pd.DataFrame(X, columns=list("abcde")).assign(kind=np.where(X[:, 2] > 3, "many", "few"))


def with_vectors(X):
    vectors = np.random.default_rng(0).standard_normal((len(X), 3))
    return pd.DataFrame(X, columns=list("abcde")).assign(vector=list(vectors))


def test_catboost_leaves_categories_and_embeddings_alone():
    X, y = data()
    for frame, kinds in (
        (with_kinds(X), {"cat_features": ["kind"]}),
        (with_vectors(X), {"embedding_features": ["vector"]}),
        (with_vectors(X).assign(kind="few"), {"embedding_features": ["vector"], "cat_features": ["kind"]}),
    ):
        model = boostbins.catboost.CatBoostRegressor(bin_method="kmeans", **BRIEF).fit(frame, y, **kinds)
        assert model.bins_.names == tuple("abcde")
        for place, borders in model.get_borders().items():
            assert np.isin(borders, model.bins_.cuts[place]).all()
        if "embedding_features" in kinds:
            listed = boostbins.catboost.Pool(frame[[*"abcde", "vector"]].to_numpy().tolist(), y, embedding_features=[5])
            assert listed.bins_.cuts[0].tolist() == model.bins_.cuts[0].tolist()
        if len(kinds) == 1:
            assert boostbins.catboost.Pool(frame, y, bin_method="kmeans", **kinds).bins_ == model.bins_


@pytest.mark.parametrize("method", ["kmeans", "auto", "quantile"])
def test_catboost_reads_a_pool_and_leaves_it_as_it_is(method, tmp_path):
    X, y = data(missing=True)
    y, weight = y.astype(np.float32), np.random.default_rng(0).random(len(X), np.float32)  # as a pool keeps them
    classes = np.array(["no", "yes"])[(y > np.median(y)).astype(int)]
    frame = pd.DataFrame(X, columns=list("abcde"))
    for make, label in (("CatBoostRegressor", y), ("CatBoostClassifier", classes)):
        for table, more in ((X, {}), (frame, {"weight": weight}), (np.nan_to_num(X), {"weight": weight})):
            pool = catboost.Pool(table, label, **more)
            made = [getattr(boostbins.catboost, make)(bin_method=method, **BRIEF) for _ in range(2)]
            read = made[0].fit(pool)
            given = made[1].fit(table, label, sample_weight=more.get("weight"))
            assert read.bins_ == given.bins_
            assert np.array_equal(read.predict(X), given.predict(X))
            assert not pool.is_quantized()
    file = tmp_path / "numbers.csv"
    np.savetxt(file, np.column_stack([y, np.nan_to_num(X).astype(np.float32)]), delimiter="\t", fmt="%.9g")
    given = boostbins.catboost.Pool(np.nan_to_num(X), y, bin_method=method)
    assert boostbins.catboost.Pool(file, bin_method=method).bins_ == given.bins_
    assert boostbins.catboost.CatBoostRegressor(bin_method=method, **BRIEF).fit(str(file)).bins_ == given.bins_


def test_catboost_cuts_the_numbers_of_its_own_kind_of_table():
    X, y = data()
    kinds = with_kinds(X)[["kind"]].to_numpy().astype("S").astype(object)
    for names in (None, list("abcde")):
        table = catboost.FeaturesData(X.astype(np.float32), kinds, num_feature_names=names)
        pool = boostbins.catboost.Pool(table, y)
        assert pool.bins_.names == tuple(names or (f"x{i}" for i in range(5)))
        assert all(map(np.array_equal, pool.bins_.cuts, boostbins.catboost.Pool(X, y).bins_.cuts))


def quantized(X, y):
    pool = catboost.Pool(X, y)
    pool.quantize()
    return pool


# What CatBoost cannot do with cuts of ours, and what is said of it.
OBSTACLES = {
    "a setting": (lambda X, y: (X, y), {"feature_border_type": "Median"}, {}, "contradicts bin_method: leave it out"),
    "text": (lambda X, y: (with_words(X), y), {"text_features": ["text"]}, {}, "forgets how to process text.*leave th"),
    "a quantized pool": (lambda X, y: (quantized(X, y), None), {}, {}, "cuts of its own: give one that is not quantiz"),
    "a pool of more than numbers": (
        lambda X, y: (catboost.Pool(with_kinds(X), y, cat_features=["kind"]), None),
        {},
        {},
        "cannot be read if it has categorical.*give X and y, or a boostbins.catboost.Pool",
    ),
    "a part for validation": (
        lambda X, y: (with_kinds(X), y),
        {"cat_features": ["kind"], "eval_fraction": 0.2},
        {},
        "hides which rows are trained on.*give eval_set instead",
    ),
    "ignored vectors": (
        lambda X, y: (with_vectors(X), y),
        {"embedding_features": ["vector"], "ignored_features": ["vector"]},
        {},
        "forgets ignored_features where it is given cuts: leave them out of X",
    ),
    "ignored, and a model to begin with": (
        lambda X, y: (X, y),
        {"ignored_features": [0]},
        {"init_model": lambda X, y: catboost.CatBoostRegressor(**BRIEF).fit(X, y)},
        "forgets ignored_features.*leave one of them out",
    ),
}


@pytest.mark.parametrize("given", OBSTACLES.values(), ids=list(OBSTACLES))
def test_catboost_trains_as_it_would_where_it_cannot_take_cuts_unless_they_were_asked_for(given):
    make, params, fit, said = given
    X, y = data(500)
    table, label = make(X, y)
    fit = {name: value(X, y) for name, value in fit.items()}
    with pytest.raises(ValueError, match=rf"{said}.*, or give bin_method=None"):
        boostbins.catboost.CatBoostRegressor(bin_method="kmeans", **params, **BRIEF).fit(table, label, **fit)
    with pytest.warns(UserWarning, match=rf"{said}.*the library goes its own way"):
        ours = boostbins.catboost.CatBoostRegressor(**params, **BRIEF).fit(table, label, **fit)
    native = catboost.CatBoostRegressor(**params, **BRIEF).fit(table, label, **fit)
    rows = table if label is not None else make(X, y)[0]
    assert np.array_equal(ours.predict(rows), native.predict(rows))
    assert not hasattr(ours, "bins_")


def test_catboost_pools_give_way_likewise():
    X, y = data(500)
    for frame, kinds, said in (
        (with_words(X), {"text_features": ["text"]}, "forgets how to process text"),
        (with_vectors(X).assign(kind="few"), {"embedding_features": ["vector"], "cat_features": ["kind"]}, "crashes"),
    ):
        with pytest.raises(ValueError, match=said):
            boostbins.catboost.Pool(frame, y, bin_method="kmeans", **kinds)
        with pytest.warns(UserWarning, match=said):
            pool = boostbins.catboost.Pool(frame, y, **kinds)
        assert pool.bins_ is None
        assert not pool.is_quantized()
    with pytest.warns(UserWarning, match="no rows to cut"):
        assert boostbins.catboost.Pool(catboost.FeaturesData(X[:0].astype(np.float32))).num_row() == 0


@pytest.mark.parametrize("search", ["grid_search", "randomized_search"])
def test_catboosts_own_searches_give_way(search):
    X, y = data(300)
    ask = {"param_grid" if search == "grid_search" else "param_distributions": {"depth": [2, 3]}, "verbose": False}
    ask |= {"X": X, "y": y, "cv": 2}
    with pytest.raises(ValueError, match="use scikit-learn's GridSearchCV"):
        getattr(boostbins.catboost.CatBoostRegressor(bin_method="kmeans", **BRIEF), search)(**ask)
    ours, native = boostbins.catboost.CatBoostRegressor(**BRIEF), catboost.CatBoostRegressor(**BRIEF)
    with pytest.warns(UserWarning, match="use scikit-learn's GridSearchCV") as said:
        found = getattr(ours, search)(**ask)
    assert len(said) == 1
    assert found == getattr(native, search)(**ask)
    assert np.array_equal(ours.predict(X), native.predict(X))
    assert ours.bin_method == "kmeans"


def test_catboost_refuses_a_pool_with_cuts_by_another_method():
    X, y = data(500)
    pool = boostbins.catboost.Pool(X, y, bin_method="quantile")
    with pytest.raises(ValueError, match="cuts by another bin_method"):
        boostbins.catboost.CatBoostRegressor(bin_method="kmeans", **BRIEF).fit(pool)
    for method in ({}, {"bin_method": "quantile"}, {"bin_method": pool.bins_}):
        assert boostbins.catboost.CatBoostRegressor(**method, **BRIEF).fit(pool).bins_ == pool.bins_


def test_catboost_refuses_validation_sets_with_other_cuts():
    X, y = data()
    train = boostbins.catboost.Pool(X[:1000], y[:1000])
    other = boostbins.catboost.Pool(X[1000:], y[1000:])
    same = boostbins.catboost.Pool(X[1000:], y[1000:], bin_method=train.bins_)
    for x, label in ((X[:1000], y[:1000]), (train, None)):
        model = boostbins.catboost.CatBoostRegressor(iterations=10, verbose=False, allow_writing_files=False)
        with pytest.raises(ValueError, match="eval_set has cuts of its own"):
            model.fit(x, label, eval_set=other)
        model.fit(x, label, eval_set=same)
        reported = model.get_evals_result()["validation"]["RMSE"]
        error = np.sqrt(np.mean((model.predict(X[1000:]) - y[1000:]) ** 2))
        assert np.isclose(min(reported), error)


def test_catboost_refuses_quantized_validation_sets_with_categories():
    X, y = data()
    frame, kinds = with_kinds(X), {"cat_features": ["kind"]}
    model = boostbins.catboost.CatBoostRegressor(one_hot_max_size=5, **BRIEF)
    bins = model.fit(frame, y, eval_set=catboost.Pool(frame[::-1], y[::-1], **kinds), **kinds).bins_
    other = boostbins.catboost.Pool(frame[::-1], y[::-1], bin_method=bins, **kinds)
    for given in ((frame, y, kinds), (boostbins.catboost.Pool(frame, y, bin_method=bins, **kinds), None, {})):
        with pytest.raises(ValueError, match="numbers its categories by itself.*not quantized"):
            model.copy().fit(*given[:2], eval_set=other, **given[2])


def test_catboost_selects_features_on_the_cuts_or_not_at_all():
    X, y = data()
    options = {"features_for_select": "0-4", "num_features_to_select": 2, "steps": 1, "logging_level": "Silent"}
    model = boostbins.catboost.CatBoostRegressor(iterations=10, verbose=False, allow_writing_files=False)
    model.select_features(X, y, train_final_model=True, **options)
    for place, borders in model.get_borders().items():
        assert np.isin(borders, model.bins_.cuts[place]).all()
    frame = pd.DataFrame(X, columns=list("abcde")).assign(text="up and away")
    other = boostbins.catboost.CatBoostRegressor(iterations=10, verbose=False, allow_writing_files=False)
    other.set_params(text_features=["text"])
    with pytest.warns(UserWarning, match="forgets how to process text"):
        other.select_features(frame, y, **options)


def test_catboost_weights_given_by_position():
    X, y = data()
    weight = np.random.default_rng(0).random(len(X))
    by_name = boostbins.catboost.Pool(X, y, weight=weight)
    before = list(signature(catboost.Pool.__init__).parameters.values())[3:]
    before = before[: [p.name for p in before].index("weight")]
    by_place = boostbins.catboost.Pool(X, y, *[p.default for p in before], weight)
    assert by_name.bins_ == by_place.bins_ != boostbins.catboost.Pool(X, y).bins_


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"border_count": "8"}, "border_count must be a whole number from 1 on, got '8'"),
        ({"border_count": 0}, "border_count must be a whole number from 1 on, got 0"),
        ({"nan_mode": "Mean"}, "nan_mode must be 'Min', 'Max' or 'Forbidden', got 'Mean'"),
        ({"bin_method": "kmeens"}, "bin_method must be one of"),
    ],
)
def test_catboost_pools_say_what_is_wrong(options, said):
    X, y = data(100)
    with pytest.raises(ValueError, match=said):
        boostbins.catboost.Pool(X, y, **options)


def test_catboost_reads_the_cuts_of_any_quantized_pool():
    X, y = data()
    pool = catboost.Pool(X, y)
    with pytest.raises(ValueError, match="quantize it first"):
        boostbins.catboost.from_native(pool)
    pool.quantize(border_count=10)
    assert boostbins.catboost.from_native(pool).n_bins[0] == 11
    with pytest.raises(TypeError, match=r"must be a catboost.Pool"):
        boostbins.catboost.from_native(X)
    own = boostbins.catboost.Pool(X, y, bin_method=Bins([[0.5], [1.5], [], [], [-1.0]]))
    assert boostbins.catboost.from_native(own) == own.bins_

"""XGBoost's `DataIter`: batches of the user's own, cut as the same rows in memory are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost as xgb
from scipy import sparse

from boostbins.xgboost import LIBRARY
from boostbins.xgboost.dmatrix import ExtMemQuantileDMatrix, QuantileDMatrix, from_native
from tests.same_cuts import mixed_table

NAMES = list("abcdefghij")
PARTS = [slice(0, 100), slice(100, 350), slice(350, 350), slice(350, 600)]
X, y = mixed_table(600)
WEIGHT = np.random.default_rng(1).random(600)
needs_extmem = pytest.mark.skipif(LIBRARY.is_before("3"), reason="has no ExtMemQuantileDMatrix")
new_containers = pytest.mark.skipif(LIBRARY.is_before("3"), reason="does not take it in batches")


class Batches(xgb.DataIter):
    """Hands over batches, in one and the same piece of memory if told."""

    def __init__(self, batches, cache_prefix=None, memory=None):
        self.batches, self.memory, self.at = batches, memory, 0
        super().__init__(cache_prefix=cache_prefix)

    def next(self, input_data):
        if self.at == len(self.batches):
            return 0
        batch = dict(self.batches[self.at])
        if self.memory is not None:
            self.memory[: len(batch["data"])] = batch["data"]
            batch["data"] = self.memory[: len(batch["data"])]
        input_data(**batch)
        self.at += 1
        return 1

    def reset(self):
        self.at = 0


def in_batches(data=X, per_row=None, each=None, **options):
    per_row = {"label": y} if per_row is None else per_row
    parts = [{"data": data[part], **{name: values[part] for name, values in per_row.items()}} for part in PARTS]
    return Batches([{**part, **(each or {})} for part in parts], **options)


def matrix(data, label=None, **options):
    return QuantileDMatrix(data, label, **{"nthread": 1, **options})


def trees(train, **params):
    return xgb.train({"max_bin": 20, "nthread": 1, **params}, train, 4).save_raw("json")


# ---- the same rows, the same cuts


CONTAINERS = {
    "array": np.asarray,
    "float32, by columns": lambda X: np.asfortranarray(X, np.float32),
    "CSR": sparse.csr_matrix,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "Arrow": lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))),
}


@pytest.mark.parametrize("method", ["kmeans", "auto"])
@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=new_containers if k in ("polars", "Arrow") else ()) for k in CONTAINERS]
)
def test_the_cuts_and_the_model_are_those_of_the_same_rows_in_memory(kind, method):
    data = CONTAINERS[kind](X)
    if kind == "Arrow":
        batches = in_batches(CONTAINERS["pandas"](X), {"label": y, "weight": WEIGHT})
        for batch in batches.batches:
            batch["data"] = pa.Table.from_pandas(batch["data"], preserve_index=False)
    else:
        batches = in_batches(data, {"label": y, "weight": WEIGHT})
    options = {"bin_method": method, "max_bin": 20}
    iterated = matrix(batches, **options)
    whole = matrix(data, y, weight=WEIGHT, **options)
    assert iterated.bins_ == whole.bins_ == from_native(iterated)
    assert iterated.bins_.names == (tuple(NAMES) if kind in ("pandas", "polars", "Arrow") else whole.bins_.names)
    assert trees(iterated) == trees(whole)


@pytest.mark.parametrize("form", ["names", "numbers"])
def test_categories_are_those_of_all_batches(form):
    kind = np.sort(X[:, 7]).astype(int)  # so that no batch has all of them
    options = {"enable_categorical": True, "max_bin": 20}
    each, per_row = {}, {"label": y}
    if form == "names":
        names = pd.Categorical.from_codes(kind, [f"kind {i}" for i in range(6)])
        data = pd.DataFrame(X, columns=NAMES).assign(h=names)
    else:
        data = np.column_stack([X[:, :7], kind, X[:, 8:]])
        each = {"feature_types": ["q"] * 7 + ["c"] + ["q"] * 2, "feature_names": NAMES}
    iterated = matrix(in_batches(data, per_row, each), **options)
    whole = matrix(data, y, **options, **each)
    assert iterated.bins_ == whole.bins_
    assert len(iterated.bins_) == 9
    assert iterated.feature_types == whole.feature_types
    assert iterated.feature_names == whole.feature_names == NAMES
    assert trees(iterated) == trees(whole)
    only = data[["h"]] if form == "names" else data[:, 7:8]
    each = {name: [values[7]] for name, values in each.items()}
    assert len(matrix(in_batches(only, per_row, each), **options).bins_) == 0


def test_a_value_may_stand_for_missing():
    filled = np.nan_to_num(X, nan=-9.0)
    iterated = matrix(in_batches(filled), missing=-9.0, max_bin=20)
    assert iterated.bins_ == matrix(X, y, max_bin=20).bins_
    assert iterated.num_nonmissing() == np.isfinite(X).sum()


def test_batches_may_be_handed_over_in_the_same_memory():
    iterated = matrix(in_batches(memory=np.empty((300, 10))), max_bin=20)
    assert iterated.bins_ == matrix(X, y, max_bin=20).bins_


def test_weights_and_labels_may_be_columns():
    columns = {"label": y[:, None], "weight": WEIGHT[:, None]}
    iterated = matrix(in_batches(per_row=columns), bin_method="auto", max_bin=20)
    assert iterated.bins_ == matrix(X, y, weight=WEIGHT, bin_method="auto", max_bin=20).bins_


def test_what_stands_beside_the_rows_goes_to_xgboost_as_it_is():
    group, margin = np.repeat(np.arange(12), 50), np.linspace(-1, 1, 600)
    relevance = (y > np.median(y)).astype(int)
    by_group = WEIGHT[:12]
    batches = in_batches(per_row={"label": relevance, "qid": group, "base_margin": margin})
    for batch in batches.batches:
        batch["weight"] = by_group[np.unique(batch["qid"])]
    iterated = matrix(batches, max_bin=20)
    whole = matrix(X, relevance, qid=group, base_margin=margin, weight=by_group, max_bin=20)
    assert iterated.bins_ == whole.bins_ != matrix(X, relevance, max_bin=20).bins_
    assert trees(iterated, objective="rank:ndcg") == trees(whole, objective="rank:ndcg")
    bounds = {"label_lower_bound": np.exp(y / 9), "label_upper_bound": np.exp(y / 9) + 1}
    iterated, whole = matrix(in_batches(per_row=bounds), max_bin=20), matrix(X, max_bin=20, **bounds)
    assert trees(iterated, objective="survival:aft") == trees(whole, objective="survival:aft")


def test_ready_bins_several_targets_and_classes():
    ready = matrix(X, y, max_bin=12).bins_
    assert matrix(in_batches(), bin_method=ready, max_bin=20).bins_ == ready
    both, classes = np.column_stack([y, X[:, 6]]), X[:, 7].astype(int)
    for label, options in ((both, {}), (classes, {"n_classes": 6})):
        options = {"bin_method": "auto", "max_bin": 20, **options}
        iterated = matrix(in_batches(per_row={"label": label}), **options)
        assert iterated.bins_ == matrix(X, label, **options).bins_


@needs_extmem
def test_pages_on_disk(tmp_path):
    told = []
    iterated = ExtMemQuantileDMatrix(
        in_batches(cache_prefix=str(tmp_path / "pages")), max_bin=20, progress=lambda *said: told.append(said)
    )
    assert iterated.bins_ == matrix(X, y, max_bin=20).bins_
    assert list(tmp_path.iterdir())
    assert told
    valid = ExtMemQuantileDMatrix(in_batches(cache_prefix=str(tmp_path / "valid")), ref=iterated, max_bin=20)
    assert all(map(np.array_equal, valid.get_quantile_cut(), iterated.get_quantile_cut()))
    native = ExtMemQuantileDMatrix(in_batches(cache_prefix=str(tmp_path / "own")), bin_method=None, max_bin=20)
    assert from_native(native) == from_native(xgb.QuantileDMatrix(X, y, max_bin=20))
    with pytest.raises(ValueError, match=r"cache='x' is not for a DataIter: give that a cache_prefix"):
        ExtMemQuantileDMatrix(in_batches(), cache="x")


def test_none_and_validation_sets_are_xgboosts_own():
    assert trees(matrix(in_batches(), bin_method=None, max_bin=20)) == trees(
        xgb.QuantileDMatrix(in_batches(), max_bin=20)
    )
    train = matrix(in_batches(), max_bin=20)
    seen = {}
    valid = matrix(in_batches(), ref=train, max_bin=20)
    booster = xgb.train({"max_bin": 20}, train, 4, evals=[(valid, "v")], evals_result=seen, verbose_eval=False)
    error = np.sqrt(np.mean((booster.predict(xgb.DMatrix(X)) - y) ** 2))
    assert seen["v"]["rmse"][-1] == pytest.approx(error, rel=1e-5)


# ---- what goes wrong


class Failing(Batches):
    """Fails at a batch, of a pass."""

    def __init__(self, at, passes):
        super().__init__(in_batches().batches)
        self.fails_at, self.passes = at, passes

    def next(self, input_data):
        if self.at == self.fails_at and self.passes <= 0:
            raise OSError("the disk is gone")
        return super().next(input_data)

    def reset(self):
        self.passes -= 1
        super().reset()


@pytest.mark.parametrize("passes", [0, 2, 4])
def test_what_the_iterator_raises_comes_through(passes):
    with pytest.raises(OSError, match="the disk is gone"):
        matrix(Failing(1, passes))


class Shrinking(Batches):
    """Has fewer batches after the first pass."""

    def reset(self):
        if self.at == len(self.batches) == 4:
            self.batches = self.batches[:2]
        super().reset()


class Unnamed(Batches):
    """Does not say what is what."""

    def next(self, input_data):
        return input_data(X, y)


def test_what_is_handed_over_is_named():
    with pytest.raises(TypeError, match="Keyword argument"):
        matrix(Unnamed([]))


class Silent(Batches):
    """Says that there are batches, and hands none over."""

    def next(self, input_data):
        return 1


@pytest.mark.parametrize(
    ("iterator", "options", "message"),
    [
        (lambda: in_batches(), {"label": y}, "label of a DataIter is specified as batch argument: .*input_data"),
        (lambda: in_batches(), {"weight": WEIGHT}, "weight of a DataIter is specified as batch arg"),
        (lambda: in_batches(), {"bin_cache": "memory"}, "bin_cache cannot know data that comes in batches"),
        (lambda: in_batches(), {"columns": ["a"]}, "columns is for data that comes in batches, as files"),
        (lambda: in_batches(), {"max_bin": 2, "bin_method": "kmeans"}, "max_bin=2 is beyond .* use 3 to 65536"),
        (lambda: in_batches(cache_prefix="x"), {}, "QuantileDMatrix doesn't cache data"),
        (lambda: Batches([]), {}, "data gave no rows"),
        (lambda: Silent([]), {}, "did not call input_data"),
        (lambda: Shrinking(in_batches().batches), {}, "data gave 600 rows the first time, and 350 the next"),
        (
            lambda: Batches([{"data": X, "weight": WEIGHT}, {"data": X}]),
            {},
            "batch 1 .*weight must come with all",
        ),
        (
            lambda: Batches([{"data": X}, {"data": X, "weight": WEIGHT}]),
            {},
            "batch 1 .*weight must come with all",
        ),
        (lambda: Batches([{"data": X}, {"data": X[:, :2]}]), {}, "batch 1 of data has other features .* were 10, and"),
    ],
)
def test_what_cannot_be_done_is_said(iterator, options, message):
    with pytest.raises(ValueError, match=message):
        matrix(iterator(), **options)

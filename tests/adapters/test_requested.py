"""What is asked of the bins is refused or accepted by one rule, with one message, whatever asks for it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import boostbins.catboost
import boostbins.lightgbm
import boostbins.xgboost
from boostbins import Binner, Bins, compare, fit_bins, report, summarize
from boostbins.adapters.requested import floor32
from boostbins.cli import main

N = 120
FRAME = pd.DataFrame({"a": np.arange(N) % 7.0, "b": np.arange(N) / 3})
FRAME["y"], FRAME["none"], FRAME["gaps"] = FRAME.a + FRAME.b, 0.0, np.where(FRAME.index == 3, np.nan, 1.0)
X, Y = FRAME[["a", "b"]], FRAME["y"]
LGB = {"params": {"verbosity": -1}}


@pytest.fixture
def path(tmp_path):
    FRAME.to_parquet(tmp_path / "f.parquet")
    return str(tmp_path / "f.parquet")


# ---- each is called with the names of columns of a file

FROM_FILES = {
    "fit_bins": lambda path, y, w, columns: fit_bins(path, "auto", sample_weight=w, y=y, columns=columns),
    "summarize": lambda path, y, w, columns: summarize(path, w, y=y, columns=columns),
    "Dataset": lambda path, y, w, columns: boostbins.lightgbm.Dataset(
        path, y, weight=w, columns=columns, bin_method="auto", **LGB
    ).construct(),
    "QuantileDMatrix": lambda path, y, w, columns: boostbins.xgboost.QuantileDMatrix(
        path, y, weight=w, columns=columns, bin_method="auto"
    ),
}
# ---- and with the numbers themselves

IN_MEMORY = {
    "fit_bins": lambda y, w: fit_bins(X, "auto", sample_weight=w, y=y),
    "summarize": lambda y, w: summarize(X, w, y=y),
    "Binner": lambda y, w: Binner(method="auto").fit(X, y, sample_weight=w),
    "report": lambda y, w: report(X, y, sample_weight=w),
    "compare": lambda y, w: compare(X, y, "sklearn", splits=2, sample_weight=w),
    "Dataset": lambda y, w: boostbins.lightgbm.Dataset(X, y, weight=w, bin_method="auto", **LGB).construct(),
    "LGBMRegressor": lambda y, w: boostbins.lightgbm.LGBMRegressor(bin_method="auto").fit(X, y, sample_weight=w),
    "QuantileDMatrix": lambda y, w: boostbins.xgboost.QuantileDMatrix(X, y, weight=w, bin_method="auto"),
    "XGBRegressor": lambda y, w: boostbins.xgboost.XGBRegressor(bin_method="auto").fit(X, y, sample_weight=w),
    "Pool": lambda y, w: boostbins.catboost.Pool(X, y, weight=w, bin_method="auto"),
}


@pytest.mark.parametrize("name", FROM_FILES)
def test_columns_that_are_not_there(name, path):
    for wrong, argument in (("yy", "y|label"), ("nono", "sample_weight|weight"), (["A"], "columns")):
        given = {"y": "y", "w": None, "columns": ["a"]}
        given[{"y|label": "y", "columns": "columns"}.get(argument, "w")] = wrong
        missing = wrong if isinstance(wrong, str) else wrong[0]
        with pytest.raises(ValueError, match=rf"^({argument}): there is no column '{missing}': did you mean '"):
            FROM_FILES[name](path, given["y"], given["w"], given["columns"])


@pytest.mark.parametrize(
    "command",
    [
        ["fit", "-o", "b.json"],
        ["summarize", "-o", "s.bin"],
        ["compare", "--target", "y"],
        ["report"],
    ],
    ids=lambda command: command[0],
)
def test_columns_that_are_not_there_are_named_by_the_option(command, path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name, *rest = command
    for option in ("--target", "--weight", *(["--columns", "--without"] if name in ("fit", "summarize") else [])):
        assert main([name, path, *rest, option, "nono"]) == 2
        assert f"{option}: there is no column 'nono': did you mean 'none'?" in capsys.readouterr().err


def test_weights_that_are_zero_for_every_row(path):
    wrong = r"(sample_weight|weight) is zero for every row: give some row a positive weight"
    for ask in FROM_FILES.values():
        with pytest.raises(ValueError, match=wrong):
            ask(path, "y", "none", ["a"])
    for name, ask in IN_MEMORY.items():
        if name != "Pool":  # CatBoost itself refuses them before
            with pytest.raises(ValueError, match=wrong):
                ask(Y, np.zeros(N))


def test_a_target_with_missing_values(path):
    wrong = r"(y|label): the target has a missing value: remove that row, or fill it in"
    for ask in FROM_FILES.values():
        with pytest.raises(ValueError, match=wrong):
            ask(path, "gaps", None, ["a"])
    for name, ask in IN_MEMORY.items():
        if name != "LGBMRegressor":  # which refuses it before, as all of scikit-learn's
            with pytest.raises(ValueError, match=wrong):
                ask(FRAME["gaps"], None)
    with pytest.raises(ValueError, match=wrong):
        boostbins.lightgbm.Dataset(path, "gaps", columns=["a"], bin_method="kmeans", **LGB).construct()


def test_nothing_is_fitted_by_what_is_refused():
    model = boostbins.xgboost.XGBRegressor(bin_method="auto")
    with pytest.raises(ValueError, match="zero for every row"):
        model.fit(X, Y, sample_weight=np.zeros(N))
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_the_range_that_a_library_sees_is_that_of_rows_of_weight_0_too(path):
    weight = np.where(np.arange(N) < 80, 1.0, 0.0)
    train = boostbins.xgboost.QuantileDMatrix(X, Y, weight=weight, bin_method=Bins([[3.5], [5.0]], ["a", "b"]))
    FRAME.assign(w=weight).to_parquet(path)
    streamed = boostbins.xgboost.QuantileDMatrix(path, "y", weight="w", columns=["a", "b"], bin_method=train.bins_)
    for mine, own in zip(train.get_quantile_cut(), streamed.get_quantile_cut(), strict=True):
        np.testing.assert_array_equal(mine, own)


def test_float32_cuts_part_what_float64_cuts_part():
    r = np.random.default_rng(0)
    cuts = np.sort(r.normal(size=50))
    values = np.float32(np.concatenate([r.normal(size=500), cuts, np.nextafter(np.float32(cuts), np.float32(9))]))
    found = floor32(cuts)
    assert (found == found.astype(np.float32)).all()
    np.testing.assert_array_equal(
        np.searchsorted(found, values.astype(np.float64)), np.searchsorted(cuts, values.astype(np.float64))
    )
    assert floor32(np.array([-1e300, 1e300])).tolist() == []

"""The cuts of many tables, as digests in `fixtures/digests.json`: a change that is to move no cut is seen to move none.

`python -m tests.digests --check [table ...]` tells which differ, `--write` writes them anew: for a change that is meant
to move cuts, whose diff then says which. The tables are made here, or are the paper's (`BOOSTBINS_DATA`).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

import boostbins.catboost
import boostbins.lightgbm
import boostbins.sklearn
import boostbins.xgboost
from boostbins import Bins, fit_bins, summarize

FIXTURE = Path(__file__).parent / "fixtures" / "digests.json"
FOLDER = os.environ.get("BOOSTBINS_DATA")
METHODS = ("quantile", "uniform", "kmeans", "optimal", "hybrid", "auto")
WITH_VARIANTS = (
    "made/mixed",
    "made/many rows",
    "regression/abalone",
    "regression/sulfur",
    "classification/credit",
)
WITH_ADAPTERS = (
    "made/mixed",
    "made/many rows",
    "regression/abalone",
    "regression/sulfur",
    "classification/credit",
)

# NumPy's cube root differs in its last bit by processor, which tips what "auto" chooses here.
BY_PROCESSOR = {("regression/Ailerons", "auto 16")}

Digests = dict[str, str]
Found = Iterator[tuple[str, Bins]]


class Data(NamedTuple):
    X: pd.DataFrame
    y: np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.digests", description=__doc__)
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--check", action="store_true", help="tell which digests differ from the fixture's")
    task.add_argument("--write", action="store_true", help="write the fixture anew")
    parser.add_argument("table", nargs="*", help="only these, e.g. regression/abalone")
    asked = parser.parse_args()
    if FOLDER is None and not asked.table:
        parser.error("BOOSTBINS_DATA must name the folder of the paper's datasets, or name the tables")
    written = recorded() if FIXTURE.exists() else {}
    found = {name: digests(name) for name in asked.table or tables()}
    if asked.write:
        write({**written, **found} if asked.table else found)
        return
    different = 0
    for name, now in found.items():
        before = written.get(name, {})
        for case in {**before, **now}:
            if before.get(case) != now.get(case):
                different += 1
                print(f"{name}, {case}: was {before.get(case)}, is {now.get(case)}")
    print(f"{different} of {sum(map(len, found.values()))} digests differ, of {len(found)} tables")
    sys.exit(different > 0)


def recorded() -> dict[str, Digests]:
    """Return the digests in the fixture by table and case."""
    return json.loads(FIXTURE.read_text(encoding="utf-8"))


def write(found: dict[str, Digests]) -> None:
    FIXTURE.with_suffix(".new").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    FIXTURE.with_suffix(".new").replace(FIXTURE)


def tables() -> list[str]:
    """Return the names of all tables that there are here."""
    files = sorted(Path(FOLDER).glob("*/*.parquet")) if FOLDER else []
    return [*MADE, *(f"{path.parent.name}/{path.stem}" for path in files)]


def digests(name: str, *, quick: bool = False) -> Digests:
    """Return the digests of a table's cuts, by what was asked for: of some only, if it is to be quick."""
    return {case: bins.digest[:16] for case, bins in _cuts(name, quick) if (name, case) not in BY_PROCESSOR}


def _cuts(name: str, quick: bool) -> Found:
    if name == "made/dates":
        yield from of_dates()
        return
    data = MADE[name]() if name in MADE else read(name)
    yield from by_method(data, quick)
    if name in WITH_VARIANTS:
        yield from by_variant(data)
    if name in WITH_ADAPTERS:
        # Without what some libraries' names must not have in them.
        yield from by_adapter(Data(data.X.set_axis([f"c{i}" for i in range(data.X.shape[1])], axis=1), data.y))


def read(name: str) -> Data:
    if FOLDER is None:
        raise SystemExit(f"{name} is one of the paper's datasets: BOOSTBINS_DATA must name their folder")
    table = pd.read_parquet(Path(FOLDER) / f"{name}.parquet")
    return Data(table.iloc[:, :-1], graded(table.iloc[:, -1].to_numpy()))


# The same on every machine. Sums over equal values are rounded in an order that depends on the processor, for NumPy's
# sort is not stable: here they are exact, of targets that are small whole numbers and of weights in eighths. The tables
# that are made are so by random bits and exact arithmetic only.


def graded(y: np.ndarray) -> np.ndarray:
    """Return a target in 1024 grades; classes as they are."""
    return y if len(np.unique(y)) == 2 else np.round(1023 * ((y - y.min()) / (y.max() - y.min())))


# ---- tables that are made


def spread(r: np.random.Generator, n_rows: int) -> np.ndarray:
    """Return skewed numbers over many scales, much like lognormal ones."""
    ratios = (1 + r.random((8, n_rows))) / (1 + r.random((8, n_rows)))
    return ratios.prod(axis=0) ** 2


def bell(r: np.random.Generator, n_rows: int) -> np.ndarray:
    return (r.random((12, n_rows)) - 0.5).sum(axis=0)


def mixed() -> Data:
    r, n = np.random.default_rng(0), 3000
    pick = r.random(n)
    X = pd.DataFrame(
        {
            "bell": bell(r, n),
            "spread": spread(r, n),
            "two-valued": r.integers(0, 2, n).astype(float),
            "two-valued, of integers": r.integers(0, 2, n),
            "flags": r.random(n) < 0.3,
            "constant": np.full(n, 3.0),
            "all missing": np.full(n, np.nan),
            "mostly zero": np.where(pick < 0.8, 0.0, spread(r, n)),
            "mostly zero, or less": np.where(pick < 0.75, 0.0, -spread(r, n)),
            "mostly five": np.where(pick < 0.8, 5.0, bell(r, n)),
            "ties": np.round(10 * spread(r, n)),
            "cents": np.round(100 * spread(r, n)) / 100,
            "integers": r.integers(-500, 10_000, n),
            "small integers": r.integers(0, 6, n).astype(np.int8),
            "large integers": r.integers(2**40, 2**52, n),
            "float32": bell(r, n).astype(np.float32),
            "some missing": np.where(pick < 0.1, np.nan, bell(r, n)),
            "mostly missing": np.where(pick < 0.9, np.nan, spread(r, n)),
            "timestamps": 1.7e9 + 1e5 * bell(r, n),
            "far modes": np.where(pick < 0.5, 1e6, -1e6) + bell(r, n) / 1024,
            "ascending": np.arange(n) / 8,
        }
    )
    y = X["bell"] * X["two-valued"] + X["spread"] + X["ties"] / 4 + np.where(X["cents"] > 2, 3, 0) + r.random(n)
    return Data(X, graded(y.to_numpy()))


def many_rows() -> Data:
    """Return columns of more distinct values than a summary has cells."""
    r, n = np.random.default_rng(1), 36_000
    pick = r.random(n)
    X = pd.DataFrame(
        {
            "bell": bell(r, n),
            "spread": spread(r, n),
            "even": r.random(n),
            "half zero": np.where(pick < 0.5, 0.0, bell(r, n)),
            "heavy value": np.where(pick < 0.3, 50.0, spread(r, n)),
            "far modes": np.where(pick < 0.5, 1e6, -1e6) + bell(r, n) / 1024,
        }
    )
    y = X["bell"] ** 2 + X["spread"] + np.where(X["even"] > 0.9, 5, 0) + r.random(n)
    return Data(X, graded(y.to_numpy()))


def odd() -> Data:
    """Return columns at the ends of what a float may be."""
    r, n = np.random.default_rng(2), 1500
    pick = r.random(n)
    X = pd.DataFrame(
        {
            "infinite": np.where(pick < 0.1, np.inf, np.where(pick < 0.15, -np.inf, bell(r, n))),
            "subnormal": bell(r, n) * 2.0**-1030,
            "huge": bell(r, n) * 2.0**1015,
            "all scales": bell(r, n) * 2.0 ** r.integers(-900, 900, n),
            "next to each other": 1 + r.integers(0, 300, n) * 2.0**-52,
            "negative zeros": np.where(pick < 0.3, -0.0, np.where(pick < 0.6, 0.0, bell(r, n))),
            "one value, some missing": np.where(pick < 0.5, np.nan, 7.0),
            "one value and an infinite one": np.where(pick < 0.5, np.inf, 7.0),
        }
    )
    return Data(X, graded(np.where(X["negative zeros"] > 0, 2.0, 0.0) + r.random(n)))


def few_rows() -> Data:
    X = pd.DataFrame(
        {"distinct": [3.0, 1.0, 4.0, 1.5, 9.0], "ties": [2.0, 7.0, 2.0, 7.0, 2.0], "whole": [5, 3, 1, 2, 4]}
    )
    return Data(X, np.array([0.0, 1.0, 0.0, 1.0, 2.0]))


def of_dates() -> Found:
    """Yield the cuts of dates and times in frames of each kind."""
    r, n = np.random.default_rng(3), 2000
    seconds = 1_600_000_000 + r.integers(0, 10**8, n)
    instants, days = seconds.astype("datetime64[s]"), seconds.astype("datetime64[s]").astype("datetime64[D]")
    lengths = r.integers(0, 10**6, n).astype("timedelta64[s]")
    instants[::50] = np.datetime64("NaT")
    frames = {
        "pandas": pd.DataFrame(
            {"instant": instants.astype("datetime64[ns]"), "length": lengths.astype("timedelta64[ns]")}
        ),
        "polars": pl.DataFrame(
            {"instant": instants.astype("datetime64[us]"), "day": days, "length": lengths.astype("timedelta64[us]")}
        ),
        "Arrow": pa.table({"instant": pa.array(instants), "day": pa.array(days), "length": pa.array(lengths)}),
    }
    y = r.random(n) + np.where(lengths > np.timedelta64(700_000, "s"), 3, 0)
    for kind, frame in frames.items():
        for method in METHODS:
            yield f"{kind}, {method} 63", fit_bins(frame, method, 63, y=graded(y), dates_as_numbers=True)


MADE: dict[str, Callable[[], Any]] = {
    "made/mixed": mixed,
    "made/many rows": many_rows,
    "made/odd": odd,
    "made/few rows": few_rows,
    "made/dates": of_dates,
}


# ---- what is asked of them


def by_method(data: Data, quick: bool) -> Found:
    """Yield the cuts by each method: at 63 bins of the rows, else of their summary."""
    if quick:
        for method in METHODS:
            if method != "optimal":
                yield f"{method} 63", fit_bins(data.X, method, 63, y=data.y)
        return
    summary = summarize(data.X, y=data.y)
    for method in METHODS:
        yield f"{method} 255", fit_bins(summary, method, 255)
        yield f"{method} 63", fit_bins(data.X, method, 63, y=data.y)
        yield f"{method} 16", fit_bins(summary, method, 16)


def by_variant(data: Data) -> Found:
    X, y = data
    r = np.random.default_rng(4)
    n, width = X.shape
    whole, fractional = r.integers(0, 5, n), r.integers(1, 25, n) / 8
    holed = X.astype(np.float64).mask(r.random(X.shape) < 0.1)
    zeros = X.astype(np.float64).mask(r.random(X.shape) < 0.7, 0.0).to_numpy()
    classes = np.array(["low", "middle", "high", "top"])[np.searchsorted(np.sort(y)[[n // 4, n // 2, 3 * n // 4]], y)]
    several = np.column_stack([y, graded(X.iloc[:, 0].to_numpy())])
    ways: dict[str, Callable[[str], Bins]] = {
        "without a target": lambda method: fit_bins(X, method, 63),
        "whole weights": lambda method: fit_bins(X, method, 63, whole, y=y),
        "fractional weights": lambda method: fit_bins(X, method, 63, fractional, y=y),
        "classes": lambda method: fit_bins(X, method, 63, y=classes),
        "two targets": lambda method: fit_bins(X, method, 63, y=several),
        "a total": lambda method: fit_bins(X, method, 255, y=y, total_bins=20 * width),
        "a total, without a target": lambda method: fit_bins(X, method, 255, total_bins=20 * width),
        "a total, fractional weights": lambda method: fit_bins(X, method, 63, fractional, y=y, total_bins=9 * width),
        "bins by column": lambda method: fit_bins(X, method, [5 + 9 * i for i in range(width)], y=y),
        "1000 bins": lambda method: fit_bins(X, method, 1000, y=y),
        "exact": lambda method: fit_bins(X, method, 63, y=y, exact=True),
        "some columns": lambda method: fit_bins(X, method, 63, y=y, columns=list(X.columns[[2, 0]])),
        "holes": lambda method: fit_bins(holed, method, 63, y=y),
        "holes, fractional weights": lambda method: fit_bins(holed, method, 63, fractional, y=y),
        "float32": lambda method: fit_bins(X.astype(np.float32), method, 63, y=y),
        "array": lambda method: fit_bins(X.to_numpy(np.float64), method, 63, y=y),
        "array by columns": lambda method: fit_bins(np.asfortranarray(X.to_numpy(np.float32)), method, 63, y=y),
        "sparse by rows": lambda method: fit_bins(sparse.csr_matrix(zeros), method, 63, y=y),
        "sparse by columns": lambda method: fit_bins(sparse.csc_matrix(zeros), method, 63, whole, y=y),
        "polars": lambda method: fit_bins(pl.from_pandas(X), method, 63, y=y),
        "batches": lambda method: fit_bins(partial(pieces, X, 700), method, 63, y=y),
        "two summaries": lambda method: fit_bins(
            summarize(X[: n // 3], y=y[: n // 3]) + summarize(X[n // 3 :], y=y[n // 3 :]), method, 63
        ),
    }
    for way, cut in ways.items():
        for method in ("kmeans", "auto") if "target" in way else ("quantile", "kmeans", "auto"):
            yield f"{way}, {method}", cut(method)
    table = X.assign(target=y, weight=fractional)
    with tempfile.TemporaryDirectory() as folder:
        parquet, csv, feather = (Path(folder) / f"table.{kind}" for kind in ("parquet", "csv", "feather"))
        pq.write_table(pa.Table.from_pandas(table, preserve_index=False), parquet, row_group_size=900)
        table.to_csv(csv, index=False)
        table.to_feather(feather)
        for file in (parquet, csv, feather):
            for method in ("kmeans", "auto"):
                yield f"{file.suffix}, {method}", fit_bins(file, method, 63, "weight", y="target")


def pieces(X: pd.DataFrame, n_rows: int) -> Iterator[pd.DataFrame]:
    for start in range(0, len(X), n_rows):
        yield X[start : start + n_rows]


def by_adapter(data: Data) -> Found:
    """Yield the cuts that the libraries get; "read back" are those that they say they have."""
    X, y = data
    n, width = X.shape
    few_classes = len(np.unique(y)) == 2
    weight = np.random.default_rng(5).integers(1, 5, n)
    csr = sparse.csr_matrix(X.astype(np.float64).fillna(0).to_numpy())
    plain = X.astype(np.float64).drop(columns=X.columns[X.isna().any()])
    kind = "Classifier" if few_classes else "Regressor"
    with tempfile.TemporaryDirectory() as folder:
        parquet, csv = Path(folder) / "table.parquet", Path(folder) / "table.csv"
        X.assign(target=y).to_parquet(parquet, index=False)
        numbers = np.column_stack([y, X.to_numpy(np.float64)])
        np.savetxt(csv, numbers, fmt="%.17g", delimiter=",")
        for asked, flags in {
            "kmeans": {"bin_method": "kmeans"},
            "auto": {"bin_method": "auto"},
            "auto, a total": {"bin_method": "auto", "total_bins": 20 * width},
        }.items():
            for name, bins in {
                **of_lightgbm(X, y, weight, csr, parquet, csv, flags),
                **of_xgboost(X, y, weight, csr, parquet, flags),
                **of_catboost(X, y, weight, flags),
                **of_estimators(X, plain, y, weight, kind, flags),
            }.items():
                yield f"{name}, {asked}", bins


def of_lightgbm(X: Any, y: Any, weight: Any, csr: Any, parquet: Path, csv: Path, flags: Any) -> dict[str, Bins]:
    dataset = partial(boostbins.lightgbm.Dataset, params={"max_bin": 63, "verbosity": -1}, **flags)
    made = {
        "Dataset": dataset(X, y),
        "Dataset, weights": dataset(X, y, weight=weight),
        "Dataset, sparse": dataset(csr, y),
        "Dataset of .parquet": dataset(parquet, "target"),
        "Dataset of .csv": dataset(csv),
    }
    used = {name: each.construct().bins_ for name, each in made.items()}
    return {**used, "Dataset, read back": boostbins.lightgbm.from_native(made["Dataset"])}


def of_xgboost(X: Any, y: Any, weight: Any, csr: Any, parquet: Path, flags: Any) -> dict[str, Bins]:
    matrix = partial(boostbins.xgboost.QuantileDMatrix, max_bin=64, **flags)
    made = {
        "QuantileDMatrix": matrix(X, y),
        "QuantileDMatrix, weights": matrix(X, y, weight=weight),
        "QuantileDMatrix, sparse": matrix(csr, y),
        "QuantileDMatrix of .parquet": matrix(parquet, "target"),
    }
    used = {name: each.bins_ for name, each in made.items()}
    return {**used, "QuantileDMatrix, read back": boostbins.xgboost.from_native(made["QuantileDMatrix"])}


def of_catboost(X: Any, y: Any, weight: Any, flags: Any) -> dict[str, Bins]:
    X = X.astype(np.float64)
    pool = partial(boostbins.catboost.Pool, border_count=62, **flags)
    made = {"Pool": pool(X, y), "Pool, weights": pool(X, y, weight=weight)}
    used = {name: each.bins_ for name, each in made.items()}
    return {**used, "Pool, read back": boostbins.catboost.from_native(made["Pool"])}


def of_estimators(X: Any, plain: Any, y: Any, weight: Any, kind: str, flags: Any) -> dict[str, Bins]:
    """Return the cuts of each library's estimator, trained for one tree."""
    lgbm = getattr(boostbins.lightgbm, f"LGBM{kind}")(n_estimators=1, max_bin=63, verbosity=-1, n_jobs=1, **flags)
    xgb = getattr(boostbins.xgboost, f"XGB{kind}")(n_estimators=1, max_bin=64, n_jobs=1, **flags)
    few = {"iterations": 1, "depth": 2, "verbose": False, "allow_writing_files": False, "thread_count": 1}
    cat = getattr(boostbins.catboost, f"CatBoost{kind}")(border_count=62, **few, **flags)
    without = {"max_iter": 1, "early_stopping": False}  # which would draw the rows to train on
    histogram = getattr(boostbins.sklearn, f"HistGradientBoosting{kind}")(max_bins=63, **without, **flags)
    exact = getattr(boostbins.sklearn, f"GradientBoosting{kind}")(n_estimators=1, max_bins=63, **flags)
    given = [(lgbm, X), (xgb, X), (cat, X.astype(np.float64)), (histogram, X), (exact, plain)]
    bins = {type(model).__name__: model.fit(table, y, sample_weight=weight).bins_ for model, table in given}
    binner = boostbins.Binner(flags["bin_method"], 63, total_bins=flags.get("total_bins"))
    return {
        **bins,
        f"{type(histogram).__name__}, read back": boostbins.sklearn.from_native(histogram),
        "Binner": binner.fit(X, y, weight).bins_,
    }


if __name__ == "__main__":
    main()

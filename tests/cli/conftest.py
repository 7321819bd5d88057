"""A folder with data, and the commands that are run in it."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

import boostbins

COMMAND = [sys.executable, "-m", "boostbins"]
QUICK = ["--splits", "2", "--library", "sklearn", "--param", "max_iter=10", "--methods", "kmeans"]


def run(*arguments, cwd, **options):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=120, **options
    )


@pytest.fixture
def folder(tmp_path):
    r = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "area": r.lognormal(3, 2, n),
            "age": np.where(r.random(n) < 0.1, np.nan, r.integers(0, 90, n)),
            "kind": r.choice(["flat", "house"], n),
            "sold": pd.date_range("2020-01-01", periods=n, freq="D"),
            "weight": r.integers(1, 4, n),
        }
    )
    frame["price"] = frame["area"] + r.standard_normal(n)
    frame.to_parquet(tmp_path / "data.parquet", index=False)
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


COMMANDS = {
    "demo": (["demo", "--library", "xgboost"], "auto lowers the error by"),
    "compare": (["compare", "data.parquet", "--target", "price", *QUICK, "--html", "page.html"], "At 63 bins"),
    "report": (["report", "data.parquet", "--target", "price"], "area: "),
    "fit": (["fit", "data.parquet", "--without", "price", "-o", "bins.json"], "variance lost"),
    "encode": (["encode", "data.csv", "bins.json", "-o", "codes.parquet"], ""),
    "show": (["show", "bins.json"], "variance lost"),
}


fit_bins = partial(boostbins.fit_bins, dates_as_numbers=True)  # as the commands do

"""The evidence on `auto`: its rivals, the grid where tails are irrelevant, and the bars on made-up results."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import skew
from sklearn.tree import DecisionTreeRegressor

import boostbins
from paper import auto, cli, figures, stats
from paper.binning import OUR_METHODS, find_bins
from paper.claims import FAIL, NOT_RUN, PASS
from paper.datasets import TASKS
from paper.evidence import Evidence
from paper.jobs import EXPERIMENTS, plan
from paper.rivals import RIVALS, tree, uniform_and_quantiles, uniform_robust
from paper.stats import Scores
from paper.store import COLUMNS, Store
from paper.synthetic import (
    GRIDS,
    MISLEADING,
    MISLEADING_GRID,
    SCENARIOS,
    TAIL_GRID,
    MisleadingCell,
    TailCell,
    cell_of,
    seed_of,
)
from tests.paper.test_run import folder, paper  # noqa: F401

pytestmark = pytest.mark.paper

# ---- the rivals


@pytest.mark.parametrize("method", [*RIVALS, *OUR_METHODS])
@given(
    hnp.arrays(float, st.integers(1, 200), elements=st.one_of(st.integers(-3, 3), st.floats(-1e6, 1e6))),
    st.integers(2, 40),
)
def test_cuts_are_ascending_and_within_the_budget(method, x, max_bins):
    (cuts,) = find_bins(method, x[:, None], np.sin(x), max_bins).cuts  # which checks them
    assert len(cuts) < max_bins
    assert (np.diff(cuts) > 0).all()


@pytest.mark.parametrize("max_bins", [8, 33, 100])
def test_uniform_and_quantiles_are_catboosts_own(max_bins, tmp_path):
    catboost = pytest.importorskip("catboost")
    r = np.random.default_rng(max_bins)
    for x in (r.lognormal(size=2000), r.poisson(3, 500), np.append(r.normal(size=300), 1e4)):
        x = np.asarray(x, np.float32).astype(float)
        pool = catboost.Pool(x[:, None].astype(np.float32), x)
        pool.quantize(border_count=max_bins - 1, feature_border_type="UniformAndQuantiles")
        pool.save_quantization_borders(str(tmp_path / "borders"))
        theirs = np.loadtxt(tmp_path / "borders", ndmin=2)[:, 1]
        assert uniform_and_quantiles(boostbins.ColumnSummary(x), max_bins) == pytest.approx(theirs, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("max_bins", [2, 16, 100])
def test_a_tree_is_scikit_learns(max_bins):
    r = np.random.default_rng(0)
    x = r.lognormal(size=3000).astype(np.float32).astype(float)
    y = 1000 + np.sin(3 * np.log(x)) + 0.1 * r.standard_normal(3000)
    grown = DecisionTreeRegressor(max_leaf_nodes=max_bins).fit(x[:, None], y).tree_
    found = tree(boostbins.ColumnSummary(x, target=y), max_bins)
    assert found == pytest.approx(np.sort(grown.threshold[grown.feature >= 0]))


def test_a_tree_stops_where_the_target_is_constant():
    x = np.arange(100.0)
    assert len(tree(boostbins.ColumnSummary(x, target=np.full(100, 7.3)), 16)) == 0
    assert tree(boostbins.ColumnSummary(x, target=(x > 41) * 1.0), 16).tolist() == [41.5]


def test_uniform_robust_gives_up_empty_bins_and_cuts_full_ones():
    x = np.append(np.random.default_rng(0).random(1000), 1e6)
    cuts = uniform_robust(boostbins.ColumnSummary(x), 16)
    held, _ = np.histogram(x, np.concatenate([[-np.inf], cuts, [np.inf]]))
    assert len(cuts) == 15
    assert held.min() > 0
    assert held.max() < 200  # where uniform bins have 1000 in one
    even = np.arange(1600.0)  # nothing to mend
    assert uniform_robust(boostbins.ColumnSummary(even), 16) == pytest.approx(np.arange(99.5, 1500, 100), abs=1)


# ---- the grid


def test_in_the_seventh_grid_tails_are_long_and_irrelevant():
    grid = GRIDS[TAIL_GRID]
    assert set(grid.rows) == set(SCENARIOS)
    assert not grid.in_paper
    for scenario in SCENARIOS:
        X, y = TailCell(scenario, rows=40_000).draw(0)
        assert X.shape == (40_000, 3)
        assert X.max() > 20 * np.quantile(X, 0.9)
        assert abs(y).max() < 30


def test_in_the_eighth_grid_few_rows_hold_most_of_the_error():
    grid = GRIDS[MISLEADING_GRID]
    assert set(grid.rows) == set(MISLEADING)
    for scenario in MISLEADING:
        skews, shares = [], []
        for seed in range(9):
            X, y = MisleadingCell(scenario).draw(seed)
            assert len(X) == len(y) == 5000
            assert np.isfinite(X).all()
            away = np.sort((y - y.mean()) ** 2)[::-1]
            skews.append(skew(y))
            shares.append(away[:50].sum() / away.sum())
        assert np.median(skews) > 8
        assert np.median(shares) > 0.5  # a hundredth of the rows
    for scenario in ("exposure", "claims"):
        X, _ = MisleadingCell(scenario).draw(0)
        assert X[:, 0].max() > 10 * np.quantile(X[:, 0], 0.9)
    assert cell_of("8/rare/2500") == MisleadingCell("rare", 2500)
    seeds = {tuple(seed_of(f"8/{row}/{col:g}", draw)) for row, col in grid.cells for draw in range(3)}
    assert len(seeds) == 3 * len(grid.cells)


def test_cells_are_drawn_independently_and_alike_for_all_methods():
    jobs = plan(["auto-synthetic"], "fixed", only=["7"], seeds=range(2))
    seeds = {(job.data, job.seed): tuple(seed_of(job.data, job.seed)) for job in jobs}
    assert len(set(seeds.values())) == len(seeds) == 2 * len(GRIDS[TAIL_GRID].cells)
    assert not [job for job in plan(["auto-synthetic"], "fixed") if job.data.startswith("8/")]
    assert cell_of("7/log/64") == TailCell("log", 5000, 64)
    assert {job.learner for job in plan(["auto-63"], "fixed") if job.kind == "real"} == {"lightgbm", "xgboost"}
    assert not [job for job in plan(["all"], "smoke") if job.method in (*OUR_METHODS, *RIVALS)]
    assert {"auto-255", "auto-63", "auto-synthetic"} <= set(EXPERIMENTS)


# ---- the bars, on made-up results


def real(errors, n=20):
    """Make the scores of one track: a number per method is its error on all datasets, a dict the exceptions."""
    r = np.random.default_rng(0)
    rows = []
    for task in (task for task in TASKS if task.used):
        noise = 1 + 0.1 * r.standard_normal(n)  # shared by all methods, as splits are
        for method, error in errors.items():
            level = error.get(task.name, error[""]) if isinstance(error, dict) else error
            scores = level * noise * (1 + 0.001 * r.standard_normal(n))
            rows += [(task.key, method, seed, "mse", score) for seed, score in enumerate(scores)]
    return [Scores.of(pd.DataFrame(rows, columns=["dataset", "method", "seed", "metric", "score"]))]


def test_the_mean_error_must_be_below_both():
    assert auto.lower_mean(real({"quantile": 1.0, "kmeans": 0.98, "auto": 0.97})).holds
    found = auto.lower_mean(real({"quantile": 1.0, "kmeans": 0.96, "auto": 0.97}))
    assert not found.holds
    assert found.measured.startswith("0.970 (")
    assert auto.lower_mean(real({"quantile": 1.0, "kmeans": 0.96, "auto": 0.97}, n=5)) is None


def test_no_dataset_may_be_worse_than_either_beyond_noise():
    assert auto.no_dataset_worse(real({"quantile": 1.0, "kmeans": 1.0, "auto": 1.004})).holds
    found = auto.no_dataset_worse(real({"quantile": 1.0, "kmeans": 0.97, "auto": {"": 0.96, "sulfur": 0.985}}))
    assert not found.holds
    assert found.measured.startswith("sulfur +1.5 % against kmeans (")
    assert "houses" not in found.measured


def test_what_is_worse_by_noise_alone_does_not_fail():
    r = np.random.default_rng(1)
    rows = [
        (task.key, method, seed, "mse", 1 + 0.2 * r.standard_normal() + 0.03 * (method == "auto"))
        for task in TASKS
        if task.used
        for method in ("quantile", "kmeans", "auto")
        for seed in range(20)
    ]
    frame = pd.DataFrame(rows, columns=["dataset", "method", "seed", "metric", "score"])
    found = auto.no_dataset_worse([Scores.of(frame)])
    assert found.holds
    assert found.measured.startswith("at worst ")


def cells(ratio, base, grids, n=20):
    """Make the errors of all cells of some grids: `ratio` of a cell relative to the base."""
    r = np.random.default_rng(0)
    rows = []
    for grid in grids:
        for row, col in GRIDS[grid].cells:
            for draw in range(n):
                error = np.exp(0.2 * r.standard_normal())
                mine = error * ratio(grid, row, col) * np.exp(0.01 * r.standard_normal())
                rows.append((grid, row, col, draw, error, mine))
    return pd.DataFrame(rows, columns=["grid", "row", "col", "draw", base, "auto"])


def test_no_cell_may_be_worse_than_kmeans_beyond_noise():
    assert auto.no_cell_worse(cells(lambda *cell: 0.9, "kmeans", range(1, 7))).holds
    found = auto.no_cell_worse(cells(lambda *cell: 1.1 if cell == (5, 0.0, 16) else 0.9, "kmeans", range(1, 7)))
    assert not found.holds
    assert "worse beyond noise in 1 (1 after adjustment): grid 5: 0% x 16 1.10" in found.measured
    assert auto.no_cell_worse(cells(lambda *cell: 0.9, "kmeans", [1, 2])) is None  # absence of evidence


def test_far_out_the_error_must_be_halved():
    def ratio(far):
        return lambda grid, row, col: far if grid in (1, 2) and col == 20 else 0.9

    assert auto.lower_far_out(cells(ratio(0.4), "kmeans", range(1, 7))).holds
    found = auto.lower_far_out(cells(ratio(0.6), "kmeans", range(1, 7)))
    assert not found.holds
    # Five fractions of outliers in grid 1 and four numbers of modes in grid 2; no outliers are at no scale.
    assert "reached in 0 of 9 cells" in found.measured


def test_where_tails_are_irrelevant_five_percent_are_tolerated():
    assert auto.safe_tails(cells(lambda *cell: 1.04, "quantile", [TAIL_GRID])).holds
    found = auto.safe_tails(cells(lambda grid, row, col: 1.2 if (row, col) == ("log", 64) else 1, "quantile", [7]))
    assert not found.holds
    assert found.measured.startswith("1 of 20 cells: log x 64 bins 1.20 (")


def test_the_interval_of_a_cell_holds_the_truth_as_often_as_it_says():
    r = np.random.default_rng(0)
    frame = pd.DataFrame({"grid": 1, "row": np.repeat(np.arange(400), 20), "col": 0})
    frame["b"] = np.exp(r.standard_normal(len(frame)))
    frame["a"] = 0.7 * frame["b"] * np.exp(0.3 * r.standard_normal(len(frame)))
    found = stats.cell_ratios(frame, "a", "b")
    assert 0.92 <= ((found["low"] <= 0.7) & (found["high"] >= 0.7)).mean() <= 0.98


def test_a_mean_of_ratios_is_geometric():
    found = stats.geometric_mean(pd.Series([0.5, 2.0, 0.25, 4.0, 1.0]))
    assert found.mean == pytest.approx(1)
    assert found.low < 1 < found.high


# ---- from results to tables


def evidence_of(methods=("quantile", "kmeans", "auto")):
    rows = [
        dict.fromkeys(COLUMNS)
        | {"key": f"{task.key}{m}{seed}{bins}", "kind": "real", "data": task.key, "learner": "lightgbm", "method": m,
           "max_bins": bins, "seed": seed, "protocol": "fixed", "max_rows": 0, "metric": task.metric, "checksum": "",
           "score": 0.8 + 0.01 * seed + 0.001 * len(m) * (1 if task.metric == "roc_auc" else -1), "error": ""}
        for task in TASKS
        if task.used
        for m in methods
        for seed in range(10)
        for bins in (63, 255)
    ] + [
        dict.fromkeys(COLUMNS)
        | {"key": f"{grid}{cell}{m}{seed}", "kind": "synthetic", "data": f"{grid}/{cell[0]}/{cell[1]}",
           "learner": "sklearn", "method": m, "seed": seed, "protocol": "paper",
           "score": 1 + 0.1 * seed - 0.01 * len(m), "error": ""}
        for grid in range(1, TAIL_GRID + 1)
        for cell in GRIDS[grid].cells
        for m in methods
        for seed in range(3)
    ]  # fmt: skip
    return Evidence(pd.DataFrame(rows))


def test_all_tables_and_the_figure_are_written(tmp_path):
    tables = {table.name: table for table in auto.all_tables(evidence_of())}
    assert list(tables) == ["auto-bars", "auto-means", "auto-worst", "auto-grids", "auto-tails", "auto-frontier"]
    words = tables["auto-bars"].shown.iloc[:, 2]
    assert len(words) == 2 * 2 + 3
    assert set(words) <= {f"**{PASS}**", f"**{FAIL}**"}
    for table in tables.values():
        table.write(tmp_path)
        assert "nan" not in table.markdown().lower()
    figures.frontier(tables["auto-frontier"].numbers).write(tmp_path)
    assert {"auto-frontier.png", "auto-frontier.svg"} <= {path.name for path in tmp_path.iterdir()}


def test_without_results_of_auto_there_is_no_table():
    assert not list(auto.all_tables(evidence_of(("quantile", "kmeans"))))


def test_the_command_on_quick_results(folder):  # noqa: F811
    results = folder / "results"
    assert paper("auto", "--results", folder).returncode == 1  # nothing yet
    only = ("abalone", "heloc", "1/0.01/20", "7/log/16", "quantile", "kmeans", "auto", "tree")
    done = paper("run", "auto-255", "auto-synthetic", "--only", *only, "--results", results)
    assert done.returncode == 0, done.stderr
    shown = paper("auto", "--results", results, "--out", folder / "out")
    assert shown.returncode == 0, shown.stderr
    assert f"{NOT_RUN}  Geometric mean of the error" in shown.stdout
    assert (folder / "out" / "figures" / "auto-frontier.png").exists()
    table = paper("auto", "--results", results, "--markdown").stdout
    assert "| tree " in table
    assert "nan" not in table.lower()
    page = paper("report", "--results", results, "--out", folder / "page")
    assert page.returncode == 0, page.stderr
    assert "What is asked of auto" in (folder / "page" / "report.html").read_text()


def test_the_readme_has_what_the_kept_results_give_of_auto():
    readme = (cli.RESULTS.parent / "README.md").read_text(encoding="utf-8")
    tables = list(auto.all_tables(Evidence(Store(cli.RESULTS).frame(older=True))))
    assert len(tables) == 7
    for table in tables:
        assert table.markdown().strip() in readme, "python -m paper auto --older --markdown prints the tables anew"

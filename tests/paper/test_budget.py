"""The evidence on a total of bins: the bars on made-up results, and the experiments in small."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from paper import budget, cli, figures
from paper.budget import BARS, CELL_BARS, HALVES, NAMES, Setting
from paper.claims import FAIL, NOT_RUN, PASS
from paper.datasets import BY_KEY, TASKS
from paper.evidence import Evidence
from paper.jobs import BUDGET_SETTINGS, label
from paper.store import COLUMNS, Store
from paper.synthetic import GRIDS, MISLEADING_GRID
from tests.paper.test_run import folder, lines, paper  # noqa: F401

pytestmark = pytest.mark.paper

USED = [task for task in TASKS if task.used]
SETTING_OF = {label(*setting): setting for setting in BUDGET_SETTINGS}
NYC, ELECTRICITY = "regression/nyc-taxi-green-dec-2016", "classification/electricity"


def rows_of(errors, *, n=10, seconds=None, bins=None, protocol="strong", learner="lightgbm", run="one"):
    """Make rows of all datasets: a number per label is its error everywhere, a dict has the exceptions by dataset."""
    r = np.random.default_rng(0)
    rows = []
    for task in USED:
        noise = 1 + 0.1 * r.standard_normal(n)  # shared by all, as splits are
        for name, error in errors.items():
            method, max_bins = SETTING_OF[name]
            level = error.get(task.key, error[""]) if isinstance(error, dict) else error
            found = 0.1 * level * noise * (1 + 0.001 * r.standard_normal(n))
            for seed, score in enumerate(found):
                rows.append(
                    dict.fromkeys(COLUMNS, "")
                    | {"key": f"{len(rows)}", "kind": "real", "data": task.key, "learner": learner, "method": method,
                       "max_bins": max_bins, "seed": seed, "protocol": protocol, "max_rows": 25_000,
                       "metric": task.metric, "score": 1 - score if task.metric == "roc_auc" else score,
                       "bin_seconds": 0.5, "train_seconds": (seconds or {}).get(name, 1.0),
                       "mean_bins": (bins or {}).get(name, 255.0), "environment": "e", "run": run}
                )  # fmt: skip
    return pd.DataFrame(rows)


def setting_of(errors, **options) -> Setting:
    (setting,) = budget.settings(Evidence(rows_of(errors, **options)))
    return setting


def test_the_mean_is_over_all_datasets_and_both_halves_are_told():
    aside = {task.key: 1.03 for task in USED if task.half == HALVES[2]}
    found = budget.mean_at_most(setting_of({"native": 1.0, "average-63": {"": 0.97, **aside}}), "average-63", 1.0)
    assert not found.holds
    assert found.measured.startswith("+0.6 % (")
    assert "development -3.0 %, kept aside +3.0 %" in found.measured
    assert "10 splits" in found.measured
    assert budget.mean_at_most(setting_of({"native": 1.0, "average-63": 0.99}), "average-63", 1.0).holds


def test_a_mean_must_also_be_below_that_of_finer_bins():
    def found(fine):
        errors = {"native": 1.0, "native-4095": fine, "average-255": 0.98}
        return budget.mean_at_most(setting_of(errors), "average-255", 0.985, budget.FINE)

    assert found(0.99).holds
    assert not found(0.97).holds
    assert "native-4095 -3.0 %" in found(0.97).measured


def test_no_dataset_may_be_worse_beyond_noise():
    errors = {"native": 1.0, "average-63": {"": 1.04, "regression/sulfur": 1.2}}
    found = budget.no_dataset_worse(setting_of(errors), "average-63", "native", 1.05)
    assert not found.holds
    assert found.measured.startswith(("sulfur +19.9 %", "sulfur +20.0 %"))
    assert "houses" not in found.measured
    assert "neither shown nor ruled out on 0 datasets" in found.measured
    assert budget.no_dataset_worse(setting_of({"native": 1.0, "average-63": 1.04}), "average-63", "native", 1.05).holds


def test_the_headroom_is_of_the_finest_native_bins_with_the_strong_learner():
    def found(gain, protocol="strong"):
        errors = {"native": 1.0, "native-4095": {"": 1.0, NYC: 0.9, ELECTRICITY: 0.8},
                  "average-255": {"": 1.0, NYC: 1 - 0.1 * gain, ELECTRICITY: 1 - 0.2 * gain}}  # fmt: skip
        return budget.headroom(setting_of(errors, protocol=protocol), "average-255")

    assert found(0.8).holds
    assert "80% of it" in found(0.8).measured
    assert not found(0.6).holds
    assert found(0.8, "fixed") is None


def test_times_are_compared_within_a_run_only():
    errors, seconds = {"native": 1.0, "average-63": 1.0}, {"native": 2.0, "average-63": 1.0}
    setting = setting_of(errors, seconds=seconds)
    assert setting.seconds("average-63")["training"].tolist() == pytest.approx([0.5] * 33)
    assert setting.seconds("average-63")["whole"].tolist() == pytest.approx([1.5 / 2.5] * 33)
    assert budget.training_at_most(setting, "average-63", 0.5).holds
    assert not budget.training_at_most(setting, "average-63", 0.49).holds
    rows = rows_of(errors, seconds=seconds)
    rows.loc[(rows["data"] == NYC) & (rows["method"] == "native"), "run"] = "another"
    (setting,) = budget.settings(Evidence(rows))
    assert NYC not in setting.seconds("average-63").index
    assert budget.training_at_most(setting, "average-63", 1.0) is None  # not on all datasets
    (setting,) = budget.settings(Evidence(rows_of(errors, run="")))  # kept without knowing the run
    assert setting.seconds("average-63").empty


def test_where_a_library_does_not_tell_when_the_bins_are_there_only_the_whole_is_compared():
    rows = rows_of({"native": 1.0, "average-63": 1.0}, seconds={"native": 2.0}).assign(bin_seconds=np.nan)
    (setting,) = budget.settings(Evidence(rows))
    found = setting.seconds("average-63")
    assert found["training"].isna().all()
    assert found["whole"].tolist() == pytest.approx([0.5] * 33)


def test_enough_bins_are_few():
    errors = {"native": 1.0, "auto-bins": 1.0}
    assert budget.few_bins(setting_of(errors, bins={"auto-bins": 62.0}), "auto-bins").holds
    assert not budget.few_bins(setting_of(errors, bins={"auto-bins": 63.0}), "auto-bins").holds


def cells(ratio, n=10):
    r = np.random.default_rng(0)
    rows = []
    for row, col in GRIDS[MISLEADING_GRID].cells:
        for draw in range(n):
            error = np.exp(r.standard_normal())
            mine = error * ratio(row, col) * np.exp(0.01 * r.standard_normal())
            rows.append((MISLEADING_GRID, row, col, draw, error, mine))
    return pd.DataFrame(rows, columns=["grid", "row", "col", "draw", "kmeans", "average-255"])


def test_no_cell_may_be_worse_beyond_noise():
    assert budget.no_cell_worse(cells(lambda *cell: 0.98), "average-255", "kmeans").holds
    found = budget.no_cell_worse(cells(lambda *cell: 1.3 if cell == ("rare", 1000) else 1), "average-255", "kmeans")
    assert not found.holds
    assert found.measured.startswith("rare, 1000 rows +")
    assert budget.no_cell_worse(cells(lambda *cell: 1, n=2), "average-255", "kmeans") is None


def test_absence_of_evidence_passes_nothing():
    errors = dict.fromkeys(SETTING_OF, 0.9)
    for few in (setting_of(errors, n=9), Setting("lightgbm", "strong", 0, _without(setting_of(errors).rows, NYC))):
        assert {text: bar(few) for text, bar in BARS} == dict.fromkeys(dict(BARS))
    assert not list(budget.all_tables(Evidence(rows_of({"native": 1.0}))))  # nothing shared a total


def _without(rows, dataset):
    return rows[rows["data"] != dataset]


@pytest.mark.parametrize("learner", ["lightgbm", "xgboost"])
def test_every_bar_can_be_met_and_missed(learner):
    good = {"native": 1.0, "native-63": 1.04, "native-4095": 0.99, "kmeans": 1.0, "kmeans-63": 1.03, "tree": 1.0,
            "average-63": 0.99, "average-255": 0.97, "auto-bins": 1.0}  # fmt: skip
    bad = good | dict.fromkeys(NAMES, 1.5)
    quick, slow = dict.fromkeys(NAMES, 0.5), dict.fromkeys(NAMES, 2.0)
    met = setting_of(good, seconds=quick, bins=dict.fromkeys(NAMES, 40.0), learner=learner)
    missed = setting_of(bad, seconds=slow, bins=dict.fromkeys(NAMES, 90.0), learner=learner)
    assert {text: bar(met).holds for text, bar in BARS} == dict.fromkeys(dict(BARS), True)
    assert {text: bar(missed).holds for text, bar in BARS} == dict.fromkeys(dict(BARS), False)


def test_tables_show_both_halves_apart():
    errors = {"native": 1.0, "average-63": {"": 1.01, NYC: 0.5}, "auto-bins": 1.0}
    evidence = Evidence(rows_of(errors, seconds={"average-63": 0.8}, bins={"average-63": 63.0}))
    tables = {table.name: table for table in budget.all_tables(evidence)}
    name = "budget-summary-lightgbm-strong-25000rows"
    assert list(tables) == ["budget-bars", name, "budget-datasets-lightgbm-strong-25000rows"]
    assert set(tables["budget-bars"].shown.iloc[:, 2]) == {f"**{PASS}**", f"**{FAIL}**", NOT_RUN}
    numbers = tables[name].numbers.set_index(["half", "method"])
    assert numbers["datasets"].unstack()["average-63"].to_dict() == {"all": 33, "development": 13, "kept aside": 20}
    assert numbers.loc[("development", "average-63"), "mean"] == pytest.approx(1.01, abs=0.002)
    assert numbers.loc[("kept aside", "average-63"), "mean"] < 0.98  # nyc-taxi is there
    assert numbers.loc[("all", "average-63"), "training"] == pytest.approx(0.8)
    assert numbers.loc[("all", "average-63"), "bins"] == 63
    datasets = tables["budget-datasets-lightgbm-strong-25000rows"].shown
    assert list(datasets["half"]) == ["development"] * 13 + ["kept aside"] * 20
    assert {BY_KEY[key].title for key in BY_KEY if BY_KEY[key].used} == set(datasets["dataset"])
    for table in tables.values():
        assert "nan" not in table.markdown().lower()


def test_error_is_drawn_against_training_time(tmp_path):
    errors = {"native": 1.0, "native-63": 1.04, "average-63": 1.01, "auto-bins": 0.99}
    times = {"native-63": 0.8, "average-63": 0.8, "auto-bins": 0.9}
    rows = [rows_of(errors, seconds=times, learner=learner) for learner in ("lightgbm", "xgboost")]
    methods, learners = budget.frontier(budget.all_tables(Evidence(pd.concat(rows))))
    assert list(learners.values()) == ["LightGBM", "XGBoost"]
    picture = figures.shared(methods, learners)
    axes = picture.figure.axes
    assert [axis.get_title() for axis in axes] == list(learners.values())
    for axis in axes:
        native, shared = (line for line in axis.get_lines() if len(line.get_xdata()) == 2 and line.get_marker() == "o")
        assert native.get_xdata() == pytest.approx([0.8, 1.0])
        assert native.get_ydata() == pytest.approx([4.0, 0.0], abs=0.1)
        assert shared.get_xdata() == pytest.approx([0.8, 0.9])
        assert shared.get_ydata() == pytest.approx([1.0, -1.0], abs=0.1)
    picture.write(tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".png", ".svg"}
    assert budget.frontier(budget.all_tables(Evidence(rows_of(errors, run="")))) is None  # no times


def test_the_experiments_in_small(folder):  # noqa: F811
    results = folder / "results"
    assert paper("budget", "--results", folder).returncode == 1  # nothing yet
    only = ("abalone", "heloc", "8/rare/1000", "20000x16")
    done = paper("run", "budget", "budget-synthetic", "budget-speed", "--only", *only, "--results", results)
    assert done.returncode == 0, done.stderr
    rows = pd.DataFrame(lines(results))
    assert set(rows["learner"]) == {"lightgbm", "xgboost", ""}
    assert len(set(rows["run"])) == 1
    scored = rows[rows["kind"] != "describe"]
    assert (scored[["bin_seconds", "train_seconds", "mean_bins"]].astype(float) > 0).all(axis=None)
    ours = ~scored["method"].isin(["native"])
    assert ((scored["cuts"] != "") == ours).all()
    shown = paper("budget", "--results", results, "--out", folder / "out")
    assert shown.returncode == 0, shown.stderr
    n_bars = 2 * len(BARS) + 2 * len(CELL_BARS) + 2 * len(NAMES)
    assert len(shown.stdout.splitlines()) == n_bars + 1
    assert all(line.startswith(NOT_RUN) for line in shown.stdout.splitlines()[:-1])  # of so little, nothing follows
    names = {path.stem for path in (folder / "out" / "tables").glob("*.md")}
    assert {
        "budget-bars",
        "budget-summary-lightgbm-smoke-1000rows",
        "budget-grid-8-xgboost-smoke",
        "budget-speed",
    } <= names
    text = paper("budget", "--results", results, "--markdown").stdout
    assert "| auto-bins " in text
    assert "nan" not in text.lower()
    page = paper("report", "--results", results, "--out", folder / "page")
    assert page.returncode == 0, page.stderr
    assert "What is asked of a total of bins" in (folder / "page" / "report.html").read_text()


def test_what_is_done_can_be_run_anew(folder):  # noqa: F811
    results = folder / "results"
    command = ("run", "budget", "--only", "abalone", "lightgbm", "native", "average-63", "--seeds", 1, "--jobs", 1)
    assert paper(*command, "--results", results).returncode == 0
    before = lines(results)
    again = paper(*command, "--results", results, "--anew")
    assert again.returncode == 0
    assert f"{len(before)} done, 0 failed, 0 left" in again.stdout
    after = lines(results)
    assert len(after) == 2 * len(before)
    assert {row["key"] for row in after} == {row["key"] for row in before}
    assert len({row["run"] for row in after}) == 2


def test_the_readme_has_what_the_kept_results_give_of_totals():
    readme = (cli.RESULTS.parent / "README.md").read_text(encoding="utf-8")
    store = Store(cli.RESULTS)
    tables = list(budget.all_tables(Evidence(store.frame(), store.before())))
    assert "budget-summary-lightgbm-strong-25000rows" in {table.name for table in tables}
    for table in tables:
        if "-datasets-" not in table.name:
            shown = table.markdown().strip()
            assert shown in readme, "python -m paper budget --markdown prints the tables anew"

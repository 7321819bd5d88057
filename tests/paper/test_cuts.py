"""Results know the cuts that they are of: a refactoring changes nothing, another rule does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import boostbins
from paper import binning, cli
from paper.cuts import cuts_of, probes
from paper.evidence import Evidence
from paper.jobs import EXPERIMENTS, plan
from paper.learners import LEARNERS
from paper.measure import Outcome
from paper.run import to_do
from paper.store import Store
from tests.paper.test_run import JOB, folder, paper  # noqa: F401

pytestmark = pytest.mark.paper

OURS = [*binning.FUNCTIONS, *binning.BUDGETS]


def test_every_method_has_cuts_of_its_own_and_others_have_none():
    found = [cuts_of("lightgbm", method) for method in OURS]
    assert all(len(cuts) == 8 for cuts in found)
    assert len(set(found)) == len(OURS)
    assert {cuts_of("lightgbm", method) for method in ("native", "exhaustive", "milp")} == {""}
    assert plan(["timing"], "fixed")[0].cuts == ""


def test_the_cuts_of_the_papers_methods_are_those_of_the_kept_results():
    # If these change, what is in paper/results is run again.
    assert {method: cuts_of("sklearn", method) for method in binning.SUMMARY_METHODS} == {
        "quantile": "8d652593",
        "uniform": "24d53cd8",
        "kmeans": "e51f4735",
        "kmeans++": "a07742e6",
        "optimal": "5a7f402b",
    }


def test_the_probes_have_what_methods_stumble_over():
    number, classes, many = probes()
    assert np.isnan(number.X).any()
    assert 2 in [len(np.unique(column)) for column in number.X.T]
    assert ((number.X == 0).mean(axis=0) > 0.7).any()
    assert set(classes.y) == {0.0, 1.0}
    assert len(many.X) > 32_768
    assert (number.y == np.round(number.y)).all()


@pytest.mark.parametrize("method", ["kmeans", "auto", "tree"])
def test_another_rule_has_another_key_and_another_text_of_it_has_not(monkeypatch, method):
    job, rule = replace(JOB, method=method), binning.FUNCTIONS[method]

    def same(summary, max_bins):
        return rule(summary, max_bins)

    def other(summary, max_bins):
        return np.unique(boostbins.uniform(summary, max_bins - 1))

    for function in (same, other):
        function.supervised = getattr(rule, "supervised", True)
    key = job.key
    monkeypatch.setitem(binning.FUNCTIONS, method, same)
    assert replace(job).key == key
    monkeypatch.setitem(binning.FUNCTIONS, method, other)
    assert replace(job).key != key


@pytest.mark.parametrize("learner", ["lightgbm", "xgboost", "catboost", "hist"])
def test_a_budget_is_known_by_the_cuts_that_the_library_gets(monkeypatch, learner):
    found = {method: cuts_of(learner, method) for method in binning.BUDGETS}
    assert len(set(found.values())) == len(found)
    for total in (62, 63):
        monkeypatch.setitem(binning.BUDGETS, f"of-{total}", {"average_bins": total})
    assert cuts_of(learner, "of-63") == found["average-63"]
    assert cuts_of(learner, "of-62") != found["average-63"]
    assert set(binning.BUDGETS) - {"of-62", "of-63"} <= set(LEARNERS[learner].methods)


def test_results_of_other_cuts_are_not_there_but_are_kept(tmp_path, monkeypatch):
    def older(summary, max_bins):
        return np.unique(boostbins.quantile(summary, max_bins))

    jobs = [JOB, replace(JOB, method="exhaustive", max_bins=0)]
    with monkeypatch.context() as before:
        before.setitem(binning.FUNCTIONS, "kmeans", older)
        for job in jobs:
            Store(tmp_path).append(replace(job), Outcome("mse", 1.0))
        assert to_do([replace(job) for job in jobs], Store(tmp_path), retry=False) == []
    store = Store(tmp_path)
    assert to_do([replace(job) for job in jobs], store, retry=False) == [JOB]
    assert list(store.take([replace(job) for job in jobs])) == [JOB]
    assert set(store.frame()["method"]) == {"exhaustive"}
    assert set(store.frame(older=True)["method"]) == {"kmeans", "exhaustive"}
    assert store.n_older == 1
    store.append(replace(JOB), Outcome("mse", 2.0))
    for frame in (store.frame(), store.frame(older=True)):
        assert dict(zip(frame["method"], frame["score"], strict=True)) == {"kmeans": 2.0, "exhaustive": 1.0}
    assert len(store.rows()) == 3
    assert set(store.frame()["cuts"]) == {"", cuts_of("sklearn", "kmeans")}


def test_status_tells_of_older_cuts_and_auto_shows_them_on_request(folder, monkeypatch):  # noqa: F811
    results = folder / "results"

    def older(summary, max_bins):
        return np.unique(boostbins.quantile(summary, max_bins))

    older.supervised = True
    only = ("abalone", "quantile", "kmeans", "auto", "lightgbm")
    with monkeypatch.context() as before:
        before.setitem(binning.FUNCTIONS, "auto", older)
        paper("run", "auto-63", "--only", *only, "--jobs", 1, "--results", results)
    status = paper("status", "--results", results)
    assert "2 results are of cuts that have changed since: their jobs count as not done" in status.stdout
    shown = paper("auto", "--results", results)
    assert shown.returncode == 1
    assert "no results of auto with today's cuts (2 are of older ones: see --older) yet" in shown.stdout
    assert "| auto " in paper("auto", "--older", "--markdown", "--results", results).stdout
    again = paper("run", "auto-63", "--only", *only, "--jobs", 1, "--results", results)
    assert "7 jobs, 5 done before" in again.stdout
    assert "2 done, 0 failed, 0 left" in again.stdout
    assert "| auto " in paper("auto", "--markdown", "--results", results).stdout


def test_what_is_kept_of_auto_is_of_older_cuts():
    store = Store(cli.RESULTS)
    assert not set(store.frame()["method"]) & {"auto", "hybrid"}
    assert {"auto", "hybrid"} <= set(store.frame(older=True)["method"])
    assert not Evidence(store.frame()).with_auto
    jobs = plan(["real-255", "xgboost-exact", "alternatives", "synthetic"], "fixed", max_rows=10_000)
    jobs = [job for job in jobs if job.learner == "sklearn"]
    assert not to_do(jobs, store, retry=False)


def test_jobs_of_every_experiment_have_keys_of_their_own():
    jobs = {job for name in EXPERIMENTS for protocol in ("fixed", "strong", "smoke") for job in plan([name], protocol)}
    assert len({job.key for job in jobs}) == len(jobs)

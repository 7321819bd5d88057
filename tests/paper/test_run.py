"""Jobs, the store and the runner: each job once, whatever happens in between."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from paper import claims, cli, figures, run, tables
from paper.datasets import BY_KEY, load
from paper.evidence import Evidence
from paper.jobs import EXPERIMENTS, PAPER_EXPERIMENTS, PROTOCOLS, Job, plan
from paper.learners import LEARNERS
from paper.measure import Outcome, measure
from paper.store import COLUMNS, Store, StoreError
from tests.paper.test_data import put

pytestmark = pytest.mark.paper

ROOT = Path(__file__).parents[2]
DATA = os.environ.get("BOOSTBINS_DATA")
JOB = Job("real", "regression/abalone", "sklearn", "kmeans", 255, 0, "smoke", 1000)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("BOOSTBINS_DATA", str(data))
    load.cache_clear()
    for key in ("regression/abalone", "regression/diamonds", "classification/heloc"):
        put(data, key, 200)
    yield tmp_path
    load.cache_clear()


def paper(*arguments):
    """Run a command here, since a process of its own imports for seconds; the processes of the jobs are its own."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err), patch.dict(os.environ):
        code = cli.main([str(argument) for argument in arguments])
    return subprocess.CompletedProcess(arguments, code, *(file.buffer.getvalue().decode() for file in (out, err)))


def begin(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "paper", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # in the background it may be ignored
        **options,
    )


def lines(store):
    return [row for path in store.glob("*.csv") for row in csv.DictReader(path.read_text().splitlines())]


def keys(store):
    return Counter(row["key"] for row in lines(store))


def test_a_job_has_one_name_for_ever():
    # Results are found by it: if this changes, what is in paper/results is run again.
    assert replace(JOB, method="exhaustive", max_bins=0).key == "aacc085ae3cf"
    assert JOB.key == "f46b40111588"
    assert plan(["synthetic"], "fixed")[0].key == "f798bfdcbf44"
    jobs = [job for name in EXPERIMENTS for protocol in ("paper", "fixed", "smoke") for job in plan([name], protocol)]
    assert len({job.key for job in set(jobs)}) == len(set(jobs))


def test_a_plan_is_run_seed_by_seed_and_says_nothing_twice():
    jobs = plan(["real-255", "real-63"], "fixed")
    assert [job.seed for job in jobs] == sorted(job.seed for job in jobs)
    assert len(set(jobs)) == len(jobs)
    scores = [job for job in jobs if job.kind == "real"]
    # Three methods at two numbers of bins, and one without bins.
    assert len(scores) == 33 * 20 * 7
    assert sum(job.kind == "describe" for job in jobs) == 33


def test_all_is_the_paper_and_others_can_be_named_beside_it():
    everything = plan(["all"], "smoke")
    assert set(everything) == {job for name in PAPER_EXPERIMENTS for job in plan([name], "smoke")}
    assert set(plan(["all", "auto-63"], "smoke")) == set(everything) | set(plan(["auto-63"], "smoke"))


def test_only_picks_datasets_and_methods():
    picked = plan(["real-255"], "fixed", only=["abalone", "classification", "kmeans"], seeds=range(2))
    scores = [job for job in picked if job.kind == "real"]
    assert {job.method for job in scores} == {"kmeans"}
    assert len(scores) == 16 * 2
    assert {job.seed for job in plan(["synthetic"], "fixed", seeds=range(5, 7))} == {5, 6}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "real-254"], "unknown experiment 'real-254': it must be one of 'all', 'real-255'"),
        (["run", "real-255", "--protocol", "quick"], "unknown protocol 'quick': it must be one of 'paper', 'fixed'"),
        (["run", "real-255", "--learner", "forest"], "unknown learner 'forest'"),
        (["run", "real-255", "--only", "kmean"], "--only 'kmean' picks nothing here"),
        (["run", "real-255", "--only", "Higgs"], "--only 'Higgs' picks nothing here"),
        (["run", "real-255", "--max-rows", "10"], "max_rows must be at least 50, got 10"),
        (["run", "real-255", "--seeds", "x"], "must be N (the first N) or A-B, got 'x'"),
        (["run", "real-255", "--seeds", "0"], "must be N (the first N) or A-B, got '0'"),
        (["run", "real-255", "--seeds=-3"], "must be N (the first N) or A-B, got '-3'"),
        (["claims", "--results", "no/such/folder"], "there is no folder no/such/folder"),
        (["run", "real-255", "--hours", "0"], "hours must be more than 0, got 0"),
        (["run", "real-255", "--jobs", "0"], "jobs must not be 0"),
        (["run"], "EXPERIMENT"),
        (["nothing"], "invalid choice"),
    ],
)
def test_wrong_input_is_named(capsys, tmp_path, arguments, message):
    try:
        status = cli.main([*arguments, "--results", str(tmp_path)] if arguments[0] == "run" else arguments)
    except SystemExit as error:
        status = error.code
    assert status == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_runs_every_method_on_the_same_splits(folder, name):
    # Few distinct values: every method cuts between all of them, so the same splits and draws give the same score.
    for key in ("regression/abalone", "classification/heloc"):
        r = np.random.default_rng(0)
        n = BY_KEY[key].features
        put(folder / "data", key, 300, **{f"f{i}": r.integers(0, 9, 300) for i in range(n)})
        methods = [m for m in LEARNERS[name].methods if m not in ("native", "exhaustive", "milp")]
        job = replace(JOB, data=key, learner=name, max_bins=63)
        found = [measure(replace(job, method=method)) for method in methods]
        assert not any(outcome.error for outcome in found)
        assert len({outcome.score for outcome in found}) == 1
        assert {outcome.metric for outcome in found} == {"mse" if "abalone" in key else "roc_auc"}
        assert measure(replace(job, method=LEARNERS[name].methods[-1])).score > 0


def test_the_paper_protocol_searches_with_the_same_draws(folder, monkeypatch):
    from paper import jobs
    from paper.measure import PROTOCOLS

    monkeypatch.setitem(PROTOCOLS, "paper", replace(jobs.PROTOCOLS["paper"], search=(3, 2)))
    put(folder / "data", "regression/abalone", 200, **{f"f{i}": np.arange(200) % 9 for i in range(7)})
    found = {measure(replace(JOB, method=method, protocol="paper")).score for method in ("kmeans", "quantile")}
    assert len(found) == 1


def test_a_run_does_what_is_missing_and_nothing_else(folder):
    results = folder / "results"
    command = ("run", "real-255", "--only", "abalone", "heloc", "--results", results)
    assert paper(*command, "--seeds", 1).returncode == 0
    assert len(lines(results)) == 2 * 4 + 2
    before = {path: path.read_bytes() for path in results.glob("*.csv")}
    again = paper(*command)
    assert again.returncode == 0, again.stderr
    assert "18 jobs, 10 done before" in again.stdout
    assert all(path.read_bytes().startswith(text) for path, text in before.items())
    assert set(keys(results).values()) == {1}
    assert len(keys(results)) == 18
    third = paper(*command)
    assert "18 done before" in third.stdout
    assert "0 done" in third.stdout


def test_what_a_row_holds(folder):
    results = folder / "results"
    paper("run", "real-255", "--only", "abalone", "kmeans", "--seeds", 1, "--jobs", 1, "--results", results)
    row = next(row for row in lines(results) if row["kind"] == "real")
    assert list(row) == COLUMNS
    assert float(row["score"]) > 0
    assert float(row["bin_seconds"]) > 0
    assert float(row["train_seconds"]) > 0
    assert row["rows"] == "200"
    assert row["bins"] == "160"
    assert len(row["checksum"]) == 12
    frame = Store(results).frame()
    assert frame["score"].dtype == float
    assert "scikit-learn" in (results / "environments.json").read_text()


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost", "hist"])
def test_a_row_of_a_library_has_its_times_and_bins(folder, name):
    r = np.random.default_rng(0)
    task = BY_KEY["regression/abalone"]
    flags = {f"f{i}": r.integers(0, 2, 1000) for i in range(1, task.features)}
    values = r.random(1000)
    put(folder / "data", task.key, 1000, f0=values, target=values, **flags)
    settings = (("native", 255), ("native", 63), ("kmeans", 255), ("kmeans", 63), ("average-63", 0))
    found = {
        (method, bins): measure(replace(JOB, learner=name, method=method, max_bins=bins)) for method, bins in settings
    }
    assert {outcome.error for outcome in found.values()} == {""}
    for (method, _), outcome in found.items():
        assert outcome.train_seconds > 0
        assert (outcome.bin_seconds is not None and outcome.bin_seconds > 0) == (name in ("lightgbm", "xgboost"))
        # One column of many values, six of two; a library may make one bin more or less.
        others = 6 * 2
        if method != "average-63":
            assert abs(outcome.mean_bins * 7 - others - outcome.bins) <= 7
    for method in ("native", "kmeans"):
        assert abs(found[method, 255].bins - 255) <= 2
        assert abs(found[method, 63].bins - 63) <= 2
    most = 255 if name == "hist" else 63 * 7
    assert 0.9 * most - others <= found["average-63", 0].bins <= most


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_the_first_tree_is_noted_once_and_before_it_is_there(name):
    learner, noted = LEARNERS[name], []
    X = np.random.default_rng(0).random((200, 2))
    for trees in (1, 3):
        model = learner.make("regression", "native", 63, 0, {"n_estimators": trees})
        model.fit(X, X[:, 0], **learner.first_tree(model, lambda: noted.append(trees)))  # noqa: B023
    assert noted == [1, 3]


def test_the_clock_changes_no_score(folder, monkeypatch):
    from paper import measure as measuring

    for name in ("lightgbm", "xgboost"):
        job = replace(JOB, learner=name)
        timed = measure(job)
        without = {**LEARNERS, name: replace(LEARNERS[name], first_tree=None)}
        with monkeypatch.context() as before:
            before.setattr(measuring, "LEARNERS", without)
            plain = measure(job)
        assert plain.score == timed.score
        assert plain.bin_seconds is None


def test_a_protocol_may_have_parameters_of_each_learner():
    strong = PROTOCOLS["strong"]
    assert strong.params_of("lightgbm")["num_leaves"] == 63
    assert strong.params_of("lightgbm")["learning_rate"] == 0.15
    assert strong.params_of("xgboost") == {
        "n_estimators": 300, "subsample": 1.0, "max_features": 1.0, "learning_rate": 0.2, "max_depth": 6,
    }  # fmt: skip
    assert PROTOCOLS["fixed"].params_of("lightgbm") == PROTOCOLS["fixed"].params
    for name in LEARNERS:
        model = LEARNERS[name].make("regression", "kmeans", 63, 0, strong.params_of(name))
        text = str(model.get_params())
        assert "300" in text
        assert "0.2" in text or "0.15" in text
    assert {job.max_rows for job in plan(["budget"], "strong") if job.kind == "real"} == {25_000}
    assert {job.max_rows for job in plan(["budget"], "fixed") if job.kind == "real"} == {0}


def test_what_is_compared_where_columns_share_a_total():
    jobs = [job for job in plan(["budget"], "strong") if job.kind == "real"]
    per_learner = Counter(job.learner for job in jobs)
    assert per_learner == {"lightgbm": 33 * 10 * 9, "xgboost": 33 * 10 * 9, "catboost": 8 * 10 * 9, "hist": 8 * 10 * 7}
    assert {job.label for job in jobs if job.learner == "xgboost"} == {
        "native", "native-63", "native-4095", "kmeans", "kmeans-63", "tree", "average-63", "average-255", "auto-bins",
    }  # fmt: skip
    assert {job.seed for job in jobs} == set(range(10))
    # What is kept of them serves here too.
    kept = {job.key for job in plan(["auto-255", "auto-63"], "fixed")}
    same = {job.label for job in plan(["budget"], "fixed") if job.key in kept and job.kind == "real"}
    assert same == {"native", "native-63", "kmeans", "kmeans-63", "tree"}
    cells = plan(["budget-synthetic"], "strong")
    assert {job.data.split("/")[0] for job in cells} == {"8"}
    assert cells[0].synthetic_params == PROTOCOLS["strong"].params_of(cells[0].learner)
    only = plan(["budget"], "fixed", only=["native-63", "electricity", "xgboost"], seeds=range(1))
    assert [(job.learner, job.method, job.max_bins) for job in only if job.kind == "real"] == [
        ("xgboost", "native", 63)
    ]


def test_a_dry_run_shows_and_writes_nothing(folder):
    done = paper("run", "real-255", "synthetic", "--dry-run", "--results", folder / "results")
    assert done.returncode == 0
    assert "exhaustive" in done.stdout
    assert not (folder / "results").exists()


def test_failures_are_kept_and_shown_and_run_again_on_request(folder):
    results = folder / "results"
    broken = put(folder / "data", "regression/abalone", 200)
    broken.loc[3, "f0"] = np.nan  # which the learner does not take
    broken.to_parquet(folder / "data" / "regression" / "abalone.parquet")
    command = ("run", "real-255", "--only", "abalone", "--seeds", 1, "--jobs", 1, "--results", results)
    first = paper(*command)
    assert first.returncode == 1
    assert "5 done, 1 failed, 0 left" in first.stdout
    assert "NaN" in first.stderr
    second = paper(*command)
    assert second.returncode == 1
    assert "0 done, 1 failed, 0 left" in second.stdout
    assert "--retry" in second.stderr
    status = paper("status", "--results", results)
    assert status.returncode == 1
    assert "failed: regression/abalone sklearn exhaustive seed 0: ValueError: Input X contains NaN" in status.stdout
    put(folder / "data", "regression/abalone", 200)
    third = paper(*command, "--retry")
    assert third.returncode == 0
    assert "1 done, 0 failed, 0 left" in third.stdout
    assert paper("status", "--results", results).returncode == 0
    report = paper("report", "--results", results, "--out", folder / "out")
    assert report.returncode == 0, report.stderr


def test_a_killed_run_goes_on_and_loses_nothing(folder):
    results = folder / "results"
    command = (
        "run",
        "real-255",
        "real-63",
        "--only",
        "abalone",
        "diamonds",
        "heloc",
        "--seeds",
        6,
        "--results",
        results,
    )
    process = begin(*command)
    while len(lines(results)) < 10 and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = keys(results)
    assert 10 <= len(before) < 6 * 3 * 7 + 3
    path = next(results.glob("real-*.csv"))
    path.write_bytes(path.read_bytes()[:-9])  # as if the kill had come in the middle of a row
    done = paper(*command)
    assert done.returncode == 0, done.stderr
    assert len(keys(results)) == 6 * 3 * 7 + 3
    assert set(keys(results).values()) == {1}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_how_to_go_on(folder, number):
    results = folder / "results"
    command = ("run", "real-255", "--only", "abalone", "--seeds", 20, "--results", results)
    process = begin(*command)
    while len(lines(results)) < 3 and process.poll() is None:
        time.sleep(0.01)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # Ctrl-C goes to all of them
    else:
        process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped: interrupted. The same command goes on from here." in errors
    assert "Traceback" not in errors
    assert all(row["score"] for row in lines(results))
    assert not list((results / ".claims").iterdir())


@pytest.mark.parametrize("seconds", [0, 0.1, 0.2])
def test_ctrl_c_while_the_processes_start(folder, seconds):
    results = folder / "results"
    process = begin("run", "real-255", "--only", "abalone", "--seeds", 20, "--jobs", 4, "--results", results)
    while not (results / ".claims").is_dir() and process.poll() is None:
        time.sleep(0.001)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_two_runners_share_a_folder(folder):
    results = folder / "results"
    command = ("run", "real-255", "--only", "abalone", "heloc", "--seeds", 10, "--jobs", 1, "--results", results)
    processes = [begin(*command), begin(*command)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert sorted(keys(results).values()) == [1] * (10 * 2 * 4 + 2)
    done = [int(out.split(" done, ")[0].rsplit(None, 1)[-1]) for out, _ in outputs]
    assert sum(done) == 82
    assert min(done) > 0


def test_a_full_disk_stops_the_run_and_the_next_one_goes_on(folder):
    results = folder / "results"
    command = ("run", "real-255", "--only", "abalone", "--seeds", 5, "--results", results)
    limited = subprocess.run(
        ["bash", "-c", f"ulimit -f 1; exec {sys.executable} -m paper {' '.join(map(str, command))}"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert limited.returncode == 1
    assert "no space left" in limited.stderr
    assert paper(*command).returncode == 0
    assert set(keys(results).values()) == {1}
    assert len(keys(results)) == 21


def test_hours_end_a_run_in_good_order(folder):
    results = folder / "results"
    done = paper("run", "synthetic", "--hours", "0.0005", "--jobs", 1, "--results", results)
    assert done.returncode == 1
    assert "stopped: the 0.0005 hours are over" in done.stderr
    assert all(row["score"] for row in lines(results))


@pytest.mark.filterwarnings("ignore")
def test_datasets_that_are_not_at_hand_are_named_and_left_out(folder, monkeypatch):
    monkeypatch.setenv("OPENML_CACHE_DIR", str(folder / "cache"))
    done = paper(
        "run", "real-255", "--only", "abalone", "pol", "--seeds", 1, "--jobs", 1, "--results", folder / "results"
    )
    assert done.returncode == 1
    assert "left out: regression/pol is not at hand" in done.stderr
    assert "likewise classification/pol" in done.stderr
    assert "10 left (10 of them without data)" in done.stdout
    assert len(lines(folder / "results")) == 5


def test_a_broken_line_is_run_again_and_another_version_is_refused(tmp_path):
    store = Store(tmp_path)
    store.append(JOB, Outcome("mse", 1.0))
    other = replace(JOB, seed=1)
    store.append(other, Outcome("mse", 2.0))
    path = tmp_path / JOB.file
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert set(Store(tmp_path).rows()) == {JOB.key}
    Store(tmp_path).append(other, Outcome("mse", 3.0))
    assert {key: row["score"] for key, row in Store(tmp_path).rows().items()} == {JOB.key: "1", other.key: "3"}
    path.write_bytes(whole.replace(b",1,", b",", 1))  # a field is gone, in the middle
    found = Store(tmp_path)
    assert len(found.rows()) == 1
    assert found.broken == 1
    path.write_text("key,something\n1,2\n")
    with pytest.raises(StoreError, match="written by another version .*move it away, or name another folder"):
        Store(tmp_path).rows()
    with pytest.raises(StoreError):
        Store(tmp_path).append(JOB, Outcome("mse", 1.0))
    assert path.read_text() == "key,something\n1,2\n"


def test_claims_of_a_dead_runner_are_free(tmp_path):
    jobs = [replace(JOB, seed=seed) for seed in range(3)]
    taking = Store(tmp_path).take(jobs)
    assert next(taking) == jobs[0]
    # What a killed runner leaves: a list that nobody holds the lock of.
    dead = tmp_path / ".claims" / "0123"
    dead.write_text(f"{jobs[1].key}\n")
    dead.with_name("0123.lock").touch()
    assert list(Store(tmp_path).take(jobs)) == jobs[1:]
    assert not dead.exists()
    taking.close()
    assert not list((tmp_path / ".claims").iterdir())


def test_a_job_that_another_runner_mended_is_not_run_again(tmp_path):
    store = Store(tmp_path)
    store.append(JOB, Outcome(error="no"))
    again = store.failed()
    assert list(store.take([JOB], again)) == [JOB]
    Store(tmp_path).append(JOB, Outcome("mse", 1.0))
    assert list(store.take([JOB], again)) == []


def test_a_file_that_is_replaced_is_read_anew(tmp_path):
    store, path = Store(tmp_path), tmp_path / JOB.file
    store.append(JOB, Outcome("mse", 1.0))
    assert set(store.rows()) == {JOB.key}
    path.unlink()
    assert store.rows() == {}
    others = [replace(JOB, seed=seed) for seed in range(1, 4)]
    for other in others:
        Store(tmp_path).append(other, Outcome("mse", 1.0))
    assert set(store.rows()) == {other.key for other in others}


def test_one_open_quote_hides_one_row_only(tmp_path):
    for seed in range(4):
        Store(tmp_path).append(replace(JOB, seed=seed), Outcome("mse", 1.0))
    path = tmp_path / JOB.file
    path.write_text(path.read_text().replace("sklearn", '"sklearn', 1))
    store = Store(tmp_path)
    assert len(store.rows()) == 3
    assert store.broken == 1


def test_what_the_numbers_were_made_with_is_written_again_when_unreadable(tmp_path):
    (tmp_path / "environments.json").write_text("{")
    Store(tmp_path).append(JOB, Outcome("mse", 1.0))
    assert "scikit-learn" in (tmp_path / "environments.json").read_text()


def dies_on_three(number):
    if number == 3:
        os._exit(1)
    return Outcome("mse", float(number))


def test_only_the_job_that_kills_its_process_fails(monkeypatch):
    monkeypatch.setattr("paper.run.measure", dies_on_three)
    found = dict(run.spread(iter(range(8)), 2))
    assert set(found) == set(range(8))
    assert {number for number, outcome in found.items() if outcome.error} == {3}
    assert "the process died" in found[3].error


def test_results_on_different_data_are_told(tmp_path):
    store = Store(tmp_path)
    store.append(JOB, Outcome("mse", 1.0, checksum="one"))
    store.append(replace(JOB, seed=1), Outcome("mse", 1.0, checksum="two"))
    status = paper("status", "--results", tmp_path)
    assert "results on different data are mixed (see the checksums): regression/abalone" in status.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["run", "synthetic", "--seeds", 1, "--only", "1/0.01/5"],
        ["run", "synthetic", "--only", "1/0.01/5", "quantile"],
        ["run", "real-255", "--learner", "lightgbm", "--only", "abalone", "kmeans", "quantile"],
        ["run", "alternatives", "--learner", "lightgbm", "--only", "abalone"],
        ["run", "real-255", "--only", "abalone", "kmeans"],
        ["run", "describe", "--only", "abalone"],
    ],
)
def test_a_report_can_be_made_of_whatever_there_is(folder, words):
    results = folder / "results"
    done = paper(*words, "--jobs", 1, "--results", results)
    assert done.returncode == 0, done.stderr
    evidence = Evidence(Store(results).frame())
    assert len(list(tables.all_tables(evidence))) >= 9
    assert len(list(figures.all_pictures(evidence))) >= 6
    assert claims.table(evidence).shown.shape == (len(claims.CLAIMS), 6)


def test_folders_that_cannot_be_written_are_named(folder):
    (folder / "file").write_text("")
    done = paper("run", "describe", "--only", "abalone", "--results", folder / "file")
    assert done.returncode == 1
    assert "file" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_whole_paper_in_small(folder, monkeypatch):
    """Protocol smoke: every experiment, then the page. On all datasets, where they are."""
    results = folder / "results"
    if DATA:
        monkeypatch.setenv("BOOSTBINS_DATA", DATA)
        begun = begin("run", "all", "--results", results)
        _, errors = begun.communicate()
        assert begun.returncode == 0, errors
    else:
        experiments = ("real-255", "real-63", "alternatives", "synthetic", "timing", "describe")
        only = ("abalone", "diamonds", "heloc", "1/0.01/5", "1/0.01/10", "uniform/10000")
        done = paper("run", *experiments, "--only", *only, "--results", results)
        assert done.returncode == 0, done.stderr
    written = paper("report", "--results", results, "--out", folder / "out")
    assert written.returncode == 0, written.stderr
    page = (folder / "out" / "report.html").read_text()
    for title in ("The paper&#39;s claims", "Other ways to bin", "Seconds to bin one column", "Grid 1"):
        assert title in page
    assert "NaN" not in page
    assert " nan" not in page
    names = {path.name for path in (folder / "out" / "figures").iterdir()}
    assert {"grid-1.svg", "grid-1.png", "timing.svg", "gains-regression-255.png"} <= names
    assert {"alternatives.md", "alternatives.tex", "alternatives.csv"} <= {
        p.name for p in (folder / "out" / "tables").iterdir()
    }
    done = paper("claims", "--results", results)
    assert done.returncode == 0
    assert "PASS     the paper's own results  0 losses" in done.stdout

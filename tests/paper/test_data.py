"""The catalogue, where data comes from, the generator, and the ways to bin."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import boostbins
from paper import datasets
from paper.binning import SUMMARY_METHODS, PaperBinner, find_bins
from paper.datasets import BY_KEY, DEVELOPMENT, TASKS, DatasetError, is_development, load, tasks_named
from paper.synthetic import AUTHORS_GRIDS, GRIDS, Cell

pytestmark = pytest.mark.paper
needs_data = pytest.mark.skipif(not os.environ.get("BOOSTBINS_DATA"), reason="BOOSTBINS_DATA is not set")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOSTBINS_DATA", str(tmp_path))
    load.cache_clear()
    yield tmp_path
    load.cache_clear()


def put(folder, key, rows=300, seed=0, **changes):
    """Write made-up data of a task's form."""
    task = BY_KEY[key]
    r = np.random.default_rng(seed)
    X = r.lognormal(0, 1, (rows, task.features))
    y = X[:, 0] + 0.1 * r.standard_normal(rows)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(task.features)]).assign(
        target=y if task.track == "regression" else (y > np.median(y)).astype(int)
    )
    path = folder / task.track / f"{task.name}.parquet"
    path.parent.mkdir(exist_ok=True)
    frame.assign(**changes).to_parquet(path)
    return frame


def test_the_catalogue_is_the_papers():
    assert len(TASKS) == len(BY_KEY) == 35
    used = [task for task in TASKS if task.used]
    assert [sum(task.track == track for task in used) for track in ("regression", "classification")] == [18, 15]
    assert {task.name for task in TASKS if not task.used} == {"Higgs", "delays_zurich_transport"}
    assert len({task.openml_task for task in TASKS}) == 35


def test_the_half_that_constants_are_tuned_on_is_fixed():
    halves = {task.name: task.half for task in TASKS if task.used}
    assert {name for name, half in halves.items() if half == DEVELOPMENT} == {
        "Ailerons",
        "bank-marketing",
        "Bike_Sharing_Demand",
        "california",
        "cpu_act",
        "credit",
        "default-of-credit-card-clients",
        "diamonds",
        "electricity",
        "eye_movements",
        "pol",
        "superconduct",
    }
    assert all(is_development(name) == (half == DEVELOPMENT) for name, half in halves.items())


@needs_data
def test_the_catalogue_agrees_with_the_files():
    manifest = Path(os.environ["BOOSTBINS_DATA"]) / "MANIFEST.csv"
    for row in pd.read_csv(manifest).itertuples():
        task = BY_KEY[f"{row.track}/{row.name}"]
        assert (task.rows, task.features, task.skew) == (row.paper_rows, row.paper_cols - 1, row.paper_skew)


@needs_data
def test_the_skew_is_the_papers():
    load.cache_clear()
    assert load("regression/Brazilian_houses").mean_skew == pytest.approx(30.23, abs=0.005)


def test_data_comes_from_the_folder_and_its_checksum_is_of_the_values(folder):
    frame = put(folder, "regression/abalone")
    first = load("regression/abalone")
    assert first.X.shape == (300, 7)
    assert first.y.tolist() == frame["target"].tolist()
    load.cache_clear()
    put(folder, "regression/abalone")
    assert load("regression/abalone").checksum == first.checksum
    load.cache_clear()
    put(folder, "regression/abalone", f0=1.0)
    assert load("regression/abalone").checksum != first.checksum


def test_a_file_that_is_not_parquet_or_of_another_form_is_refused(folder):
    put(folder, "regression/abalone")
    (folder / "regression" / "abalone.parquet").write_bytes(b"no")
    with pytest.raises(DatasetError, match=r"abalone\.parquet cannot be read as Parquet"):
        load("regression/abalone")
    put(folder, "regression/abalone", another=1.0)
    with pytest.raises(DatasetError, match="must have 7 features, got 8"):
        load("regression/abalone")
    put(folder, "classification/heloc", target=1)
    with pytest.raises(DatasetError, match="must have 2 classes, got 1"):
        load("classification/heloc")


def cached_by_openml(root, task_id, frame):
    """Write what OpenML's client keeps of a task and its dataset."""
    base = root / "org" / "openml" / "www"
    for part, number in (("tasks", task_id), ("datasets", 1)):
        (base / part / str(number)).mkdir(parents=True)
    namespace = 'xmlns:oml="http://openml.org/openml"'
    (base / "tasks" / str(task_id) / "task.xml").write_text(
        f"""<oml:task {namespace}><oml:task_id>{task_id}</oml:task_id><oml:task_name>t</oml:task_name>
        <oml:task_type_id>2</oml:task_type_id><oml:task_type>Supervised Regression</oml:task_type>
        <oml:input name="source_data"><oml:data_set><oml:data_set_id>1</oml:data_set_id>
        <oml:target_feature>target</oml:target_feature></oml:data_set></oml:input>
        <oml:input name="estimation_procedure"><oml:estimation_procedure><oml:id>7</oml:id>
        <oml:type>crossvalidation</oml:type><oml:data_splits_url>x</oml:data_splits_url>
        <oml:parameter name="number_repeats">1</oml:parameter><oml:parameter name="number_folds">10</oml:parameter>
        </oml:estimation_procedure></oml:input>
        <oml:input name="evaluation_measures"><oml:evaluation_measures><oml:evaluation_measure/>
        </oml:evaluation_measures></oml:input></oml:task>"""
    )
    (base / "datasets" / "1" / "description.xml").write_text(
        f"""<oml:data_set_description {namespace}><oml:id>1</oml:id><oml:name>abalone</oml:name>
        <oml:version>1</oml:version><oml:description>d</oml:description><oml:format>arff</oml:format>
        <oml:licence>Public</oml:licence><oml:url>x</oml:url><oml:file_id>1</oml:file_id>
        <oml:default_target_attribute>target</oml:default_target_attribute><oml:status>active</oml:status>
        <oml:md5_checksum>x</oml:md5_checksum></oml:data_set_description>"""
    )
    features = "".join(
        f"<oml:feature><oml:index>{i}</oml:index><oml:name>{name}</oml:name><oml:data_type>numeric</oml:data_type>"
        "<oml:is_target>false</oml:is_target><oml:is_ignore>false</oml:is_ignore>"
        "<oml:is_row_identifier>false</oml:is_row_identifier>"
        "<oml:number_of_missing_values>0</oml:number_of_missing_values></oml:feature>"
        for i, name in enumerate(frame)
    )
    (base / "datasets" / "1" / "features.xml").write_text(
        f"<oml:data_features {namespace}>{features}</oml:data_features>"
    )
    lines = [",".join(map(repr, row)) for row in frame.to_numpy().tolist()]
    header = [f"@ATTRIBUTE {name} REAL" for name in frame]
    (base / "datasets" / "1" / "dataset.arff").write_text("\n".join(["@RELATION a", *header, "@DATA", *lines, ""]))


@pytest.mark.filterwarnings("ignore")  # the client's own
def test_what_openml_has_cached_is_read_without_a_network(folder, tmp_path, monkeypatch):
    import openml

    frame = put(folder, "regression/abalone")
    here = load("regression/abalone")
    (folder / "regression" / "abalone.parquet").unlink()
    load.cache_clear()
    cached_by_openml(tmp_path / "cache", BY_KEY["regression/abalone"].openml_task, frame)
    monkeypatch.setattr(openml.config, "_root_cache_directory", tmp_path / "cache")
    found = load("regression/abalone")
    assert found.source == "OpenML task 361280"
    assert found.checksum == here.checksum  # the same values, wherever they came from


@pytest.mark.filterwarnings("ignore")
def test_without_folder_and_network_it_says_what_to_do(folder, tmp_path, monkeypatch):
    import openml

    monkeypatch.setattr(openml.config, "_root_cache_directory", tmp_path / "cache")
    monkeypatch.setattr(openml.config, "server", "http://127.0.0.1:9/api")  # nobody listens there
    with pytest.raises(DatasetError, match=r"pol is not at hand .*361073 could not be had.* set BOOSTBINS_DATA"):
        load("regression/pol")


def test_names_of_datasets():
    assert [task.track for task in tasks_named("pol")] == ["regression", "classification"]
    assert [task.key for task in tasks_named("regression/pol")] == ["regression/pol"]
    with pytest.raises(ValueError, match="unknown dataset 'polls'"):
        tasks_named("polls")


def test_the_generator_draws_what_the_paper_describes():
    plain, _ = Cell(outlier_fraction=0, rows=40_000).draw(0)
    assert plain.mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert plain.std(axis=0) == pytest.approx(1, abs=1e-9)
    X, y = Cell(outlier_fraction=0.02, outlier_scale=20, rows=40_000).draw(0)
    assert (X > 10).mean() == pytest.approx(0.02 * np.exp(-10 / 20), rel=0.1)
    assert np.std(y - X.sum(axis=1)) == pytest.approx(0.1, rel=0.02)
    modes, _ = Cell(outlier_fraction=0, n_modes=3, rows=40_000).draw(0)
    # Three modes 4 apart of deviation 1: variance 1 + 16 * 2/3.
    heights, _ = np.histogram(modes[:, 0] * np.sqrt(1 + 32 / 3), np.arange(-6.5, 7))
    assert heights[2] > heights[4] < heights[6] > heights[8] < heights[10]
    assert sum(len(grid.cells) for grid in AUTHORS_GRIDS) == 149
    assert GRIDS[4].cells[0.0, 128].rows == 255 * 128


@pytest.mark.parametrize("method", SUMMARY_METHODS)
def test_a_value_at_a_cut_goes_right_as_in_numpy(method):
    x = np.random.default_rng(0).integers(0, 40, 500).astype(float)[:, None]
    codes = PaperBinner(method, 7).fit_transform(x)[:, 0]
    (cuts,) = boostbins.fit_bins(x, SUMMARY_METHODS[method], 7).cuts
    expected = np.digitize(x[:, 0], cuts)
    assert (codes == np.unique(expected, return_inverse=True)[1]).all()


def test_milp_looks_at_the_target_and_merges_bins():
    X = np.random.default_rng(0).random((2000, 1))
    found = [find_bins("milp", X, y, 255).cuts[0] for y in (X[:, 0], (X[:, 0] > 0.3) + X[:, 0] / 100)]
    assert all(1 <= len(cuts) < 25 for cuts in found)
    assert found[0].tolist() != found[1].tolist()


def test_datasets_that_the_paper_lists_but_does_not_use_are_never_run():
    from paper.jobs import plan

    assert not [job for job in plan(["real-255"], "fixed") if "Higgs" in job.data or "zurich" in job.data]
    assert datasets.BY_KEY["classification/Higgs"].rows == 940160

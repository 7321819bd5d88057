"""One cache of bins per data."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import RandomizedSearchCV

import boostbins.cache
from boostbins import Bins, kmeans
from boostbins.adapters.features import feature_table
from boostbins.adapters.requested import CutFormat, requested_bins
from boostbins.lightgbm import LGBMRegressor
from tests.adapters.test_matrix import data
from tests.libraries import REGRESSORS

of_each = pytest.mark.parametrize("library", REGRESSORS, ids=str)


@pytest.fixture(autouse=True)
def _forget():
    boostbins.cache._memory.clear()


@pytest.fixture
def fits(monkeypatch):
    """Count how often bins are found."""
    import boostbins.adapters.requested

    counted = []
    real = boostbins.adapters.requested.fit_table

    def counting(*args, **kwargs):
        counted.append(1)
        return real(*args, **kwargs)

    monkeypatch.setattr(boostbins.adapters.requested, "fit_table", counting)
    return counted


def bins(X, cache, method="kmeans", budget=20, weight=None, label=None, total=None, rule="float64"):
    table = feature_table(X)
    return requested_bins(
        method,
        table,
        [budget] * len(table),
        sample_weight=weight,
        label=label,
        bin_cache=cache,
        total=total,
        cut_format=CutFormat(rule, lambda _, cuts: cuts),
        limit="max_bins=20",
    )


@of_each
@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_a_search_does_not_bin_the_same_rows_twice(library, kind, fits, tmp_path):
    X, y = data(300)
    cache = "memory" if kind == "memory" else tmp_path / "bins"
    depth = "depth" if library.name.startswith("Cat") else "max_depth"
    search = RandomizedSearchCV(
        library.make(bin_cache=cache), {depth: [1, 2, 3, 4]}, n_iter=4, cv=2, random_state=0, refit=True
    )
    search.fit(X, y)
    assert len(fits) == 3  # two folds, and all rows
    search.fit(X.copy(), y)
    assert len(fits) == 3
    assert search.best_estimator_.bins_ == library.make(bin_cache=None).fit(X, y).bins_


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_whatever_decides_about_the_bins_is_in_the_key(kind, fits, tmp_path):
    X, _ = data(300)
    cache = "memory" if kind == "memory" else tmp_path
    other = X.copy()
    other[-1, -1] = np.nextafter(other[-1, -1], 0)
    asked = [
        (X, {}),
        (other, {}),
        (X[:, ::-1], {}),
        (X.astype(np.float32), {}),
        (X[:-1], {}),
        (pd.DataFrame(X, columns=list("abcde")), {}),
        (X, {"method": "quantile"}),
        (X, {"method": partial(kmeans, max_iter=3)}),
        (X, {"method": partial(kmeans, max_iter=4)}),
        (X, {"budget": 19}),
        (X, {"weight": np.ones(300)}),
        (X, {"weight": np.arange(300.0)}),
        (X, {"rule": "LightGBM"}),
        (X, {"method": "auto"}),
        (X, {"method": "auto", "label": np.arange(300.0)}),
        (X, {"method": "auto", "label": np.arange(300.0) ** 2}),
        (X, {"method": "auto", "label": np.arange(900.0).reshape(300, 3)}),
        (X, {"method": "auto", "label": np.arange(900.0).reshape(300, 3) > 40}),
        (X, {"method": "auto", "weight": np.arange(300.0)}),
        (X, {"total": 40}),
    ]
    first = [bins(table, cache, **options) for table, options in asked]
    assert len(fits) == len(asked)
    assert [bins(table.copy(), cache, **options) for table, options in asked] == first
    assert len(fits) == len(asked)
    assert first[0].stats == bins(X, cache).stats


def test_a_function_of_ones_own_is_known_by_itself(fits, tmp_path):
    X, _ = data(300)
    one, other = (lambda s, b: [s.mean]), (lambda s, b: [s.quantile(0.5).item()])
    assert bins(X, "memory", one) == bins(X, "memory", one) != bins(X, "memory", other)
    assert len(fits) == 2
    with pytest.raises(ValueError, match="use bin_cache='memory', a method by name"):
        bins(X, tmp_path, one)


@pytest.mark.parametrize("harm", ["cut short", "emptied", "changed", "another format", "not text"])
def test_an_unreadable_entry_is_found_anew(harm, fits, tmp_path):
    X, _ = data(300)
    expected = bins(X, tmp_path)
    [entry] = tmp_path.iterdir()
    text = entry.read_text()
    if harm == "changed":
        content = json.loads(text)
        content["columns"][0]["cuts"][0] += 1
        entry.write_text(json.dumps(content))
    elif harm == "not text":
        entry.write_bytes(b"\xff\xfe\x00")
    else:
        entry.write_text({"cut short": text[: len(text) // 2], "emptied": "", "another format": "[]"}[harm])
    assert bins(X, tmp_path) == expected
    assert len(fits) == 2
    assert entry.read_text() == text


@of_each
def test_the_entry_of_another_request_is_not_used(library, tmp_path):
    X, y = data(300)
    few, many = ({library.budget: n, "bin_cache": tmp_path / str(n)} for n in (10, 200))
    expected = library.make(**few).fit(X, y).bins_
    library.make(**many).fit(X, y)
    [entry], [other] = ((tmp_path / n).iterdir() for n in ("10", "200"))
    right = entry.read_text()
    swapped = Bins.load(other)
    for text in (other.read_text(), swapped.to_json_with({"key": entry.stem}), swapped.to_json(), expected.to_json()):
        entry.write_text(text)
        assert library.make(**few).fit(X, y).bins_ == expected
        assert entry.read_text() == right
    assert Bins.load(entry) == expected


def test_an_entry_that_cannot_be_what_was_asked_for_is_found_anew(tmp_path):
    X, _ = data(300)
    expected = bins(X, tmp_path, total=40)
    [entry] = tmp_path.iterdir()
    dates = Bins(expected.cuts, expected.names, expected.stats, units={"x0": "seconds since 1970"})
    for other in (bins(X, None), Bins(expected.cuts, expected.names), dates):  # too many; without statistics; of dates
        entry.write_text(other.to_json_with({"key": entry.stem}))
        found = bins(X, tmp_path, total=40)
        assert (found, found.stats) == (expected, expected.stats)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_the_place_of_an_entry_is_not_waited_for(tmp_path):
    X, _ = data(300)
    expected = bins(X, tmp_path)
    [entry] = tmp_path.iterdir()
    entry.unlink()
    os.mkfifo(entry)
    reader = os.open(entry, os.O_RDONLY | os.O_NONBLOCK)  # with it nothing is waited for, but written
    with pytest.warns(UserWarning, match=r"could not be written \(it is no file\); the bins are not kept"):
        assert bins(X, tmp_path) == expected
    os.close(reader)


def test_an_entry_that_is_no_json_is_not_read_whole(tmp_path):
    resource = pytest.importorskip("resource")
    X, _ = data(300)
    expected = bins(X, tmp_path)
    [entry] = tmp_path.iterdir()
    with entry.open("wb") as file:
        file.truncate(2**30)  # zeros
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert bins(X, tmp_path) == expected
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB


def test_the_entry_of_another_target_or_version_is_not_used(tmp_path, monkeypatch):
    X, _ = data(300)
    digest = boostbins.cache._array_digest
    flags = np.array([[True, False], [False, True]])
    assert len({digest(a) for a in (flags, flags.reshape(4, 1), flags.view(np.uint8))}) == 3
    bins(X, tmp_path)
    monkeypatch.setattr(boostbins.cache, "_KIND", "boostbins 9.9 cache 3")
    bins(X, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_what_a_killed_process_left_behind_is_not_looked_at(fits, tmp_path):
    X, _ = data(300)
    bins(X, tmp_path)
    [entry] = tmp_path.iterdir()
    entry.rename(tmp_path / f".{entry.name}.abc123")  # a temporary name: not yet renamed
    bins(X, tmp_path)
    assert len(fits) == 2


def test_threads_that_ask_the_same_wait_for_one(fits):
    X, _ = data(3000)
    found = []
    threads = [threading.Thread(target=lambda: found.append(bins(X, "memory"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fits) == 1
    assert len(found) == 8
    assert len(set(found)) == 1


def test_an_object_that_can_change_is_not_taken_from_the_memory(fits):
    class Places:
        __hash__ = None
        at = 0.5

        def __call__(self, summary, max_bins):
            return [self.at]

    X, _ = data(300)
    places = Places()
    first = bins(X, "memory", places)
    places.at = 1.5
    assert bins(X, "memory", places) != first


def test_threads_that_crowd_each_other_out_lose_nothing(monkeypatch):
    monkeypatch.setattr(boostbins.cache, "_IN_MEMORY", 1)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    errors = []

    def work(seed):
        r = np.random.default_rng(seed)
        for _ in range(2000):
            try:
                boostbins.cache._from_memory((str(r.integers(3)), None), lambda: boostbins.Bins([[1.0]]))
            except KeyError as error:
                errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    assert not errors


FORK = """
import multiprocessing, threading, time, warnings
import numpy as np
from boostbins.sklearn import HistGradientBoostingRegressor
warnings.simplefilter("ignore")
X = np.random.default_rng(0).random((600, 2))
begun = threading.Event()
def slow(summary, max_bins):
    begun.set()
    time.sleep(2)
    return [summary.mean]
def fit():
    HistGradientBoostingRegressor(max_iter=2, bin_method=slow, bin_cache="memory").fit(X, X[:, 0])
thread = threading.Thread(target=fit)
thread.start()
begun.wait()
from boostbins import cache
def ask():
    key = next(iter(cache._busy), ("none", None))
    cache._from_memory(key, lambda: None)
child = multiprocessing.get_context("fork").Process(target=ask)
child.start()
child.join(30)
assert child.exitcode == 0, child.exitcode
thread.join()
"""


@pytest.mark.slow
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_forked_process_does_not_wait_for_a_thread_that_it_does_not_have():
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr


def _fit_in_a_process(folder):
    X, y = data(2000)
    model = LGBMRegressor(n_estimators=2, verbosity=-1, n_jobs=1, bin_cache=folder).fit(X, y)
    return model.bins_.digest


@pytest.mark.slow
def test_processes_share_a_folder(tmp_path):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        digests = pool.map(_fit_in_a_process, [str(tmp_path / "bins")] * 8)
    assert len(set(digests)) == 1
    assert len([p for p in (tmp_path / "bins").iterdir() if p.suffix == ".json"]) == 1
    assert not [p for p in (tmp_path / "bins").iterdir() if p.name.startswith(".")]


def test_the_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(boostbins.cache, "_IN_MEMORY", 3)
    for n in range(100, 106):
        bins(data(n)[0], "memory")
    assert len(boostbins.cache._memory) == 3
    assert not boostbins.cache._busy


def test_a_folder_that_cannot_be_is_said_so(tmp_path):
    X, y = data(100)
    (tmp_path / "file").write_text("")
    for cache in (tmp_path / "file", "", "a\0b"):
        with pytest.raises(ValueError, match="bin_cache must be None, 'memory' or a folder; .* cannot be one"):
            LGBMRegressor(bin_cache=cache, verbosity=-1).fit(X, y)


def test_a_folder_that_cannot_be_written_loses_nothing(tmp_path, monkeypatch):
    X, _ = data(300)

    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(boostbins.cache, "atomic_write", full)
    with pytest.warns(UserWarning, match="No space left on device.*the bins are not kept"):
        assert len(bins(X, tmp_path)) == 5

"""Models trained on data that comes in batches are those trained on the same data in memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import lightgbm as lgb
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest
import xgboost as xgb
from pyarrow import parquet

from boostbins import fit_bins
from boostbins import lightgbm as our_lightgbm
from boostbins import xgboost as our_xgboost
from boostbins.sources import files, stream
from boostbins.sources.content import FileError

N = 30_000
FEATURES = ["skewed", "gaps", "counts", "signed", "zeros", "small"]
XGB = {"max_bin": 64, "nthread": 1, "seed": 0}
LGB = {"max_bin": 63, "num_threads": 1, "verbosity": -1, "enable_bundle": False, "force_col_wise": True}

needs_extmem = pytest.mark.skipif(our_xgboost.LIBRARY.is_before("3"), reason="XGBoost 3")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(files, "_MAX_ROWS", 4_099)
    monkeypatch.setattr(files, "_MIN_ROWS", 1_000)
    monkeypatch.setattr(stream, "_ROWS_TOGETHER", 1_000)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    columns = {
        "skewed": rng.lognormal(0, 2, N),
        "gaps": np.where(rng.random(N) < 0.1, np.nan, rng.lognormal(0, 1, N)),
        "counts": rng.poisson(3, N).astype(float),  # XGBoost writes splits of whole numbers another way
        "signed": rng.standard_normal(N),
        "zeros": np.where(rng.random(N) < 0.8, 0.0, rng.lognormal(0, 2, N)),
        "small": rng.standard_normal(N).astype(np.float32),
    }
    y = sum(np.nan_to_num(column) for column in columns.values())
    return pa.table({**columns, "target": y, "weight": rng.integers(0, 3, N)})


@pytest.fixture
def folder(table, tmp_path):
    (tmp_path / "data").mkdir()
    for i in range(3):
        part = table.slice(i * N // 3, N // 3)
        parquet.write_table(part, tmp_path / "data" / f"{i}.parquet", row_group_size=3_000, write_page_checksum=True)
    return tmp_path / "data"


def in_memory(table, library, weight=None, **options):
    X, y = table.select(FEATURES).to_pandas(), table["target"].to_numpy()
    weight = None if weight is None else table[weight].to_numpy()
    if library == "xgboost":
        return our_xgboost.QuantileDMatrix(X, y, weight=weight, max_bin=64, **options)
    return our_lightgbm.Dataset(X, y, weight=weight, params=LGB, **options)


def trees(library, data, n=12):
    if library == "xgboost":
        return xgb.train(XGB, data, n).get_dump(with_stats=True)
    return lgb.train(LGB, data, n).model_to_string().split("pandas_categorical")[0]


SOURCES = {
    "folder": lambda table, folder: folder,
    "pattern": lambda table, folder: str(folder / "*.parquet"),
    "list": lambda table, folder: sorted(folder.iterdir()),
    "dataset": lambda table, folder: pa.dataset.dataset(folder),
    "function": lambda table, folder: lambda: iter(table.to_batches(2_345)),
    "refilled": lambda table, folder: lambda: refilled(table, 700),
}


def refilled(table, n_rows):
    """Yield a table's rows from one buffer, filled again and again."""
    rows = {name: table[name].to_numpy().astype(np.float64) for name in table.column_names}
    buffer = {name: np.empty(n_rows) for name in rows}
    for start in range(0, table.num_rows, n_rows):
        n = min(n_rows, table.num_rows - start)
        for name, column in rows.items():
            buffer[name][:n] = column[start : start + n]
        yield {name: column[:n] for name, column in buffer.items()}


@pytest.mark.parametrize("source", list(SOURCES))
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("kind", ["QuantileDMatrix", pytest.param("ExtMemQuantileDMatrix", marks=needs_extmem)])
def test_xgboost_trains_the_same_trees(table, folder, kind, weight, source):
    known = in_memory(table, "xgboost", weight)
    data = SOURCES[source](table, folder)
    streamed = getattr(our_xgboost, kind)(data, "target", weight=weight, max_bin=64, columns=FEATURES)
    assert streamed.bins_ == known.bins_ == our_xgboost.from_native(streamed)
    assert streamed.feature_names == FEATURES
    assert trees("xgboost", streamed) == trees("xgboost", known)


@pytest.mark.parametrize("source", list(SOURCES))
@pytest.mark.parametrize("weight", [None, "weight"])
def test_lightgbm_trains_the_same_trees(table, folder, weight, source):
    known = in_memory(table, "lightgbm", weight)
    data = SOURCES[source](table, folder)
    streamed = our_lightgbm.Dataset(data, "target", weight=weight, params=LGB, columns=FEATURES)
    assert trees("lightgbm", streamed) == trees("lightgbm", known)
    assert streamed.bins_ == known.bins_ == our_lightgbm.from_native(streamed)


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_maps_take_labels_in_memory(table, tmp_path, order):
    X = np.column_stack([table[name].to_numpy().astype(float) for name in FEATURES])
    y = table["target"].to_numpy()
    mapped = np.memmap(tmp_path / "X", np.float64, "w+", shape=X.shape, order=order)
    mapped[:] = X
    ours = our_xgboost.QuantileDMatrix(mapped, y, max_bin=64)
    assert trees("xgboost", ours) == trees("xgboost", our_xgboost.QuantileDMatrix(X, y, max_bin=64))
    ours, known = our_lightgbm.Dataset(mapped, y, params=LGB), our_lightgbm.Dataset(X, y, params=LGB)
    assert trees("lightgbm", ours) == trees("lightgbm", known)


@pytest.mark.parametrize("total_bins", [None, 90])
def test_auto_looks_at_labels_of_files(table, folder, total_bins):
    y = np.round(table["target"].to_numpy())  # whole targets have exact sums
    table = table.set_column(table.column_names.index("target"), "target", pa.array(y))
    file = folder / "all.parquet"
    parquet.write_table(table, file)
    options = {"bin_method": "auto", "total_bins": total_bins}
    ours = our_xgboost.QuantileDMatrix(file, "target", max_bin=64, columns=FEATURES, **options)
    known = in_memory(table, "xgboost", **options)
    assert ours.bins_ == known.bins_
    assert ours.bins_.choices == known.bins_.choices != {}
    ours = our_lightgbm.Dataset(file, "target", params=LGB, columns=FEATURES, **options).construct()
    known = in_memory(table, "lightgbm", **options).construct()
    assert ours.bins_ == known.bins_
    assert ours.bins_.choices == known.bins_.choices != {}
    assert ours.bins_ != our_lightgbm.Dataset(file, "target", params=LGB, columns=FEATURES).construct().bins_


def test_classes_in_files_are_told_apart(table, folder):
    which = np.array([2, 0, 3, 1])[np.digitize(table["target"].to_numpy(), [-1, 0, 1])]
    table = table.set_column(table.column_names.index("target"), "target", pa.array(which))
    file = folder / "classes.parquet"
    parquet.write_table(table, file)
    ours = our_xgboost.QuantileDMatrix(file, "target", bin_method="auto", n_classes=4, max_bin=64, columns=FEATURES)
    assert ours.bins_.choices == in_memory(table, "xgboost", bin_method="auto", n_classes=4).bins_.choices
    params = {**LGB, "objective": "multiclass", "num_class": 4}
    X = table.select(FEATURES).to_pandas()
    streamed = our_lightgbm.Dataset(file, "target", bin_method="auto", params=params, columns=FEATURES).construct()
    known = our_lightgbm.Dataset(X, which, bin_method="auto", params=params).construct()
    assert streamed.bins_.choices == known.bins_.choices != {}


@pytest.mark.parametrize("bin_method", ["optimal", lambda summary, n: summary.quantile([0.5])])
def test_other_methods_and_ready_bins_are_taken(table, folder, bin_method):
    for method in (bin_method, fit_bins(table, bin_method, 40, columns=FEATURES)):
        ours = our_xgboost.QuantileDMatrix(folder, "target", bin_method=method, max_bin=64, columns=FEATURES)
        assert ours.bins_ == in_memory(table, "xgboost", bin_method=method).bins_
        ours = our_lightgbm.Dataset(folder, "target", bin_method=method, params=LGB, columns=FEATURES).construct()
        assert ours.bins_ == in_memory(table, "lightgbm", bin_method=method).construct().bins_


@pytest.mark.parametrize("kind", ["QuantileDMatrix", pytest.param("ExtMemQuantileDMatrix", marks=needs_extmem)])
def test_xgboost_stops_early_on_a_validation_file(table, folder, kind):
    train_files, valid_file = sorted(folder.iterdir())[:2], folder / "2.parquet"
    matrix = getattr(our_xgboost, kind)
    train = matrix(train_files, "target", max_bin=64, columns=FEATURES)
    valid = matrix(valid_file, "target", max_bin=64, ref=train)
    assert valid.bins_ == train.bins_
    found = xgb.train({**XGB, "eta": 1}, train, 200, evals=[(valid, "valid")], early_stopping_rounds=3, verbose_eval=0)
    X, y = table.select(FEATURES).to_pandas(), table["target"].to_numpy()
    first = N // 3 * 2
    known_train = our_xgboost.QuantileDMatrix(X[:first], y[:first], max_bin=64)
    known_valid = xgb.QuantileDMatrix(X[first:], y[first:], max_bin=64, ref=known_train)
    known = xgb.train(
        {**XGB, "eta": 1}, known_train, 200, evals=[(known_valid, "valid")], early_stopping_rounds=3, verbose_eval=0
    )
    assert found.best_iteration == known.best_iteration < 199
    assert found.get_dump() == known.get_dump()


def test_lightgbm_stops_early_on_a_validation_file(table, folder):
    train_files, valid_file = sorted(folder.iterdir())[:2], folder / "2.parquet"
    params = {**LGB, "learning_rate": 1.0, "objective": "regression"}
    X, y = table.select(FEATURES).to_pandas(), table["target"].to_numpy()
    first = N // 3 * 2

    def trained(train, valid):
        stop = lgb.early_stopping(3, verbose=False)
        return lgb.train(params, train, 200, valid_sets=[valid], callbacks=[stop])

    train = our_lightgbm.Dataset(train_files, "target", params=params, columns=FEATURES)
    found = trained(train, our_lightgbm.Dataset(valid_file, "target", reference=train))
    known_train = our_lightgbm.Dataset(X[:first], y[:first], params=params)
    known = trained(known_train, known_train.create_valid(X[first:], y[first:]))
    assert found.best_iteration == known.best_iteration < 200
    np.testing.assert_array_equal(found.predict(X), known.predict(X))


def test_a_value_can_stand_for_missing(table, folder):
    X, y = table.select(FEATURES).to_pandas(), table["target"].to_numpy()
    ours = our_xgboost.QuantileDMatrix(folder, "target", max_bin=64, columns=FEATURES, missing=0.0)
    known = our_xgboost.QuantileDMatrix(X, y, max_bin=64, missing=0.0)
    assert trees("xgboost", ours) == trees("xgboost", known)
    params = {**LGB, "zero_as_missing": True}
    ours = our_lightgbm.Dataset(folder, "target", params=params, columns=FEATURES).construct()
    assert ours.bins_ == our_lightgbm.Dataset(X, y, params=params).construct().bins_


def test_xgboost_finds_its_own_cuts_if_asked(folder):
    data = our_xgboost.QuantileDMatrix(folder, "target", bin_method=None, max_bin=64, columns=FEATURES)
    assert not hasattr(data, "bins_")
    assert len(trees("xgboost", data)) == 12


BAD = [
    ({"label": "price"}, "label: there is no column 'price'"),
    ({"columns": ["a"]}, "columns: there is no column 'a'"),
    ({"weight": "w"}, "weight: there is no column 'w'"),
    ({"bin_cache": "memory"}, "bin_cache cannot know data that comes in batches"),
    ({"label": np.ones(3)}, "label must have one entry per row, and has only 3"),
    ({"label": np.ones(N + 1)}, r"label must have one entry per row, shape \(30000,\), got \(30001,\)"),
    ({"bin_method": "kmean"}, "bin_method must be one of"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_bad_arguments_are_named(folder, library, options, message):
    make = our_xgboost.QuantileDMatrix if library == "xgboost" else our_lightgbm.Dataset
    with pytest.raises(ValueError, match=message):
        make(folder, **{"label": "target", "columns": FEATURES, **options}).construct()


def test_what_cannot_be_done_is_said(folder, tmp_path):
    with pytest.raises(ValueError, match="a generator can only be read once: give a function"):
        our_xgboost.QuantileDMatrix((x for x in []), "target")
    with pytest.raises(ValueError, match="qid cannot be given for data that comes in batches"):
        our_xgboost.QuantileDMatrix(folder, "target", qid=[1, 2])
    with pytest.raises(ValueError, match=r"max_bin=2 leaves 1 bins"):
        our_xgboost.QuantileDMatrix(folder, "target", max_bin=2)
    with pytest.raises(ValueError, match="linear_tree needs the values"):
        our_lightgbm.Dataset(folder, "target", params={"linear_tree": True}).construct()
    with pytest.raises(ValueError, match="LightGBM itself does not find bins"):
        our_lightgbm.Dataset(folder, "target", bin_method=None).construct()
    with pytest.raises(ValueError, match="columns is for data that comes in batches"):
        our_lightgbm.Dataset(np.ones((3, 1)), [1, 2, 3], columns=["a"]).construct()
    with pytest.raises(ValueError, match="label: the target has 30,000 missing values"):
        our_lightgbm.Dataset(folder, np.full(N, np.nan)).construct()


@needs_extmem
def test_pages_on_disk_go_with_the_matrix(folder, tmp_path):
    cache = tmp_path / "cache"
    data = our_xgboost.ExtMemQuantileDMatrix(folder, "target", cache=cache, max_bin=64)
    assert [path for path in cache.rglob("*") if path.is_file()]
    trees("xgboost", data, 2)
    del data
    assert not list(cache.iterdir())
    with pytest.raises(ValueError, match="cache must be a folder"):
        our_xgboost.ExtMemQuantileDMatrix(folder, "target", cache=folder / "0.parquet")
    with pytest.raises(TypeError, match="data must come in batches"):
        our_xgboost.ExtMemQuantileDMatrix(np.ones((3, 1)), [1, 2, 3])


@needs_extmem
def test_a_file_that_breaks_between_the_passes_is_named_and_leaves_nothing(folder, tmp_path):
    cache, path = tmp_path / "cache", folder / "1.parquet"
    column = parquet.read_metadata(path).row_group(1).column(0)

    def damage(done, total, where):
        if "2.parquet" in where:  # the other one has been read
            data = bytearray(path.read_bytes())
            middle = column.data_page_offset + column.total_compressed_size // 2
            data[middle : middle + 100] = b"\xff" * 100
            path.write_bytes(data)

    with pytest.raises(FileError, match=r"1\.parquet"):
        our_xgboost.ExtMemQuantileDMatrix(folder, "target", cache=cache, max_bin=64, progress=damage)
    assert not list(cache.iterdir())


# ---- what goes wrong between two passes, and after it


def test_a_dataset_is_built_again_after_a_failure(table):
    broken = [True]

    def parts():
        yield table.slice(0, 9_000)
        if broken[0] is None:
            raise OSError("the line was cut")
        broken[0] = None if broken[0] else broken[0]
        yield table.slice(9_000)

    data = our_lightgbm.Dataset(parts, "target", weight="weight", params=LGB, columns=FEATURES)
    with pytest.raises(OSError, match="the line was cut"):  # in the second pass
        trees("lightgbm", data)
    broken[0] = False
    assert trees("lightgbm", data) == trees("lightgbm", in_memory(table, "lightgbm", "weight"))


def test_a_label_that_is_corrected_can_be_trained_on(table, tmp_path):
    path, y = tmp_path / "a.parquet", table["target"].to_numpy()
    without = table.drop_columns(["target", "weight"])
    parquet.write_table(without.append_column("target", pa.array([*y[:-1], np.nan])), path)
    data = our_lightgbm.Dataset(path, "target", params=LGB)
    with pytest.raises(ValueError, match="label: the target has a missing value"):
        data.construct()
    parquet.write_table(without.append_column("target", pa.array(y)), path)
    assert trees("lightgbm", data) == trees("lightgbm", in_memory(table, "lightgbm"))


@pytest.mark.parametrize("change", [-100, 100])
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_function_that_gives_other_rows_is_refused(table, library, change):
    calls = [0]

    def parts():
        calls[0] += 1
        rows = table.slice(0, 10_000 + change * (calls[0] > 1))
        return iter(rows.to_batches(3_000))

    make = our_xgboost.QuantileDMatrix if library == "xgboost" else our_lightgbm.Dataset
    with pytest.raises(ValueError, match=r"data gave 10,000 rows the first time, and .* the next"):
        make(parts, "target", columns=FEATURES).construct()


# ---- validation sets of LightGBM


def test_lightgbm_validates_on_files_made_by_create_valid(table, folder):
    train = our_lightgbm.Dataset(folder, "target", params=LGB, columns=FEATURES)
    scores = {}
    known = in_memory(table, "lightgbm")
    X, y = table.select(FEATURES).to_pandas(), table["target"].to_numpy()
    for name, data, valid in [
        ("streamed", train, train.create_valid(folder, "target")),
        ("memory", known, known.create_valid(X, y)),
    ]:
        record = lgb.record_evaluation(scores.setdefault(name, {}))
        lgb.train({**LGB, "objective": "regression"}, data, 5, valid_sets=[valid], callbacks=[record])
    assert scores["streamed"] == scores["memory"]


def test_lightgbm_validates_by_name_whatever_the_order_and_the_signs_in_names(tmp_path):
    rng = np.random.default_rng(0)
    X = {"a b": rng.random(3000), "c": rng.lognormal(0, 2, 3000)}
    parquet.write_table(pa.table({**X, "y": X["a b"] * 3}), tmp_path / "train.parquet")
    parquet.write_table(pa.table({"c": X["c"], "y": X["a b"] * 3, "a b": X["a b"]}), tmp_path / "valid.parquet")
    train = our_lightgbm.Dataset(tmp_path / "train.parquet", "y", params=LGB)
    for columns in (None, ["c", "a b"]):
        valid = our_lightgbm.Dataset(tmp_path / "valid.parquet", "y", reference=train, columns=columns)
        scores = {}
        params = {**LGB, "objective": "regression"}
        lgb.train(params, train, 30, valid_sets=[valid], callbacks=[lgb.record_evaluation(scores)])
        assert scores["valid_0"]["l2"][-1] < 0.05
    with pytest.raises(ValueError, match=r"columns must be those of the training set, \['a b', 'c'\], got \['c'\]"):
        our_lightgbm.Dataset(tmp_path / "valid.parquet", "y", reference=train, columns=["c"]).construct()


def test_lightgbm_validates_on_arrays_in_chunks(table):
    X = np.column_stack([table[name].to_numpy().astype(float) for name in FEATURES])
    y = table["target"].to_numpy()
    train = our_lightgbm.Dataset(lambda: iter(np.array_split(X, 3)), y, params=LGB)
    valid = our_lightgbm.Dataset(lambda: iter(np.array_split(X, 5)), y, reference=train)
    lgb.train(LGB, train, 2, valid_sets=[valid])
    assert valid.num_data() == N
    with pytest.raises(ValueError, match="label must have one entry per row, and has only 10"):
        our_lightgbm.Dataset(lambda: iter(np.array_split(X, 5)), y[:10], reference=train).construct()


def test_what_lightgbm_cannot_do_in_batches_is_said(folder):
    for options in ({"categorical_feature": ["counts"]}, {"params": {"categorical_feature": "1"}}):
        with pytest.raises(ValueError, match="categorical_feature needs a table in memory"):
            our_lightgbm.Dataset(folder, "target", **options).construct()
    data = our_lightgbm.Dataset(folder, "target", params=LGB)
    first = lgb.train(LGB, data, 2)
    with pytest.raises(ValueError, match="init_model predicts the values themselves"):
        lgb.train(LGB, our_lightgbm.Dataset(folder, "target", params=LGB), 2, init_model=first)


_TRAIN = """
import sys, threading
import numpy, pyarrow.parquet, lightgbm, xgboost
from boostbins import lightgbm as L, xgboost as X
def anonymous():
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("RssAnon")).split()[1]) / 1024
peak, over = [0.0], threading.Event()
def watch():
    while not over.wait(0.002):
        peak[0] = max(peak[0], anonymous())
what, path = sys.argv[1:]
thread = threading.Thread(target=watch, daemon=True); thread.start()
if what == "xgboost":
    xgboost.train({"nthread": 2}, X.ExtMemQuantileDMatrix(path, "y", nthread=2), 2)
else:
    params = {"num_threads": 2, "verbosity": -1, "force_col_wise": True}
    lightgbm.train(params, L.Dataset(path, "y", params=params), 2)
over.set(); thread.join()
print(peak[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_larger_table_takes_less_than_half_of_its_memory_more(tmp_path):
    rng = np.random.default_rng(0)
    names = [*[f"c{i}" for i in range(48)], "y"]
    part = pa.table({name: rng.lognormal(0, 2, 100_000) for name in names})
    n_parts = {"small.parquet": 2, "large.parquet": 8}
    for name, n in n_parts.items():
        with parquet.ParquetWriter(tmp_path / name, part.schema) as writer:
            for _ in range(n):
                writer.write_table(part, row_group_size=25_000)
    more = 6 * part.nbytes / 2**20
    for what in ["lightgbm", "xgboost"][: 1 if our_xgboost.LIBRARY.is_before("3") else 2]:
        taken = {}
        for name in n_parts:
            command = [sys.executable, "-c", _TRAIN, what, tmp_path / name]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            taken[name] = float(done.stdout)
        assert taken["large.parquet"] - taken["small.parquet"] < more / 2, f"{what}: {taken}, {more:.0f} MB more"


def test_nothing_is_left_in_the_temporary_folder(folder, tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    data = our_lightgbm.Dataset(folder, "target", params=LGB)
    trees("lightgbm", data, 2)
    assert not list(Path(tempfile.gettempdir()).iterdir())

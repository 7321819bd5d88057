"""Data larger than memory: what a pass over a file costs beside reading it, and what training takes.

    python benchmarks/scale.py [--folder DIR] [--gigabytes 4] [--limit-gigabytes 1.5] [--part constants|read|train|dask]

Writes a Parquet file of float64 (incompressible) once, then prints ratios to peers in the same run, best of several.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

COLUMNS = 100
ROW_GROUP = 65_536


def written(folder: Path, gigabytes: float) -> Path:
    """Return a file of lognormal columns and a target, made if it is not there."""
    path = folder / f"skewed-{gigabytes:g}gb.parquet"
    if path.exists():
        return path
    rng = np.random.default_rng(0)
    n_groups = max(2, round(gigabytes * 1e9 / (8 * (COLUMNS + 1) * ROW_GROUP)))
    schema = pa.schema([(f"c{i}", pa.float64()) for i in range(COLUMNS)] + [("y", pa.float64())])
    with parquet.ParquetWriter(path.with_suffix(".part"), schema, use_dictionary=False) as writer:
        for group in range(n_groups):
            X = rng.lognormal(0, 2, (COLUMNS, ROW_GROUP))
            writer.write_table(pa.table([*X, X[:5].sum(axis=0)], schema=schema))
            print(f"\rwriting {path.name}: {group + 1} of {n_groups}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    path.with_suffix(".part").replace(path)
    return path


def best(function, repeats=3):
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def best_of_both(function, repeats=3):
    """Return seconds, and seconds of processors: the latter also tell something on a machine that others use."""
    used = []

    def timed():
        begin = time.process_time()
        function()
        used.append(time.process_time() - begin)

    return best(timed, repeats), min(used)


def reading(path: Path) -> None:
    """Print what a pass with summaries costs beside reading the same file alone."""
    from boostbins import fit_bins, summarize

    def batches():
        for _ in parquet.ParquetFile(path, pre_buffer=False).iter_batches(ROW_GROUP):
            pass

    def table():
        parquet.read_table(path, memory_map=False)

    size = path.stat().st_size / 1e9
    took = {
        "decode batches and drop them": best_of_both(batches),
        "pyarrow.parquet.read_table": best_of_both(table, 2),
        "summarize": best_of_both(lambda: summarize(path)),
        "fit_bins, kmeans": best_of_both(lambda: fit_bins(path), 2),
    }
    alone, loaded = list(took.values())[:2]
    print(f"{size:.1f} GB, {COLUMNS + 1} columns, all threads; seconds, best of several: x decoding, x read_table")
    for what, times in took.items():
        both = [f"{t:6.2f} ({t / a:.2f} x, {t / b:.2f} x)" for t, a, b in zip(times, alone, loaded, strict=True)]
        print(f"  {what:30} {both[0]}   processors' {both[1]}")


def anonymous() -> float:
    """Return the memory that is the process' own, in MB."""
    with Path("/proc/self/status").open() as file:
        return int(next(line for line in file if line.startswith("RssAnon")).split()[1]) / 1000


def limit_memory(limit: int) -> None:
    """Put this process into a control group of its own, which the system keeps below a limit, files' pages included."""
    for root, file in (
        (Path("/sys/fs/cgroup"), "memory.max"),
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    ):
        group = root / f"boostbins-{os.getpid()}"
        if (root / "cgroup.procs").exists():
            group.mkdir()
            (group / file).write_text(str(limit))
            (group / "cgroup.procs").write_text(str(os.getpid()))
            return
    raise OSError("there are no control groups here: run it as root on Linux")


def trained(what: str, path: str, limit: float) -> None:
    """Train in this process, which may have so many gigabytes; print its peak."""
    import lightgbm
    import xgboost

    limit_memory(int(limit * 1e9))
    peak = [0.0]

    def watch() -> None:
        while True:
            peak[0] = max(peak[0], anonymous())
            time.sleep(0.01)

    threading.Thread(target=watch, daemon=True).start()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as cache:
        if what == "xgboost":
            from boostbins.xgboost.dmatrix import ExtMemQuantileDMatrix

            data = ExtMemQuantileDMatrix(path, "y", cache=cache)
            built = time.perf_counter()
            xgboost.train({}, data, 3)
            del data
        else:
            from boostbins.lightgbm import Dataset

            params = {"verbosity": -1, "force_col_wise": True}
            data = Dataset(path, "y", params=params).construct()
            built = time.perf_counter()
            lightgbm.train(params, data, 3)
    print(f"{peak[0]:.0f} {built - begin:.0f} {time.perf_counter() - built:.0f}")


def training(path: Path, limit: float) -> None:
    """Print what training takes under a limit of memory."""
    loaded = sum(
        parquet.read_metadata(path).row_group(i).num_rows for i in range(parquet.read_metadata(path).num_row_groups)
    )
    loaded = loaded * (COLUMNS + 1) * 8 / 1e6
    print(f"three trees under a limit of {limit:g} GB (a control group); loading the table takes {loaded:.0f} MB")
    for what in ("xgboost", "lightgbm"):
        command = [sys.executable, __file__, "--one", what, str(path), "--limit-gigabytes", str(limit)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"  {what:9} failed: {done.stderr.strip().splitlines()[-1]}")
            continue
        peak, build, train = map(float, done.stdout.split())
        print(f"  {what:9} peak {peak:5.0f} MB, {peak / loaded:.2f} of the table; {build:.0f} s + {train:.0f} s")


def constants() -> None:
    """Print what docs/scale.md reckons with: one thread, one lognormal column, 255 bins."""
    from boostbins import ColumnSummary, summarize
    from boostbins.methods import find_cuts
    from boostbins.methods.unsupervised import kmeans
    from boostbins.summary.column import GrowingSummary

    rng = np.random.default_rng(0)
    x = rng.lognormal(0, 2, 4_000_000)
    a, b = ColumnSummary(x), ColumnSummary(rng.lognormal(0, 2, 4_000_000))
    batch = x[:ROW_GROUP].copy()
    many = best(lambda: ColumnSummary(x), 5)
    growing = GrowingSummary(a.max_cells)
    growing.add(x, None, None)
    some = best(lambda: growing.add(batch, None, None), 20)
    merge = best(lambda: a + b, 20)
    cut = best(lambda: find_cuts(ColumnSummary.from_bytes(a.to_bytes()), kmeans, 255), 5)
    size = len(summarize({"x": x}).to_bytes())
    weighted = len(ColumnSummary(x, np.ones(len(x)) * 0.5).to_bytes())
    print("one column, one thread")
    print(f"  summarize 4,000,000 rows          {many / len(x) * 1e9:6.1f} ns per value")
    print(f"  add {len(batch):,} rows to a summary    {some / len(batch) * 1e9:6.1f} ns per value")
    print(f"  add two summaries                 {merge * 1e3:6.2f} ms")
    print(f"  read a summary and cut it, kmeans {cut * 1e3:6.2f} ms")
    print(f"  a summary                         {size / 1e6:6.2f} MB; with weights {weighted / 1e6:.2f} MB")


def distributed(path: Path) -> None:
    """Print what Dask adds, on two processes of one thread each, beside two threads of one process."""
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

    import boostbins.dask
    from boostbins import fit_bins

    local = best(lambda: fit_bins(path, columns=[f"c{i}" for i in range(20)], n_threads=2), 2)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        frame = dd.read_parquet(path, columns=[f"c{i}" for i in range(20)], split_row_groups=8)
        n_partitions = frame.npartitions
        read = best(lambda: frame.map_partitions(len).compute(), 2)
        on_dask = best(lambda: boostbins.dask.fit_bins(frame), 2)
    print(f"20 columns of it; seconds, best of 2; {n_partitions} partitions")
    print(f"  fit_bins, one process, 2 threads          {local:6.2f}")
    print(f"  Dask, 2 processes: read and drop          {read:6.2f}")
    ratios = f"{on_dask / read:.2f} x reading; {on_dask / local:.2f} x one process"
    print(f"  boostbins.dask.fit_bins                   {on_dask:6.2f}   {ratios}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--limit-gigabytes", type=float, default=1.5)
    parser.add_argument("--part", choices=["constants", "read", "train", "dask"], action="append")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        trained(*options.one, options.limit_gigabytes)
        return
    parts = options.part or ["constants", "read", "train", "dask"]
    if "constants" in parts:
        constants()
    if parts == ["constants"]:
        return
    path = written(options.folder, options.gigabytes)
    if "read" in parts:
        reading(path)
    if "train" in parts:
        training(path, options.limit_gigabytes)
    if "dask" in parts:
        distributed(path)


if __name__ == "__main__":
    main()

"""The same table in files of every usual kind."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile

import pyarrow as pa
from pyarrow import csv, feather, parquet

TABLE = pa.table(
    {
        "a": [1.5, -2.0, None, 1e300],
        "n": [1, 2, 3, 4],
        "text": ["x", 'with "quotes", and a comma', "two\nlines", None],
        "flag": [True, False, None, True],
    }
)


def written(table=TABLE, kind="csv", **options):
    sink = io.BytesIO()
    if kind == "csv":
        csv.write_csv(table, sink, csv.WriteOptions(**options))
    elif kind == "parquet":
        parquet.write_table(table, sink, **options)
    else:
        feather.write_feather(table, sink, **options)
    return sink.getvalue()


def zipped(data, names=("data.csv",)):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name in names:
            archive.writestr(name, data)
    return sink.getvalue()


KINDS = {
    "plain.csv": written(),
    "semicolon.csv": written(delimiter=";"),
    "tab.tsv": written(delimiter="\t"),
    "bar.txt": written(delimiter="|"),
    "windows.csv": b"\xef\xbb\xbf" + written(),
    "data.parquet": written(kind="parquet"),
    "data.feather": written(kind="feather"),
    "old.feather": written(kind="feather", compression="uncompressed"),
    "data.csv.gz": gzip.compress(written()),
    "data.csv.bz2": bz2.compress(written()),
    "data.csv.xz": lzma.compress(written()),
    "data.csv.zip": zipped(written()),
    "data.parquet.gz": gzip.compress(written(kind="parquet")),
    "no-ending": written(kind="parquet"),
}

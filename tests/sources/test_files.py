"""Files of every usual kind give the same table; what is no table is named in one line."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import threading
import zipfile
from contextlib import suppress
from functools import partial
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, feather, parquet

from boostbins import compare, fit_bins, report
from boostbins.sources import content
from boostbins.sources import csv as our_csv
from boostbins.sources.content import FileError, content_of
from boostbins.sources.csv import CsvFile
from boostbins.sources.reading import read_files

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


def zstd(data):
    return pa.compress(data, "zstd", asbytes=True)


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


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_gives_the_same_table(tmp_path, name):
    (tmp_path / name).write_bytes(KINDS[name])
    assert read_files(tmp_path / name).equals(TABLE)


@pytest.mark.parametrize("name", ["plain.csv", "data.parquet", "data.feather", "data.csv.gz"])
def test_standard_input(monkeypatch, name):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(KINDS[name])))
    assert read_files("-").equals(TABLE)


def test_zstd(tmp_path):
    with pa.CompressedOutputStream(str(tmp_path / "data.csv.zst"), "zstd") as file:
        file.write(written())
    assert read_files(tmp_path / "data.csv.zst").equals(TABLE)


def test_decimal_commas(tmp_path):
    pd.DataFrame({"a": [1.5, 2.25], "b": [1, 2]}).to_csv(tmp_path / "d.csv", sep=";", decimal=",", index=False)
    assert read_files(tmp_path / "d.csv").to_pydict() == {"a": [1.5, 2.25], "b": [1, 2]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Datum;Preis\n01.02.2021;12,34\n02.02.2021;7,5\n", {"Datum": ["01.02.2021", "02.02.2021"],
                                                            "Preis": [12.34, 7.5]}),
        ("who;x\nSmith, John, Dr;12.34\nDoe, Jane;1.5\n", {"who": ["Smith, John, Dr", "Doe, Jane"], "x": [12.34, 1.5]}),
        ('"Income, monthly, net";"Age, years"\n1;2\n', {"Income, monthly, net": [1], "Age, years": [2]}),
        ("a\tb\n1,5\t2\n", {"a": [1.5], "b": [2]}),
        ("sep=;\na;b\n1;2\n", {"a": [1], "b": [2]}),
        ("\n\na;b\n1;2\n", {"a": [1], "b": [2]}),
        ("a,b\r1,2\r3,4\r", {"a": [1, 3], "b": [2, 4]}),
        ("a,b\n1,x\n?,y\nNone,z\n.,w\n", {"a": [1, None, None, None], "b": ["x", "y", "z", "w"]}),
        ("2019,2020\n1,2\n", {"2019": [1], "2020": [2]}),
    ],
)  # fmt: skip
def test_csv_as_people_have_it(tmp_path, text, expected):
    (tmp_path / "data.csv").write_text(text, newline="")
    assert read_files(tmp_path / "data.csv").to_pydict() == expected


def test_a_pipe_and_an_index_of_pandas(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[KINDS["plain.csv"]])
    writer.start()
    assert read_files(tmp_path / "pipe").equals(TABLE)
    writer.join()
    pd.DataFrame({"a": [1, 2, 3]}).query("a > 1").to_parquet(tmp_path / "index.parquet")
    assert read_files(tmp_path / "index.parquet").column_names == ["a"]


def test_a_type_that_shows_late_in_the_file(tmp_path):
    rows = 300_000  # more than a block of Arrow's
    (tmp_path / "late.csv").write_text("a,b\n" + "1,2\n" * rows + "1.5,x\n")
    table = read_files(tmp_path / "late.csv")
    assert [str(kind) for kind in table.schema.types] == ["double", "string"]
    assert table.num_rows == rows + 1


def test_a_file_has_the_same_columns_for_everyone_whatever_its_size(tmp_path, monkeypatch):
    path = tmp_path / "late.csv"
    path.write_text("a,b,c\n" + "".join(f"{i},{i % 5},{i}\n" for i in range(9_000)) + "1,2,late\n")
    for size in (1 << 12, 1 << 23):
        monkeypatch.setattr(our_csv, "_MAX_BLOCK", size)
        bins = fit_bins(path, non_numeric="skip")
        assert bins.names == ("a", "b")
        assert bins == fit_bins(read_files(path), non_numeric="skip")
        assert {facts.name for facts in report(path).facts} == {"a", "b"}
        found = compare(path, "b", "sklearn", ["kmeans"], 15, splits=2, params={"max_iter": 2}, task="regression")
        assert found.n_columns == 1
        with pytest.raises((TypeError, FileError), match="column.*'c'|late.*leave the column out"):
            fit_bins(path)


def test_many_files_and_patterns_are_one_table(tmp_path):
    for i in range(3):
        pd.DataFrame({"a": [i, i + 1], "b": [0.5, 1]}).to_csv(tmp_path / f"part-{i}.csv", index=False)
    pd.DataFrame({"b": [7, 8], "a": [1.25, 9]}).to_parquet(
        tmp_path / "part-3.parquet", index=False
    )  # other order, types
    expected = {"a": [0, 1, 1, 2, 2, 3, 1.25, 9], "b": [0.5, 1, 0.5, 1, 0.5, 1, 7, 8]}
    assert read_files(str(tmp_path / "part-*")).to_pydict() == expected
    assert read_files(sorted(tmp_path.iterdir())).to_pydict() == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"  \n \n", "is empty"),
        (b"a,b\n", "has no rows"),
        (b"a,b\n1,2\n1,2,3\n", "cannot be read as CSV"),
        (b"a,a\n1,2\n", "more than one column named 'a'"),
        ("größe\n1\n".encode("latin1"), "is not UTF-8 .byte 2"),
        ("a,b\n1,2\n".encode("utf-16"), "is UTF-16: convert it"),
        (b"1.5,2\n3,4\n", "has no names of columns"),
        (zipped(b"", ["[Content_Types].xml", "xl/workbook.xml"]), r"data\.csv: this is an Excel file: save it as CSV"),
        (bytes(range(256)), "is not a CSV, Parquet or Feather file"),
        (b"\n\xff\n", "is not a CSV, Parquet or Feather file"),
        (KINDS["data.parquet"][:300], "is not a whole Parquet file"),
        (KINDS["data.feather"][:100], "is not a whole Feather file"),
        (KINDS["data.csv.gz"][:30], "is not a whole compressed file"),
        (KINDS["data.csv.xz"][:30], "is not a whole compressed file"),
        (KINDS["data.csv.zip"][:50], "is not a whole compressed file"),
        (zipped(b"a\n1\n", ["a.csv", "b.csv"]), "a zip file must hold one file"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else None,  # compressed ones hold the time
)  # fmt: skip
def test_what_is_no_table_is_refused(tmp_path, content, message):
    (tmp_path / "data.csv").write_bytes(content)
    with pytest.raises(FileError, match=message):
        read_files(tmp_path / "data.csv")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a,b\n1,"2\n3,4\n' + "5,6\n" * 50_000, 2),
        ('a,b\n1,2\n"3,4\n5,6\n', 3),
        ('a,b\n1,2\n3,"4\n5,"x"\n', 3),
        ('a,b\r\n1,"2\r\n3,""\r\n4,"5"\r\n', 2),
        ('a,"b\n1,2\n', 1),
        ('a;b\n"x, y";"3\n4;5\n', 2),
        ("a,b\n" + "1,2\n" * 300_000 + '3,"4\n5,6\n', 300_002),
        ('a,b\n1,"2\n' + "1,2\n" * 500_000, 2),
    ],
    ids=["early", "first field", "closed by the next", "Windows", "in the names", "semicolon", "late", "a long one"],
)
def test_a_quote_that_is_not_closed_swallows_no_rows(tmp_path, text, line):
    (tmp_path / "data.csv").write_text(text, newline="")
    for read in (read_files, fit_bins):
        with pytest.raises(
            FileError, match=rf"data\.csv, line {line:,}: a quote opens a value here, and does not close"
        ):
            read(tmp_path / "data.csv")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a,b\n5" pipe,1\n7"" x,2\n', {"a": ['5" pipe', '7"" x'], "b": [1, 2]}),
        ('a,b\n"say ""hi""",1\n"""",2\n"",3\n', {"a": ['say "hi"', '"', None], "b": [1, 2, 3]}),
        ('a,b\n"Smith" Jr,1\n', {"a": ["Smith Jr"], "b": [1]}),
        ('a,b\n"two\n\nlines, ""and"" quotes\n",1\nx,2', {"a": ['two\n\nlines, "and" quotes\n', "x"], "b": [1, 2]}),
    ],
)
def test_quotes_as_people_have_them(tmp_path, text, expected):
    (tmp_path / "data.csv").write_text(text, newline="")
    assert read_files(tmp_path / "data.csv").to_pydict() == expected


TEXTS = st.text(st.sampled_from('ab",;\t\n\r1. é'), max_size=6)


@given(st.lists(st.tuples(TEXTS, st.integers(-9, 9), TEXTS), min_size=1, max_size=30), st.integers(1, 40))
def test_blocks_of_any_size_give_the_same_rows(tmp_path_factory, rows, size):
    path = tmp_path_factory.getbasetemp() / "blocks.csv"
    table = pa.table({"x": [row[0] for row in rows], "n": [row[1] for row in rows], "y": [row[2] for row in rows]})
    with path.open("wb") as file:
        csv.write_csv(table, file)
    expected = csv.read_csv(
        path,
        csv.ReadOptions(use_threads=False),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(
            column_types={"x": pa.string(), "y": pa.string()},
            strings_can_be_null=True,
            null_values=[*csv.ConvertOptions().null_values, *our_csv._MISSING],
        ),
    )
    with patch.object(our_csv, "_MAX_BLOCK", size):
        found = our_csv.CsvFile(partial(content_of, str(path)), "blocks.csv")
        tables = [table for table, _ in found.tables(["n", "x", "y"], as_text=["x", "y"])]
    assert pa.concat_tables(tables, promote_options="permissive").select(["x", "n", "y"]).cast(
        expected.schema
    ) == expected.replace_schema_metadata(None)


@pytest.mark.parametrize(
    ("text", "byte"), [("größe\n1\n", 2), ("a\n1\ngröße\n", 6), ("a,b\n" + "1,x\n" * 100_000 + "1,ö\n", 400_006)]
)
def test_text_that_is_not_utf8_is_named_wherever_it_is(tmp_path, monkeypatch, text, byte):
    monkeypatch.setattr(our_csv, "_MAX_BLOCK", 1 << 16)
    (tmp_path / "data.csv").write_bytes(text.encode("latin1"))
    for read in (read_files, partial(fit_bins, non_numeric="skip")):
        with pytest.raises(FileError, match=rf"data\.csv is not UTF-8 \(byte {byte:,}\): convert it"):
            read(tmp_path / "data.csv")


def test_what_is_packed_again_and_again_is_refused(tmp_path):
    data = KINDS["plain.csv"]
    for i, pack in enumerate((gzip.compress, zipped, lzma.compress)):
        data = pack(data)
        (tmp_path / "data").write_bytes(data)
        assert read_files(tmp_path / "data").equals(TABLE), i
    for _ in range(2000):
        data = gzip.compress(data, 0)
    (tmp_path / "data").write_bytes(data)
    for read in (read_files, fit_bins):
        with pytest.raises(FileError, match="data is compressed more than 3 times over: unpack it first"):
            read(tmp_path / "data")


PACKED = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zip": zipped, "zst": zstd}


@pytest.mark.parametrize("ending", PACKED)
def test_what_is_too_much_to_be_unpacked_into_memory_is_refused(tmp_path, monkeypatch, ending):
    path = tmp_path / f"bomb.parquet.{ending}"
    data = written(pa.table({"a": np.zeros(200_000)}), kind="parquet", use_dictionary=False, compression="none")
    path.write_bytes(PACKED[ending](data))
    monkeypatch.setattr(content, "_MAX_UNPACKED", len(data))
    assert read_files(path).num_rows == 200_000
    monkeypatch.setattr(content, "_MAX_UNPACKED", len(data) - 1)
    with pytest.raises(FileError, match=f"bomb.parquet.{ending} unpacks to more than .* bytes: unpack it first"):
        read_files(path)


@pytest.mark.parametrize("ending", PACKED)
def test_what_is_damaged_is_refused_wherever_it_is(tmp_path, ending):
    path = tmp_path / f"data.{ending}"
    whole = PACKED[ending](written(pa.table({"a": np.random.default_rng(0).random(2000)})))
    for at in range(len(whole) // 20, len(whole), len(whole) // 20):
        path.write_bytes(whole[:at])
        with pytest.raises(FileError, match=f"data.{ending} is not a whole compressed file: "):
            read_files(path)
        path.write_bytes(whole[:at] + bytes(40) + whole[at + 40 :])
        with suppress(FileError):  # there may be parts that do not matter; zstd of Arrow's has no checksum
            assert read_files(path).num_rows == 2000 or ending == "zst"


def test_a_zip_file_with_a_password_is_refused(tmp_path):
    data = bytearray(zipped(b"a\n1\n"))
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(header) + flags] |= 1
    (tmp_path / "data.zip").write_bytes(data)
    with pytest.raises(FileError, match=r"data\.zip is not a whole compressed file: .* encrypted"):
        read_files(tmp_path / "data.zip")


def test_a_compressed_file_is_unpacked_piece_by_piece(tmp_path):
    """Two gigabytes of zeros, which are no CSV, are not held."""
    with gzip.open(tmp_path / "zeros.gz", "wb", 1) as file:
        file.write(bytes(2**20))
    (tmp_path / "many.gz").write_bytes((tmp_path / "zeros.gz").read_bytes() * 2_048)
    with pytest.raises(FileError, match="is not a CSV, Parquet or Feather file"):
        read_files(tmp_path / "many.gz")


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(FileError, match=r"there is no file .*no\.csv"):
        read_files(tmp_path / "no.csv")
    with pytest.raises(FileError, match=r"no file matches .*\*\.csv"):
        read_files(str(tmp_path / "*.csv"))
    with pytest.raises(FileError, match="no file is named"):
        read_files([])
    with pytest.raises(FileError, match=r"the folder .* has no files"):
        read_files(tmp_path)


def test_a_folder_is_read_without_what_is_hidden(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "in" / "b.csv").write_text("x\n2\n")
    for name in ("_SUCCESS", ".part.crc"):
        (tmp_path / name).write_text("no table")
    assert read_files(tmp_path)["x"].to_pylist() == [1, 2]


def test_files_of_other_columns_are_named(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("x\n1\n")
    (tmp_path / "c.csv").write_text("x,y,z\n1,2,3\n")
    (tmp_path / "d.csv").write_text("x,y\n1,text\n")
    with pytest.raises(FileError, match=r"b\.csv has no column 'y', which .*a\.csv has"):
        read_files([tmp_path / "a.csv", tmp_path / "b.csv"])
    with pytest.raises(FileError, match=r"c\.csv has a column 'z', which .*a\.csv has not"):
        read_files([tmp_path / "a.csv", tmp_path / "c.csv"])
    with pytest.raises(FileError, match="of different types"):
        read_files([tmp_path / "a.csv", tmp_path / "d.csv"])


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "data.csv"
    path.write_bytes(KINDS["plain.csv"])
    read = CsvFile.whole

    def and_meanwhile(self):
        with path.open("ab") as file:
            file.write(b"5,6,x,true\n")
        return read(self)

    monkeypatch.setattr(CsvFile, "whole", and_meanwhile)
    with pytest.raises(FileError, match="changed while it was read: wait"):
        read_files(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(KINDS["plain.csv"])
    path.chmod(0)
    with pytest.raises(FileError, match="cannot read .*Permission denied"):
        read_files(path)


def test_numbers_are_read_to_the_last_bit(tmp_path):
    values = np.random.default_rng(0).lognormal(0, 20, 1000)
    pd.DataFrame({"x": values}).to_csv(tmp_path / "x.csv", index=False)
    assert np.array_equal(read_files(tmp_path / "x.csv")["x"].to_numpy(), values)

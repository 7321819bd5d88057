"""Files of every usual kind give the same table; what is no table is named in one line."""

from __future__ import annotations

import io
import os

import pandas as pd
import pytest

from boostbins import compare, fit_bins, report
from boostbins.sources import csv as our_csv
from boostbins.sources.content import FileError
from boostbins.sources.csv import CsvFile
from boostbins.sources.reading import read_files
from tests.sources.contents import KINDS, TABLE, zipped


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_gives_the_same_table(tmp_path, name):
    (tmp_path / name).write_bytes(KINDS[name])
    assert read_files(tmp_path / name).equals(TABLE)


@pytest.mark.parametrize("name", ["plain.csv", "data.parquet", "data.feather", "data.csv.gz"])
def test_standard_input(monkeypatch, name):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(KINDS[name])))
    assert read_files("-").equals(TABLE)


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


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(KINDS["plain.csv"])
    path.chmod(0)
    with pytest.raises(FileError, match="cannot read .*Permission denied"):
        read_files(path)

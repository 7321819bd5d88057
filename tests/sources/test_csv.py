"""CSV as people have it, in blocks of any size."""

from __future__ import annotations

import os
import threading
from functools import partial
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

from boostbins import fit_bins
from boostbins.sources import csv as our_csv
from boostbins.sources.content import FileError, content_of
from boostbins.sources.reading import read_files
from tests.sources.contents import KINDS, TABLE


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


def test_numbers_are_read_to_the_last_bit(tmp_path):
    values = np.random.default_rng(0).lognormal(0, 20, 1000)
    pd.DataFrame({"x": values}).to_csv(tmp_path / "x.csv", index=False)
    assert np.array_equal(read_files(tmp_path / "x.csv")["x"].to_numpy(), values)

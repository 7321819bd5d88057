"""Files of any usual kind as one Arrow table: CSV, Parquet, Feather; compressed; many of them; standard input."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boostbins._atomic import check_writable
from boostbins.sources.content import STDIN, FileError, expanded, first_line
from boostbins.sources.csv import dates_alike
from boostbins.sources.files import as_table, columns_of, opened_file


def read_files(paths: Sequence[str | os.PathLike[str]] | str | os.PathLike[str]) -> Any:
    """Return one Arrow table of one file or of many with the same columns, below each other.

    Parameters
    ----------
    paths : path, pattern or several
        CSV (the separator is found out), Parquet or Feather, told by their content; compressed by gzip, bzip2, xz,
        zstd or zip; ``data/*.parquet``; a folder; ``-`` for standard input.
    """
    names = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not names:
        raise FileError("no file is named")
    files = [file for name in names for file in expanded(os.fspath(name))]
    tables = [_read_one(file) for file in files]
    return tables[0] if len(tables) == 1 else _below_each_other(tables, files)


def check_output(path: str, inputs: Sequence[str]) -> None:
    """Refuse an output that cannot be written, or that would replace an input, be it one of a folder or a pattern."""
    check_writable(path)
    if not Path(path).is_file():
        return
    for name in inputs:
        with contextlib.suppress(FileError):  # what cannot be read is said when it is
            if any(Path(file).exists() and Path(file).samefile(path) for file in expanded(name)):
                raise ValueError(f"{path} would replace the data that is read from it: name another file")


def title_of(data: Sequence[str]) -> str:
    """Return what some files are called together."""
    if data == [STDIN]:
        return "standard input"
    return Path(data[0]).name if len(data) == 1 else f"{Path(data[0]).name} and {len(data) - 1} more"


def _read_one(name: str) -> Any:
    import pyarrow

    file = opened_file(name)
    columns = columns_of(file.schema, name)
    chunks = file.chunks(columns) if file.whole is None else file.whole()
    tables = [as_table(chunk.data).select(columns) for chunk in chunks]
    table = pyarrow.concat_tables(tables) if tables else file.schema.empty_table()
    if table.num_rows == 0:
        raise FileError(f"{name} has no rows")
    return table


def _below_each_other(tables: list[Any], files: list[str]) -> Any:
    import pyarrow

    names = tables[0].column_names
    for table, file in zip(tables, files, strict=True):
        if odd := [name for name in names if name not in table.column_names]:
            raise FileError(f"{file} has no column {odd[0]!r}, which {files[0]} has")
        if odd := [name for name in table.column_names if name not in names]:
            raise FileError(f"{file} has a column {odd[0]!r}, which {files[0]} has not")
    try:
        alike = [dates_alike(table.select(names)) for table in tables]
        return pyarrow.concat_tables(alike, promote_options="permissive")
    except pyarrow.ArrowException as error:
        raise FileError(f"the files' columns are of different types: {first_line(error)}") from None

"""Files of any usual kind as one Arrow table: CSV, Parquet, Feather; compressed; many of them; standard input."""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import lzma
import os
import re
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

STDIN = "-"

_HEAD = 64 * 1024  # bytes that tell what a CSV looks like
_MISSING = ("?", ".", "None", "none")  # beside those that Arrow knows: nothing, NA, NaN, null and the like
_INDEX = re.compile(r"__index_level_\d+__")  # what pandas makes of an index without a name


class FileError(ValueError):
    """A file that cannot be read as a table; the message is meant for the user."""


def read_files(paths: Sequence[str | os.PathLike[str]] | str | os.PathLike[str]) -> Any:
    """Return one Arrow table of one file or of many with the same columns, below each other.

    Parameters
    ----------
    paths : path, pattern or several
        CSV (the separator is found out), Parquet or Feather, told by their content; compressed by gzip, bzip2, xz,
        zstd or zip; ``data/*.parquet``; ``-`` for standard input.
    """
    names = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not names:
        raise FileError("no file is named")
    files = [file for name in names for file in _expanded(os.fspath(name))]
    tables = [_read_one(file) for file in files]
    return tables[0] if len(tables) == 1 else _below_each_other(tables, files)


def _expanded(name: str) -> list[str]:
    if not name:
        raise FileError("a file has no name")
    if Path(name).is_dir():
        raise FileError(f"{name} is a folder: name its files, e.g. '{name.rstrip(os.sep)}{os.sep}*.parquet'")
    if name == STDIN or Path(name).exists():
        return [name]
    found = sorted(file for file in glob.glob(name, recursive=True) if Path(file).is_file())  # noqa: PTH207
    if not found:
        what = "no file matches" if glob.has_magic(name) else "there is no file"
        raise FileError(f"{what} {name}")
    return found


def _read_one(name: str) -> Any:
    """Return one file's table; one that is being written is refused."""
    if name == STDIN:
        if sys.stdin is None:
            raise FileError("there is no standard input")
        return _parsed(sys.stdin.buffer.read(), "standard input")
    try:
        if not Path(name).is_file():  # a pipe
            return _parsed(Path(name).read_bytes(), name)
        before = Path(name).stat()
        with Path(name).open("rb") as file:
            head = file.read(16)
        table = _parsed(_contents(name, head), name)
        after = Path(name).stat()
    except OSError as error:
        raise FileError(f"cannot read {name}: {error.strerror or error}") from None
    if (before.st_size, before.st_mtime_ns, before.st_ino) != (after.st_size, after.st_mtime_ns, after.st_ino):
        raise FileError(f"{name} changed while it was read: wait until it is written, and run this again")
    return table


def _contents(name: str, head: bytes) -> Any:
    """Return what Arrow reads from: the file itself if it can be, else its bytes."""
    if _kind_of(head) in ("parquet", "feather"):
        import pyarrow

        return pyarrow.memory_map(name)
    return Path(name).read_bytes()


_COMPRESSIONS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ\x00": lzma.decompress,
    b"\x28\xb5\x2f\xfd": lambda data: _unzstd(data),
    b"PK\x03\x04": lambda data: _unzipped(data),
}


def _parsed(data: Any, name: str) -> Any:
    """Return the table in a file's content."""
    head = data[:16] if isinstance(data, bytes) else data.read(16)
    for magic, decompress in _COMPRESSIONS.items():
        if head.startswith(magic):
            try:
                return _parsed(decompress(data), name)
            except FileError:
                raise
            except (OSError, EOFError, ValueError, lzma.LZMAError, zipfile.BadZipFile) as error:
                raise FileError(f"{name} is not a whole compressed file: {error}") from None
    if not head.strip():
        raise FileError(f"{name} is empty")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileError(f"{name} is UTF-16: convert it, e.g. with iconv -f utf-16 -t utf-8")
    table = _PARSERS[_kind_of(head)](data, name)
    table = table.drop_columns([column for column in table.column_names if _INDEX.fullmatch(column)])
    if table.num_rows == 0:
        raise FileError(f"{name} has no rows")
    if len(set(table.column_names)) < table.num_columns:
        twice = next(column for column in table.column_names if table.column_names.count(column) > 1)
        raise FileError(f"{name} has more than one column named {twice!r}: rename one of them")
    return table


def _kind_of(head: bytes) -> str:
    if head.startswith(b"PAR1"):
        return "parquet"
    return "feather" if head.startswith((b"ARROW1", b"FEA1")) else "csv"


def _parquet(data: Any, name: str) -> Any:
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_table(_reader(data))
    except (pyarrow.ArrowException, OSError) as error:
        raise FileError(f"{name} is not a whole Parquet file: {_first_line(error)}") from None


def _feather(data: Any, name: str) -> Any:
    import pyarrow
    import pyarrow.feather

    try:
        return pyarrow.feather.read_table(_reader(data))
    except (pyarrow.ArrowException, OSError) as error:
        raise FileError(f"{name} is not a whole Feather file: {_first_line(error)}") from None


def _csv(data: bytes, name: str) -> Any:
    import pyarrow
    from pyarrow import csv as arrow_csv

    try:
        head = data[:_HEAD].decode("utf-8", errors="ignore")
        if "\0" in head:
            raise FileError(f"{name} is not a CSV, Parquet or Feather file")
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(
            f"{name} is not UTF-8 (byte {error.start:,}): convert it, e.g. with iconv -f latin1 -t utf-8"
        ) from None
    lines = [line for line in head.lstrip("\ufeff").splitlines() if line.strip()]
    said = re.fullmatch(r"sep=(.)", lines[0].strip())  # by Excel
    separator = said[1] if said else _separator(lines[0])
    try:
        # One block: a column's type is that of all its values.
        options = arrow_csv.ReadOptions(
            block_size=min(max(len(data) + 1, 1 << 20), (1 << 31) - 1), skip_rows=1 if said else 0
        )
        known = arrow_csv.ConvertOptions()
        table = arrow_csv.read_csv(
            pyarrow.BufferReader(data),
            options,
            arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                strings_can_be_null=True,
                decimal_point=_decimal_point(lines[1:], separator),
                null_values=[*known.null_values, *_MISSING],
            ),
        )
    except pyarrow.ArrowException as error:
        raise FileError(f"{name} cannot be read as CSV: {_first_line(error)}") from None
    names = [column.strip() for column in table.column_names]
    are_numbers = all(re.fullmatch(r"[+-]?[\d.,]+(e[+-]?\d+)?", column, re.IGNORECASE) for column in names)
    if are_numbers and not all(column.isdigit() for column in names):  # years may be names
        raise FileError(f"{name} has no names of columns: its first line holds numbers; add a line of names")
    return table


_PARSERS: dict[str, Callable[[Any, str], Any]] = {"parquet": _parquet, "feather": _feather, "csv": _csv}


def _separator(first_line: str) -> str:
    """Return what parts the names in the first line."""
    unquoted = re.sub(r'"[^"]*"', "", first_line)
    return max(",;\t|", key=unquoted.count)


def _decimal_point(lines: list[str], separator: str) -> str:
    """Return the sign in numbers like 12,5, where most fields that are such numbers have a comma."""
    if separator == ",":
        return "."
    fields = [field.strip(' "') for line in lines for field in line.split(separator)]
    with_comma, with_point = (
        sum(bool(re.fullmatch(rf"[+-]?\d+{sign}\d+", field)) for field in fields) for sign in (",", r"\.")
    )
    return "," if with_comma > with_point else "."


def _reader(data: Any) -> Any:
    import pyarrow

    if isinstance(data, bytes):
        return pyarrow.BufferReader(data)
    data.seek(0)
    return data


def _unzstd(data: bytes) -> bytes:
    import pyarrow

    return bytes(pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd").read())


def _unzipped(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [member for member in archive.namelist() if not member.endswith("/")]
        if "[Content_Types].xml" in members:
            raise FileError("this is an Excel file: save it as CSV")
        if len(members) != 1:
            raise FileError(f"a zip file must hold one file to be read as a table, this one holds {len(members)}")
        return archive.read(members[0])


def _below_each_other(tables: list[Any], files: list[str]) -> Any:
    import pyarrow

    names = tables[0].column_names
    for table, file in zip(tables, files, strict=True):
        if odd := [name for name in names if name not in table.column_names]:
            raise FileError(f"{file} has no column {odd[0]!r}, which {files[0]} has")
        if odd := [name for name in table.column_names if name not in names]:
            raise FileError(f"{file} has a column {odd[0]!r}, which {files[0]} has not")
    try:
        alike = [_dates_alike(table.select(names)) for table in tables]
        return pyarrow.concat_tables(alike, promote_options="permissive")
    except pyarrow.ArrowException as error:
        raise FileError(f"the files' columns are of different types: {_first_line(error)}") from None


def _dates_alike(table: Any) -> Any:
    """Return a table with dates and times of one type: a CSV of whole days has another than a Parquet file."""
    import pyarrow

    when = pyarrow.timestamp("us")
    is_date = [pyarrow.types.is_date(kind) or pyarrow.types.is_timestamp(kind) for kind in table.schema.types]
    fields = [field.with_type(when) if odd else field for field, odd in zip(table.schema, is_date, strict=True)]
    return table.cast(pyarrow.schema(fields), safe=False)  # parts of a microsecond are dropped


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]

"""Files of any usual kind as one Arrow table: CSV, Parquet, Feather; compressed; many of them; standard input."""

from __future__ import annotations

import bz2
import contextlib
import glob
import gzip
import io
import lzma
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

from boostbins.writing import check_writable

STDIN = "-"

_HEAD = 64 * 1024  # bytes that tell what a CSV looks like
_PART = 2**20  # bytes that are unpacked at a time
_MOST_UNPACKED = 2**31 - 1  # bytes: Arrow takes no more at once of a CSV
_MOST_NESTED = 3  # compressions of one file
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
        zstd or zip; ``data/*.parquet``; a folder; ``-`` for standard input.
    """
    names = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not names:
        raise FileError("no file is named")
    files = [file for name in names for file in expanded(os.fspath(name))]
    tables = [read_one(file) for file in files]
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


def expanded(name: str) -> list[str]:
    """Return the files that a name, a pattern or a folder stands for; hidden ones in a folder are left out."""
    if not name:
        raise FileError("a file has no name")
    if Path(name).is_dir():
        inside = [path for path in sorted(Path(name).rglob("*")) if path.is_file()]
        shown = [path for path in inside if not any(p.startswith((".", "_")) for p in path.relative_to(name).parts)]
        if not shown:
            raise FileError(f"the folder {name} has no files")
        return [str(path) for path in shown]
    if name == STDIN or Path(name).exists():
        return [name]
    found = sorted(file for file in glob.glob(name, recursive=True) if Path(file).is_file())  # noqa: PTH207
    if not found:
        what = "no file matches" if glob.has_magic(name) else "there is no file"
        raise FileError(f"{what} {name}")
    return found


def read_one(name: str) -> Any:
    """Return one file's table; one that is being written is refused."""
    if name == STDIN:
        if sys.stdin is None:
            raise FileError("there is no standard input")
        return _parsed(sys.stdin.buffer.read(), "standard input")
    try:
        if not Path(name).is_file():  # a pipe
            return _parsed(Path(name).read_bytes(), name)
        before = state_of(name)
        with Path(name).open("rb") as file:
            head = file.read(16)
        table = _parsed(_contents(name, head), name)
        check_unchanged(name, before)
    except OSError as error:
        raise FileError(f"cannot read {name}: {error.strerror or error}") from None
    return table


def state_of(name: str) -> tuple[int, int, int]:
    """Return what changes when a file is written to."""
    state = Path(name).stat()
    return state.st_size, state.st_mtime_ns, state.st_ino


def check_unchanged(name: str, before: tuple[int, int, int]) -> None:
    """Refuse what was read of a file that was written to meanwhile."""
    if state_of(name) != before:
        raise FileError(f"{name} changed while it was read: wait until it is written, and run this again")


def _contents(name: str, head: bytes) -> Any:
    """Return what Arrow reads from: the file itself if it can be, else its bytes."""
    if kind_of(head) in ("parquet", "feather"):
        import pyarrow

        return pyarrow.memory_map(name)
    return Path(name).read_bytes()


_COMPRESSIONS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": lambda packed: _unzstd(packed),
    b"PK\x03\x04": lambda packed: _unzipped(packed),
}


def _parsed(data: Any, name: str) -> Any:
    """Return the table in a file's content."""
    head = data[:16] if isinstance(data, bytes) else data.read(16)
    n_unpacked = 0
    while head.startswith(tuple(_COMPRESSIONS)):
        if n_unpacked == _MOST_NESTED:
            raise FileError(f"{name} is compressed more than {_MOST_NESTED} times over: unpack it first")
        data = _unpacked(data, name)
        head = data[:16]
        n_unpacked += 1
    if not head.strip():
        raise FileError(f"{name} is empty")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileError(f"{name} is UTF-16: convert it, e.g. with iconv -f utf-16 -t utf-8")
    table = _PARSERS[kind_of(head)](data, name)
    table = table.select(columns_of(table.schema, name))
    if table.num_rows == 0:
        raise FileError(f"{name} has no rows")
    return table


def _unpacked(data: bytes, name: str) -> bytes:
    """Return what is in compressed data, unless it is more than can be read from memory."""
    opened = next(opened for magic, opened in _COMPRESSIONS.items() if data.startswith(magic))
    unpacked = io.BytesIO()
    try:
        with opened(io.BytesIO(data)) as file:
            while part := file.read(_PART):
                unpacked.write(part)
                if unpacked.tell() > _MOST_UNPACKED:
                    raise FileError(f"it holds more than {_MOST_UNPACKED:,} bytes: unpack it first")
    except FileError as error:
        raise FileError(f"{name}: {error}") from None
    # Of a zip file: one with a password is a RuntimeError, one of an unknown compression its kind.
    except (OSError, EOFError, ValueError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise FileError(f"{name} is not a whole compressed file: {error}") from None
    return unpacked.getvalue()


def columns_of(schema: Any, name: str) -> list[str]:
    """Return the names of a file's columns, all different, without what pandas made of an index."""
    names = [column for column in schema.names if not _INDEX.fullmatch(column)]
    if len(set(names)) < len(names):
        twice = next(column for column in names if names.count(column) > 1)
        raise FileError(f"{name} has more than one column named {twice!r}: rename one of them")
    return names


def kind_of(head: bytes) -> str:
    """Return what kind of file begins so, if it is not compressed."""
    if head.startswith(b"PAR1"):
        return "parquet"
    return "feather" if head.startswith((b"ARROW1", b"FEA1")) else "csv"


def _parquet(data: Any, name: str) -> Any:
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_table(_reader(data))
    except (pyarrow.ArrowException, OSError) as error:
        raise FileError(f"{name} is not a whole Parquet file: {first_line(error)}") from None


def _feather(data: Any, name: str) -> Any:
    import pyarrow
    import pyarrow.feather

    try:
        return pyarrow.feather.read_table(_reader(data))
    except (pyarrow.ArrowException, OSError) as error:
        raise FileError(f"{name} is not a whole Feather file: {first_line(error)}") from None


def _csv(data: bytes, name: str) -> Any:
    import pyarrow
    from pyarrow import csv as arrow_csv

    form = csv_form(data[:_HEAD], name)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(name, f"byte {error.start:,}") from None
    # One block: a column's type is that of all its values.
    block = min(max(len(data) + 1, 1 << 20), (1 << 31) - 1)
    try:
        table = arrow_csv.read_csv(
            pyarrow.BufferReader(data),
            arrow_csv.ReadOptions(block_size=block, skip_rows=form.skip_rows),
            form.parse_options,
            arrow_csv.ConvertOptions(**form.convert_options),
        )
    except pyarrow.ArrowException as error:
        raise FileError(f"{name} cannot be read as CSV: {first_line(error)}") from None
    check_csv_names(table.column_names, name)
    return table


class CsvForm(NamedTuple):
    """How a CSV is to be read."""

    skip_rows: int
    parse_options: Any
    convert_options: dict[str, Any]


def csv_form(head: bytes, name: str) -> CsvForm:
    """Return what the first bytes of a CSV tell of its form."""
    from pyarrow import csv as arrow_csv

    text = head.decode("utf-8", errors="ignore")
    if "\0" in text:
        raise FileError(f"{name} is not a CSV, Parquet or Feather file")
    lines = [line for line in text.lstrip("\ufeff").splitlines() if line.strip()]
    said = re.fullmatch(r"sep=(.)", lines[0].strip())  # by Excel
    separator = said[1] if said else _separator(lines[0])
    return CsvForm(
        1 if said else 0,
        arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        {
            "strings_can_be_null": True,
            "decimal_point": _decimal_point(lines[1:], separator),
            "null_values": [*arrow_csv.ConvertOptions().null_values, *_MISSING],
        },
    )


def not_utf8(name: str, where: str) -> FileError:
    """Return the error for text of another encoding."""
    return FileError(f"{name} is not UTF-8 ({where}): convert it, e.g. with iconv -f latin1 -t utf-8")


def check_csv_names(columns: Sequence[str], name: str) -> None:
    """Refuse a CSV whose first line holds numbers, not names."""
    names = [column.strip() for column in columns]
    are_numbers = all(re.fullmatch(r"[+-]?[\d.,]+(e[+-]?\d+)?", column, re.IGNORECASE) for column in names)
    if are_numbers and not all(column.isdigit() for column in names):  # years may be names
        raise FileError(f"{name} has no names of columns: its first line holds numbers; add a line of names")


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


def _unzstd(packed: BinaryIO) -> Any:
    import pyarrow

    return pyarrow.CompressedInputStream(pyarrow.PythonFile(packed, "r"), "zstd")


def _unzipped(packed: BinaryIO) -> IO[bytes]:
    archive = zipfile.ZipFile(packed)
    members = [member for member in archive.namelist() if not member.endswith("/")]
    if "[Content_Types].xml" in members:
        raise FileError("this is an Excel file: save it as CSV")
    if len(members) != 1:
        raise FileError(f"a zip file must hold one file to be read as a table, this one holds {len(members)}")
    return archive.open(members[0])


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
        raise FileError(f"the files' columns are of different types: {first_line(error)}") from None


def _dates_alike(table: Any) -> Any:
    """Return a table with dates and times of one type: a CSV of whole days has another than a Parquet file."""
    import pyarrow

    when = pyarrow.timestamp("us")
    is_date = [pyarrow.types.is_date(kind) or pyarrow.types.is_timestamp(kind) for kind in table.schema.types]
    fields = [field.with_type(when) if odd else field for field, odd in zip(table.schema, is_date, strict=True)]
    return table.cast(pyarrow.schema(fields), safe=False)  # parts of a microsecond are dropped


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text: Arrow adds its own insides."""
    return str(error).strip().split("\n")[0]

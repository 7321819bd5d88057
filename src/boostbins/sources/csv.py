"""CSV as people have it, of any size: the form is found out, and some whole records are read at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from boostbins import _core
from boostbins._threads import checked_threads, map_ordered
from boostbins.sources.content import Content, FileError, first_line

_MIN_BLOCK, _MAX_BLOCK = 2**20, 2**23  # bytes that are parsed together
_VALUES = 2**20  # of a block, about
_LONGEST = 2**26  # bytes that a record may have
_MAX_AT_ONCE = 4  # blocks
_MISSING = ("?", ".", "None", "none")  # besides those that Arrow knows: nothing, NA, NaN, null and the like


class MixedColumnError(FileError):
    """A column that holds numbers or dates up to some line, and something else after it."""

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


class Block(NamedTuple):
    """Some whole records."""

    text: bytes
    is_first: bool  # whether the names of the columns stand before them
    line: int  # they begin at
    offset: int  # they begin at, in the decompressed file
    done: int  # bytes of the file itself that were read before and for them


class CsvFile:
    """A CSV file.

    Parameters
    ----------
    opened : function
        Opens the file.
    name : str
        For messages.
    """

    def __init__(self, opened: Callable[[], AbstractContextManager[Content]], name: str) -> None:
        self.name = name
        self._opened = opened
        with opened() as content:
            self._learn(content)

    def _learn(self, content: Content) -> None:
        """Find out about the form, the names and the types."""
        name = self.name
        text = content.head.decode("utf-8", errors="ignore")
        lines = [line for line in text.lstrip("\ufeff").splitlines() if line.strip()]
        if "\0" in text or not lines:
            raise FileError(f"{name} is not a CSV, Parquet or Feather file")
        named = re.fullmatch(r"sep=(.)", lines[0].strip())  # by Excel
        self._skip_rows = 1 if named else 0
        self._separator = named[1] if named else _separator(lines[0])
        self._decimal_point = _decimal_point(lines[1:], self._separator)
        self._block_size = _block_size(content.head)
        self.names: list[str] = []
        first = next(self._blocks(content), None)
        if first is None:
            raise FileError(f"{name} has no rows")
        table = self._parsed(first, (), ())
        self.names = table.column_names
        _check_names(self.names, name)
        self.schema = table.schema

    def tables(self, columns: Sequence[str], as_text: Collection[str] = ()) -> Iterator[tuple[Any, int]]:
        """Yield the rows as Arrow tables, and how many bytes of the file were read for each.

        Parameters
        ----------
        columns : sequence of str
            Which to read.
        as_text : collection of str
            Those whose values are not to be taken for numbers, or dates.
        """
        families = {field.name: _family(field.type) for field in self.schema}
        texts = {*as_text, *(name for name, family in families.items() if family == "text")}
        done = 0
        with self._opened() as content:
            for block, table in self._all_parsed(content, columns, texts):
                for field in table.schema:
                    known, found = families[field.name], _family(field.type)
                    if known == "nothing" or field.name in texts:
                        families[field.name] = found
                    elif found not in ("nothing", known):
                        raise self._mixed(block, field.name, known)
                yield table, block.done - done
                done = block.done

    def whole(self) -> Any:
        """Return all rows as one Arrow table: a column that holds other things than numbers anywhere is text."""
        import pyarrow

        texts: set[str] = set()
        while True:
            try:
                tables = [table for table, _ in self.tables(self.names, texts)]
            except MixedColumnError as error:
                texts.add(error.column)
            else:
                return pyarrow.concat_tables(tables, promote_options="permissive")

    def _all_parsed(
        self, content: Content, columns: Sequence[str], texts: Collection[str]
    ) -> Iterator[tuple[Block, Any]]:
        n_threads = min(checked_threads(None), _MAX_AT_ONCE)
        return map_ordered(lambda block: (block, self._parsed(block, columns, texts)), self._blocks(content), n_threads)

    def _blocks(self, content: Content) -> Iterator[Block]:
        """Yield the file in pieces that end where a record does."""
        text, line, offset, is_first = b"", 1, 0, True
        while True:
            more = content.file.read(self._block_size)
            text += more
            is_last = len(more) < self._block_size
            end, quote, is_closed = _core.records(text, self._separator)
            too_long = end == 0 and len(text) > _LONGEST
            if quote >= 0 and (is_closed or is_last or too_long):
                raise FileError(
                    f"{self.name}, line {line + _lines(text, quote):,}: a quote opens a value here, and does not close "
                    f"it: close it, or write two quotes for one that belongs to the text"
                )
            if too_long:
                raise FileError(f"{self.name}, line {line:,} is longer than {_LONGEST >> 20} MB: this is no CSV")
            end = len(text) if is_last else end
            if text[:end].strip():
                yield Block(text[:end], is_first, line, offset, content.bytes_read())
                is_first = False
            if is_last:
                return
            line, offset, text = line + _lines(text, end), offset + end, text[end:]

    def _parsed(self, block: Block, columns: Sequence[str], texts: Collection[str], **types: Any) -> Any:
        """Return the rows of a block; of all columns, if none are named."""
        import pyarrow
        from pyarrow import csv

        _check_utf8(block, self.name)
        missing = [*csv.ConvertOptions().null_values, *_MISSING]
        try:
            table = csv.read_csv(
                pyarrow.BufferReader(block.text),
                csv.ReadOptions(
                    use_threads=False,
                    block_size=len(block.text) + 1,
                    skip_rows=self._skip_rows if block.is_first else 0,
                    column_names=None if block.is_first else self.names,
                ),
                csv.ParseOptions(delimiter=self._separator, newlines_in_values=True),
                csv.ConvertOptions(
                    strings_can_be_null=True,
                    decimal_point=self._decimal_point,
                    null_values=missing,
                    include_columns=list(columns),
                    column_types={**dict.fromkeys(texts, pyarrow.string()), **types},
                ),
            )
        except pyarrow.ArrowException as error:
            raise FileError(f"{self.name} cannot be read as CSV: {first_line(error)}") from None
        return dates_alike(table)

    def _mixed(self, block: Block, column: str, family: str) -> MixedColumnError:
        """Return the error for a block whose values of a column are not as those before it."""
        import pyarrow

        message = (
            f"{self.name}, column {column!r} holds {family} up to line {block.line - 1:,}, and something else after it"
        )
        if family == "numbers":
            try:
                self._parsed(block, [column], (), **{column: pyarrow.float64()})
            except FileError as error:
                message = str(error)
        hint = "the lines before hold something else; fix them, or leave the column out"
        return MixedColumnError(f"{message}: {hint}", column)


def dates_alike(table: Any) -> Any:
    """Return a table with dates and times of one type: what a CSV holds of whole days has another otherwise."""
    import pyarrow

    when = pyarrow.timestamp("us")
    is_date = [pyarrow.types.is_date(kind) or pyarrow.types.is_timestamp(kind) for kind in table.schema.types]
    if not any(is_date):
        return table
    fields = [field.with_type(when) if odd else field for field, odd in zip(table.schema, is_date, strict=True)]
    return table.cast(pyarrow.schema(fields), safe=False)  # parts of a microsecond are dropped


def _block_size(head: bytes) -> int:
    """Return how many bytes hold about as many values as are to be parsed together."""
    separators = sum(head.count(sign) for sign in b",;\t|\n\r")
    return min(max(_VALUES * len(head) // max(separators, 1), _MIN_BLOCK), _MAX_BLOCK)


def _lines(text: bytes, end: int) -> int:
    """Return how many lines end before a place in a text."""
    return text.count(b"\n", 0, end) or text.count(b"\r", 0, end)


def _check_utf8(block: Block, name: str) -> None:
    if block.text.isascii():
        return
    try:
        block.text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(
            f"{name} is not UTF-8 (byte {block.offset + error.start:,}): convert it, e.g. with iconv -f latin1 -t utf-8"
        ) from None


def _check_names(columns: Sequence[str], name: str) -> None:
    """Refuse a CSV whose first line holds numbers, not names."""
    names = [column.strip() for column in columns]
    are_numbers = all(re.fullmatch(r"[+-]?[\d.,]+(e[+-]?\d+)?", column, re.IGNORECASE) for column in names)
    if are_numbers and not all(column.isdigit() for column in names):  # years may be names
        raise FileError(f"{name} has no names of columns: its first line holds numbers; add a line of names")


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


def _family(kind: Any) -> str:
    """Return what may stand below each other in a column."""
    from pyarrow import types

    if types.is_null(kind):
        return "nothing"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return "numbers"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "dates"
    return "text" if types.is_string(kind) else str(kind)

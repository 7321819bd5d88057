"""Files that are written whole, or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of a temporary file, which takes the place of `path` when the block ends well."""
    target = Path(path).resolve()  # what a link leads to is written, not the link
    temporary = _temporary(target, Path(path))
    try:
        yield temporary
        if _is_special(target):
            with temporary.open("rb") as written, target.open("wb") as out:
                shutil.copyfileobj(written, out)
        else:
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that cannot be written to, before the work that is to end there."""
    _temporary(Path(path).resolve(), Path(path)).unlink()


def table_writer(path: str) -> Callable[[Iterator[Any], str], None]:
    """Return the function that writes Arrow tables, below each other, of the kind that a file's name asks for."""
    import pyarrow
    from pyarrow import csv, parquet

    compressed = pyarrow.ipc.IpcWriteOptions(compression="lz4")  # as Feather is
    kinds: dict[str, Callable[[str, Any], Any]] = {
        ".parquet": parquet.ParquetWriter,
        ".feather": lambda file, schema: pyarrow.ipc.new_file(file, schema, options=compressed),
        ".arrow": lambda file, schema: pyarrow.ipc.new_file(file, schema, options=compressed),
        ".csv": csv.CSVWriter,
    }
    kind = Path(path).suffix.lower()
    if kind not in kinds:
        raise ValueError(f"a file's name must end in {', '.join(kinds)}, got {path}")

    def write(tables: Iterator[Any], path: str) -> None:
        first = next(tables, None)
        if first is None:
            raise ValueError("there are no rows to be written: nothing is")
        with whole_file(path) as file, kinds[kind](str(file), first.schema) as writer:
            for table in chain([first], tables):
                writer.write_table(table)

    return write


def _temporary(target: Path, named: Path) -> Path:
    """Return a new, empty file in the same folder; elsewhere for a pipe or a device, which cannot be replaced."""
    if target.is_dir():
        raise IsADirectoryError(f"cannot write {named}: it is a folder")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {named}: there is no folder {named.parent}")
    folder = Path(tempfile.gettempdir()) if _is_special(target) else target.parent
    temporary = folder / f".{target.name}.{secrets.token_hex(6)}"
    try:
        temporary.touch(exist_ok=False)  # with the rights that new files have here
    except OSError as error:
        raise type(error)(f"cannot write {named}: {error.strerror}") from None
    return temporary


def _is_special(target: Path) -> bool:
    return target.exists() and not target.is_file()

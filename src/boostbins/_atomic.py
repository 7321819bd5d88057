"""Files that are written whole, or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

_BEGIN, _END = ".boostbins-", ".tmp"  # of the names of temporary files
_ABANDONED = 24 * 60 * 60  # seconds

_NAMED = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_NUMBERED = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})")
_SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of a temporary file, which takes the place of `path` when the block ends well."""
    temporary = _temporary(path)
    _remove_abandoned(temporary)
    try:
        yield temporary
        with _said(path):
            if _is_special(path):
                with temporary.open("rb") as written, _opened(path) as out:
                    shutil.copyfileobj(written, out)
            else:
                target = os.path.realpath(path)  # what a link leads to is written, not the link
                _give_rights(temporary, target)
                temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that cannot be written to, before the work that is to end there."""
    _temporary(path).unlink()


def is_standard_output(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a name of what the results of commands are printed to."""
    return _descriptor(path) == 1


def table_writer(path: str) -> Callable[[Iterator[Any], str], None]:
    """Return the function that writes Arrow tables, below each other, of the kind that a file's name asks for."""
    import pyarrow
    from pyarrow import csv, parquet

    compressed = pyarrow.ipc.IpcWriteOptions(compression="lz4")  # as Feather is
    kinds: dict[str, Callable[[Any, Any], Any]] = {
        ".parquet": parquet.ParquetWriter,
        ".feather": lambda file, schema: pyarrow.ipc.new_file(file, schema, options=compressed),
        ".arrow": lambda file, schema: pyarrow.ipc.new_file(file, schema, options=compressed),
        ".csv": csv.CSVWriter,
    }
    kind = Path(path).suffix.lower()
    with _said(path):
        if not kind and _is_special(path):  # a pipe's name tells nothing
            kind = ".csv"
    if kind not in kinds:
        raise ValueError(f"a file's name must end in {', '.join(kinds)}, got {path}")

    def write(tables: Iterator[Any], path: str) -> None:
        first = next(tables, None)
        if first is None:
            raise ValueError("there are no rows to be written: nothing is")
        # Arrow itself opens no file whose name is not UTF-8.
        with atomic_write(path) as file, file.open("wb") as sink, kinds[kind](sink, first.schema) as writer:
            for table in chain([first], tables):
                writer.write_table(table)

    return write


def _temporary(path: str | os.PathLike[str]) -> Path:
    """Return a new, empty file in the same folder; elsewhere for a pipe or a device, which cannot be replaced."""
    with _said(path):
        if not os.fspath(path):
            raise FileNotFoundError("it has no name")
        there = _state(path)
        if (there is not None and stat.S_ISDIR(there.st_mode)) or os.fspath(path).endswith(_SEPARATORS):
            raise IsADirectoryError("it is a folder")
        target = Path(os.path.realpath(path))
        if _descriptor(path) is None and there is not None and not os.access(path, os.W_OK):
            raise PermissionError("it is protected from being written to")
        if _is_special(path):
            folder = Path(tempfile.gettempdir())
        elif target.parent.is_dir():
            folder = target.parent
        else:
            raise FileNotFoundError(f"there is no folder {Path(path).parent}")
        # The name is of one length, for there is a limit to it. What takes the place of a file may be for few to read.
        temporary = folder / f"{_BEGIN}{secrets.token_hex(8)}{_END}"
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if there is None else 0o600))
    return temporary


def _remove_abandoned(mine: Path) -> None:
    """Remove what writers that were killed have left in a temporary file's folder."""
    # Writing sets a file's time, and no writer pauses for a day. (Whether a process lives tells less: other machines
    # that share the folder have processes of their own. Nor have they the same clock: both times here are from the
    # folder's.) A writer that does lose its file ends with an error.
    with suppress(OSError), os.scandir(mine.parent) as others:
        now = mine.stat().st_mtime
        for other in others:
            if other.name.startswith(_BEGIN) and other.name.endswith(_END):
                with suppress(OSError):
                    if now - other.stat(follow_symlinks=False).st_mtime > _ABANDONED:
                        Path(other).unlink()


def _give_rights(temporary: Path, target: str) -> None:
    """Give a temporary file the owner, the mode and the like of the file that it replaces, as far as possible."""
    with suppress(OSError):  # a new file keeps what new files get
        before = os.stat(target)  # noqa: PTH116
        for owner in ((-1, before.st_gid), (before.st_uid, -1)) if hasattr(os, "chown") else ():
            with suppress(OSError):
                os.chown(temporary, *owner)
        shutil.copystat(target, temporary)
        os.utime(temporary)  # it was written now


@contextmanager
def _said(path: str | os.PathLike[str]) -> Iterator[None]:
    """Tell which file an error is about."""
    try:
        yield
    except OSError as error:
        raise type(error)(f"cannot write {os.fspath(path)}: {error.strerror or error}") from None


# ---- pipes, devices, and what is open already


def _descriptor(path: str | os.PathLike[str]) -> int | None:
    """Return the number of an open file, if a path names it so: opened anew, it would be written from its beginning."""
    name = os.fspath(path)
    numbered = _NUMBERED.fullmatch(name)
    return int(numbered[1]) if numbered else _NAMED.get(name)


def _state(path: str | os.PathLike[str]) -> os.stat_result | None:
    """Return what is known of a file, if there is one."""
    number = _descriptor(path)
    if number is not None:
        os.write(number, b"")  # fails where nothing can be written
        return os.fstat(number)
    try:
        return os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return None


def _is_special(path: str | os.PathLike[str]) -> bool:
    """Return whether a path stands for what is written into, not replaced."""
    there = _state(path)
    return there is not None and (_descriptor(path) is not None or not stat.S_ISREG(there.st_mode))


def _opened(path: str | os.PathLike[str]) -> BinaryIO:
    number = _descriptor(path)
    return Path(path).open("wb") if number is None else os.fdopen(os.dup(number), "wb")

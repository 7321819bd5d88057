"""The files that a name stands for, and what is in them: decompressed, read from the first byte to the last."""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import lzma
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

STDIN = "-"

_HEAD = 64 * 1024  # bytes that tell what a file is, and what a CSV looks like
_MAX_NESTED = 3  # compressions, one in the other
_MAX_UNPACKED = 2**31  # bytes that are held


class FileError(ValueError):
    """A file that cannot be read as a table; the message is meant for the user."""


class Content(NamedTuple):
    """An open file."""

    file: BinaryIO  # decompressed
    head: bytes  # its first bytes
    is_plain: bool  # whether nothing was compressed
    bytes_read: Callable[[], int]  # of the file itself
    name: str  # for messages

    def all(self) -> bytes:
        """Return the whole content, of a kind that cannot be read piece by piece; not without limit, if it unpacks."""
        if self.is_plain:
            return self.file.read()
        data = self.file.read(_MAX_UNPACKED + 1)
        if len(data) > _MAX_UNPACKED:
            raise FileError(f"{self.name} unpacks to more than {_MAX_UNPACKED:,} bytes: unpack it first")
        return data


@contextmanager
def content_of(name: str) -> Iterator[Content]:
    """Open a file, or standard input."""
    with ExitStack() as stack:
        try:
            source: BinaryIO = _standard_input() if name == STDIN else stack.enter_context(Path(name).open("rb"))
        except OSError as error:
            raise FileError(f"cannot read {name}: {error.strerror or error}") from None
        shown = "standard input" if name == STDIN else name
        file = _Layer.over(source.read, f"cannot read {shown}")
        n_layers = 0
        while decompress := next(
            (made for magic, made in _COMPRESSIONS.items() if _head(file).startswith(magic)), None
        ):
            n_layers += 1
            if n_layers > _MAX_NESTED:
                raise FileError(f"{shown} is compressed more than {_MAX_NESTED} times over: unpack it first")
            broken = f"{shown} is not a whole compressed file"
            with _said(broken):
                file = _Layer.over(decompress(file, shown).read, broken)
        yield Content(file, _head(file), n_layers == 0, source.tell, shown)


def content_held(content: Content) -> Callable[[], AbstractContextManager[Content]]:
    """Return a function that opens what can be read only once as often as is asked for."""
    data = content.all()

    def opened() -> AbstractContextManager[Content]:
        file = io.BufferedReader(io.BytesIO(data), _HEAD)
        return nullcontext(Content(file, _head(file), content.is_plain, file.tell, content.name))

    return opened


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


def state_of(name: str) -> tuple[int, int, int]:
    """Return what changes when a file is written to."""
    state = Path(name).stat()
    return state.st_size, state.st_mtime_ns, state.st_ino


def check_unchanged(name: str, before: tuple[int, int, int]) -> None:
    """Refuse what was read of a file that was written to meanwhile."""
    if state_of(name) != before:
        raise FileError(f"{name} changed while it was read: wait until it is written, and run this again")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text: Arrow adds its own insides."""
    return str(error).strip().split("\n")[0]


# ---- layers: a file, and what is compressed in it


class _Layer(io.RawIOBase):
    """What a function reads, as a file whose every read is whole, and whose errors are for the user."""

    def __init__(self, read: Callable[[int], bytes], broken: str) -> None:
        self._read = read
        self._broken = broken

    @classmethod
    def over(cls, read: Callable[[int], bytes], broken: str) -> io.BufferedReader:
        return io.BufferedReader(cls(read, broken), _HEAD)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = 0
        with _said(self._broken):
            while n < len(buffer) and (part := self._read(len(buffer) - n)):
                buffer[n : n + len(part)] = part
                n += len(part)
        return n


@contextmanager
def _said(broken: str) -> Iterator[None]:
    """Turn what goes wrong while a file is read or unpacked into an error for the user."""
    try:
        yield
    except FileError:
        raise
    # Arrow's errors are among the ValueErrors and the OSErrors; an encrypted zip file is a RuntimeError.
    except (OSError, EOFError, ValueError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else first_line(error)
        raise FileError(f"{broken}: {reason}") from None


def _head(file: io.BufferedReader[Any]) -> bytes:
    return file.peek(_HEAD)


def _compression(head: bytes) -> Callable[[io.BufferedReader, str], Any] | None:
    return next((decompress for magic, decompress in _COMPRESSIONS.items() if head.startswith(magic)), None)


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise FileError("there is no standard input")
    return sys.stdin.buffer


def _unzstd(file: io.BufferedReader, name: str) -> Any:
    import pyarrow

    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), "zstd")


def _unzipped(file: io.BufferedReader, name: str) -> Any:
    archive = zipfile.ZipFile(io.BytesIO(file.read()))  # its contents stand at its end
    members = [member for member in archive.namelist() if not member.endswith("/")]
    if "[Content_Types].xml" in members:
        raise FileError(f"{name}: this is an Excel file: save it as CSV")
    if len(members) != 1:
        raise FileError(f"{name}: a zip file must hold one file to be read as a table, this one holds {len(members)}")
    return archive.open(members[0])


_COMPRESSIONS: dict[bytes, Callable[[io.BufferedReader, str], Any]] = {
    b"\x1f\x8b": lambda file, _: gzip.GzipFile(fileobj=file),
    b"BZh": lambda file, _: bz2.BZ2File(file),
    b"\xfd7zXZ\x00": lambda file, _: lzma.LZMAFile(file),  # noqa: SIM115
    b"\x28\xb5\x2f\xfd": _unzstd,
    b"PK\x03\x04": _unzipped,
}


def is_compressed(head: bytes) -> bool:
    """Return whether what begins so is compressed."""
    return _compression(head) is not None

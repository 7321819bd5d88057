"""Files are written whole or not at all, and whatever a name may stand for is treated as what it is."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
import time

import pytest

from boostbins._atomic import atomic_write, check_writable


def write(path, text="new"):
    with atomic_write(path) as file:
        file.write_text(text)


def hidden(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.fixture(autouse=True)
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664, 0o666, 0o755])
def test_what_takes_the_place_of_a_file_has_its_mode(tmp_path, mode):
    path = tmp_path / "bins.json"
    path.touch()
    path.chmod(mode)
    os.utime(path, (0, 0))
    with atomic_write(path) as file:
        assert file.stat().st_mode & 0o777 == 0o600  # nobody else reads it before
        file.write_text("new")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert time.time() - path.stat().st_mtime < 1000
    assert path.read_text() == "new"


def test_a_new_file_has_the_mode_of_new_files(tmp_path):
    write(tmp_path / "a")
    os.umask(0o077)
    write(tmp_path / "b")
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"] == [0o644, 0o600]


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="root alone gives files away")
def test_the_owner_and_the_group_are_kept(tmp_path):
    path = tmp_path / "a"
    path.touch()
    os.chown(path, 1234, 4321)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() == 0, reason="root may write everything")
def test_a_protected_file_is_not_replaced(tmp_path):
    path = tmp_path / "a"
    path.touch(mode=0o444)
    with pytest.raises(PermissionError, match="cannot write .*a: it is protected"):
        write(path)


@pytest.mark.parametrize("length", [1, 250, 255])
def test_a_name_may_be_as_long_as_the_system_takes(tmp_path, length):
    path = tmp_path / ("n" * length)
    check_writable(path)
    write(path)
    assert path.read_text() == "new"
    assert hidden(tmp_path) == []


def test_what_cannot_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    said = {
        "n" * 256: "File name too long",
        "a": os.strerror(errno.ELOOP),
        "folder": "it is a folder",
        "new/": "it is a folder",
        "file/x": "Not a directory",
        "none/x": "there is no folder none",
        "": "it has no name",
        "/dev/fd/987": "Bad file descriptor",
    }
    for path, why in said.items():
        for refused in (check_writable, write):
            with pytest.raises(OSError, match=f"^cannot write {path}: {why}$"):
                refused(path)
    assert (tmp_path / "a").is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder", "a", "b"}


def test_links_are_followed_even_where_they_lead_to_nothing_yet(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to("in/new")
    for text in ("first", "second"):
        write(tmp_path / "link", text)
        assert (tmp_path / "in" / "new").read_text() == text
    assert (tmp_path / "link").is_symlink()


def test_a_name_that_is_not_utf8(tmp_path):
    path = tmp_path / os.fsdecode(b"b\xffd")
    write(path)
    assert list(tmp_path.iterdir()) == [path]


# ---- what killed writers leave


def test_what_killed_writers_left_is_removed_after_a_day(tmp_path):
    killed = "import os, sys; from boostbins._atomic import atomic_write\nwith atomic_write(sys.argv[1]): os._exit(0)"
    for name in ("old", "young"):
        subprocess.run([sys.executable, "-c", killed, tmp_path / "a"], check=True)
        (left,) = set(hidden(tmp_path)) - {".boostbins-old.tmp"}
        assert left.startswith(".boostbins-")
        (tmp_path / left).rename(tmp_path / f".boostbins-{name}.tmp")
    day_ago = time.time() - 25 * 3600
    os.utime(tmp_path / ".boostbins-old.tmp", (day_ago, day_ago))
    for name in (".mine", ".boostbins-notes", "boostbins-1.tmp"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (day_ago, day_ago))
    write(tmp_path / "other")
    assert sorted(hidden(tmp_path)) == [".boostbins-notes", ".boostbins-young.tmp", ".mine"]
    assert (tmp_path / "boostbins-1.tmp").exists()


def test_a_writer_that_lost_its_file_says_so(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(FileNotFoundError, match="cannot write .*a: No such file"), atomic_write(path) as file:
        file.unlink()
    assert path.read_text() == "old"


# ---- pipes and devices


def test_a_named_pipe_gets_it_all_at_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_writable(pipe)  # waits for no reader
    check_writable(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write(pipe, "all of it")
    reader.join(60)
    assert read == ["all of it"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert hidden(tmp_path) == []


def test_what_is_open_is_gone_on_with(tmp_path):
    with (tmp_path / "out").open("wb") as out:
        out.write(b"first, ")
        out.flush()
        for folder in ("/dev/fd", "/proc/self/fd"):
            path = f"{folder}/{out.fileno()}"
            check_writable(path)
            write(path, "then, ")
        out.write(b"last")
    assert (tmp_path / "out").read_text() == "first, then, then, last"
    with (tmp_path / "out").open("rb") as closed_to_us, pytest.raises(OSError, match="Bad file descriptor"):
        check_writable(f"/dev/fd/{closed_to_us.fileno()}")

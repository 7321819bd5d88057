"""What is packed is unpacked piece by piece, and refused where it is too much or damaged."""

from __future__ import annotations

import bz2
import gzip
import lzma
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest

from boostbins import fit_bins
from boostbins.sources import content
from boostbins.sources.content import FileError
from boostbins.sources.reading import read_files
from tests.sources.contents import KINDS, TABLE, written, zipped


def zstd(data):
    return pa.compress(data, "zstd", asbytes=True)


def test_zstd(tmp_path):
    with pa.CompressedOutputStream(str(tmp_path / "data.csv.zst"), "zstd") as file:
        file.write(written())
    assert read_files(tmp_path / "data.csv.zst").equals(TABLE)


def test_what_is_packed_again_and_again_is_refused(tmp_path):
    data = KINDS["plain.csv"]
    for i, pack in enumerate((gzip.compress, zipped, lzma.compress)):
        data = pack(data)
        (tmp_path / "data").write_bytes(data)
        assert read_files(tmp_path / "data").equals(TABLE), i
    for _ in range(2000):
        data = gzip.compress(data, 0)
    (tmp_path / "data").write_bytes(data)
    for read in (read_files, fit_bins):
        with pytest.raises(FileError, match="data is compressed more than 3 times over: unpack it first"):
            read(tmp_path / "data")


PACKED = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zip": zipped, "zst": zstd}


@pytest.mark.parametrize("ending", PACKED)
def test_what_is_too_much_to_be_unpacked_into_memory_is_refused(tmp_path, monkeypatch, ending):
    path = tmp_path / f"bomb.parquet.{ending}"
    data = written(pa.table({"a": np.zeros(200_000)}), kind="parquet", use_dictionary=False, compression="none")
    path.write_bytes(PACKED[ending](data))
    monkeypatch.setattr(content, "_MAX_UNPACKED", len(data))
    assert read_files(path).num_rows == 200_000
    monkeypatch.setattr(content, "_MAX_UNPACKED", len(data) - 1)
    with pytest.raises(FileError, match=f"bomb.parquet.{ending} unpacks to more than .* bytes: unpack it first"):
        read_files(path)


@pytest.mark.parametrize("ending", PACKED)
def test_what_is_damaged_is_refused_wherever_it_is(tmp_path, ending):
    path = tmp_path / f"data.{ending}"
    whole = PACKED[ending](written(pa.table({"a": np.random.default_rng(0).random(2000)})))
    for at in range(len(whole) // 20, len(whole), len(whole) // 20):
        path.write_bytes(whole[:at])
        with pytest.raises(FileError, match=f"data.{ending} is not a whole compressed file: "):
            read_files(path)
        path.write_bytes(whole[:at] + bytes(40) + whole[at + 40 :])
        with suppress(FileError):  # there may be parts that do not matter; zstd of Arrow's has no checksum
            assert read_files(path).num_rows == 2000 or ending == "zst"


def test_a_zip_file_with_a_password_is_refused(tmp_path):
    data = bytearray(zipped(b"a\n1\n"))
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(header) + flags] |= 1
    (tmp_path / "data.zip").write_bytes(data)
    with pytest.raises(FileError, match=r"data\.zip is not a whole compressed file: .* encrypted"):
        read_files(tmp_path / "data.zip")


def test_a_compressed_file_is_unpacked_piece_by_piece(tmp_path):
    """Two gigabytes of zeros, which are no CSV, are not held."""
    with gzip.open(tmp_path / "zeros.gz", "wb", 1) as file:
        file.write(bytes(2**20))
    (tmp_path / "many.gz").write_bytes((tmp_path / "zeros.gz").read_bytes() * 2_048)
    with pytest.raises(FileError, match="is not a CSV, Parquet or Feather file"):
        read_files(tmp_path / "many.gz")

"""LightGBM's binary format, equal in versions 4.3 to 4.7: the features in a file of it, and their cuts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from boostbins.lightgbm._native import BINARY_FILE, LIBRARY
from boostbins.sources.values import Floats


class StoredFeature(NamedTuple):
    """A feature that LightGBM uses, as it is stored."""

    feature_index: int
    cuts: Floats | None  # None for a categorical one
    group: int
    is_bundled: bool  # with others, of which a row has one value at most: so LightGBM has found
    is_about_zero: bool  # whether the bin that is not stored is zero's


def stored_features(data: bytes) -> list[StoredFeature]:
    """Return the features that LightGBM uses."""
    return list(_features(_Binary(data)))


def is_binary(path: Path) -> bool:
    """Return whether a file is of this format."""
    with path.open("rb") as file:
        return file.read(len(BINARY_FILE)) == BINARY_FILE


def write_parameters(path: Path, sample_cnt: int, max_bin_by_feature: Sequence[int]) -> None:
    """Set parameters in a file to those that its Dataset was asked for with: LightGBM loads it with no others."""
    with path.open("r+b") as file:
        length = len(BINARY_FILE) + (-len(BINARY_FILE)) % 8 + 8
        start = file.read(length)
        start += file.read(int(np.frombuffer(start, np.uint64, 1, length - 8)[0]))
        header = _Header(_Binary(start))
        file.seek(header.sample_cnt_at)
        file.write(np.int32(sample_cnt).tobytes())
        file.seek(header.max_bin_by_feature_at)
        file.write(np.array(max_bin_by_feature or [-1] * header.n_total, np.int32).tobytes())


class _Binary:
    """Numbers in sequence, most of them padded to eight bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def numbers(self, dtype: Any, count: int = 1) -> Any:
        size = np.dtype(dtype).itemsize * count
        if self.at + size > len(self.data):
            raise RuntimeError(
                f"LightGBM's binary format is not as expected: boostbins was tested with LightGBM "
                f"{LIBRARY.oldest} and {LIBRARY.newest}"
            )
        found = np.frombuffer(self.data, dtype, count, self.at)
        self.at += -(-size // 8) * 8
        return found

    def number(self, dtype: Any = np.int32) -> int:
        return int(self.numbers(dtype)[0])


class _Header:
    """What stands before the features; reading goes on after it."""

    def __init__(self, binary: _Binary) -> None:
        binary.numbers(np.uint8, len(BINARY_FILE))
        end = binary.number(np.uint64) + binary.at
        _, self.n_features, self.n_total = (binary.number() for _ in range(3))
        binary.at += 2 * 8  # label_idx, max_bin
        self.sample_cnt_at = binary.at
        binary.at += 5 * 8  # bin_construct_sample_cnt, min_data_in_bin, three flags
        binary.numbers(np.int32, self.n_total)  # used_feature_map
        self.n_groups = binary.number()
        self.place_of = binary.numbers(np.int32, self.n_features)
        self.group_of = binary.numbers(np.int32, self.n_features)
        self.within_group = binary.numbers(np.int32, self.n_features)
        binary.numbers(np.uint64, self.n_groups + 1)  # group_bin_boundaries
        binary.numbers(np.int32, self.n_groups)  # group_feature_start
        binary.numbers(np.int32, self.n_groups)  # group_feature_cnt
        self.max_bin_by_feature_at = binary.at
        binary.at = end


def _features(binary: _Binary) -> Iterator[StoredFeature]:
    header = _Header(binary)
    members = zip(header.group_of, header.within_group, header.place_of, strict=True)
    index = {(int(group), int(within)): int(index) for group, within, index in members}
    binary.at = binary.number(np.uint64) + binary.at  # past the metadata
    for group in range(header.n_groups):
        after_group = binary.number(np.uint64) + binary.at
        each_has_its_own = bool(binary.number(np.bool_))  # is_multi_val
        binary.at += 2 * 8  # is_dense_multi_val, is_sparse
        n_members = binary.number()
        for member in range(n_members):
            n_bins = binary.number()
            has_missing_bin = binary.number() == 2  # MissingType::NaN
            binary.at += 2 * 8  # is_trivial, sparse_rate
            is_categorical = binary.number() == 1
            binary.at += 2 * 8  # min_val, max_val
            zero_bin, not_stored = binary.number(), binary.number()  # default_bin, most_freq_bin
            if is_categorical:
                cuts = None
                binary.at += 4 * n_bins  # unpadded
            else:
                cuts = binary.numbers(np.float64, n_bins)[: n_bins - 1 - has_missing_bin]
            is_bundled = n_members > 1 and not each_has_its_own
            yield StoredFeature(index[group, member], cuts, group, is_bundled, zero_bin == not_stored)
        binary.at = after_group

"""The cuts in a dataset that LightGBM wrote: its binary format, equal in versions 4.3 to 4.7."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from boostbins.adapter import Library
from boostbins.inputs import Floats


def cuts_by_place(data: bytes, library: Library) -> dict[int, Floats | None]:
    """Return the cuts of each used feature by its place, None for a categorical one."""
    return dict(_mappers(_Binary(data, library)))


class _Binary:
    """LightGBM's binary format: numbers in sequence, most of them padded to eight bytes."""

    def __init__(self, data: bytes, library: Library) -> None:
        self.data = data
        self.library = library
        self.at = 0

    def numbers(self, dtype: Any, count: int = 1) -> Any:
        size = np.dtype(dtype).itemsize * count
        if self.at + size > len(self.data):
            raise RuntimeError(
                f"LightGBM's binary format is not as expected: boostbins was tested with LightGBM "
                f"{self.library.oldest} and {self.library.newest}"
            )
        found = np.frombuffer(self.data, dtype, count, self.at)
        self.at += -(-size // 8) * 8
        return found

    def number(self, dtype: Any = np.int32) -> int:
        return int(self.numbers(dtype)[0])


def _mappers(binary: _Binary) -> Iterator[tuple[int, Floats | None]]:
    """Yield the place of each used feature and its cuts, None for a categorical one."""
    binary.numbers(np.uint8, len("______LightGBM_Binary_File_Token______\n"))
    after_header = binary.number(np.uint64) + binary.at
    _, n_features, n_total = (binary.number() for _ in range(3))
    binary.at += 7 * 8  # label_idx, max_bin, bin_construct_sample_cnt, min_data_in_bin, three flags
    binary.numbers(np.int32, n_total)  # used_feature_map
    n_groups = binary.number()
    place_of = binary.numbers(np.int32, n_features)
    group_of = binary.numbers(np.int32, n_features)
    within_group = binary.numbers(np.int32, n_features)
    place = {(g, s): int(p) for g, s, p in zip(group_of, within_group, place_of, strict=True)}
    binary.at = after_header
    binary.at = binary.number(np.uint64) + binary.at  # past the metadata
    for group in range(n_groups):
        after_group = binary.number(np.uint64) + binary.at
        binary.at += 3 * 8  # flags
        for feature in range(binary.number()):
            n_bins = binary.number()
            has_missing_bin = binary.number() == 2  # MissingType::NaN
            binary.at += 2 * 8  # is_trivial, sparse_rate
            is_categorical = binary.number() == 1
            binary.at += 4 * 8  # min_val, max_val, default_bin, most_freq_bin
            if is_categorical:
                binary.at += 4 * n_bins  # unpadded
                yield place[group, feature], None
            else:
                yield place[group, feature], binary.numbers(np.float64, n_bins)[: n_bins - 1 - has_missing_bin]
        binary.at = after_group

"""Text files as LightGBM reads them itself: CSV, TSV and LibSVM, with its parameters for columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from boostbins.lightgbm.binary_format import is_binary
from boostbins.lightgbm.settings import Settings
from boostbins.sources.content import FileError, first_line
from boostbins.sources.files import is_plain_text
from boostbins.sources.table import is_sparse
from boostbins.sources.values import Floats

COLUMN_PARAMETERS = ("header", "label_column", "weight_column", "group_column", "ignore_column")
"""Parameters that tell LightGBM what the columns of a text file are."""

_LOOKED_AT = 2**16  # bytes, to see what a file is


class TextFile(NamedTuple):
    """What a text file holds."""

    data: Any  # all features, those that are left out too: an array, or a sparse matrix
    names: list[str]
    left_out: list[int]  # features that are none: weights, groups, and columns to ignore
    label: Floats
    weight: Floats | None


def is_text(path: Path) -> bool:
    """Return whether a file is one that LightGBM reads as text."""
    if is_binary(path):
        return False
    with path.open("rb") as file:
        head = file.read(_LOOKED_AT)
    return is_plain_text(head)


def read_text(path: Path, settings: Settings) -> TextFile:
    """Return what a file holds."""
    with path.open(encoding="utf-8", errors="replace") as file:
        lines = [line for _, line in zip(range(3), file, strict=False)]
    has_header = settings.is_on("header", False)
    header, lines = (lines[0], lines[1:]) if has_header and lines else ("", lines)
    if not lines:
        raise FileError(f"{path} has no rows")
    if any(":" in line for line in lines[:2]):
        return _read_libsvm(path, settings)
    separator = next((map_threads for map_threads in ("\t", ",") if map_threads in lines[0]), None)
    if separator is None:
        raise FileError(f"{path} has neither commas, tabs nor colons: LightGBM reads CSV, TSV and LibSVM files")
    names = [name.strip() for name in header.replace("\t", ",").split(",")] if header else None
    label = _index(settings.get("label_column", 0), names, "label_column")
    columns = _read_columns(path, separator, has_header)
    if label >= len(columns):
        raise ValueError(f"label_column={label}, and {path} has {len(columns)} columns")
    features = [column for index, column in enumerate(columns) if index != label]
    known = None if names is None else [name for index, name in enumerate(names) if index != label]
    return _with_roles(path, np.column_stack(features), known, columns[label], settings)


def _with_roles(path: Path, data: Any, names: list[str] | None, label: Floats, settings: Settings) -> TextFile:
    """Return the features with what LightGBM takes some of them for; indices do not count the label."""
    roles = {name: settings.get(name, None) for name in ("weight_column", "group_column")}
    feature_indices = {name: _index(given, names, name) for name, given in roles.items() if given not in (None, "")}
    ignored = _feature_indices(settings.get("ignore_column", ()), names, "ignore_column")
    weight = None
    if "weight_column" in feature_indices:
        column = data[:, feature_indices["weight_column"]]
        weight = column.toarray().ravel() if is_sparse(column) else column
    elif (file := Path(f"{path}.weight")).is_file():  # LightGBM looks for it
        weight = np.loadtxt(file, ndmin=1)
    n_features = data.shape[1]
    return TextFile(
        data,
        [f"Column_{i}" for i in range(n_features)] if names is None else names,
        sorted({*feature_indices.values(), *ignored}),
        label,
        weight,
    )


def categorical_in_text(settings: Settings, argument: Any, names: Sequence[str]) -> list[int]:
    """Return which features of a text file LightGBM takes as categorical."""
    given = argument if isinstance(argument, list) and argument else settings.get("categorical_feature", ())
    return _feature_indices(given, list(names), "categorical_feature")


def _feature_indices(given: Any, names: list[str] | None, argument: str) -> list[int]:
    if isinstance(given, str):
        prefix, listed = ("name:", given[5:]) if given.startswith("name:") else ("", given)
        given = [prefix + part for part in listed.split(",") if part]
    elif not isinstance(given, Iterable):
        given = [given]
    return [_index(part, names, argument) for part in given]


def _index(given: Any, names: list[str] | None, argument: str) -> int:
    """Return the index of a column that is given by its number, or by its name."""
    text = str(given)
    if not text.startswith("name:"):
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"{argument} must be a number, or 'name:' and a name, got {given!r}") from None
    name = text.removeprefix("name:")
    if names is None:
        raise ValueError(f"{argument}={given!r}: the file has no names without header=True")
    if name not in names:
        raise ValueError(f"{argument}: there is no column {name!r}; there are {', '.join(map(repr, names[:10]))}")
    return names.index(name)


def _read_columns(path: Path, separator: str, has_header: bool) -> list[Floats]:
    if find_spec("pyarrow") is None:
        raise ImportError(f"{path} is read by pyarrow, which is not installed: pip install 'boostbins[files]'")
    import pyarrow
    from pyarrow import csv

    null = csv.ConvertOptions().null_values
    reading = csv.ReadOptions(autogenerate_column_names=True, skip_rows=int(has_header))
    parsing = csv.ParseOptions(delimiter=separator, quote_char=False)
    try:
        with csv.open_csv(path, reading, parsing) as first:
            kinds = dict.fromkeys(first.schema.names, pyarrow.float64())
        converting = csv.ConvertOptions(column_types=kinds, null_values=[*null, "na", "Na", "none", "None"])
        table = csv.read_csv(path, reading, parsing, converting)
    except pyarrow.ArrowException as error:
        raise FileError(f"{path} cannot be read as numbers: {first_line(error)}") from None
    return [column.to_numpy() for column in table.columns]


def _read_libsvm(path: Path, settings: Settings) -> TextFile:
    from sklearn.datasets import load_svmlight_file

    data, label = load_svmlight_file(str(path), zero_based=True)
    return _with_roles(path, data.tocsc(), None, label, settings)

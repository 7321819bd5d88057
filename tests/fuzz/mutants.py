"""What is read back, damaged or forged: refused with a message, or as good as if it had been made here."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import math
import pickle
import struct
import sys
import zipfile
import zlib
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import feather, parquet

from boostbins import METHODS, Bins, ColumnSummary, TableSummary, fit_bins, summarize
from boostbins import bins as bins_module
from boostbins.adapters.features import feature_table
from boostbins.adapters.requested import requested_bins
from tests.fuzz.running import telling
from tests.fuzz.tables import KINDS, any_case

_MOST_MEMORY = 64 * 2**20  # beyond what was there, for the few kB that are read
_NUMBERS = tuple(kind for kind in KINDS if kind not in ("text", "dates", "float16"))


def case(r):
    mutate = r.choice(MUTANTS)
    with telling(mutate.__name__):
        mutate(r)


def small_case(r):
    while True:
        asked = any_case(r, most_rows=300, kinds=_NUMBERS, numbers_only=True)
        if asked.refusal() is None and not asked.may_overflow():
            return asked


@contextmanager
def refusals(*kinds):
    """Let errors pass that are meant for the user."""
    try:
        yield
        return
    except (ValueError, *kinds) as error:
        refusal = error
    # Errors of other libraries and of text are ValueErrors too; those speak of bytes, not of what to do.
    of_others = isinstance(refusal, UnicodeError | json.JSONDecodeError | pa.ArrowException)
    if of_others or len(str(refusal)) < 9:
        raise AssertionError(f"this is no message for the user: {refusal!r}") from refusal


@contextmanager
def little_memory(most=_MOST_MEMORY):
    """Refuse to take much memory beyond what is taken (where Linux tells)."""
    if not sys.platform.startswith("linux"):
        yield
        return
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak
    before = _status("VmRSS")
    yield
    taken = _status("VmHWM") - before
    assert taken < most, f"{taken / 2**20:.0f} MB were taken"


def _status(field):
    with Path("/proc/self/status").open() as file:
        return 1024 * int(next(line for line in file if line.startswith(field)).split()[1])


def damaged(data, r):
    """Bytes with bits flipped, cut out, repeated, overwritten or added; never the same."""
    if not data:
        return b"\0"
    found = bytearray(data)
    while bytes(found) == data:
        for _ in range(r.choice([1, 1, 2, 8])):
            at, size = int(r.integers(len(found) + 1)), int(r.choice([1, 1, 4, 30, 1_000]))
            match r.integers(7):
                case 0 | 1 if at < len(found):
                    found[at] ^= 1 << int(r.integers(8))
                case 2:
                    found[at : at + size] = r.bytes(size)
                case 3:
                    del found[at : at + size]
                case 4:
                    found[at:at] = found[at : at + size]
                case 5:
                    found[at : at + size] = bytes(r.choice([b"\0", b"\xff"])) * len(found[at : at + size])
                case _:
                    del found[at:]
            if not found:
                break
    return bytes(found)


# ---- bins


def json_is_damaged(r):
    bins = small_case(r).bins
    Path("bins.json").write_bytes(damaged(bins.to_json().encode(), r))
    with refusals(), little_memory():
        again = Bins.load("bins.json")
        assert (again, again.stats, again.choices, again.shares) == (bins, bins.stats, bins.choices, bins.shares)


_ODD = [
    None, True, False, 0, 1, -1, 2**63, 10**400, 0.5, -0.0, 1e308, 5e-324, math.nan, math.inf, -math.inf, "", "a",
    "x0", "1", "\ud800", "\0", [], {}, [[]], [None], [1.0], [2.0, 1.0], ["a"], {"a": 1}, [0.0] * 300, [[1.0]],
    {"name": "a", "cuts": [1.0]}, "boostbins.bins",
]  # fmt: skip


def json_is_forged(r):
    asked = small_case(r)
    content = json.loads(asked.bins.to_json())
    del content["sha256"]
    for _ in range(r.choice([1, 1, 2, 5])):
        forge(content, r)
    try:
        text = json.dumps({**content, "sha256": bins_module._checksum(content)})
    except TypeError:  # keys that JSON has not
        return
    with refusals(), little_memory():
        bins = Bins.from_json(text)
        with telling(text[:3_000]):
            check_usable(bins, r)


def forge(content, r):
    """Change something somewhere in a JSON."""
    places = [(content, key) for key in content]
    for here, key in places:
        inner = here[key]
        if isinstance(inner, dict | list):
            keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
            places += [(inner, k) for k in (keys if len(keys) < 9 else r.choice(keys, 9).tolist())]
    if not places:
        return
    here, key = places[r.integers(len(places))]
    match r.integers(6):
        case 0:
            del here[key]
        case 1 if isinstance(here, list):
            here.insert(int(r.integers(len(here) + 1)), deepcopy(here[key]))
        case 2:
            here[key] = [here[key]]
        case 3:
            there, other = places[r.integers(len(places))]
            if (isinstance(there, list) and other < len(there)) or (isinstance(there, dict) and other in there):
                here[key] = deepcopy(there[other])
        case 4 if isinstance(here[key], float | int):
            here[key] = [-here[key], here[key] * 2, str(here[key]), here[key] + 0.5, [here[key]] * 2][r.integers(5)]
        case _:
            here[key] = deepcopy(_ODD[r.integers(len(_ODD))])


def check_usable(bins, r):
    """Bins that were read can do what bins can."""
    assert Bins.from_json(bins.to_json()) == bins
    again = pickle.loads(pickle.dumps(bins))
    assert (again, again.stats, hash(again), repr(again)) == (bins, bins.stats, hash(bins), repr(bins))
    for cuts in bins:
        assert cuts.dtype == np.float64
        assert np.isfinite(cuts).all()
        assert (cuts[1:] > cuts[:-1]).all()
    for reason in (*bins.choices.values(), *bins.shares.values()):
        assert isinstance(reason.why, str)
    if len(bins):
        codes = bins.encode([r.standard_normal(5) for _ in bins])
        assert (codes < bins.missing_code).all()
        if bins.stats is not None:
            assert bins.decode(codes).shape == codes.shape
            bins.decode(codes, kind="center")
            bins.table()
            bins.costs()


# ---- summaries


def bytes_of_a_summary_are_damaged(r):
    asked = small_case(r)
    whole = summarize(asked.numbers, asked.weight, y=asked.target, max_cells=[None, 8, 60][r.integers(3)])
    for held in (whole, whole.columns[0]):
        with refusals(), little_memory():
            assert type(held).from_bytes(damaged(held.to_bytes(), r)) == held


def forged_summary(column, r):
    """A column's bytes with fields of the header or numbers of the body forged, and the checksum made right."""
    data = bytearray(column.to_bytes()[:-4])
    values = [0, 1, 2, 3, 8, 2**31, 2**32, 2**53, 2**60, 2**61, 2**63, 2**64 - 1, int.from_bytes(r.bytes(8))]
    doubles = [0.0, -1.0, math.nan, math.inf, -math.inf, 5e-324, 1e308, float(r.standard_normal())]
    for _ in range(r.choice([1, 1, 2, 4])):
        header = [18, 26, 34, 42, 54, 62, 70, 78, 86, 94, 102, 110]
        body = list(range(118, len(data) - 7, 8))
        at = int(r.choice(body if body and r.random() < 0.5 else header))
        match r.integers(5):
            case 0:
                struct.pack_into("<Q", data, at, int(values[r.integers(len(values))]))
            case 1:
                struct.pack_into("<d", data, at, doubles[r.integers(len(doubles))])
            case 2:
                struct.pack_into("<i", data, 50, int(r.choice([-1, 0, 1, 5, 2000, 2106, 2107, 10**6, 2**31 - 1])))
            case 3 if body:
                data[at : at + 8], data[body[0] : body[0] + 8] = data[body[0] : body[0] + 8], data[at : at + 8]
            case _:
                data[at + int(r.integers(8))] ^= 1 << int(r.integers(8))
    return sealed(data)


def forged_rows(sample, r):
    """A sample's bytes with a number of its header or body forged, and the checksum made right."""
    data = bytearray(sample.to_bytes()[:-4])
    at = int(r.choice([15, 23, 31] if r.random() < 0.5 or len(data) == 39 else range(39, len(data), 8)))
    match r.integers(3):
        case 0:
            odd = [0, 1, 2, 2**31, 2**32, 2**61, 2**63, 2**64 - 1]
            struct.pack_into("<Q", data, at, int(odd[r.integers(len(odd))]))
        case 1:
            odd = [0.0, -1.0, math.nan, math.inf, 5e-324, 1e308]
            struct.pack_into("<d", data, at, odd[r.integers(len(odd))])
        case _:
            data[at + int(r.integers(8))] ^= 1 << int(r.integers(8))
    return sealed(data)


def sealed(body):
    return bytes(body) + struct.pack("<I", zlib.crc32(body))


def a_summary_is_forged(r):
    asked = small_case(r)
    whole = summarize(asked.numbers, asked.weight, y=asked.target, max_cells=[None, 8, 60][r.integers(3)])
    column = whole.columns[r.integers(len(whole))]
    data = forged_summary(column, r)
    with telling(data.hex()), refusals(), little_memory():
        found = ColumnSummary.from_bytes(data)
        assert found.to_bytes() == data
        assert ColumnSummary.from_bytes(found.to_bytes()) == found
        assert isinstance(repr(found), str)
        assert (found + found).n_rows == 2 * found.n_rows
        check_methods(TableSummary([found]), r)


def a_table_of_summaries_is_forged(r):
    asked = small_case(r)
    whole = summarize(asked.numbers, asked.weight, y=asked.target)
    version = int(r.integers(1, 4))
    described = {"names": whole.names, "units": {whole.names[0]: "seconds"} if r.random() < 0.3 else {}}
    names = json.dumps(whole.names if version == 1 else described).encode()
    parts = [column.to_bytes() for column in whole]
    if version > 2:
        odd_rows = [b"", parts[0], *([forged_rows(whole.rows, r)] if whole.rows else [])]
        held = b"" if whole.rows is None else whole.rows.to_bytes()
        parts.append(held if r.random() < 0.5 else odd_rows[r.integers(len(odd_rows))])
    lengths = [len(names), *map(len, parts)]
    odd = [0, 1, 7, 2**31, 2**40, 2**63, 2**64 - 1, sum(lengths)]
    for _ in range(r.choice([0, 1, 2])):
        lengths[r.integers(len(lengths))] = int(odd[r.integers(len(odd))])
    if r.random() < 0.5:
        odd_names = [
            b"[]",
            b"{}",
            b'["a"]',
            b"null",
            b"[" * 10_000,
            b'{"names": ["a"], "units": {"b": 1}}',
            b'{"names": 1}',
        ]
        names = [damaged(names, r), *odd_names][r.integers(1 + len(odd_names))]
    if r.random() < 0.3:
        parts[r.integers(len(whole))] = forged_summary(whole.columns[0], r)
    written = [b"boostbins table" + bytes([version]), struct.pack("<Q", lengths[0]), names]
    for length, part in zip(lengths[1:], parts, strict=True):
        written += [struct.pack("<Q", length), part]
    data = sealed(b"".join(written))
    with telling(data.hex()[:4_000]), refusals(), little_memory():
        found = TableSummary.from_bytes(data)
        again = found.to_bytes()
        assert TableSummary.from_bytes(again) == found
        assert len(again) == len(data) + 8 * (version < 3) or names != json.dumps(described).encode()
        if len(found):
            check_methods(found, r)


def check_methods(summary, r):
    """A summary that was read can be cut, or says why not."""
    total = [{}, {}, {"average_bins": float(r.uniform(2, 99))}, {"total_bins": "auto"}][r.integers(4)]
    bins = fit_bins(summary, str(r.choice(sorted(METHODS))), int(r.integers(2, 60)), **total)
    check_usable(bins, r)


# ---- entries of the cache


def entries_of_the_cache_are_damaged(r):
    asked = small_case(r)

    def requested(method, budget, cache):
        table = feature_table(asked.matrix)
        return requested_bins(
            method, table, [budget] * len(table), sample_weight=asked.weight, bin_cache=cache, limit="max_bins=20"
        )

    methods = [m for m in METHODS if m != "auto"]
    method, other = (str(m) for m in r.choice(methods, 2))
    expected = requested(method, 20, None)
    assert requested(method, 20, "cache") == expected
    [entry] = Path("cache").iterdir()
    right = entry.read_bytes()
    match r.integers(4):
        case 0:  # of another request, under the name of this one
            requested(other, 9, "elsewhere")
            [another] = Path("elsewhere").iterdir()
            entry.write_bytes(another.read_bytes())
        case 1:  # of no request
            entry.write_text(expected.to_json(), encoding="utf-8")
        case 2:
            content = json.loads(right)
            del content["sha256"]
            key = content.pop("key")
            forge(content, r)
            content["key"] = key
            entry.write_text(
                json.dumps({**content, "sha256": bins_module._checksum(content)}), encoding="utf-8", errors="replace"
            )
            # What is sealed and keyed may be taken, if it can be what is asked for.
            found = requested(method, 20, "cache")
            assert found.names == expected.names
            assert max(found.n_bins) <= 20
            return
        case _:
            entry.write_bytes(damaged(right, r))
    found = requested(method, 20, "cache")
    assert (found, found.stats) == (expected, expected.stats)
    assert Bins.load(entry) == expected
    assert [path.name for path in Path("cache").iterdir()] == [entry.name]


# ---- files of tables


def _zip(data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo("data.csv"), data, zipfile.ZIP_DEFLATED)  # of 1980, whenever it is made
    return out.getvalue()


_COMPRESSIONS = {
    "": bytes,
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zip": _zip,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}


def files_are_damaged(r):
    asked = small_case(r)
    columns = dict(asked.numbers)
    if r.random() < 0.3:
        columns["text"] = r.choice(np.array(["a", "b;", 'c"', "ü"], object), asked.n_rows)
    table = pa.table(columns)
    kind = r.choice(["csv", "parquet", "feather"])
    out = io.BytesIO()
    if kind == "csv":
        table.to_pandas().to_csv(out, index=False, sep=str(r.choice([",", ";", "\t"])))
        compression = str(r.choice(list(_COMPRESSIONS)))
    elif kind == "parquet":
        parquet.write_table(table, out, row_group_size=int(r.choice([20, 1_000])), use_dictionary=bool(r.integers(2)),
                            compression=str(r.choice(["none", "snappy", "zstd"])))  # fmt: skip
    else:
        feather.write_feather(table, out, compression=str(r.choice(["lz4", "uncompressed"])), chunksize=100)
    data = out.getvalue()
    if kind == "csv" and r.random() < 0.5:
        data = _COMPRESSIONS[compression](damaged(data, r))  # whole, of damaged text
    else:
        data = damaged(_COMPRESSIONS[compression](data) if kind == "csv" else data, r)
    Path("data").write_bytes(data)
    with telling(f"{kind}: {data[:400]!r}"), refusals(TypeError):
        bins = fit_bins("data", non_numeric="skip", n_threads=1)
        check_usable(bins, r)


def frames_of_odd_files(r):
    """Bytes that are no table at all."""
    heads = [
        b"", b"PAR1", b"ARROW1\0\0", b"FEA1", b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\x00", b"PK\x03\x04", b"\x28\xb5\x2f\xfd",
        b"\xff\xfe", b"\xef\xbb\xbf", b"sep=;\n", b"a,b\n", b'"a\n', b"\n\n\n", b"a\r1\r2\r",
    ]  # fmt: skip
    head = heads[r.integers(len(heads))]
    alphabet = [bytes(range(256)), b'0123456789.,;-+eE\n\t" anNif', b"\0\n"][r.integers(3)]
    body = bytes(r.choice(list(alphabet), r.integers(0, 200)).tolist())
    Path("data").write_bytes(head + body + (b"PAR1" if r.random() < 0.2 else b""))
    with telling(f"{head + body!r}"), refusals(TypeError):
        check_usable(fit_bins("data", non_numeric="skip", n_threads=1), r)


MUTANTS = [
    json_is_damaged,
    json_is_forged,
    json_is_forged,
    bytes_of_a_summary_are_damaged,
    a_summary_is_forged,
    a_summary_is_forged,
    a_table_of_summaries_is_forged,
    entries_of_the_cache_are_damaged,
    files_are_damaged,
    files_are_damaged,
    frames_of_odd_files,
]

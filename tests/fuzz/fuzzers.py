"""The fuzzers by name."""

from __future__ import annotations

from tests.fuzz import laws, mutants, partitions, writers
from tests.fuzz.running import Fuzzer

FUZZERS: dict[str, Fuzzer] = {
    "laws": laws.case,
    "partitions": partitions.case,
    "mutants": mutants.case,
    **({"writers": writers.case} if writers.POSSIBLE else {}),
}

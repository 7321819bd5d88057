"""Random tables of mixed columns, and random requests for their bins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from boostbins import METHODS, Bins, fit_bins

MOST = np.finfo(np.float64).max
_TINY = 5e-324
_VALUES = np.array([0.0, -0.0, 1.0, -1.0, 0.1, 3.0, 1e-9, _TINY, -_TINY, 2.3e-308, 1e17, MOST, -MOST, 1e308, -1e308])


def any_numbers(r, n):
    """Floats of any bits: NaN of both signs, infinities, subnormals, every exponent."""
    return _quiet(r.integers(0, 2**64, n, np.uint64).view(np.float64))


def _quiet(x):
    """Signaling NaN as quiet ones: of the former NumPy and scikit-learn warn, and rightly so."""
    return np.where(np.isnan(x), np.copysign(x.dtype.type(np.nan), x), x)


def _neighbours(r, n):
    start = np.array(abs(r.choice(_VALUES[:11]))).view(np.uint64)
    return (start + r.integers(0, r.integers(2, 2000), n, np.uint64)).view(np.float64) * r.choice([-1, 1])


def _dates(r, n):
    unit = r.choice(["ms", "us", "ns"])
    days = r.integers(-(10**4), 4 * 10**4, n)
    found = (days * 86_400_000 + r.integers(0, 10**6, n)).astype("datetime64[ms]").astype(f"datetime64[{unit}]")
    return np.where(r.random(n) < r.choice([0, 0.3]), np.datetime64("NaT"), found)


def _type(kind):
    def column(r, n):
        info = np.iinfo(kind)
        return r.integers(info.min, info.max, n, kind, endpoint=True)

    return column


KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "constant": lambda r, n: np.full(n, r.choice(_VALUES)),
    "two values": lambda r, n: r.choice(r.choice(_VALUES, 2), n),
    "odd values": lambda r, n: r.choice(_VALUES, n),
    "missing": lambda r, n: np.full(n, np.nan),
    "infinite": lambda r, n: r.choice([np.inf, -np.inf, np.nan, *r.choice(_VALUES, r.integers(0, 3))], n),
    "mostly zero": lambda r, n: np.where(r.random(n) < r.uniform(0.5, 1), 0.0, r.lognormal(0, 2, n)),
    "ties": lambda r, n: np.round(r.standard_normal(n) * r.choice([1, 3, 20]), r.integers(0, 3)),
    "normal": lambda r, n: r.standard_normal(n) * 10.0 ** r.integers(-9, 9),
    "lognormal": lambda r, n: r.lognormal(0, r.uniform(0.1, 5), n),
    "Cauchy": lambda r, n: r.standard_cauchy(n),
    "few": lambda r, n: r.integers(0, r.integers(2, 400), n).astype(np.float64),
    "beyond 2**53": lambda r, n: r.integers(2**53 - 9, 2**53 + r.integers(1, 300), n) * r.choice([-1, 1]),
    "int64": _type(np.int64),
    "uint64": _type(np.uint64),
    "int8": _type(np.int8),
    "uint16": _type(np.uint16),
    "int32": _type(np.int32),
    "bool": lambda r, n: r.random(n) < r.random(),
    "float32": lambda r, n: r.lognormal(0, 3, n).astype(np.float32),
    "any float32": lambda r, n: _quiet(r.integers(0, 2**32, n, np.uint32).view(np.float32)),
    "float16": lambda r, n: r.standard_normal(n).astype(np.float16),
    "subnormal": lambda r, n: r.integers(-20, 80, n) * _TINY,
    "neighbours": _neighbours,
    "any numbers": any_numbers,
    "huge": lambda r, n: r.uniform(-1, 1, n) * MOST,
    "all scales": lambda r, n: r.standard_normal(n) * 10.0 ** r.uniform(-300, 300, n),
    "powers": lambda r, n: r.choice([-1, 1], n) * 2.0 ** r.integers(-1074, 1024, n),
    "far modes": lambda r, n: r.choice([-1e6, 1e6, 1e15], n) + 1e-3 * r.standard_normal(n),
    "steps": lambda r, n: np.sort(r.integers(0, max(n // 2, 1), n)).astype(np.float64),
    "dates": _dates,
    "text": lambda r, n: r.choice(np.array(["a", "b", "ü", "", "nan", "1"], object), n),
}


def any_column(r, n, kinds=tuple(KINDS)):
    """A column of any kind, with what may be strewn into it."""
    column = KINDS[r.choice(kinds)](r, n)
    if column.dtype.kind == "f":
        for value in (np.nan, np.inf, -np.inf, 0.0, -0.0):
            if r.random() < 0.12:
                column = np.where(r.random(n) < r.choice([0.01, 0.2, 0.9]), column.dtype.type(value), column)
    if r.random() < 0.1:
        column = np.sort(column)[:: r.choice([-1, 1])]
    return column


def any_size(r, most=70_000):
    """A number of rows: mostly small."""
    limits = [2, 12, 60, 400, 3_000, 20_000, 70_000]
    limit = r.choice(limits, p=[0.06, 0.19, 0.3, 0.25, 0.15, 0.04, 0.01])
    return int(r.integers(0, min(limit, most) + 1))


@dataclass(frozen=True)
class Case:
    """A table, and what is asked of it."""

    columns: dict[str, np.ndarray]  # dates and texts among them
    method: str
    max_bins: int | list[int] | dict[str, int]
    weight: np.ndarray | None = None
    target: np.ndarray | None = None
    total_bins: int | str | None = None
    average_bins: float | None = None
    kinds: dict[str, str] = field(default_factory=dict)

    @cached_property
    def numbers(self) -> dict[str, np.ndarray]:
        """The columns that can be cut, as any container should be read."""
        return {name: as_numbers(x) for name, x in self.columns.items() if x.dtype != object}

    @cached_property
    def matrix(self) -> np.ndarray:
        return np.column_stack([x.astype(np.float64) for x in self.numbers.values()])

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def budgets(self) -> list[int]:
        if isinstance(self.max_bins, Mapping):
            return [self.max_bins[name] for name in self.numbers]
        return self.max_bins if isinstance(self.max_bins, list) else [self.max_bins] * len(self.numbers)

    @property
    def total(self) -> dict[str, Any]:
        """The total that columns share, as `fit_bins` is asked for it."""
        asked = {"total_bins": self.total_bins, "average_bins": self.average_bins}
        return {name: value for name, value in asked.items() if value is not None}

    @property
    def most(self) -> float:
        """How many bins there may be in all."""
        if self.average_bins is not None:
            return int(self.average_bins * len(self.numbers))
        return self.total_bins if isinstance(self.total_bins, int) else sum(self.budgets)

    def options(self, **others: Any) -> dict[str, Any]:
        """What `fit_bins` is asked, by position where it can be, since arrays have no names."""
        asked = {"method": self.method, "max_bins": self.max_bins, **self.total}
        if isinstance(self.max_bins, Mapping):
            asked["max_bins"] = self.budgets
        return asked | {"sample_weight": self.weight, "y": self.target} | others

    @cached_property
    def bins(self) -> Bins:
        return fit_bins(self.numbers, **self.options())

    @property
    def has_whole_weights(self) -> bool:
        return self.weight is None or bool((self.weight == np.rint(self.weight)).all() and self.weight.max() < 2**20)

    @property
    def has_exact_sums(self) -> bool:
        """Whether the sums of weights and targets are the same in every order."""
        exact_target = self.target is None or self.target.dtype.kind in "bOU" or (
            bool((self.target == np.rint(self.target)).all() and np.abs(self.target).max(initial=0) < 2**10)
        )  # fmt: skip
        return self.has_whole_weights and exact_target

    def rows(self, chosen: np.ndarray) -> Case:
        """The case of some of the rows, with repetitions, in another order."""
        columns = {name: x[chosen] for name, x in self.columns.items()}
        per_row = [None if values is None else values[chosen] for values in (self.weight, self.target)]
        return replace(self, columns=columns, weight=per_row[0], target=per_row[1])

    def refusal(self) -> str | None:
        """What the request must be refused with, if it must."""
        if not self.numbers:
            return "X has no columns"
        if self.n_rows == 0:
            return "X has no rows"
        if self.weight is not None and not self.weight.any():
            return "sample_weight is zero for every row"
        if len(self.total) > 1:
            return "contradict each other"
        if self.average_bins is not None and self.average_bins < 2:
            return "average_bins must be"
        if isinstance(self.total_bins, int) and self.total_bins < 2 * len(self.numbers):
            return "total_bins must be"
        if self.total_bins == "auto" and self.target is None:
            return 'total_bins="auto" needs a target'
        return None

    def may_overflow(self) -> bool:
        """Whether a sum of weights, or of squares times weights, may be infinite."""
        with np.errstate(over="ignore"):
            weight = np.ones(self.n_rows) if self.weight is None else self.weight
            target = np.zeros(1) if self.target is None or self.target.dtype.kind in "bOU" else self.target
            most = float((np.abs(target.astype(np.float64)).max(initial=0.0) + 1.0) ** 2)
            return not 8 * target.size * most * max(weight.sum(), 1.0) < MOST

    def __repr__(self) -> str:
        per_row = {"weight": self.weight, "target": self.target}
        shapes = {name: None if x is None else f"{x.dtype} {x.shape} {x.tolist()[:12]}" for name, x in per_row.items()}
        return f"{self.n_rows} rows of {self.kinds}, {self.method}, {self.max_bins} bins, {self.total}, {shapes}"


def as_numbers(column: np.ndarray) -> np.ndarray:
    """A column as the library takes it: dates as seconds since 1970."""
    if column.dtype.kind != "M":
        return column
    second = np.timedelta64(1, "s").astype(f"timedelta64[{np.datetime_data(column.dtype)[0]}]").astype(np.int64)
    return np.where(np.isnat(column), np.nan, column.view(np.int64) / second)


def any_weight(r, n):
    """Weights of rows: none, whole numbers, zeros, fractional, tiny, huge, of all sizes."""
    kind = r.choice(["none", "whole", "ones", "fractional", "tiny", "huge", "all sizes", "one row"],
                    p=[0.45, 0.2, 0.05, 0.1, 0.05, 0.05, 0.05, 0.05])  # fmt: skip
    if kind == "none":
        return None
    if kind == "whole":
        return r.integers(0, r.choice([2, 3, 6]), n).astype(r.choice([np.int64, np.float64, np.uint8]))
    weight = {
        "ones": lambda: np.ones(n),
        "fractional": lambda: r.random(n),
        "tiny": lambda: r.random(n) * r.choice([1e-300, 1e-310]),
        "huge": lambda: r.random(n) * r.choice([1e300, 1e305]),
        "all sizes": lambda: 10.0 ** r.uniform(-300, 300, n),
        "one row": lambda: (np.arange(n) == r.integers(0, max(n, 1))) * r.choice([1.0, 0.5, 1e-300]),
    }[kind]()
    return np.where(r.random(n) < r.choice([0.0, 0.3]), 0.0, weight)


def any_target(r, n, numbers_only=False):
    """Targets: none, numbers, flags, several, classes as texts."""
    kinds = ["none", "normal", "whole", "flags", "several", "several flags", "constant", "extreme", "classes"]
    kind = r.choice(kinds, p=[0.5, 0.12, 0.1, 0.08, 0.05, 0.05, 0.03, 0.04, 0.03])
    if kind == "none" or (kind == "classes" and numbers_only):
        return None
    return {
        "normal": lambda: r.standard_normal(n),
        "whole": lambda: r.integers(-5, 6, n).astype(r.choice([np.int64, np.float64])),
        "flags": lambda: r.random(n) < 0.3,
        "several": lambda: r.standard_normal((n, r.integers(1, 17))),
        "several flags": lambda: r.random((n, r.integers(1, 17))) < 0.3,
        "constant": lambda: np.full(n, r.choice([0.0, 1.0, 0.1, 1e9])),
        "extreme": lambda: r.standard_normal(n) * r.choice([1e150, 1e-200, 1e-310]),
        "classes": lambda: r.choice(np.array(["x", "y", "z"], r.choice([object, "U1"])), n),
    }[kind]()


def any_case(r, *, most_rows=70_000, kinds=tuple(KINDS), numbers_only=False):
    """A table of one to six columns of any kind, and a request for its bins."""
    n = any_size(r, most_rows)
    names = [f"c{i}" for i in range(r.integers(1, 4 if n > 3_000 else 7))]
    chosen = {name: str(r.choice(kinds)) for name in names}
    columns = {name: any_column(r, n, (kind,)) for name, kind in chosen.items()}
    cut = [name for name in names if columns[name].dtype != object]
    budgets = [int(b) for b in r.choice([2, 3, 7, 31, 255, 256, r.integers(2, 301)], len(cut))]
    max_bins = {0: budgets, 1: dict(zip(cut, budgets, strict=True))}.get(int(r.integers(0, 4)), [*budgets, 16][0])
    method = str(r.choice(sorted(METHODS)))
    total = any_total(r, len(cut), budgets) if cut and r.random() < 0.4 else {}
    return Case(columns, method, max_bins, any_weight(r, n), any_target(r, n, numbers_only), **total, kinds=chosen)


def any_total(r, n_columns, budgets):
    """A total that columns share: a number, an average, as many as are enough; now and then two of them."""
    asked = {
        "total_bins": int(r.integers(2 * n_columns - 1, sum(budgets) + 5)),
        "average_bins": float(r.choice([1.9, 2, 2.5, 16, r.uniform(2, max(budgets) + 2)])),
    }
    if r.random() < 0.3:
        asked["total_bins"] = "auto"
    kept = r.choice([*asked, "both"], p=[0.55, 0.42, 0.03])
    return {name: value for name, value in asked.items() if kept in (name, "both")}

"""The answer for a user's own data: one library trained with each method's bins on the same splits."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbins._threads import Progress, cached_property
from boostbins.comparison.trainers import TRAINERS, Trainer, chosen_trainer
from boostbins.methods import METHODS, Method, named_methods
from boostbins.sources.features import Notes, nearest, numbers_and_categories, taken_out, target_values
from boostbins.sources.values import Floats, positive_weight

if TYPE_CHECKING:
    import pandas as pd

Task: TypeAlias = Literal["auto", "regression", "classification"]

NATIVE = "native"
"""The library's own bins, beside which the others are put."""

COMPARED = tuple(name for name in METHODS if name != "hybrid")
"""What is compared if nothing is said: all but what is for use without a target."""

MATTERS = 1.0  # per cent of the error: a change below it is none worth making
CONFIDENCE = 0.95
ROUNDING = 1e-9  # of the error: what varies less does not vary
FEWEST_ROWS = 100
FEWEST_OF_A_CLASS = 5
FEW_VALUES = 200_000  # rows times columns: so little data is trained faster by one thread, above all on a busy machine
TEST_SHARE = 0.2
FEW_CLASSES = 10  # a target of so few whole numbers is taken as classes
METRICS = {
    "regression": "neg_root_mean_squared_error",
    "binary": "roc_auc",
    "multiclass": "neg_log_loss",
}


# ---- the result


@dataclass(frozen=True)
class Comparison:
    """What each method's bins are worth on one table; `print` it, show it in a notebook, `plot` it, `to_html`.

    Attributes
    ----------
    library, task, metric : str
        What was trained, and what was measured. The *error* is the metric itself where less is better, and 1 minus it
        where more is (so that every method can be compared in per cent).
    scores : pandas.DataFrame
        A row per split, bins and method: `score`, `error` and the seconds of the fit.
    table : pandas.DataFrame
        A row per bins and method: the mean `score` and its interval, the `change` of the error beside the library's
        own bins in per cent (negative: better) with its interval, what that means, and the time of a fit.
    verdict : str
    notes : tuple of str
        On the columns that were changed or left out, and on what was guessed.
    """

    library: str
    task: str
    metric: str
    scores: pd.DataFrame = field(repr=False)
    n_rows: int
    n_columns: int
    notes: tuple[str, ...] = field(repr=False)
    title: str = "your data"
    target: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    is_complete: bool = True

    @property
    def metric_title(self) -> str:
        """The metric's name, without the sign that scikit-learn gives to errors."""
        return self.metric.removeprefix("neg_")

    @property
    def less_is_better(self) -> bool:
        """Return whether the metric is an error."""
        return self.metric.startswith("neg_")

    @property
    def n_splits(self) -> int:
        """The number of splits."""
        return int(self.scores["split"].nunique())

    @cached_property
    def table(self) -> pd.DataFrame:
        """The scores in short, and the change beside the library's own bins."""
        import pandas as pd

        groups = {key: part.set_index("split") for key, part in self.scores.groupby(["max_bins", "method"], sort=False)}
        n_changes = sum(method != NATIVE for _, method in groups)
        rows = []
        for (max_bins, method), part in groups.items():
            base = groups[max_bins, NATIVE]
            reach = _reach(part["score"])
            score = float(part["score"].mean())
            change, low, high = _relative_change(part["error"], base["error"], n_changes)
            rows.append(
                {
                    "max_bins": max_bins,
                    "method": method,
                    "score": score,
                    "score_low": score - reach,
                    "score_high": score + reach,
                    "error": float(part["error"].mean()),
                    "change": change,
                    "change_low": low,
                    "change_high": high,
                    "meaning": "" if method == NATIVE else _meaning(low, high),
                    "seconds": float(part["seconds"].mean()),
                    "time_ratio": float(part["seconds"].sum() / base["seconds"].sum()),
                }
            )
        return pd.DataFrame(rows)

    @cached_property
    def best(self) -> tuple[str, int] | None:
        """The method and the bins to change to: of those worth it, the ones with the least error of all."""
        worth = self.table[(self.table["meaning"] == "better") & (self.table["change"] <= -MATTERS)]
        own = self.table[self.table["method"] == NATIVE]
        if worth.empty or worth["error"].min() > own["error"].min():
            return None
        row = worth.loc[worth["error"].idxmin()]
        return str(row["method"]), int(row["max_bins"])

    @cached_property
    def verdict(self) -> str:
        """What the table says, in a sentence for each number of bins."""
        parts = self.table.groupby("max_bins", sort=False)
        return "\n".join(self._said(int(max_bins), rows) for max_bins, rows in parts)

    def _said(self, max_bins: int, rows: pd.DataFrame) -> str:
        own = f"{TRAINERS[self.library].title}'s own"
        begin = f"At {max_bins} bins "
        native, rows = rows[rows["method"] == NATIVE].iloc[0], rows[rows["method"] != NATIVE]
        if native["error"] == 0:
            return f"{begin}{own} make no error at all: there is nothing to gain."
        better = rows[rows["meaning"] == "better"]
        if len(better):
            top = better.loc[better["change"].idxmin()]
            reach = f"95 % interval {-top['change_high']:.1f} to {-top['change_low']:.1f} %"
            gain = f"{top['method']} lowers the error by {-top['change']:.1f} % ({reach})"
            if top["change"] > -MATTERS:
                return f"{begin}{gain}: certain, but too little to matter."
            natives = self.table[self.table["method"] == NATIVE]
            least = natives.loc[natives["error"].idxmin()]
            if least["error"] < top["error"]:
                return f"{begin}{gain}; but {own} {least['max_bins']} bins make a lower error still."
            return f"{begin}{gain}: worth the change."
        if (rows["meaning"] == "worse").all():
            top = rows.loc[rows["change"].idxmin()]
            return f"{begin}{own} are the best: {top['method']} raises the error by {top['change']:.1f} %."
        unclear = rows[rows["meaning"] == "unclear"]
        if len(unclear):
            top = unclear.loc[unclear["change"].idxmin()]
            known = top["change_low"] == top["change_low"]
            reach = f"95 % interval {top['change_low']:+.1f} to {top['change_high']:+.1f} %" if known else "no interval"
            return (
                f"{begin}the data cannot tell: {top['method']} changes the error by {top['change']:+.1f} % ({reach}). "
                f"More splits or more rows may."
            )
        return f"{begin}no method lowers the error by {MATTERS:g} % or more: stay with {own}."

    @property
    def snippet(self) -> str:
        """The code of the recommended change; of none, if none is worth it."""
        if self.best is None:
            return ""
        method, max_bins = self.best
        trainer = TRAINERS[self.library]
        name = trainer.regressor if self.task == "regression" else trainer.classifier
        values = {**trainer.budget(max_bins), **self.params}
        said = ", ".join(f"{key}={value!r}" for key, value in values.items())
        method = f'"{method}"' if method in METHODS else method
        return f"from boostbins.{self.library} import {name}\n{name}(bin_method={method}, {said})"

    def __str__(self) -> str:
        shown = self.table[["max_bins", "method", "score", "change", "change_low", "change_high", "meaning", "seconds"]]
        return f"{shown.to_string(index=False, float_format=lambda x: f'{x:.4g}')}\n\n{self.verdict}"

    # ---- to look at

    def plot(self, axes: Any = None) -> Any:
        """Draw the change of the error with its interval, per method and number of bins; return the axes."""
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots(layout="constrained", figsize=(7, 0.45 * len(self.table) + 1.2))
        rows = self.table[self.table["method"] != NATIVE].iloc[::-1].reset_index(drop=True)
        colors = {"better": "#1a7f37", "worse": "#b3261e", "same": "#666666", "unclear": "#666666"}
        for place, row in rows.iterrows():
            color = colors[row["meaning"]]
            axes.plot([row["change_low"], row["change_high"]], [place, place], color=color, linewidth=1.5)
            axes.plot(
                row["change"], place, "o", color=color, fillstyle="none" if row["meaning"] == "unclear" else "full"
            )
        axes.axvline(0, color="#999999", linewidth=1)
        axes.set_yticks(range(len(rows)), [f"{row.method}, {row.max_bins} bins" for row in rows.itertuples()])
        axes.set_xlabel(
            f"change of the error ({self.metric_title}) in %, beside {TRAINERS[self.library].title}'s own bins\n"
            f"with 95 % intervals; left is better"
        )
        axes.spines[["top", "right"]].set_visible(False)
        return axes

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return {
            "title": self.title,
            "library": self.library,
            "library_title": TRAINERS[self.library].title,
            "library_version": import_module(self.library).__version__,
            "task": self.task,
            "target": self.target,
            "metric": self.metric_title,
            "less_is_better": self.less_is_better,
            "rows": self.n_rows,
            "columns": self.n_columns,
            "splits": self.n_splits,
            "is_complete": self.is_complete,
            "confidence": CONFIDENCE,
            "matters": MATTERS,
            "table": _plain(self.table),
            "scores": _plain(self.scores),
            "verdict": self.verdict.split("\n"),
            "best": None if self.best is None else {"method": self.best[0], "max_bins": self.best[1]},
            "snippet": self.snippet,
            "notes": list(self.notes),
        }

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a page that needs nothing else, and write it to a file if one is named."""
        from boostbins.reporting.page import page

        return page(comparison=self.to_dict(), path=path)

    def _repr_html_(self) -> str:
        from boostbins.reporting.page import framed

        return framed(self.to_html())


def _plain(frame: pd.DataFrame) -> list[dict[str, Any]]:
    finite = frame.astype(object).where(frame.notna() & ~frame.isin([np.inf, -np.inf]), None)
    return [{str(key): value for key, value in row.items()} for row in finite.to_dict("records")]


# ---- the statistics


def _mean_error(values: pd.Series) -> float:
    """Return the standard error of a mean over splits that overlap: Nadeau and Bengio, 2003."""
    return float(np.sqrt((1 / len(values) + TEST_SHARE / (1 - TEST_SHARE)) * values.var(ddof=1)))


def _reach(values: pd.Series, n_intervals: int = 1) -> float:
    """Return half the length of the interval of a mean; of one among so many that all are right at once."""
    from scipy import stats

    outside = (1 - CONFIDENCE) / max(n_intervals, 1)
    return float(stats.t.ppf(1 - outside / 2, len(values) - 1) * _mean_error(values))


def _relative_change(error: pd.Series, base: pd.Series, n_intervals: int) -> tuple[float, float, float]:
    """Return the change of the mean error in per cent, and its interval.

    That of a ratio of means, by its linearization; where that has no width, that of the difference. Differences that do
    not vary at all tell nothing of other rows: they have no interval.
    """
    if np.array_equal(error, base):
        return 0.0, 0.0, 0.0
    if base.mean() == 0:
        return np.inf, np.nan, np.nan
    ratio = error.mean() / base.mean()
    reaches = (_reach(error - ratio * base, n_intervals), _reach(error - base, n_intervals))
    reach = next((reach for reach in reaches if reach > ROUNDING * base.mean()), np.nan)
    change, spread = 100 * float(ratio - 1), 100 * reach / float(base.mean())
    return change, max(change - spread, -100.0) if spread == spread else np.nan, change + spread


def _meaning(low: float, high: float) -> str:
    if high < 0:
        return "better"
    if low > 0:
        return "worse"
    return "same" if low > -MATTERS and high < MATTERS else "unclear"


# ---- the work


def compare(
    X: Any,
    y: ArrayLike | str,
    library: str | None = None,
    methods: Sequence[str | Method] | Mapping[str, str | Method] = COMPARED,
    max_bins: int | Sequence[int] = (255, 63),
    *,
    task: Task = "auto",
    metric: str | None = None,
    splits: int = 5,
    sample_weight: ArrayLike | str | None = None,
    params: Mapping[str, Any] | None = None,
    max_rows: int | None = None,
    random_state: int = 0,
    title: str = "your data",
    progress: Progress | None = None,
) -> Comparison:
    """Train a library with each method's bins and with its own, on the same splits.

    Text columns of few values are categories, which the library handles itself; others are left out. Dates are taken
    as seconds. `notes` says so. When interrupted (Ctrl-C) after two splits, what is measured by then is returned.

    Parameters
    ----------
    X : array or frame
    y : array of shape (rows,), or the name of a column of X
    library : "lightgbm", "xgboost", "catboost" or "sklearn", optional
        The first of these that is installed, if not given.
    methods : sequence of str or functions, or dict by name
        As for `fit_bins`; all but "hybrid", if not given. The library's own bins are always there, as "native". What
        looks at the target, as "auto" does, sees that of the training rows only.
    max_bins : int or sequence of int
    task : "auto", "regression" or "classification"
        By itself, text, two values and at most ten whole numbers are classes.
    metric : str, optional
        By scikit-learn's names. The root mean squared error, the AUC of two classes or the log loss of more.
    splits : int
        So many times, a fifth of the rows is drawn at random (by class, for classes) to test on.
    sample_weight : array of shape (rows,), or the name of a column of X, optional
    params : dict, optional
        Parameters of the library's estimator. Its own defaults otherwise (but 200 trees for CatBoost).
    max_rows : int, optional
        Compare on a random sample of so many rows.
    random_state : int
    title : str
        What the data is called on the page.
    progress : function, optional
        Called with the number of fits done, of all fits, and the one that begins.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.lognormal(0, 2, (2000, 2))
    >>> result = compare(X, X.sum(axis=1), "sklearn", ["kmeans"], max_bins=31, params={"max_iter": 20})
    >>> print(result.verdict)  # doctest: +ELLIPSIS
    At 31 bins kmeans lowers the error by ... %): worth the change.
    """
    trainer = chosen_trainer(library)
    budgets = _checked_budgets(max_bins)
    named = {NATIVE: None, **{name: method for name, method in named_methods(methods).items() if name != NATIVE}}
    if len(named) == 1:
        raise ValueError(f"methods must name one at least, of {', '.join(map(repr, METHODS))}")
    _check_whole(splits, 2, "splits")
    _check_whole(random_state, 0, "random_state")
    if max_rows is not None:
        _check_whole(max_rows, FEWEST_ROWS, "max_rows")
    own = trainer.own_names(params or {})
    features, target, weight = taken_out(X, y, sample_weight)
    frame, notes = numbers_and_categories(features, trainer.most_categories(min(budgets)))
    if frame.shape[1] == 0:
        raise ValueError("there is no column to train on beside the target: it takes numbers, or categories")
    if not any(frame[name].dtype != "category" for name in frame.columns):
        raise ValueError("there is no numeric column: nothing to bin")
    if len(frame) < FEWEST_ROWS:
        raise ValueError(f"there are {len(frame)} rows, and to compare methods takes at least {FEWEST_ROWS}")
    labels, kind = _checked_target(target_values(target, len(frame)), task, notes)
    weights = None if weight is None else positive_weight(weight, len(frame), "sample_weight")
    if max_rows is not None and max_rows < len(frame):
        rows = np.sort(np.random.default_rng(random_state).permutation(len(frame))[:max_rows])
        notes.append(f"a random sample of {len(rows):,} of {len(frame):,} rows")
        frame, labels = frame.iloc[rows].reset_index(drop=True), labels[rows]
        weights = None if weights is None else weights[rows]
    metric = metric or METRICS[kind]
    is_small = frame.size <= FEW_VALUES
    settings = {**(trainer.one_thread if is_small else {}), **own}
    job = _Job(trainer, kind, frame, labels, weights, settings, _scorer(metric), metric, random_state)
    with _one_thread(trainer, kind) if is_small else nullcontext():
        found, is_complete = _collected(job, named, budgets, _split_rows(labels, kind, splits, random_state), progress)
    if not is_complete:
        notes.append(f"interrupted: {found['split'].nunique()} of {splits} splits")
    name = y if isinstance(y, str) else None
    return Comparison(
        trainer.module, kind, metric, found, len(frame), frame.shape[1], tuple(notes), title, name, own, is_complete
    )


def _one_thread(trainer: Trainer, task: str) -> Any:
    """Return a context in which the library's pools have one thread."""
    from threadpoolctl import threadpool_limits

    trainer.estimator(task)  # loads the library: limits hold for what is loaded
    return threadpool_limits(1)


def _collected(
    job: _Job,
    methods: Mapping[str, Method | None],
    budgets: Sequence[int],
    splits: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
    progress: Progress | None,
) -> tuple[pd.DataFrame, bool]:
    """Return the scores of all fits; or of the whole splits, if interrupted after two."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    per_split = len(budgets) * len(methods)
    is_complete = True
    try:
        for row in job.measured(methods, budgets, splits, progress):
            rows.append(row)
    except KeyboardInterrupt:
        rows = rows[: len(rows) // per_split * per_split]
        if len(rows) < 2 * per_split:
            raise
        is_complete = False
    return pd.DataFrame(rows), is_complete


@dataclass(frozen=True)
class _Job:
    """What is the same in all fits."""

    trainer: Trainer
    task: str
    frame: pd.DataFrame
    target: NDArray[Any]
    weight: Floats | None
    params: Mapping[str, Any]
    scorer: Any
    metric: str
    random_state: int

    def measured(
        self,
        methods: Mapping[str, Method | None],
        budgets: Sequence[int],
        splits: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
        progress: Progress | None,
    ) -> Iterator[dict[str, Any]]:
        """Yield a row per fit, split by split."""
        features, categories = self.trainer.data(self.frame)
        total, done = len(splits) * len(budgets) * len(methods), 0
        for split, (train, test) in enumerate(splits):
            for max_bins in budgets:
                for name, method in methods.items():
                    if progress is not None:
                        progress(done, total, f"{name}, {max_bins} bins")
                    score, seconds = self._fitted(method, max_bins, features, categories, train, test)
                    # scikit-learn gives errors a minus sign, so that more is always better.
                    shown = -score if self.metric.startswith("neg_") else score
                    error = shown if self.metric.startswith("neg_") else 1 - shown
                    if error < 0:
                        raise ValueError(f"metric {self.metric!r} has no best value of 0 or 1: choose one that has")
                    yield {
                        "split": split,
                        "max_bins": max_bins,
                        "method": name,
                        "score": shown,
                        "error": error,
                        "seconds": seconds,
                    }
                    done += 1
        if progress is not None:
            progress(done, total, "")

    def _fitted(
        self,
        method: Method | None,
        max_bins: int,
        features: pd.DataFrame,
        categories: Mapping[str, Any],
        train: NDArray[np.intp],
        test: NDArray[np.intp],
    ) -> tuple[float, float]:
        own = {
            self.trainer.seed: self.random_state,
            **self.trainer.settings,
            **categories,
            **self.trainer.budget(max_bins),
            **self.params,
        }
        weighted = {} if self.weight is None else {"sample_weight": self.weight[train]}
        X_train, y_train = features.iloc[train], self.target[train]
        start = time.perf_counter()
        try:
            model = self.trainer.estimator(self.task)(bin_method=method, **own)
            model.fit(X_train, y_train, **weighted)
        except Exception as error:
            why = str(error).strip().split("\n")[0]
            raise ValueError(f"{self.trainer.title} could not be trained on this: {why}") from error
        seconds = time.perf_counter() - start
        tested = {} if self.weight is None else {"sample_weight": self.weight[test]}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of a metric that means nothing here
                return float(self.scorer(model, features.iloc[test], self.target[test], **tested)), seconds
        except (ValueError, TypeError, AttributeError, Warning) as error:
            raise ValueError(f"metric {self.metric!r} cannot be used for this {self.task} target: {error}") from None


# ---- what is asked, checked


def _check_whole(value: Any, least: int, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


def _checked_budgets(max_bins: int | Sequence[int]) -> list[int]:
    budgets = [max_bins] if isinstance(max_bins, int | np.integer) else list(max_bins)
    for n in budgets:
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 2 <= n <= 255:
            raise ValueError(f"max_bins must be whole numbers from 2 to 255, got {n!r}")
    if not budgets:
        raise ValueError("max_bins must hold a number at least")
    return [int(n) for n in dict.fromkeys(budgets)]


def _checked_target(values: NDArray[Any], task: str, notes: Notes) -> tuple[NDArray[Any], str]:
    """Return numbers, or the numbers of classes, and the kind of task."""
    import pandas as pd

    if task not in ("auto", "regression", "classification"):
        raise ValueError(f"task must be 'auto', 'regression' or 'classification', got {task!r}")
    series = pd.Series(values)
    is_number = values.dtype.kind in "iuf"
    counts = series.value_counts()
    if len(counts) < 2:
        raise ValueError(f"the target has one value only ({series.iloc[0]})")
    if task == "auto":
        is_whole = is_number and bool((series % 1 == 0).all())
        are_few = is_whole and len(counts) <= FEW_CLASSES and counts.min() >= FEWEST_OF_A_CLASS
        task = "classification" if not is_number or len(counts) == 2 or are_few else "regression"
        if task == "classification" and is_number and len(counts) > 2:
            notes.append(
                f"the target has {len(counts)} whole values, taken as classes: task 'regression' if they are not"
            )
    if task == "regression":
        if not is_number:
            raise ValueError(f"the target is {series.dtype}, not numbers: choose the task 'classification' for classes")
        numbers = series.to_numpy(np.float64)
        if not np.isfinite(numbers).all():
            raise ValueError("the target has infinite values: remove those rows")
        return numbers, "regression"
    or_numbers = ", or choose the task 'regression'" if is_number else ""
    if len(counts) > max(len(series) // FEWEST_OF_A_CLASS, 2):
        raise ValueError(
            f"the target has {len(counts):,} different values in {len(series):,} rows: too many to be classes"
            f"{or_numbers}"
        )
    if counts.min() < FEWEST_OF_A_CLASS:
        few = "one row only" if counts.min() == 1 else f"{counts.min()} rows only"
        raise ValueError(
            f"class {str(counts.idxmin())!r} has {few}, and {FEWEST_OF_A_CLASS} are needed to be in training and test: "
            f"remove it, put it in another class{or_numbers}"
        )
    return pd.factorize(series, sort=True)[0], "binary" if len(counts) == 2 else "multiclass"


def _scorer(metric: str) -> Any:
    from sklearn.metrics import get_scorer, get_scorer_names

    names = get_scorer_names()
    if not isinstance(metric, str):
        raise TypeError(f"metric must be the name of one of scikit-learn's, got {metric!r}")
    if metric not in names:
        usual = {"rmse": "root_mean_squared_error", "mse": "mean_squared_error", "mae": "mean_absolute_error"}
        usual |= {"auc": "roc_auc", "logloss": "log_loss"}
        meant = usual.get(metric.lower(), metric)
        found = [name for name in (meant, f"neg_{meant}") if name in names]
        hint = f": did you mean {found[0]!r}?" if found else nearest(metric, names)
        raise ValueError(f"metric must be one of scikit-learn's, got {metric!r}{hint}")
    return get_scorer(metric)


def _split_rows(
    target: NDArray[Any], task: str, splits: int, random_state: int
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

    kind = ShuffleSplit if task == "regression" else StratifiedShuffleSplit
    drawn = kind(splits, test_size=TEST_SHARE, random_state=random_state)
    try:
        return list(drawn.split(target, target))
    except ValueError as error:
        raise ValueError(f"the rows cannot be split by class: {error}") from None

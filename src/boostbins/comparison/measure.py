"""The answer for a user's own data: one library trained with each method's bins on the same splits."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbins._threads import Progress
from boostbins.comparison.result import NATIVE, Comparison
from boostbins.comparison.statistics import TEST_SHARE
from boostbins.comparison.trainers import SHARED, Trainer, chosen_trainer
from boostbins.methods import METHODS, Method, named_methods
from boostbins.sources.features import Notes, numbers_and_categories, target_values
from boostbins.sources.files import as_table
from boostbins.sources.reading import in_memory
from boostbins.sources.request import Request, nearest
from boostbins.sources.stream import selected
from boostbins.sources.values import Floats, positive_weight

if TYPE_CHECKING:
    import pandas as pd


Task: TypeAlias = Literal["auto", "regression", "classification"]

COMPARED = (*(name for name in METHODS if name != "hybrid"), *SHARED)
"""What is compared by default: all but what is for use without a target, and k-means bins that columns share."""
MIN_ROWS = 100
MIN_OF_A_CLASS = 5
FEW_VALUES = 200_000  # rows times columns: so little data is trained faster by one thread, above all on a busy machine
FEW_CLASSES = 10  # a target of so few whole numbers is taken as classes
METRICS = {
    "regression": "neg_root_mean_squared_error",
    "binary": "roc_auc",
    "multiclass": "neg_log_loss",
}


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
    X : array, frame or dict of columns; file or files; stream
        As for `fit_bins`; what is not in memory is read whole.
    y : array of shape (rows,), or the name of a column of X
    library : "lightgbm", "xgboost", "catboost" or "sklearn", optional
        The first of these that is installed, if not given.
    methods : sequence of str or functions, or dict by name
        As for `fit_bins`; all but "hybrid", if not given. "shared" is k-means with `max_bins` per column on average,
        shared by what the target needs (``average_bins``), "auto-bins" with as many as are enough, whatever `max_bins`
        (``total_bins="auto"``). The library's own bins are always there, as "native". What looks at the target, as
        "auto" and these two do, sees that of the training rows only.
    max_bins : int or sequence of int
    task : "auto", "regression" or "classification"
        By itself, text, two values and at most ten whole numbers are classes.
    metric : str, optional
        By scikit-learn's names. The root mean squared error, the AUC of two classes or the log loss of more.
    splits : int
        This many times, a fifth of the rows is drawn at random (by class, for classes) to test on.
    sample_weight : array of shape (rows,), or the name of a column of X, optional
    params : dict, optional
        Parameters of the library's estimator. Its own defaults otherwise (but 200 trees for CatBoost).
    max_rows : int, optional
        Compare on a random sample of this many rows.
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
    asked = named_methods(methods, also=tuple(SHARED))
    named = {NATIVE: None, **{name: method for name, method in asked.items() if name != NATIVE}}
    if len(named) == 1:
        raise ValueError(f"methods must name one at least, of {', '.join(map(repr, [*METHODS, *SHARED]))}")
    _check_whole(splits, 2, "splits")
    _check_whole(random_state, 0, "random_state")
    if max_rows is not None:
        _check_whole(max_rows, MIN_ROWS, "max_rows")
    own = trainer.own_names(params or {})
    request = Request(per_row={"y": y, "sample_weight": sample_weight}, texts=["y"])
    features, per_row = selected(as_table(in_memory(X)), request)
    target, weight = per_row.get("y", y), per_row.get("sample_weight", sample_weight)
    frame, notes = numbers_and_categories(features, trainer.most_categories(min(budgets)))
    if frame.shape[1] == 0:
        raise ValueError("there is no column to train on besides the target: it takes numbers, or categories")
    if not any(frame[name].dtype != "category" for name in frame.columns):
        raise ValueError("there is no numeric column: nothing to bin")
    if len(frame) < MIN_ROWS:
        raise ValueError(f"there are {len(frame)} rows, and to compare methods takes at least {MIN_ROWS}")
    labels, kind = _checked_target(target_values(target, len(frame), "y"), task, notes)
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
    methods: Mapping[str, Any],
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
        methods: Mapping[str, Any],
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
        method: Any,
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
            **self.trainer.binning(method, max_bins),
            **self.params,
        }
        weighted = {} if self.weight is None else {"sample_weight": self.weight[train]}
        X_train, y_train = features.iloc[train], self.target[train]
        start = time.perf_counter()
        try:
            model = self.trainer.estimator(self.task)(**own)
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
        are_few = is_whole and len(counts) <= FEW_CLASSES and counts.min() >= MIN_OF_A_CLASS
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
    if len(counts) > max(len(series) // MIN_OF_A_CLASS, 2):
        raise ValueError(
            f"the target has {len(counts):,} different values in {len(series):,} rows: too many to be classes"
            f"{or_numbers}"
        )
    if counts.min() < MIN_OF_A_CLASS:
        few = "one row only" if counts.min() == 1 else f"{counts.min()} rows only"
        raise ValueError(
            f"class {str(counts.idxmin())!r} has {few}, and {MIN_OF_A_CLASS} are needed to be in training and test: "
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

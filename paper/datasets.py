"""The 35 tasks of the paper's benchmark, and their data: from a local folder, or from OpenML.

The tasks are the numerical suites 336 (regression) and 337 (classification) of Grinsztajn et al., "Why do tree-based
models still outperform deep learning on tabular data?" (NeurIPS 2022). The paper lists all 35 and trains on 33.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import skew

FOLDER_VARIABLE = "BOOSTBINS_DATA"


class DatasetError(Exception):
    """Neither the folder nor OpenML has a dataset; the message says what to do."""


@dataclass(frozen=True)
class Task:
    """One task, as the paper describes it."""

    track: str
    name: str
    openml_task: int
    rows: int
    features: int  # the target not counted
    skew: float | None  # mean over the features; the paper gives none for the tasks that it leaves out
    used: bool = True

    @property
    def key(self) -> str:
        """Two names occur in both tracks."""
        return f"{self.track}/{self.name}"

    @property
    def metric(self) -> str:
        """Return what the paper scores it by."""
        return "mse" if self.track == "regression" else "roc_auc"

    @property
    def title(self) -> str:
        """Return its name, with the track where that is not the usual one of two."""
        is_second = self.track == "classification" and f"regression/{self.name}" in BY_KEY
        return f"{self.name} (class.)" if is_second else self.name

    @property
    def half(self) -> str:
        """Return which half of the datasets it is in: see `is_development`."""
        return DEVELOPMENT if is_development(self.name) else KEPT_ASIDE


DEVELOPMENT, KEPT_ASIDE = "development", "kept aside"


def is_development(name: str) -> bool:
    """Return whether constants may be tuned on a dataset: on half of them, by name. The others are only looked at."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2 == 0


TASKS = (
    Task("regression", "cpu_act", 361072, 8192, 21, 5.40),
    Task("regression", "pol", 361073, 15000, 26, 4.78),
    Task("regression", "elevators", 361074, 16599, 16, -0.60),
    Task("regression", "wine_quality", 361076, 6497, 11, 1.36),
    Task("regression", "Ailerons", 361077, 13750, 33, 0.60),
    Task("regression", "houses", 361078, 20640, 8, 2.23),
    Task("regression", "house_16H", 361079, 22784, 16, 6.14),
    Task("regression", "diamonds", 361080, 53940, 6, 1.03),
    Task("regression", "Brazilian_houses", 361081, 10692, 8, 30.23),
    Task("regression", "Bike_Sharing_Demand", 361082, 17379, 6, 0.06),
    Task("regression", "nyc-taxi-green-dec-2016", 361083, 581835, 9, 2.56),
    Task("regression", "house_sales", 361084, 21613, 15, 2.40),
    Task("regression", "sulfur", 361085, 10081, 6, -0.03),
    Task("regression", "medical_charges", 361086, 163065, 3, 5.02),
    Task("regression", "MiamiHousing2016", 361087, 13932, 13, 0.93),
    Task("regression", "superconduct", 361088, 21263, 79, 0.67),
    Task("regression", "yprop_4_1", 361279, 8885, 42, -0.29),
    Task("regression", "abalone", 361280, 4177, 7, 0.62),
    Task("regression", "delays_zurich_transport", 361281, 5465575, 8, None, used=False),
    Task("classification", "credit", 361055, 16714, 10, 20.17),
    Task("classification", "electricity", 361060, 38474, 7, 12.07),
    Task("classification", "covertype", 361061, 566602, 10, 0.28),
    Task("classification", "pol", 361062, 10082, 26, 5.34),
    Task("classification", "house_16H", 361063, 13488, 16, 5.78),
    Task("classification", "MagicTelescope", 361065, 13376, 10, 0.58),
    Task("classification", "bank-marketing", 361066, 10578, 7, 3.65),
    Task("classification", "MiniBooNE", 361068, 72998, 50, -11.68),
    Task("classification", "Higgs", 361069, 940160, 24, None, used=False),
    Task("classification", "eye_movements", 361070, 7608, 20, 3.18),
    Task("classification", "Diabetes130US", 361273, 71090, 7, 5.48),
    Task("classification", "jannis", 361274, 57580, 54, -0.22),
    Task("classification", "default-of-credit-card-clients", 361275, 13272, 20, 5.55),
    Task("classification", "Bioresponse", 361276, 3434, 419, 6.95),
    Task("classification", "california", 361277, 20634, 8, 19.56),
    Task("classification", "heloc", 361278, 10000, 22, -0.32),
)
BY_KEY = {task.key: task for task in TASKS}


def tasks_named(name: str) -> list[Task]:
    """Return the tasks that a name stands for: "track/name", or a name alone, in either track."""
    found = [task for task in TASKS if name in (task.key, task.name)]
    if not found:
        raise ValueError(f"unknown dataset {name!r}: `python -m paper datasets` lists them")
    return found


@dataclass(frozen=True)
class Dataset:
    """A task with its data."""

    task: Task
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    source: str
    checksum: str  # of the values, in their order, wherever they came from

    @property
    def mean_skew(self) -> float:
        """Return the features' mean skewness; constant ones have none."""
        return float(np.nanmean(skew(self.X[:, self.X.std(axis=0) > 0], axis=0)))


def folder() -> Path | None:
    """Return the folder with `<track>/<name>.parquet`, if one is set."""
    path = os.environ.get(FOLDER_VARIABLE)
    return Path(path) if path else None


def local_path(task: Task) -> Path | None:
    """Return the task's file in the folder, if it is there."""
    path = (folder() or Path("/nowhere")) / task.track / f"{task.name}.parquet"
    return path if path.is_file() else None


@lru_cache(maxsize=2)
def load(key: str) -> Dataset:
    """Load a task's data: from the folder, else from OpenML (whose client caches what it fetched)."""
    task = BY_KEY[key]
    path = local_path(task)
    if path is not None:
        try:
            frame = pd.read_parquet(path)
        except (OSError, ValueError) as error:
            raise DatasetError(f"{path} cannot be read as Parquet ({error}): remove or replace it") from error
        return _checked(task, frame.iloc[:, :-1], frame.iloc[:, -1], str(path))
    return _checked(task, *_from_openml(task), f"OpenML task {task.openml_task}")


def _from_openml(task: Task) -> tuple[pd.DataFrame, pd.Series]:
    where = f"{folder()} has no {task.key}.parquet" if folder() else f"{FOLDER_VARIABLE} is not set"
    try:
        import openml
    except ImportError as error:
        raise DatasetError(
            f"{task.key} is not at hand ({where}): set {FOLDER_VARIABLE} to a folder with "
            "<track>/<name>.parquet, or pip install openml to download it"
        ) from error
    try:
        openml.config.set_retry_policy("human", n_retries=1)  # its patience is for servers that are there
        dataset = openml.tasks.get_task(task.openml_task).get_dataset()
        X, y, _, _ = dataset.get_data(target=dataset.default_target_attribute)
    except Exception as error:  # whatever the network or the server does
        raise DatasetError(
            f"{task.key} is not at hand ({where}), and OpenML task {task.openml_task} could not be had "
            f"({type(error).__name__}: {error}): check the network, or set {FOLDER_VARIABLE} to a folder with "
            "<track>/<name>.parquet"
        ) from error
    return X, y


def _checked(task: Task, X: pd.DataFrame, y: pd.Series, source: str) -> Dataset:
    if task.track == "classification":
        labels = np.unique(y.to_numpy())
        if len(labels) != 2:
            raise DatasetError(f"{source}: the target of {task.key} must have 2 classes, got {len(labels)}")
        y = pd.Series(np.searchsorted(labels, y.to_numpy()))
    if X.shape[1] != task.features:
        raise DatasetError(f"{source}: {task.key} must have {task.features} features, got {X.shape[1]}")
    values, target = np.ascontiguousarray(X, np.float64), np.ascontiguousarray(y, np.float64)
    digest = hashlib.sha256(repr(values.shape).encode())
    digest.update(values)
    digest.update(target)
    return Dataset(task, values, target, source, digest.hexdigest()[:12])

"""What an estimator is given, as it is trained on: other numbers for X, in the same partitions as all else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boostbins.dask.partitions import Replaced, checked_collection, replaced

# Arguments that are lists, an entry per evaluation set, and what an entry is called for the training set.
_OF_TRAINING: Mapping[str, str] = {
    "sample_weight_eval_set": "sample_weight",  # XGBoost's
    "base_margin_eval_set": "base_margin",
    "eval_qid": "qid",
    "eval_sample_weight": "sample_weight",  # LightGBM's
    "eval_init_score": "init_score",
    "eval_group": "group",
}
_PER_ROW = ("sample_weight", "base_margin", "qid", "init_score", "group")


def with_numbers(
    X: Any, y: Any, kwargs: Mapping[str, Any], numbers: Replaced, client: Any
) -> tuple[Any, Any, dict[str, Any]]:
    """Return the arguments of `fit` with X, and that of each evaluation set, replaced.

    An evaluation set that is the training set stays the same object, by which the libraries know it.
    """
    given = dict(kwargs)
    train = {"y": y, **{name: given[name] for name in _PER_ROW if given.get(name) is not None}}
    new_X, new = replaced(X, numbers, train, client)
    evaluations = _evaluations(given)
    lists: dict[str, list[Any]] = {name: list(given[name]) for name in _OF_TRAINING if given.get(name) is not None}
    new_evaluations = []
    for number, (X_of, y_of) in enumerate(evaluations):
        own = {"y": y_of, **{name: values[number] for name, values in lists.items()}}
        if X_of is X and all(value is train.get(_OF_TRAINING.get(name, name)) for name, value in own.items()):
            own_X, own = new_X, {name: new.get(_OF_TRAINING.get(name, name)) for name in own}
        else:
            own_X, own = replaced(checked_collection(X_of), numbers, own, client)
        new_evaluations.append((own_X, own["y"]))
        for name, values in lists.items():
            values[number] = own.get(name)
    changed = {**{name: value for name, value in new.items() if name != "y"}, **lists}
    return new_X, new["y"], {**given, **changed, **_given_as(given, new_evaluations)}


def _evaluations(given: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Return the evaluation sets, in either of the ways that they are given."""
    if given.get("eval_X") is None:
        return list(given.get("eval_set") or ())
    X, y = given["eval_X"], given["eval_y"]
    return list(zip(X, y, strict=True)) if isinstance(X, tuple) else [(X, y)]


def _given_as(given: Mapping[str, Any], evaluations: list[tuple[Any, Any]]) -> dict[str, Any]:
    if given.get("eval_X") is None:
        return {"eval_set": evaluations} if evaluations else {}
    return {"eval_X": tuple(X for X, _ in evaluations), "eval_y": tuple(y for _, y in evaluations)}

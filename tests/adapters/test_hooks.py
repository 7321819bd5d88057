"""What the adapters use of the libraries beyond their public names: each is broken on purpose, and noticed."""

from __future__ import annotations

import ast
import functools
import inspect
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from types import CodeType, FunctionType
from typing import NamedTuple

import catboost
import lightgbm
import numpy as np
import pytest
from scipy.sparse import csr_matrix

import boostbins
from boostbins.adapters.hooks import Hook, check_hooks
from boostbins.adapters.params import BinningMixin

SOURCE = Path(boostbins.__file__).parent


class Listed(NamedTuple):
    """A list of hooks, and the files that it is for."""

    files: str
    module: str
    hooks: str = "HOOKS"
    library: str = "LIBRARY"

    @property
    def mark(self):
        kind = self.files.split("/")[0]
        return [getattr(pytest.mark, kind)] if kind in ("dask", "spark") else []

    def read(self):
        module = import_module(self.module)
        return getattr(module, self.hooks), getattr(module, self.library)


LISTS = [
    Listed("lightgbm/*.py", "boostbins.lightgbm._native"),
    Listed("xgboost/*.py", "boostbins.xgboost._native"),
    Listed("catboost.py", "boostbins.catboost"),
    Listed("sklearn.py", "boostbins.sklearn"),
]
if find_spec("dask") and find_spec("distributed"):
    LISTS += [Listed("dask/*.py", f"boostbins.dask.{name}") for name in ("lightgbm", "partitions")]
if find_spec("pyspark"):
    LISTS += [Listed("spark/*.py", f"boostbins.spark.{name}") for name in ("xgboost", "frames")]
    LISTS += [Listed("spark/*.py", "boostbins.spark.xgboost", "PARAM_HOOKS", "PYSPARK")]
EACH_LIST = [pytest.param(listed, marks=listed.mark, id=f"{listed.module}.{listed.hooks}") for listed in LISTS]


def cases():
    for listed in LISTS:
        for hook in listed.read()[0]:
            broken = [("gone", "")] + [("takes", name) for name in hook.takes]
            broken += [("calls", name) for name in (*hook.calls, *hook.fits)]
            broken += [("wrapped", "")] * hook.plain + [("one more", "")] * bool(hook.fits)
            yield from (
                pytest.param(listed, hook, *how, marks=listed.mark, id=f"{hook} {' '.join(how)}".replace(".", "-"))
                for how in broken
            )


def renamed(code: CodeType, old: str, *new: str) -> CodeType:
    """The code, and that of the functions in it, with another name in the place of one; and some more at the end."""
    names = tuple(new[0] if name == old else name for name in code.co_names)
    inner = tuple(renamed(c, old, new[0]) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_names=(*names, *new[1:]), co_consts=inner)


def broken(found, how, name):
    if how == "wrapped":
        return functools.wraps(found)(lambda *args, **kwargs: found(*args, **kwargs))
    if how == "takes":
        signature = inspect.signature(found)

        def changed(*args, **kwargs):
            return found(*args, **kwargs)

        kept = [parameter for parameter in signature.parameters.values() if parameter.name != name]
        changed.__signature__ = signature.replace(parameters=kept)
        return changed
    function = inspect.unwrap(found)
    code = renamed(function.__code__, name, "another") if how == "calls" else None
    code = code or renamed(function.__code__, "", "", "more_")
    return FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)


@pytest.mark.parametrize(("listed", "hook", "how", "name"), list(cases()))
def test_a_change_of_each_is_named_with_the_versions_that_were_tested(listed, hook, how, name, monkeypatch):
    (hooks, library), owner = listed.read(), resolve_name(hook.owner)
    if how == "gone":
        for cls in (owner, *getattr(owner, "__mro__", ())):  # the bases' too
            if hook.name in vars(cls) and cls is not object:
                monkeypatch.delattr(cls, hook.name)
    else:
        monkeypatch.setattr(owner, hook.name, broken(getattr(owner, hook.name), how, name))
    with pytest.raises(ImportError) as raised:
        check_hooks(library, hooks)
    said = str(raised.value)
    words = {"gone": "", "takes": f"takes (.*, and no longer (.*{name}.*) in this order", "wrapped": "is wrapped"}
    words |= {"calls": f"no longer uses .*{name}", "one more": "now uses more_ too"}
    for part in words[how].split(".*"):
        assert part in said
    assert f"{library.name} {library.version} is not as boostbins knows it" in said
    assert str(hook) in said
    assert f"boostbins was tested with {library.name} {library.oldest}" in said
    assert "bin_method cannot be used with this version: pip install '" in said


def test_a_module_that_is_gone_is_named():
    hook = Hook("lightgbm.not_there:Class", "method")
    assert hook.change() == "lightgbm.not_there.Class.method is gone"


@pytest.mark.parametrize("listed", EACH_LIST)
def test_the_installed_libraries_are_as_they_were(listed):
    assert [change for hook in listed.read()[0] if (change := hook.change())] == []


def test_a_library_that_is_there_but_broken_is_not_said_to_be_missing():
    library = import_module("boostbins.lightgbm").LIBRARY
    for error in (ImportError("no name X", name="lightgbm"), ModuleNotFoundError("no scipy", name="scipy")):
        assert str(library.missing(error)).startswith(f"LightGBM is installed, but cannot be imported ({error}): pip")
    assert str(library.missing(ModuleNotFoundError(name="lightgbm"))).startswith("LightGBM is not installed: pip")


# ---- after a fit

r = np.random.default_rng(0)
X = r.lognormal(0, 2, (300, 3))
Y = X.sum(axis=1)


@dataclass(frozen=True)
class Renamed:
    """A name that a library calls by another one of late, everywhere, so that it works as before without us."""

    owner: str
    caller: str
    called: str
    at: str  # where that is
    model: str
    params: dict
    way: str = "did not ask for cuts"

    def __str__(self) -> str:
        return f"{self.caller} {self.called}".replace(".", "-")


QUIET = {"n_estimators": 2, "verbosity": -1, "n_jobs": 1, "min_child_samples": 5}
SILENT = {"iterations": 2, "verbose": False, "allow_writing_files": False, "thread_count": 1}
HISTOGRAMS = "sklearn.ensemble._hist_gradient_boosting.gradient_boosting:BaseHistGradientBoosting"
EXACT = "sklearn.ensemble._gb:BaseGradientBoosting"
ON_CUTS = "did not use the cuts that it was given"
RENAMINGS = [
    Renamed("lightgbm:LGBMRegressor", "fit", "fit", "lightgbm:LGBMModel", "lightgbm:LGBMRegressor", QUIET),
    Renamed("lightgbm:LGBMModel", "fit", "Dataset", "lightgbm.sklearn", "lightgbm:LGBMRanker", QUIET, ON_CUTS),
    Renamed("xgboost:XGBModel", "fit", "_create_dmatrix", "xgboost:XGBModel", "xgboost:XGBRegressor", {"n_jobs": 1}),
    Renamed(
        "catboost:CatBoost",
        "_fit",
        "_prepare_train_params",
        "catboost:CatBoost",
        "catboost:CatBoostRegressor",
        SILENT,
    ),
    Renamed(HISTOGRAMS, "fit", "_bin_data", HISTOGRAMS, "sklearn:HistGradientBoostingRegressor", {"max_iter": 2}),
    Renamed(EXACT, "fit", "_fit_stages", EXACT, "sklearn:GradientBoostingRegressor", {"n_estimators": 2}),
    Renamed(
        EXACT,
        "_fit_stages",
        "_fit_stage",
        EXACT,
        "sklearn:GradientBoostingRegressor",
        {"n_estimators": 2},
        "did not take the cuts of column",
    ),
]


def rename(it: Renamed, monkeypatch) -> None:
    function = inspect.unwrap(getattr(resolve_name(it.owner), it.caller))
    monkeypatch.setattr(function, "__code__", renamed(function.__code__, it.called, f"{it.called}_of_late"))
    at = resolve_name(it.at)
    monkeypatch.setattr(at, f"{it.called}_of_late", getattr(at, it.called), raising=False)


@pytest.mark.parametrize("it", RENAMINGS, ids=str)
def test_a_fit_on_bins_of_the_librarys_own_is_refused(it, monkeypatch):
    rename(it, monkeypatch)
    library = import_module(f"boostbins.{it.model.split(':')[0]}").LIBRARY
    estimator = resolve_name(f"boostbins.{it.model}")
    model = estimator(**it.params)
    model.bins_ = "an earlier fit's"
    group = {"group": [len(X)]} if "Ranker" in it.model else {}
    y = Y.mean() < Y if group else Y
    with pytest.raises(RuntimeError, match=it.way) as raised:
        model.fit(X, y, **group)
    assert f"{library.name} {library.version} did" in str(raised.value)
    assert f"{library.tested}; please report this, and use bin_method=None until it is fixed" in str(raised.value)
    assert not hasattr(model, "bins_")
    estimator(**it.params, bin_method=None).fit(X, y, **group)


@pytest.mark.dask
def test_a_fit_on_dask_on_bins_of_the_librarys_own_is_refused(monkeypatch):
    dask_array, distributed = pytest.importorskip("dask.array"), pytest.importorskip("distributed")
    base = "lightgbm.dask:_DaskLGBMModel"
    rename(Renamed("lightgbm.dask:DaskLGBMRegressor", "fit", "_lgb_dask_fit", base, "", {}), monkeypatch)
    monkeypatch.setattr(resolve_name(base), "_lgb_dask_fit_of_late", no_training)
    with distributed.Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client:
        model = resolve_name("boostbins.dask:LGBMRegressor")(client=client, **QUIET)
        with pytest.raises(RuntimeError, match=r"LightGBM .* did not ask for cuts in LGBMRegressor.fit, and trained"):
            model.fit(dask_array.from_array(X, chunks=(300, 3)), dask_array.from_array(Y, chunks=300))


def no_training(self, **kwargs):
    return self


def test_a_selection_on_bins_of_the_librarys_own_is_refused(monkeypatch):
    monkeypatch.setattr(catboost.CatBoost, "select_features", lambda self, X, y: {})
    with pytest.raises(RuntimeError, match="did not ask for cuts in CatBoostRegressor.select_features"):
        import_module("boostbins.catboost").CatBoostRegressor().select_features(X, Y)


def test_a_training_set_that_is_not_ours_is_refused(monkeypatch):
    def without_cuts(self):
        lightgbm.Dataset.construct(self)
        return self

    monkeypatch.setattr(import_module("boostbins.lightgbm").Dataset, "construct", without_cuts)
    model = import_module("boostbins.lightgbm").LGBMRegressor(**QUIET)
    with pytest.raises(RuntimeError, match="did not use the cuts that it was given in LGBMRegressor.fit, and trained"):
        model.fit(X, Y)


def test_categories_that_catboost_trains_elsewhere_are_refused(monkeypatch):
    catboost_ = import_module("boostbins.catboost")
    monkeypatch.setattr(catboost_._Binned, "_train", lambda self, *args: super(catboost_._Binned, self)._train(*args))
    model = catboost_.CatBoostRegressor(**SILENT)
    table = [[*row, str(int(row[0]))] for row in X.tolist()]
    with pytest.raises(RuntimeError, match="did not use the cuts that it was given in CatBoostRegressor.fit"):
        model.fit(table, Y, cat_features=[3])


@pytest.mark.parametrize("sparse", [False, True])
def test_trees_that_split_elsewhere_than_at_the_cuts_are_refused(monkeypatch, sparse):
    sklearn_ = import_module("boostbins.sklearn")
    model = sklearn_.GradientBoostingRegressor(n_estimators=2, max_bins=5, warm_start=True)
    table = csr_matrix(X) if sparse else X
    first = model.fit(table, Y).bins_
    assert model.set_params(n_estimators=3, bin_method="quantile").fit(table, Y).bins_ != first  # new trees only
    monkeypatch.setattr(sklearn_, "_put_cuts", lambda *args, **kwargs: None)
    with pytest.raises(RuntimeError, match=r"scikit-learn .* did not take the cuts of column 'x\d'"):
        model.set_params(n_estimators=5).fit(table, Y)
    assert not hasattr(model, "bins_")


def private_names(path: Path) -> set[str]:
    """Return the private attributes that a module uses, without those that it makes itself."""
    tree = ast.parse(path.read_text())
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    ours = {node.attr for node in attributes if isinstance(node.ctx, ast.Store)}
    ours |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    ours |= {
        node.target.id for node in ast.walk(tree) if isinstance(node, ast.AnnAssign) and hasattr(node.target, "id")
    }
    called = {node.attr for node in attributes if ast.unparse(node.value).startswith("super(")}
    used = {node.attr for node in attributes} - ours | called
    return {name for name in used if name.startswith("_") and not name.startswith("__")}


@pytest.mark.parametrize("listed", EACH_LIST)
def test_every_private_name_is_in_a_list(listed):
    hooks = [hook for other in LISTS if other.files == listed.files for hook in other.read()[0]]
    named = {name for hook in hooks for name in (hook.name, *hook.calls, hook.owner.split(":")[-1])}
    ours = {"_replace", *dir(BinningMixin), *BinningMixin.__annotations__}
    for path in SOURCE.glob(listed.files):
        assert private_names(path) - named - ours == set(), path.name


RENAMED = """
import sys
from importlib.machinery import SourceFileLoader
module, old, new, adapter = sys.argv[1:]
get_code = SourceFileLoader.get_code
def renamed(self, name):
    if name != module:
        return get_code(self, name)
    source = self.get_data(self.get_filename(name)).decode()
    assert old in source
    return compile(source.replace(old, new), self.get_filename(name), "exec", dont_inherit=True)
SourceFileLoader.get_code = renamed
__import__(adapter)
"""


@pytest.mark.parametrize(
    ("module", "old", "adapter", "said"),
    [
        ("lightgbm.basic", "_create_sample_indices", "boostbins.lightgbm", "Dataset._create_sample_indices is gone"),
        ("lightgbm.sklearn", "super().fit(", "boostbins.lightgbm", "LGBMRegressor.fit no longer uses super"),
        ("xgboost.sklearn", "_create_dmatrix", "boostbins.xgboost", "XGBModel._create_dmatrix is gone"),
        ("catboost.core", "_prepare_train_params", "boostbins.catboost", "CatBoost._prepare_train_params is gone"),
        ("sklearn.ensemble._gb", "self._fit_stage(", "boostbins.sklearn", "_fit_stages no longer uses _fit_stage"),
    ],
)
def test_a_library_that_renamed_something_is_refused_at_import(module, old, adapter, said):
    new = {"super().fit(": "LGBMModel.fit(self, ", "self._fit_stage(": "self._grow("}.get(old, f"{old}_of_late")
    done = subprocess.run(
        [sys.executable, "-c", RENAMED, module, old, new, adapter], capture_output=True, text=True, check=False
    )
    assert "ImportError" in done.stderr
    assert said in done.stderr
    assert "bin_method cannot be used with this version: pip install" in done.stderr
    assert "not installed" not in done.stderr

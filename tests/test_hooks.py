"""What the adapters use of the libraries beyond their public names: each is broken on purpose, and noticed."""

from __future__ import annotations

import ast
import functools
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from types import CodeType, FunctionType

import pytest

import boostbins
from boostbins.adapters.hooks import Hook, check_hooks
from boostbins.adapters.params import BinningMixin

SOURCE = Path(boostbins.__file__).parent
ADAPTERS = {  # where the list is: the files that it is for
    "boostbins.lightgbm._native": "lightgbm/*.py",
    "boostbins.xgboost._native": "xgboost/*.py",
    "boostbins.catboost": "catboost.py",
    "boostbins.sklearn": "sklearn.py",
}


def cases():
    for module in ADAPTERS:
        for hook in import_module(module).HOOKS:
            broken = [("gone", "")] + [("takes", name) for name in hook.takes]
            broken += [("calls", name) for name in (*hook.calls, *hook.fits)]
            broken += [("wrapped", "")] * hook.plain + [("one more", "")] * bool(hook.fits)
            yield from (
                pytest.param(module, hook, *how, id=f"{hook} {' '.join(how)}".replace(".", "-")) for how in broken
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


@pytest.mark.parametrize(("module", "hook", "how", "name"), list(cases()))
def test_a_change_of_each_is_named_with_the_versions_that_were_tested(module, hook, how, name, monkeypatch):
    adapter, owner = import_module(module), resolve_name(hook.owner)
    if how == "gone":
        for cls in (owner, *getattr(owner, "__mro__", ())):  # the bases' too
            if hook.name in vars(cls) and cls is not object:
                monkeypatch.delattr(cls, hook.name)
    else:
        monkeypatch.setattr(owner, hook.name, broken(getattr(owner, hook.name), how, name))
    with pytest.raises(ImportError) as raised:
        check_hooks(adapter.LIBRARY, adapter.HOOKS)
    said, library = str(raised.value), adapter.LIBRARY
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


@pytest.mark.parametrize("module", list(ADAPTERS))
def test_the_installed_libraries_are_as_they_were(module):
    assert [change for hook in import_module(module).HOOKS if (change := hook.change())] == []


def test_a_library_that_is_there_but_broken_is_not_said_to_be_missing():
    library = import_module("boostbins.lightgbm").LIBRARY
    for error in (ImportError("no name X", name="lightgbm"), ModuleNotFoundError("no scipy", name="scipy")):
        assert str(library.missing(error)).startswith(f"LightGBM is installed, but cannot be imported ({error}): pip")
    assert str(library.missing(ModuleNotFoundError(name="lightgbm"))).startswith("LightGBM is not installed: pip")


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


@pytest.mark.parametrize("module", list(ADAPTERS))
def test_every_private_name_is_in_the_list(module):
    named = {n for hook in import_module(module).HOOKS for n in (hook.name, *hook.calls, hook.owner.split(":")[-1])}
    ours = {"_replace", *dir(BinningMixin), *BinningMixin.__annotations__}
    for path in SOURCE.glob(ADAPTERS[module]):
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

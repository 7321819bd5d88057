"""The stub of the kernels, which mypy believes, says what the module says of itself."""

from __future__ import annotations

import inspect
import re
import types
import typing
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import boostbins
from boostbins import _core

STUB = Path(boostbins.__file__).parent / "_core.pyi"
# One type of a signature as nanobind writes it; of a tuple, that it is one.
TYPE = re.compile(r"(?:numpy\.)?ndarray\[(?P<array>[^\]]*)\]|tuple(?:\[(?:[^\[\]]|\[[^\]]*\])*\])?|\w+")


def kinds(hint):
    """Return the alternatives of a type of the stub."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [kind for alternative in typing.get_args(hint) for kind in kinds(alternative)]
    origin = typing.get_origin(hint) or hint
    if origin is np.ndarray:
        (dtype,) = typing.get_args(typing.get_args(hint)[1])
        return [dtype.__name__.rstrip("_").replace("generic", "any")]
    return ["None" if origin is type(None) else origin.__name__]


def kinds_told(text):
    """Return the alternatives of a type as nanobind writes it."""
    found = []
    for match in TYPE.finditer(text):
        dtype = re.search(r"dtype=(\w+)", match["array"] or "")
        array = "any" if dtype is None else dtype[1]
        found.append(match[0].partition("[")[0] if match["array"] is None else array)
    return found


def calls(arguments, returned):
    """Return every way to call a function: the names and kinds of the arguments, and what comes back."""
    names = [name for name, _ in arguments]
    return {(tuple(zip(names, call, strict=True)), *returned) for call in product(*(given for _, given in arguments))}


def calls_of_stub(name, function):
    found = set()
    key = types.SimpleNamespace(__module__="boostbins._core", __qualname__=name)  # what overloads are kept by
    for one in typing.get_overloads(key) or [function]:
        hints = typing.get_type_hints(one)
        names = [name for name in inspect.signature(one).parameters if name != "self"]
        found |= calls([(name, kinds(hints[name])) for name in names], kinds(hints["return"]))
    return found


def calls_of_module(function):
    found = set()
    for text, *_ in function.__nb_signature__:
        arguments, returned = re.fullmatch(r"def \w+\((.*)\) -> (.*)", text).groups()
        parts = re.split(r", (?=\w+: )|^(?=\w+: )", arguments.removeprefix("self").removeprefix(", "))
        pairs = [part.split(": ", 1) for part in parts if part]
        found |= calls([(name, kinds_told(kind)) for name, kind in pairs], kinds_told(returned))
    return found


def callables(namespace, is_function):
    """Return what can be called in a namespace, methods by the name of their class and their own."""
    owners = {"": namespace} | {f"{k}.": vars(v) for k, v in namespace.items() if inspect.isclass(v)}
    return {
        prefix + name: member
        for prefix, members in owners.items()
        for name, member in members.items()
        if is_function(member)
    }


@pytest.fixture(scope="module")
def stub():
    typing.clear_overloads()
    namespace = {"__name__": "boostbins._core"}
    exec(compile(STUB.read_text(encoding="utf-8"), STUB, "exec"), namespace)
    own = {k: v for k, v in namespace.items() if getattr(v, "__module__", "") == "boostbins._core"}
    return callables(own, inspect.isfunction)


MODULE = callables(vars(_core), lambda member: hasattr(member, "__nb_signature__"))


def test_it_has_the_functions_of_the_module(stub):
    assert set(stub) == set(MODULE)


@pytest.mark.parametrize("name", MODULE)
def test_functions_are_called_as_it_says(stub, name):
    assert calls_of_stub(name, stub[name]) == calls_of_module(MODULE[name])

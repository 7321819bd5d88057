"""The architecture, checked: the public names, and that dependencies point one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import boostbins

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "boostbins"

# A module may import those of its own layer and of the layers before it only.
LAYERS = [
    {"_core", "_threads", "_atomic"},
    {"sources"},
    {"summary"},
    {"methods"},
    {"bins", "fit", "cache", "transformer"},
    {"adapters"},
    {"lightgbm", "xgboost", "catboost", "sklearn"},
    {"dask", "spark"},
    {"comparison", "reporting"},
    {"cli", "__main__", "__init__"},
]
LAYER = {name: number for number, layer in enumerate(LAYERS) for name in layer}


def imports(path):
    """Yield the packages, or modules of the top, that a module imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "boostbins":
            yield from [node.module.split(".")[1]] if "." in node.module else [a.name for a in node.names]


LIBRARIES = {"lightgbm", "xgboost", "catboost", "sklearn"}
ON_CLUSTERS = {"dask", "spark"}  # a library's rules are told once, so these build on it


def test_dependencies_point_one_way():
    files = {path: path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")}
    assert set(files.values()) <= set(LAYER)
    for path, name in files.items():
        for imported in set(imports(path)) - {name, *boostbins.__all__, "__version__"}:
            assert LAYER[imported] <= LAYER[name], f"{name} imports {imported}"
            assert imported not in LIBRARIES or name in ON_CLUSTERS, f"{name} imports {imported}"


def test_the_tests_mirror_the_packages():
    modules = {path.stem.strip("_") for path in SOURCE.glob("*.py")} - {"init", "main"}
    assert {f"test_{name}.py" for name in modules} <= {path.name for path in TESTS.glob("*.py")}
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages <= {path.parent.name for path in TESTS.glob("*/test_*.py")}
    for path in TESTS.rglob("test_*.py"):
        assert (path.parent / "__init__.py").exists(), f"{path}: two files of one name need a package around each"


def test_the_public_names_are_these():
    assert boostbins.__all__ == [
        "METHODS", "Binner", "Bins", "Choice", "ColumnSummary", "Comparison", "Report", "TableSummary", "auto",
        "compare", "encode", "fit_bins", "hybrid", "kmeans", "optimal", "quantile", "report", "summarize", "supervised",
        "uniform",
    ]  # fmt: skip
    assert all(hasattr(boostbins, name) for name in boostbins.__all__)


def test_the_command_line_answers_ctrl_c_before_it_loads_anything():
    # An editable install has loaded what builds it, once the package has been looked for.
    look = "import sys, importlib.util as util; util.find_spec('boostbins'); known = set(sys.modules)"
    code = f"{look}; import boostbins.__main__; print(*set(sys.modules) - known)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name.split(".")[0] for name in loaded} <= {"boostbins", "importlib", "warnings"}


def test_importing_it_loads_numpy_and_nothing_heavy():
    code = "import sys, boostbins; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {
        "sklearn",
        "scipy",
        "pandas",
        "polars",
        "pyarrow",
        "narwhals",
        "matplotlib",
        "lightgbm",
        "xgboost",
        "catboost",
        "dask",
        "distributed",
        "pyspark",
        "rich",
        "jinja2",
    }
    assert not heavy & set(loaded)


@pytest.mark.dask
def test_each_library_on_dask_needs_no_other():
    code = "import sys, boostbins.dask; boostbins.dask.{}; print(*sys.modules)"
    for name, other in {"fit_bins": "xgboost", "summarize": "lightgbm", "XGBRegressor": "lightgbm"}.items():
        done = subprocess.run([sys.executable, "-c", code.format(name)], capture_output=True, text=True, check=True)
        assert other not in done.stdout.split()


def test_the_reproduction_uses_public_names_only():
    for path in (SOURCE.parents[1] / "paper").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "boostbins":
                assert node.module == "boostbins" or node.module.split(".")[1] in LIBRARIES, path.name
                assert not [alias.name for alias in node.names if alias.name.startswith("_")], path.name

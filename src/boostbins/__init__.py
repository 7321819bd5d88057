"""Bin edges for gradient-boosted trees: k-means instead of quantiles, for the library you already use."""

from importlib import import_module

TYPE_CHECKING = False  # but for a type checker; `typing` itself would be loaded before the command line answers Ctrl-C
if TYPE_CHECKING:
    from typing import Any

    from boostbins.bins import Bins, encode
    from boostbins.comparison.measure import compare
    from boostbins.comparison.result import Comparison
    from boostbins.fit import fit_bins, summarize
    from boostbins.methods import METHODS, auto, supervised
    from boostbins.methods.choice import Choice
    from boostbins.methods.density import hybrid
    from boostbins.methods.unsupervised import kmeans, optimal, quantile, uniform
    from boostbins.reporting import Report, report
    from boostbins.summary.column import ColumnSummary
    from boostbins.summary.table import TableSummary
    from boostbins.transformer import Binner

__all__ = [
    "METHODS",
    "Binner",
    "Bins",
    "Choice",
    "ColumnSummary",
    "Comparison",
    "Report",
    "TableSummary",
    "auto",
    "compare",
    "encode",
    "fit_bins",
    "hybrid",
    "kmeans",
    "optimal",
    "quantile",
    "report",
    "summarize",
    "supervised",
    "uniform",
]

# A name's module is loaded when the name is asked for: some need more than NumPy, and the command line is to answer
# Ctrl-C from its beginning.
_MODULES = {
    "bins": ("Bins", "encode"),
    "comparison": ("Comparison", "compare"),
    "fit": ("fit_bins", "summarize"),
    "methods": ("METHODS", "auto", "kmeans", "optimal", "quantile", "supervised", "uniform"),
    "methods.choice": ("Choice",),
    "methods.density": ("hybrid",),
    "reporting": ("Report", "report"),
    "summary.column": ("ColumnSummary",),
    "summary.table": ("TableSummary",),
    "transformer": ("Binner",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> "Any":
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("boostbins")
    elif name in _MODULE_OF:
        value = getattr(import_module(f"boostbins.{_MODULE_OF[name]}"), name)
    else:
        raise AttributeError(f"module 'boostbins' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})

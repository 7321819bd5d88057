"""Bin edges for gradient-boosted trees: k-means instead of quantiles, for the library you already use."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from boostbins.bins import Bins, encode
from boostbins.fit import fit_bins, summarize
from boostbins.methods import METHODS, auto, kmeans, optimal, quantile, supervised, uniform
from boostbins.mixing import Choice, hybrid
from boostbins.summary import ColumnSummary
from boostbins.table_summary import TableSummary

if TYPE_CHECKING:
    from boostbins.comparison import Comparison, compare
    from boostbins.reporting import Report, report
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
__version__ = version("boostbins")


# What needs more than NumPy is loaded when it is asked for.
_LATER = {
    "Binner": "boostbins.transformer",
    "Comparison": "boostbins.comparison",
    "Report": "boostbins.reporting",
    "compare": "boostbins.comparison",
    "report": "boostbins.reporting",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'boostbins' has no attribute {name!r}")

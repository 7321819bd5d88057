"""Bin edges for gradient-boosted trees: k-means instead of quantiles, for the library you already use."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from boostbins.bins import Bins, encode
from boostbins.fit import fit_bins
from boostbins.methods import METHODS, kmeans, optimal, quantile, uniform
from boostbins.summary import ColumnSummary

if TYPE_CHECKING:
    from boostbins.transformer import Binner

__all__ = [
    "METHODS",
    "Binner",
    "Bins",
    "ColumnSummary",
    "encode",
    "fit_bins",
    "kmeans",
    "optimal",
    "quantile",
    "uniform",
]
__version__ = version("boostbins")


def __getattr__(name: str) -> Any:
    if name == "Binner":  # needs scikit-learn, which the rest does not
        from boostbins.transformer import Binner

        return Binner
    raise AttributeError(f"module 'boostbins' has no attribute {name!r}")

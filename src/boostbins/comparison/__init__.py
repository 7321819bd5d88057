"""The answer for a user's own data: which method, what it costs, what it gains."""

from boostbins.comparison.measure import COMPARED, compare
from boostbins.comparison.result import NATIVE, Comparison

__all__ = ["COMPARED", "NATIVE", "Comparison", "compare"]

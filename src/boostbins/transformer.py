"""`Binner`: binning as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbins.bins import Codes
from boostbins.fit import fit_bins
from boostbins.methods import Method, needs_target
from boostbins.methods.budget import Total, TotalBins

try:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise ImportError("Binner needs scikit-learn: pip install 'boostbins[sklearn]'") from error
try:
    from sklearn.utils.validation import validate_data
except ImportError:  # before scikit-learn 1.6, where it is a method, and tags are a dict

    def validate_data(estimator: Any, X: Any, *, ensure_all_finite: str, **options: Any) -> Any:
        """Return X as an array, and note or check the names of its columns."""
        return estimator._validate_data(X, force_all_finite=ensure_all_finite, **options)


class Binner(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace every value by the number of its bin.

    What `sklearn.preprocessing.KBinsDiscretizer` does, from every row instead of a sample of 200,000, with missing
    values, with weights for every strategy, and with k-means thousands of times faster.

    Parameters
    ----------
    method : str or function
        "auto", "hybrid", "kmeans", "optimal", "quantile", "uniform" or a function ``(summary, max_bins) -> cuts``.
        "auto" looks at y.
    max_bins : int, or one per column as a sequence or (for frames) a dict by name
        At most this many bins, the missing values' not counted. If not given, 255; where columns share a total, 4,095.
    total_bins : int or "auto", optional
        At most this many in all columns together, more for those that y needs finely; see `fit_bins`.
    average_bins : int, optional
        `total_bins` as an average per column.
    exact : bool
        See `fit_bins`.
    n_threads : int, optional
        As many as there are processors, if not given.

    Attributes
    ----------
    bins_ : Bins
        The cuts.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0], [2.0], [30.0], [np.nan]])
    >>> Binner(max_bins=2).fit_transform(X)
    array([[0],
           [0],
           [1],
           [2]], dtype=uint8)
    """

    def __init__(
        self,
        method: str | Method = "kmeans",
        max_bins: int | Sequence[int] | Mapping[str, int] | None = None,
        *,
        total_bins: TotalBins = None,
        average_bins: float | None = None,
        exact: bool = False,
        n_threads: int | None = None,
    ) -> None:
        self.method = method
        self.max_bins = max_bins
        self.total_bins = total_bins
        self.average_bins = average_bins
        self.exact = exact
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Binner:
        """Find the cuts.

        Parameters
        ----------
        X : array or frame of shape (rows, columns)
        y : array of shape (rows,), optional
            For methods that look at it: numbers, or texts for classes.
        sample_weight : array of shape (rows,), optional
        """
        values = self._values(X, reset=True)
        names = getattr(self, "feature_names_in_", None)
        table = values if names is None else dict(zip(names, values.T, strict=True))
        self.bins_ = fit_bins(
            table,
            self.method,
            self.max_bins,
            sample_weight,
            self.n_threads,
            y=y if needs_target(self.method, Total(self.total_bins, self.average_bins)) else None,
            total_bins=self.total_bins,
            average_bins=self.average_bins,
            exact=self.exact,
        )
        return self

    def transform(self, X: Any) -> Codes:
        """Return the codes; those of missing values are `bins_.missing_code`."""
        check_is_fitted(self)
        return self.bins_.encode(self._values(X, reset=False), n_threads=self.n_threads)

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return for every code the mean of what its bin held, and NaN for missing ones."""
        check_is_fitted(self)
        codes = np.asarray(X)
        if codes.dtype.kind == "f" and (np.abs(codes) < 2**16).all() and (codes == np.rint(codes)).all():
            codes = codes.astype(np.int64)
        return self.bins_.decode(codes)

    def _values(self, X: Any, *, reset: bool) -> Any:
        return validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
            ensure_min_samples=1,
        )

    def _more_tags(self) -> dict[str, Any]:
        return {"allow_nan": True, "preserves_dtype": []}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

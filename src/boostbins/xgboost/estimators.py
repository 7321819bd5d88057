"""XGBoost's scikit-learn estimators with cuts of our own."""

from __future__ import annotations

from typing import Any

from boostbins.adapters.params import BINNING_PARAMS, BinningMixin, with_binning_params
from boostbins.xgboost._native import LIBRARY, XGBModel, xgb
from boostbins.xgboost.dmatrix import QuantileDMatrix
from boostbins.xgboost.features import checked_max_bin, obstacle_in


class _Binned(BinningMixin, XGBModel):
    """Stands between a class of XGBoost's and `XGBModel`: makes the training matrix ours."""

    _library = LIBRARY

    def _create_dmatrix(self, ref: xgb.DMatrix | None, **kwargs: Any) -> xgb.DMatrix:
        if ref is not None or not self._begin_fit(obstacle_in(self.get_xgb_params())):
            return super()._create_dmatrix(ref=ref, **kwargs)
        if isinstance(kwargs["data"], xgb.DMatrix):
            raise TypeError("X must be data, not a ready-made DMatrix: its cuts are fixed. Give it to xgboost.train")
        matrix = QuantileDMatrix(
            bin_method=self.bin_method,
            bin_cache=self.bin_cache,
            total_bins=self.total_bins,
            average_bins=self.average_bins,
            n_classes=getattr(self, "n_classes_", None),
            nthread=self.n_jobs,
            max_bin=self.max_bin,
            **kwargs,
        )
        if hasattr(matrix, "bins_"):
            self.bins_ = matrix.bins_
        else:  # of which it warned
            self._ours = False
        return matrix

    def load_model(self, fname: Any) -> None:
        """Load a model; what bins it was trained on is not in it."""
        self.__dict__.pop("bins_", None)
        super().load_model(fname)

    def get_xgb_params(self) -> dict[str, Any]:
        """Return the parameters for XGBoost's core."""
        params = super().get_xgb_params()
        if self._total and params.get("max_bin") is None:
            params["max_bin"] = checked_max_bin(None, self._total)  # that of the matrix
        return {key: value for key, value in params.items() if key not in BINNING_PARAMS}


@with_binning_params("`max_bin` less one is the number of bins")
class XGBRegressor(xgb.XGBRegressor, _Binned):
    """`xgboost.XGBRegressor` with cuts by `bin_method`."""


@with_binning_params("`max_bin` less one is the number of bins")
class XGBClassifier(xgb.XGBClassifier, _Binned):
    """`xgboost.XGBClassifier` with cuts by `bin_method`."""


@with_binning_params("`max_bin` less one is the number of bins")
class XGBRanker(xgb.XGBRanker, _Binned):
    """`xgboost.XGBRanker` with cuts by `bin_method`."""


if hasattr(xgb, "XGBRFRegressor"):  # deprecated since 3.4, to be removed

    @with_binning_params("`max_bin` less one is the number of bins")
    class XGBRFRegressor(xgb.XGBRFRegressor, _Binned):
        """`xgboost.XGBRFRegressor` with cuts by `bin_method`."""

    @with_binning_params("`max_bin` less one is the number of bins")
    class XGBRFClassifier(xgb.XGBRFClassifier, _Binned):
        """`xgboost.XGBRFClassifier` with cuts by `bin_method`."""

"""The first layer's weights, kept in parts so that their product skips closed gates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable

from pymc_bnnvs.gated_dot import gated_dot

__all__ = ["FirstLayer"]


class FirstLayer(NamedTuple):
    """Weights ``scale_p * row_p`` of each input, and who is in.

    Parameters
    ----------
    rows : TensorVariable, shape (P, K)
        Weights at a scale of 1.
    scale : TensorVariable, shape (P,), optional
        Scale of each input; 1 if not given.
    included : TensorVariable, shape (P,), optional
        True where the scale is above 0; not given if no prior weight is exactly 0.
    line : TensorVariable, shape (P,), optional
        Weights at a scale of 1 of one more unit, which has no kink: it stands behind the others.
    line_sd : float, optional
        Its output weight.
    """

    rows: TensorVariable
    scale: TensorVariable | None = None
    included: TensorVariable | None = None
    line: TensorVariable | None = None
    line_sd: float | None = None

    def contrasts(self, category_of: np.ndarray) -> FirstLayer:
        """Take the mean over a category's levels off their weights, which share a scale.

        ``category_of`` is the number of each column's category, -1 for none.
        """
        if (category_of < 0).all():
            return self
        if self.line is None:
            return self._replace(rows=contrasts(self.rows, category_of))
        rows = contrasts(self.all_rows(), category_of)
        return self._replace(rows=rows[:, :-1], line=rows[:, -1])

    def all_rows(self) -> TensorVariable:
        """Rows of all units, ``(P, K)``, or ``(P, K + 1)`` with a line."""
        if self.line is None:
            return self.rows
        return pt.concatenate([self.rows, self.line[:, None]], axis=1)

    def weights(self) -> TensorVariable:
        """Weights of all units."""
        rows = self.all_rows()
        return rows if self.scale is None else self.scale[:, None] * rows

    def spread(self, x_sd: np.ndarray) -> TensorVariable:
        """Return about the standard deviation of a unit over the data.

        As if the inputs, in units of ``x_sd``, and the rows ``N(0, I)`` were independent.
        """
        scale = x_sd if self.scale is None else self.scale * x_sd
        return pt.sqrt(pt.sum(pt.sqr(scale)) + 1e-2)

    def product(
        self, X: TensorVariable, x_center: TensorVariable | None, x_scale: TensorVariable
    ) -> TensorVariable:
        """``(X - x_center) / x_scale`` times the weights of all units; not centred if None."""
        if self.included is None:
            weights = self.weights() / x_scale[:, None]
            product = pt.dot(X, weights)
            return product if x_center is None else product - pt.dot(x_center[None, :], weights)
        scale = (self.included if self.scale is None else self.scale) / x_scale
        line = None if self.line is None else self.line[:, None]
        return gated_dot(X, scale, self.rows, x_center, line)


def contrasts(weights: TensorVariable, category_of: np.ndarray) -> TensorVariable:
    """Take the mean over a category's levels off their weights.

    The indicators of a category sum to 1, so a weight that all of them share is a bias: the
    data can't tell, and the gradient along it would be the prior's.
    """
    rows = np.flatnonzero(category_of >= 0)
    category = category_of[rows]
    zeros = pt.zeros((category.max() + 1, weights.shape[1]))
    total = pt.inc_subtensor(zeros[category], weights[rows])
    mean = total / np.bincount(category)[:, None]
    return pt.inc_subtensor(weights[rows], -mean[category])

"""The first layer's weights, kept in parts so that their product skips closed gates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable

from pymc_bnnvs.gated_along import gated_along, rows_along
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
    along, direction : TensorVariable, shapes (P,) and (K,), optional
        If given, a row is ``rows_p`` with its part along the unit vector ``direction`` replaced
        by ``along_p``: with independent ``N(0, 1)`` for all of them the row is ``N(0, I)``.
    """

    rows: TensorVariable
    scale: TensorVariable | None = None
    included: TensorVariable | None = None
    along: TensorVariable | None = None
    direction: TensorVariable | None = None

    def contrasts(self, category_of: np.ndarray) -> FirstLayer:
        """Take the mean over a category's levels off their weights, which share a scale."""
        along = self.along
        if along is not None:
            along = contrasts(along[:, None], category_of)[:, 0]
        return self._replace(rows=contrasts(self.rows, category_of), along=along)

    def weights(self) -> TensorVariable:
        """Weights of the layer, ``(P, K)``."""
        rows = self.rows
        if self.along is not None:
            rows = rows_along(rows, self.along, self.direction)
        return rows if self.scale is None else self.scale[:, None] * rows

    def spread(self) -> TensorVariable | None:
        """Return the standard deviation of a unit given the scales, for inputs of variance 1.

        None if the prior samples the weights as they are.
        """
        if self.along is None or self.scale is None:
            return None
        return pt.sqrt(pt.sum(self.scale**2) + 1e-2)

    def product(
        self, X: TensorVariable, x_center: TensorVariable | None, x_scale: TensorVariable
    ) -> TensorVariable:
        """``(X - x_center) / x_scale`` times the weights, ``(n, K)``; not centred if None."""
        if self.included is None:
            weights = self.weights() / x_scale[:, None]
            product = pt.dot(X, weights)
            return product if x_center is None else product - pt.dot(x_center[None, :], weights)
        scale = (self.included if self.scale is None else self.scale) / x_scale
        if self.along is None:
            return gated_dot(X, scale, self.rows, x_center)
        if x_center is None:
            x_center = pt.zeros_like(scale)
        return gated_along(X, x_center, scale, self.rows, self.along, self.direction)


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

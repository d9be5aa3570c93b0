"""A normal distribution that brings its own start for sampling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.tensor import TensorVariable
from pytensor.tensor.random.basic import NormalRV

__all__ = ["StartedNormal", "StartedNormalRV"]


class StartedNormalRV(NormalRV):
    """Normal with a start of its own, one for each entry along the first dimension."""

    __props__ = (*NormalRV.__props__, "start")
    _print_name = ("StartedNormal", "\\operatorname{StartedNormal}")

    def __init__(self, start: tuple[float, ...] = (0.0,), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start = start


def started_normal(
    mu: TensorVariable, sigma: TensorVariable, *, start: np.ndarray, **kwargs: Any
) -> TensorVariable:
    """Draw from a normal that starts there."""
    op = StartedNormalRV(start=tuple(np.ravel(start).tolist()))
    if kwargs.get("rng") is None:
        kwargs["rng"] = pt.random.shared_rng(seed=None)
    return op(mu, sigma, return_next_rng=True, **kwargs)[1]


class StartedNormal(pm.Normal):
    """Normal that sampling starts at a given place.

    An ``initval`` would do the same, but ``pm.do`` refuses models with one.
    """

    rv_type = StartedNormalRV
    rv_op = started_normal

    def support_point(
        rv: TensorVariable,
        size: TensorVariable | None,
        mu: TensorVariable,
        sigma: TensorVariable,
    ) -> TensorVariable:
        """Start of the variable, in the form that PyMC's registration asks for."""
        start = np.reshape(rv.owner.op.start, (-1,) + (1,) * (rv.ndim - 1))
        start = start[0] if rv.ndim == 0 else start
        start = pt.as_tensor_variable(start, dtype=rv.dtype)
        return start if rv_size_is_none(size) else pt.broadcast_to(start, size)

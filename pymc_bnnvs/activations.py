"""Activation functions, each as a graph and in numpy with its derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from scipy.special import expit

from pymc_bnnvs.errors import check_option

__all__ = ["ACTIVATIONS", "Activation", "as_activation"]


class Activation(NamedTuple):
    """A graph, its numpy value and its numpy derivative."""

    graph: Callable
    value: Callable[[np.ndarray], np.ndarray]
    derivative: Callable[[np.ndarray], np.ndarray]


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(
        lambda z: pt.maximum(z, 0.0),
        lambda z: np.maximum(z, 0.0),
        lambda z: (z > 0).astype(z.dtype),
    ),
    "softplus": Activation(pt.softplus, lambda z: np.logaddexp(z, 0.0), expit),
    "tanh": Activation(pt.tanh, np.tanh, lambda z: 1.0 - np.tanh(z) ** 2),
}


def as_activation(name: str) -> Activation:
    """Look an activation up by name."""
    return ACTIVATIONS[check_option("activation", name, ACTIVATIONS)]

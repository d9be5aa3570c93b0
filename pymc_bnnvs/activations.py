"""Activation functions, each as a graph and in numpy with its derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable
from scipy.special import expit

from pymc_bnnvs.errors import check_option

__all__ = ["ACTIVATIONS", "Activation", "as_activation"]


class Activation(NamedTuple):
    """A graph, its numpy value and its numpy derivative.

    ``normal_mean(m, sd)`` is about the mean of the activation of ``N(m, sd**2)``, as a graph.
    """

    graph: Callable
    value: Callable[[np.ndarray], np.ndarray]
    derivative: Callable[[np.ndarray], np.ndarray]
    normal_mean: Callable | None = None


def relu_normal_mean(mean: TensorVariable, sd: TensorVariable) -> TensorVariable:
    """Mean of ``max(z, 0)`` for ``z ~ N(mean, sd**2)``."""
    r = mean / sd
    density = pt.exp(-0.5 * r**2) / np.sqrt(2.0 * np.pi)
    return mean * 0.5 * pt.erfc(-r / np.sqrt(2.0)) + sd * density


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(
        lambda z: pt.maximum(z, 0.0),
        lambda z: np.maximum(z, 0.0),
        lambda z: (z > 0).astype(z.dtype),
        relu_normal_mean,
    ),
    "softplus": Activation(pt.softplus, lambda z: np.logaddexp(z, 0.0), expit, relu_normal_mean),
    "tanh": Activation(pt.tanh, np.tanh, lambda z: 1.0 - np.tanh(z) ** 2),
}


def as_activation(name: str) -> Activation:
    """Look an activation up by name."""
    return ACTIVATIONS[check_option("activation", name, ACTIVATIONS)]

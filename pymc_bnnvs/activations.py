"""Activation functions, each as a graph and in numpy with its derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Variable
from pytensor.tensor import TensorVariable
from scipy.special import expit

from pymc_bnnvs.errors import check_option

__all__ = ["ACTIVATIONS", "ROUNDING", "Activation", "as_activation"]

#: Half the width of the parabola that rounds the kink of a rounded relu.
ROUNDING = 0.2


class Activation(NamedTuple):
    """A graph, its numpy value and its numpy derivative.

    ``normal_mean(m, sd)`` and ``normal_slope(m, sd)`` are about the mean of the activation and of
    its derivative at ``N(m, sd**2)``, as graphs.
    """

    graph: Callable
    value: Callable[[np.ndarray], np.ndarray]
    derivative: Callable[[np.ndarray], np.ndarray]
    normal_mean: Callable | None = None
    normal_slope: Callable | None = None


def relu_normal_mean(mean: TensorVariable, sd: TensorVariable) -> TensorVariable:
    """Mean of ``max(z, 0)`` for ``z ~ N(mean, sd**2)``."""
    density = pt.exp(-0.5 * (mean / sd) ** 2) / np.sqrt(2.0 * np.pi)
    return mean * relu_normal_slope(mean, sd) + sd * density


def relu_normal_slope(mean: TensorVariable, sd: TensorVariable) -> TensorVariable:
    """Probability that ``z ~ N(mean, sd**2)`` is positive."""
    return 0.5 * pt.erfc(-mean / sd / np.sqrt(2.0))


def rounded_relu(z: TensorVariable) -> TensorVariable:
    """Return ``max(z, 0)`` with a parabola in the place of its kink."""
    of = z.type("z")
    # The slope in the place of what differentiation would write: half the work of a gradient.
    slope = rounded_relu_slope(of)
    value = slope * (of + ROUNDING - ROUNDING * slope)
    return OpFromGraph([of], [value], inline=True, pullback=rounded_relu_pullback)(z)


def rounded_relu_slope(z: TensorVariable) -> TensorVariable:
    """From 0 to 1 along a line."""
    return pt.clip((z + ROUNDING) / (2.0 * ROUNDING), 0.0, 1.0)


def rounded_relu_pullback(
    inputs: Sequence[Variable], outputs: Sequence[Variable], cotangents: Sequence[Variable]
) -> list[TensorVariable]:
    """Gradient of the rounded relu."""
    return [cotangents[0] * rounded_relu_slope(inputs[0])]


def rounded_relu_value(z: np.ndarray) -> np.ndarray:
    """Return the same in numpy."""
    return ROUNDING * rounded_relu_derivative(z) ** 2 + np.maximum(z - ROUNDING, 0.0)


def rounded_relu_derivative(z: np.ndarray) -> np.ndarray:
    """From 0 to 1 along a line."""
    return np.clip((z + ROUNDING) / (2.0 * ROUNDING), 0.0, 1.0)


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(
        lambda z: pt.maximum(z, 0.0),
        lambda z: np.maximum(z, 0.0),
        lambda z: (z > 0).astype(z.dtype),
        relu_normal_mean,
        relu_normal_slope,
    ),
    "rounded_relu": Activation(
        rounded_relu,
        rounded_relu_value,
        rounded_relu_derivative,
        relu_normal_mean,
        relu_normal_slope,
    ),
    "softplus": Activation(
        pt.softplus,
        lambda z: np.logaddexp(z, 0.0),
        expit,
        relu_normal_mean,
        relu_normal_slope,
    ),
    "tanh": Activation(pt.tanh, np.tanh, lambda z: 1.0 - np.tanh(z) ** 2),
}


def as_activation(name: str) -> Activation:
    """Look an activation up by name."""
    return ACTIVATIONS[check_option("activation", name, ACTIVATIONS)]

"""Regression functions of a few inputs whose gradients are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymc_bnnvs.errors import check_option

__all__ = ["LAWS", "SURFACES", "Surface", "among", "paper_formula", "random_line", "random_network"]


#: Weights and biases of a hidden layer; output weights and level.
Layers = tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, float]]


class Surface(NamedTuple):
    """A function of the inputs, (n, p) to (n,), and its gradient, (n, p) to (n, p).

    ``layers`` are the weights of one that is a ReLU network.
    """

    value: Callable[[np.ndarray], np.ndarray]
    gradient: Callable[[np.ndarray], np.ndarray]
    layers: Layers | None = None

    def scaled(self, factor: float, center: float) -> Surface:
        """``factor * (f - center)``."""
        layers = self.layers
        if layers is not None:
            hidden, (beta, level) = layers
            layers = (hidden, (factor * beta, factor * (level - center)))
        return Surface(
            lambda X: factor * (self.value(X) - center),
            lambda X: factor * self.gradient(X),
            layers,
        )


def among(surface: Surface, columns: np.ndarray, n_features: int) -> Surface:
    """Make it a function of a wider table, of which it sees these columns."""
    layers = surface.layers
    if layers is not None:
        (W, b), output = layers
        wider = np.zeros((n_features, W.shape[1]))
        wider[columns] = W
        layers = ((wider, b), output)

    def gradient(X: np.ndarray) -> np.ndarray:
        wide = np.zeros_like(X)
        wide[:, columns] = surface.gradient(X[:, columns])
        return wide

    return Surface(lambda X: surface.value(X[:, columns]), gradient, layers)


#: Laws of weights, all of mean 0 and variance 1.
LAWS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "uniform": lambda rng, size: rng.uniform(-np.sqrt(3), np.sqrt(3), size=size),
    "laplace": lambda rng, size: rng.laplace(scale=np.sqrt(0.5), size=size),
    "signs": lambda rng, size: rng.choice([-1.0, 1.0], size=size),
}


def random_line(rng: np.random.Generator, X: np.ndarray, law: str = "normal") -> Surface:
    """Draw a linear function of the columns of ``X``."""
    slopes = LAWS[check_option("law", law, LAWS)](rng, (X.shape[1],))
    return Surface(lambda X: X @ slopes, lambda X: np.broadcast_to(slopes, X.shape))


def random_network(
    rng: np.random.Generator, X: np.ndarray, law: str = "normal", units: int = 5
) -> Surface:
    """Draw a one-hidden-layer ReLU network that is not constant over the rows of ``X``."""
    draw = LAWS[check_option("law", law, LAWS)]
    while True:
        W, b = draw(rng, (X.shape[1], units)), draw(rng, (units,))
        surface = network_surface(W, b, draw(rng, (units,)))
        # A network whose units are all dead, or all but constant, has nothing to find.
        if surface.value(X).std() > 1e-3:
            return surface


def network_surface(W: np.ndarray, b: np.ndarray, beta: np.ndarray) -> Surface:
    """Make the function of a one-hidden-layer ReLU network."""
    return Surface(
        lambda X: np.maximum(X @ W + b, 0) @ beta,
        lambda X: ((X @ W + b > 0) * beta) @ W.T,
        ((W, b), (beta, 0.0)),
    )


def paper_formula(rng: np.random.Generator, X: np.ndarray) -> Surface:
    """Return the ``complex`` function of the paper, of five inputs; nothing of it is random."""
    if X.shape[1] != 5:
        raise ValueError(f"the paper's formula has 5 inputs, not {X.shape[1]}.")
    return Surface(formula_value, formula_gradient)


def formula_value(X: np.ndarray) -> np.ndarray:
    """Evaluate the paper's formula at rows of five inputs."""
    x1, x2, x3, x4, x5 = X.T
    return (
        (np.sin(np.maximum(x1, x2)) + np.arctan(x2)) / (1 + x1 + x5)
        + np.sin(0.5 * x3) * (1 + np.exp(x4 - 0.5 * x3))
        + x3**2
        + 2 * np.sin(x4)
        + 4 * x5
    )


def formula_gradient(X: np.ndarray) -> np.ndarray:
    """Gradient of the paper's formula; it has a kink where ``x1 = x2``."""
    x1, x2, x3, x4, x5 = X.T
    below = 1 + x1 + x5
    quotient = (np.sin(np.maximum(x1, x2)) + np.arctan(x2)) / below**2
    top = np.cos(np.maximum(x1, x2)) / below
    growth = np.exp(x4 - 0.5 * x3)
    return np.column_stack(
        [
            np.where(x1 > x2, top, 0.0) - quotient,
            np.where(x1 > x2, 0.0, top) + 1 / (1 + x2**2) / below,
            0.5 * np.cos(0.5 * x3) * (1 + growth) - 0.5 * np.sin(0.5 * x3) * growth + 2 * x3,
            np.sin(0.5 * x3) * growth + 2 * np.cos(x4),
            4 - quotient,
        ]
    )


SURFACES: dict[str, Callable[..., Surface]] = {
    "linear": random_line,
    "neural": random_network,
    "complex": paper_formula,
}

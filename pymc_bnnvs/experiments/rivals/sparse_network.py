"""A neural network with a group lasso on its inputs' weights, as Feng and Simon have it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.model_selection import KFold

from pymc_bnnvs.experiments.rivals.selection import Selection, standardise

__all__ = ["SparseNetwork", "descend", "group_lasso_network", "objective"]

UNITS = 5
#: Random starts of the least penalised network; the best of them starts the path.
STARTS = 3
PENALTIES = 12
FOLDS = 5
STEPS = 300
#: Ridge penalty on the other weights: else they grow while the penalised ones shrink.
RIDGE = 1e-3


class SparseNetwork(NamedTuple):
    """Weights (P, K), biases (K,), output weights (K,) and output bias of a ReLU network."""

    W: np.ndarray
    b: np.ndarray
    beta: np.ndarray
    level: np.ndarray

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Value of the network at the rows of ``X``."""
        return np.maximum(X @ self.W + self.b, 0) @ self.beta + self.level

    @property
    def sizes(self) -> np.ndarray:
        """Norm of each input's weights, (P,)."""
        return np.linalg.norm(self.W, axis=1)


def objective(net: SparseNetwork, X: np.ndarray, y: np.ndarray) -> tuple[float, SparseNetwork]:
    """Half the mean squared error plus the ridge penalty, and its gradient."""
    z = X @ net.W + net.b
    unit = np.maximum(z, 0)
    residual = unit @ net.beta + net.level - y
    value = residual @ residual / (2 * len(y)) + RIDGE / 2 * (net.b @ net.b + net.beta @ net.beta)
    back = np.outer(residual, net.beta) * (z > 0) / len(y)
    return float(value), SparseNetwork(
        X.T @ back,
        back.sum(axis=0) + RIDGE * net.b,
        unit.T @ residual / len(y) + RIDGE * net.beta,
        np.array(residual.mean()),
    )


def shrunken(W: np.ndarray, by: float) -> np.ndarray:
    """Rows with their norms less ``by``, at 0 at least."""
    norms = np.linalg.norm(W, axis=1, keepdims=True)
    return W * np.maximum(1 - by / np.maximum(norms, 1e-300), 0)


def descend(
    net: SparseNetwork, X: np.ndarray, y: np.ndarray, penalty: float, steps: int = STEPS
) -> tuple[float, SparseNetwork]:
    """Minimise by proximal gradient steps with backtracking; return the penalised objective."""
    size = 1.0
    value, slope = objective(net, X, y)
    for _ in range(steps):
        while True:
            moved = SparseNetwork(*(w - size * g for w, g in zip(net, slope, strict=True)))
            moved = moved._replace(W=shrunken(moved.W, size * penalty))
            new_value, new_slope = objective(moved, X, y)
            steps_taken = [m - w for m, w in zip(moved, net, strict=True)]
            linear = sum(float((g * d).sum()) for g, d in zip(slope, steps_taken, strict=True))
            square = sum(float((d**2).sum()) for d in steps_taken)
            if new_value <= value + linear + square / (2 * size) + 1e-12:
                break
            size /= 2
        converged = square <= 1e-10 * size
        net, value, slope = moved, new_value, new_slope
        if converged:
            break
        size *= 1.2
    return value + penalty * float(net.sizes.sum()), net


def path(
    X: np.ndarray, y: np.ndarray, penalties: np.ndarray, rng: np.random.Generator
) -> list[SparseNetwork]:
    """Networks of growing penalties, each started from the one before."""
    starts = [
        descend(random_network(X.shape[1], y, rng), X, y, penalties[0]) for _ in range(STARTS)
    ]
    net = min(starts, key=lambda found: found[0])[1]
    found = [net]
    for penalty in penalties[1:]:
        net = descend(net, X, y, penalty)[1]
        found.append(net)
    return found


def random_network(n_features: int, y: np.ndarray, rng: np.random.Generator) -> SparseNetwork:
    """Weights to start from."""
    return SparseNetwork(
        rng.normal(size=(n_features, UNITS)) / np.sqrt(n_features),
        np.abs(rng.normal(size=UNITS)),
        rng.normal(size=UNITS),
        np.array(y.mean()),
    )


def group_lasso_network(
    X: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> dict[str, Selection]:
    """Select inputs whose weights are not all 0, at the penalty of least cross-validated error.

    References
    ----------
    Feng, J. and Simon, N. (2017). Sparse-input neural networks for high-dimensional
    nonparametric regression and classification. arXiv 1711.07592.
    """
    Z, t = standardise(X), (y - y.mean()) / y.std()
    penalties = np.geomspace(0.003, 0.3, PENALTIES)
    errors = np.zeros(PENALTIES)
    folds = KFold(FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    for train, test in folds.split(Z):
        for k, net in enumerate(path(Z[train], t[train], penalties, rng)):
            errors[k] += np.sum((net.predict(Z[test]) - t[test]) ** 2)
    size = path(Z, t, penalties, rng)[int(errors.argmin())].sizes
    return {"group lasso": Selection(size > 0, size)}

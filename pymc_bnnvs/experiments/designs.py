"""Simulated regressions whose importance is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Simulated", "neural", "pure_noise"]


class Simulated(NamedTuple):
    """Inputs ``X`` (n, P), outcome ``y`` (n,), noiseless ``f`` (n,) and the true ``psi`` (P,)."""

    X: np.ndarray
    y: np.ndarray
    f: np.ndarray
    psi: np.ndarray

    @property
    def truth(self) -> np.ndarray:
        """Inputs that matter, bool (P,)."""
        return self.psi > 0


def neural(
    n: int,
    n_features: int,
    random_seed: int,
    *,
    n_true: int = 5,
    units: int = 5,
    snr: float = 4.0,
) -> Simulated:
    """Draw from a one-hidden-layer ReLU network of the first inputs.

    Weights and biases are N(0, 1), inputs U(0, 1), the noise has standard deviation 1, and the
    network is scaled so that its variance over the rows is ``snr``.

    Parameters
    ----------
    n, n_features : int
        Rows and inputs.
    random_seed : int
        Seed of everything: each seed is another network and other data.
    n_true : int
        Number of inputs that matter, in the first columns.
    units : int
        Units of the hidden layer.
    snr : float
        Variance of the signal, the noise having variance 1.

    Returns
    -------
    Simulated
    """
    rng = np.random.default_rng(random_seed)
    X = rng.uniform(size=(n, n_features))
    while True:
        W, b = rng.normal(size=(n_true, units)), rng.normal(size=units)
        beta = rng.normal(size=units)
        z = X[:, :n_true] @ W + b
        f = np.maximum(z, 0) @ beta
        # A network whose units are all dead, or all but constant, has nothing to find.
        if f.std() > 1e-3:
            break
    factor = np.sqrt(snr) / f.std()
    gradient = factor * ((z > 0) * beta) @ W.T
    psi = np.zeros(n_features)
    psi[:n_true] = np.mean(gradient**2, axis=0)
    f = factor * (f - f.mean())
    return Simulated(X, f + rng.normal(size=n), f, psi)


def pure_noise(n: int, n_features: int, random_seed: int) -> Simulated:
    """Draw an outcome that no input has anything to do with: N(0, 1), inputs U(0, 1)."""
    rng = np.random.default_rng(random_seed)
    X = rng.uniform(size=(n, n_features))
    return Simulated(X, rng.normal(size=n), np.zeros(n), np.zeros(n_features))

"""Simulated regressions whose importance is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, toeplitz
from scipy.spatial.distance import cdist
from scipy.special import ndtr

from pymc_bnnvs.errors import check_option
from pymc_bnnvs.experiments.surfaces import SURFACES, Surface, among

__all__ = [
    "DESIGNS",
    "Simulated",
    "inputs",
    "matern",
    "neural",
    "population_importance",
    "pure_noise",
    "simulate",
]


DESIGNS = ("linear", "neural", "complex", "matern", "noise")


class Simulated(NamedTuple):
    """Inputs ``X`` (n, P), outcome ``y`` (n,), noiseless ``f`` (n,) and the true ``psi`` (P,).

    ``psi`` is the mean squared slope over these rows; infinite where f has no slope.
    ``surface`` is the function of all inputs, where it has a formula.
    """

    X: np.ndarray
    y: np.ndarray
    f: np.ndarray
    psi: np.ndarray
    surface: Surface | None = None

    @property
    def truth(self) -> np.ndarray:
        """Inputs that matter, bool (P,)."""
        return self.psi > 0


def inputs(
    n: int, n_features: int, rng: np.random.Generator, correlation: float = 0.0
) -> np.ndarray:
    """Draw inputs, each U(0, 1); neighbours correlate as the normals of an AR(1) process.

    Parameters
    ----------
    n, n_features : int
        Rows and inputs.
    rng : Generator
    correlation : float
        Of the normals of neighbouring inputs, in (-1, 1); 0 makes all inputs independent.

    Returns
    -------
    array, shape (n, n_features)
    """
    if not -1 < correlation < 1:
        raise ValueError(f"correlation={correlation!r}: give a number between -1 and 1.")
    if correlation == 0:
        return rng.uniform(size=(n, n_features))
    root = cholesky(toeplitz(correlation ** np.arange(n_features)))
    return ndtr(rng.normal(size=(n, n_features)) @ root)


def columns(n_true: int, n_features: int, random_seed: int, random: bool) -> np.ndarray:
    """Columns of the true inputs: the first ones, or drawn without replacement."""
    if n_true > n_features:
        raise ValueError(f"{n_true} true inputs do not fit into {n_features}.")
    if not random:
        return np.arange(n_true)
    return np.random.default_rng([random_seed, 1]).permutation(n_features)[:n_true]


def simulate(
    design: str,
    n: int,
    n_features: int,
    random_seed: int,
    *,
    n_true: int = 5,
    snr: float = 4.0,
    correlation: float = 0.0,
    random_positions: bool = False,
    **options: object,
) -> Simulated:
    """Draw a data set of a design, with noise of standard deviation 1.

    Parameters
    ----------
    design : {"linear", "neural", "complex", "matern", "noise"}
        A line or a network with random weights, the formula of the paper, a path of a Matern-1/2
        process, or nothing at all.
    n, n_features : int
        Rows and inputs.
    random_seed : int
        Seed of everything: each seed is another function, other inputs and other noise.
    n_true : int
        Number of inputs that matter; 5 for ``"complex"``.
    snr : float
        Variance of the signal over the rows, the noise having variance 1.
    correlation : float
        Of the inputs, see :func:`inputs`.
    random_positions : bool
        Put the true inputs at random columns instead of the first.
    **options
        ``law`` of the weights (``"normal"``, ``"uniform"``, ``"laplace"``, ``"signs"``) for
        ``"linear"`` and ``"neural"``; number of ``units`` for ``"neural"``.

    Returns
    -------
    Simulated
    """
    check_option("design", design, DESIGNS)
    if design == "noise":
        return pure_noise(n, n_features, random_seed, correlation=correlation)
    if design == "matern":
        where = columns(n_true, n_features, random_seed, random_positions)
        return matern(n, n_features, random_seed, where=where, snr=snr, correlation=correlation)
    rng = np.random.default_rng(random_seed)
    X = inputs(n, n_features, rng, correlation)
    where = columns(n_true, n_features, random_seed, random_positions)
    surface = SURFACES[design](rng, X[:, where], **options)
    f = surface.value(X[:, where])
    surface = among(surface.scaled(np.sqrt(snr) / f.std(), f.mean()), where, n_features)
    f = surface.value(X)
    psi = np.mean(surface.gradient(X) ** 2, axis=0)
    return Simulated(X, f + rng.normal(size=n), f, psi, surface)


def neural(n: int, n_features: int, random_seed: int, **options: object) -> Simulated:
    """Draw from a one-hidden-layer ReLU network of five inputs, see :func:`simulate`."""
    return simulate("neural", n, n_features, random_seed, **options)  # type: ignore[arg-type]


def matern(
    n: int,
    n_features: int,
    random_seed: int,
    *,
    where: np.ndarray | None = None,
    snr: float = 4.0,
    correlation: float = 0.0,
    length: float = 1.0,
) -> Simulated:
    """Draw from a Gaussian process with Matern-1/2 covariance, ``exp(-distance / length)``.

    Its paths are continuous and nowhere differentiable: the true inputs have an infinite psi.

    Parameters
    ----------
    n, n_features : int
        Rows and inputs.
    random_seed : int
        Seed of everything.
    where : int array, optional
        Columns of the inputs that matter; the first five if not given.
    snr, correlation : float
        As in :func:`simulate`.
    length : float
        Length scale, in units of the inputs.

    Returns
    -------
    Simulated
    """
    where = columns(5, n_features, random_seed, False) if where is None else where
    rng = np.random.default_rng(random_seed)
    X = inputs(n, n_features, rng, correlation)
    covariance = np.exp(-cdist(X[:, where], X[:, where]) / length)
    root = cholesky(covariance + 1e-10 * np.eye(n), lower=True)
    f = root @ rng.normal(size=n)
    f = np.sqrt(snr) * (f - f.mean()) / f.std()
    psi = np.zeros(n_features)
    psi[where] = np.inf
    return Simulated(X, f + rng.normal(size=n), f, psi)


def pure_noise(n: int, n_features: int, random_seed: int, *, correlation: float = 0.0) -> Simulated:
    """Draw an outcome that no input has anything to do with: N(0, 1), inputs U(0, 1)."""
    rng = np.random.default_rng(random_seed)
    X = inputs(n, n_features, rng, correlation)
    flat = Surface(lambda X: np.zeros(len(X)), np.zeros_like)
    return Simulated(X, rng.normal(size=n), np.zeros(n), np.zeros(n_features), flat)


def population_importance(
    data: Simulated, random_seed: int, *, size: int = 100_000, correlation: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the importance over the inputs' law, and its Monte Carlo standard error.

    Parameters
    ----------
    data : Simulated
        With a surface; without one the importance is that of the rows, infinite or 0.
    random_seed : int
        Seed of the points.
    size : int
        Number of points.
    correlation : float
        That of the data's inputs.

    Returns
    -------
    psi, error : array, shape (P,)
        Mean squared slopes and the standard errors of these means.
    """
    if data.surface is None:
        return data.psi, np.zeros_like(data.psi)
    rng = np.random.default_rng([random_seed, 2])
    total, squares = np.zeros_like(data.psi), np.zeros_like(data.psi)
    # By blocks: 100,000 rows of 200 inputs take 160 MB.
    for rows in np.diff(np.linspace(0, size, 1 + -(-size // 10_000)).astype(int)):
        found = data.surface.gradient(inputs(rows, data.X.shape[1], rng, correlation)) ** 2
        total += found.sum(axis=0)
        squares += (found**2).sum(axis=0)
    mean = total / size
    return mean, np.sqrt(np.maximum(squares / size - mean**2, 0) / (size - 1))

"""Formulas of physics among copies of their inputs, whose importance is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymc_bnnvs.errors import check_option
from pymc_bnnvs.experiments.designs import Simulated

__all__ = ["EQUATIONS", "columns_of", "feynman", "read_equation"]


class Equation(NamedTuple):
    """A formula of physics: its inputs with the ranges they are drawn from, and its value."""

    ranges: dict[str, tuple[float, float]]
    value: Callable[..., np.ndarray]


#: From the Feynman Symbolic Regression Database (Udrescu and Tegmark, 2020).
EQUATIONS: dict[str, Equation] = {
    "I.15.3x": Equation(
        {"x": (5, 10), "u": (1, 2), "c": (3, 20), "t": (1, 2)},
        lambda x, u, c, t: (x - u * t) / np.sqrt(1 - u**2 / c**2),
    ),
    "I.41.16": Equation(
        {"omega": (1, 5), "T": (1, 5), "h": (1, 5), "kb": (1, 5), "c": (1, 5)},
        lambda omega, T, h, kb, c: (
            h
            / (2 * np.pi)
            * omega**3
            / (np.pi**2 * c**2 * np.expm1(h / (2 * np.pi) * omega / (kb * T)))
        ),
    ),
    "II.27.18": Equation({"epsilon": (1, 5), "Ef": (1, 5)}, lambda epsilon, Ef: epsilon * Ef**2),
    "I.18.4": Equation(
        {"m1": (1, 5), "m2": (1, 5), "r1": (1, 5), "r2": (1, 5)},
        lambda m1, m2, r1, r2: (m1 * r1 + m2 * r2) / (m1 + m2),
    ),
    "I.24.6": Equation(
        {"m": (1, 3), "omega": (1, 3), "omega_0": (1, 3), "x": (1, 3)},
        lambda m, omega, omega_0, x: 0.25 * m * (omega**2 + omega_0**2) * x**2,
    ),
    "I.29.16": Equation(
        {"x1": (1, 5), "x2": (1, 5), "theta1": (1, 5), "theta2": (1, 5)},
        lambda x1, x2, theta1, theta2: np.sqrt(
            x1**2 + x2**2 - 2 * x1 * x2 * np.cos(theta1 - theta2)
        ),
    ),
    "II.11.28": Equation(
        {"n": (0, 1), "alpha": (0, 1)}, lambda n, alpha: 1 + n * alpha / (1 - n * alpha / 3)
    ),
    "III.15.12": Equation(
        {"U": (1, 5), "k": (1, 5), "d": (1, 5)}, lambda U, k, d: 2 * U * (1 - np.cos(k * d))
    ),
}
COPIES = 50


def read_equation(design: str) -> tuple[str, float] | None:
    """Read equation and signal to noise of a design such as ``"I.15.3x, SNR 5"``; None if none."""
    equation, marked, snr = design.partition(", SNR ")
    if not marked:
        return None
    return equation, float(snr)


def columns_of(equation: str) -> int:
    """Count the columns of an equation's table: its inputs and their copies."""
    return (COPIES + 1) * len(EQUATIONS[equation].ranges)


def feynman(equation: str, n: int, snr: float, random_seed: int) -> Simulated:
    """Draw an equation of physics hidden among copies of its inputs that do nothing.

    Each input comes with 50 others that are drawn from its range, so there are 51 for each; the
    inputs of the equation are the first columns.

    Parameters
    ----------
    equation : str
        Such as ``"I.15.3x"``; see ``EQUATIONS``.
    n : int
        Rows.
    snr : float
        Variance of the signal, over the inputs' law, in units of the noise's.
    random_seed : int
        Seed of everything.

    Returns
    -------
    Simulated

    References
    ----------
    Udrescu, S.-M. and Tegmark, M. (2020). AI Feynman: a physics-inspired method for symbolic
    regression. Science Advances 6.
    """
    ranges, value = EQUATIONS[check_option("equation", equation, EQUATIONS)]
    rng = np.random.default_rng(random_seed)
    low, high = np.array(list(ranges.values()), dtype=float).T
    X = np.hstack(
        [rng.uniform(low, high, size=(n, low.size))]
        + [rng.uniform(a, b, size=(n, COPIES)) for a, b in zip(low, high, strict=True)]
    )
    pool = rng.uniform(low, high, size=(100_000, low.size))
    noise = np.std(value(*pool.T)) / np.sqrt(snr)
    f = value(*X[:, : low.size].T)
    psi = np.zeros(X.shape[1])
    for p, step in enumerate(1e-5 * (high - low)):
        up, down = X[:, : low.size].copy(), X[:, : low.size].copy()
        up[:, p] += step
        down[:, p] -= step
        psi[p] = np.mean(((value(*up.T) - value(*down.T)) / (2 * step)) ** 2)
    return Simulated(X, f + noise * rng.normal(size=n), f, psi)

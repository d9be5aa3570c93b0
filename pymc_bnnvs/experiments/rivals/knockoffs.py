"""Gaussian model-X knockoffs and the filter that turns statistics into a selection."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.covariance import LedoitWolf

from pymc_bnnvs.experiments.rivals.selection import Selection

__all__ = ["FILTERS", "filtered", "gaussian_knockoffs", "knockoff_threshold"]

#: Level and offset of the filter. With five true inputs, level 0.1 and offset 1 select nothing;
#: 0.5 is the level of the author's public code.
FILTERS = {
    "q=0.1, offset 0": (0.1, 0),
    "q=0.2, offset 1": (0.2, 1),
    "q=0.5, offset 1": (0.5, 1),
}


def gaussian_knockoffs(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw second-order knockoffs of standardised inputs, equi-correlated.

    hidimstat has them too, but its draws multiply with the wrong side of the Cholesky factor
    (0.4.0), which gives correlated inputs knockoffs of another covariance.

    Parameters
    ----------
    X : array, shape (n, P)
        Inputs of mean 0 and standard deviation 1.
    rng : Generator

    Returns
    -------
    array, shape (n, P)
        Knockoffs: they have the inputs' covariance, shrunken after Ledoit and Wolf, and that
        less ``s`` on the diagonal with the inputs.

    References
    ----------
    Candes, E., Fan, Y., Janson, L. and Lv, J. (2018). Panning for gold: model-X knockoffs for
    high dimensional controlled variable selection. JRSS B 80.
    """
    covariance = LedoitWolf(assume_centered=True).fit(X).covariance_
    # A little less than allowed, so that the knockoffs' conditional covariance is definite.
    s = 0.999 * min(2 * np.linalg.eigvalsh(covariance)[0], np.diag(covariance).min())
    solved = cho_solve(cho_factor(covariance), s * np.eye(len(covariance)))
    conditional = 2 * s * np.eye(len(covariance)) - s * solved
    root = np.linalg.cholesky(conditional)
    return X - X @ solved + rng.normal(size=X.shape) @ root.T


def knockoff_threshold(statistics: np.ndarray, q: float, offset: int) -> float:
    """Smallest threshold at which the estimated false discovery rate is at most ``q``."""
    for t in np.sort(np.abs(statistics[statistics != 0])):
        false = offset + (statistics <= -t).sum()
        if false / max((statistics >= t).sum(), 1) <= q:
            return float(t)
    return np.inf


def filtered(statistics: np.ndarray) -> dict[str, Selection]:
    """Apply each of ``FILTERS``."""
    return {
        name: Selection(statistics >= knockoff_threshold(statistics, q, offset), statistics)
        for name, (q, offset) in FILTERS.items()
    }

"""What every method answers: which inputs, and by what score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Selection", "standardise"]


class Selection(NamedTuple):
    """``selected`` bool (P,), and ``score`` (P,), larger for what matters more.

    ``r_hat`` is the largest of any psi that is in often enough, where there are draws.
    """

    selected: np.ndarray
    score: np.ndarray
    r_hat: float = np.nan


def standardise(X: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and standard deviation 1."""
    return (X - X.mean(axis=0)) / X.std(axis=0)

"""Which gates are open where a chain starts. It is a matter of time: the posterior is the same."""

from __future__ import annotations

import numpy as np

from pymc_bnnvs.table import Table

__all__ = ["association", "start_open"]

#: Most gates, as a share of the rows, that all of them may start open.
ALL_OPEN = 0.5
#: Gates that start open otherwise, as a share of the rows.
SOME_OPEN = 0.25


def start_open(table: Table, outcome: np.ndarray) -> np.ndarray:
    """Choose the gates that are open where a chain starts.

    With every gate open nothing is overlooked. But a network that sees more inputs than there are
    rows fits the noise, and it takes many costly draws to get out of that: of many gates, only
    those with the strongest association with the outcome start open.

    Parameters
    ----------
    table : Table
        With the inputs' ``values``, shape (n, P), and their ``G`` groups.
    outcome : array, shape (n,)

    Returns
    -------
    array of bool, shape (G,)
    """
    n, n_groups = len(outcome), len(table.groups)
    if n_groups <= ALL_OPEN * n:
        return np.ones(n_groups, dtype=bool)
    found = np.zeros(n_groups)
    np.maximum.at(found, table.group_of, association(table.values, outcome))
    chosen = np.zeros(n_groups, dtype=bool)
    # A stable sort: the answer is the same on every machine.
    chosen[np.argsort(-found, kind="stable")[: max(1, int(SOME_OPEN * n))]] = True
    return chosen | table.always_in


def association(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Squared correlation of the outcome with each input or with its square, the larger.

    Parameters
    ----------
    X : array, shape (n, P)
    y : array, shape (n,)

    Returns
    -------
    array, shape (P,)
        In [0, 1]; the square is taken about the mean, and without its part along the input.
    """
    line = standard(X - X.mean(axis=0), 0.0)
    bend = line**2 - 1.0
    bend = standard(bend - (bend * line).mean(axis=0) * line, 1e-8)
    target = standard(y - y.mean(), 0.0) / len(y)
    return np.maximum((target @ line) ** 2, (target @ bend) ** 2)


def standard(values: np.ndarray, floor: float) -> np.ndarray:
    """Divide columns of mean 0 by their standard deviations; what has none above the floor is 0."""
    sd = np.sqrt((values**2).mean(axis=0))
    return np.where(sd > floor, values / np.where(sd > floor, sd, 1.0), 0.0)

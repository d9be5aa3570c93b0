"""The paper's second table on fresh data: how well each method selects, by size of the data."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from pymc_bnnvs.errors import check_option
from pymc_bnnvs.experiments.designs import simulate
from pymc_bnnvs.experiments.fits import f1
from pymc_bnnvs.experiments.grid import run_grid, seed_of
from pymc_bnnvs.experiments.results import machine, means
from pymc_bnnvs.experiments.rivals import METHODS

__all__ = ["CELLS", "differences", "paired", "run", "summarise"]

#: Rows and inputs of the paper's table.
CELLS = [(n, d) for d in (25, 75, 200) for n in (250, 300, 350, 400, 450, 500)]
CELL = ["design", "n", "n_features"]


def run(
    results: str | Path,
    *,
    cells: Sequence[tuple[int, int]] = tuple(CELLS),
    methods: Sequence[str] = tuple(METHODS),
    repetitions: int = 20,
    first_seed: int = 1000,
    design: str = "neural",
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Fit every method to every data set that the results file lacks.

    Parameters
    ----------
    results : path
        A csv file; see :func:`grid.run_grid`.
    cells : sequence of (int, int)
        Rows and inputs.
    methods : sequence of str
        Of ``METHODS``.
    repetitions : int
        Data sets of each cell; all methods see the same ones.
    first_seed : int
        Seed of the first data set of each cell.
    design : str
        See :func:`designs.simulate`.
    jobs, scheduler, progress
        As in :func:`grid.run_grid`.

    Returns
    -------
    DataFrame
        One row a fit and rule, see :func:`fit`.
    """
    for method in methods:
        check_option("method", method, METHODS)
    # A whole repetition of the grid comes first, so that a run cut short has every cell.
    tasks = [
        dict(design=design, n=n, n_features=d, method=method, seed=seed)
        for seed in range(first_seed, first_seed + repetitions)
        for n, d in cells
        for method in methods
    ]
    return run_grid(tasks, fit, results, jobs=jobs, scheduler=scheduler, progress=progress)


def fit(task: dict) -> pd.DataFrame:
    """Fit one method to one data set; one row a rule.

    Columns: those of the task, ``rule``, ``selected`` (columns, separated by blanks), ``true``
    and ``false`` selections, ``n_true``, ``precision`` (1 if nothing is selected), ``recall``,
    ``f1``, ``exact``, ``auc`` (chance that a true input scores above a null one), ``r_hat`` and
    ``seconds``.
    """
    data = simulate(task["design"], task["n"], task["n_features"], task["seed"])
    started = time.perf_counter()
    found = METHODS[task["method"]].fit(data.X, data.y, seed_of(task))
    seconds = time.perf_counter() - started
    n_true = int(data.truth.sum())
    rows = []
    for rule, (selected, score, r_hat) in found.items():
        true, false = int(selected[data.truth].sum()), int(selected[~data.truth].sum())
        rows.append(
            {
                **task,
                "rule": rule,
                "selected": " ".join(map(str, np.flatnonzero(selected))),
                "true": true,
                "false": false,
                "n_true": n_true,
                "precision": true / (true + false) if true + false else 1.0,
                "recall": true / n_true if n_true else np.nan,
                "f1": f1(selected, data.truth),
                "exact": bool((selected == data.truth).all()),
                "auc": auc(score, data.truth),
                "r_hat": r_hat,
                "seconds": seconds,
                **machine("scikit-learn", "hidimstat", "pymc-bart"),
            }
        )
    return pd.DataFrame(rows)


def auc(score: np.ndarray, truth: np.ndarray) -> float:
    """Chance that a true input scores above a null one, ties counted half; NaN without either."""
    n_true, n_null = truth.sum(), (~truth).sum()
    if not n_true * n_null:
        return np.nan
    ranks = rankdata(score)[truth]
    return float((ranks.sum() - n_true * (n_true + 1) / 2) / (n_true * n_null))


FIGURES = ["f1", "precision", "recall", "fdp", "exact", "auc", "seconds"]


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean of each figure in each cell, with its standard error over the data sets.

    Parameters
    ----------
    rows : DataFrame
        From :func:`run`.

    Returns
    -------
    DataFrame
        One row a cell, method and rule: ``repetitions``, and ``f1``, ``precision``, ``recall``,
        ``fdp`` (share of false ones among the selected), ``exact``, ``auc``, ``seconds``, each
        with its ``_se``.
    """
    figures = rows.assign(fdp=1 - rows["precision"], exact=rows["exact"].astype(float))
    cells = figures.groupby([*CELL, "method", "rule"], sort=False)
    table = cells.agg(repetitions=("seed", "nunique"))
    return table.join(means(cells, FIGURES)).reset_index()


def differences(rows: pd.DataFrame, method: str, rule: str) -> pd.DataFrame:
    """Paired differences in F1 of one method to the best other one of each cell.

    Others that share fewer than half as many data sets with it as another does are left out: the
    best of many would be one that was lucky once.

    Parameters
    ----------
    rows : DataFrame
        From :func:`run`.
    method, rule : str
        The one that is compared. Other rules of the same method are no rivals.

    Returns
    -------
    DataFrame
        One row a cell: the other ``method`` and ``rule`` with the least mean ``difference`` on the
        data sets that both have, its standard error ``difference_se`` and their number ``pairs``.
    """
    found = []
    for cell, own in rows.groupby(CELL, sort=False):
        others = paired(own, method, rule).query("method != @method")
        others = others[2 * others["pairs"] >= others["pairs"].max()]
        if len(others):
            best = others.loc[others["difference"].idxmin()]
            found.append({**dict(zip(CELL, cell, strict=True)), **best})
    return pd.DataFrame(found)


def paired(rows: pd.DataFrame, method: str, rule: str) -> pd.DataFrame:
    """Paired differences in F1 of one method to each other one, over the data sets of all cells.

    Parameters
    ----------
    rows : DataFrame
        From :func:`run`.
    method, rule : str
        The one that is compared.

    Returns
    -------
    DataFrame
        One row a ``method`` and ``rule``: the mean ``difference`` on the data sets that both have,
        its standard error ``difference_se`` and their number ``pairs``.
    """
    f1_of = rows.pivot_table(index=[*CELL, "seed"], columns=["method", "rule"], values="f1")
    if (method, rule) not in f1_of:
        return pd.DataFrame(columns=["method", "rule", "difference", "difference_se", "pairs"])
    gaps = f1_of.drop(columns=[(method, rule)]).rsub(f1_of[(method, rule)], axis=0)
    found = {"difference": gaps.mean(), "difference_se": gaps.sem(), "pairs": gaps.count()}
    return pd.DataFrame(found).query("pairs > 0").reset_index()

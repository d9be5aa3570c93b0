"""The paper's first figure: how fast f and psi are learned, by rows and inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from pymc_bnnvs.errors import check_option
from pymc_bnnvs.experiments.designs import Simulated, inputs, population_importance, simulate
from pymc_bnnvs.experiments.fits import standardised_error
from pymc_bnnvs.experiments.grid import run_grid, seed_of
from pymc_bnnvs.experiments.networks import NETWORKS, function_at, sample_network, worst
from pymc_bnnvs.experiments.results import machine, means

__all__ = ["DESIGNS", "rates", "run", "summarise"]

DESIGNS = ("linear", "neural", "complex")
CELL = ["design", "network", "n", "n_features"]
FIGURES = ["mse_f", "mse_psi", "mse_psi_law"]
#: Fresh rows that f is judged at.
FRESH = 1000


def run(
    results: str | Path,
    *,
    designs: Sequence[str] = DESIGNS,
    networks: Sequence[str] = ("paper, 2 layers", "default"),
    sizes: Sequence[tuple[int, int]],
    repetitions: int = 20,
    first_seed: int = 7000,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Fit every data set that the results file lacks.

    Parameters
    ----------
    results : path
        A csv file; see :func:`grid.run_grid`.
    designs : sequence of str
        See :func:`designs.simulate`.
    networks : sequence of str
        Of ``NETWORKS``.
    sizes : sequence of (int, int)
        Rows and inputs.
    repetitions : int
        Data sets of each size and design; all networks see the same ones.
    first_seed : int
        Seed of the first data set.
    jobs, scheduler, progress
        As in :func:`grid.run_grid`.

    Returns
    -------
    DataFrame
        One row a fit, see :func:`fit`.
    """
    for network in networks:
        check_option("network", network, NETWORKS)
    tasks = [
        dict(design=design, network=network, n=n, n_features=n_features, seed=seed)
        for seed in range(first_seed, first_seed + repetitions)
        for n, n_features in sizes
        for design in designs
        for network in networks
    ]
    return run_grid(tasks, fit, results, jobs=jobs, scheduler=scheduler, progress=progress)


def fit(task: dict) -> pd.DataFrame:
    """Fit one network to one data set; one row.

    Columns: those of the task; ``mse_f``, the squared error of the posterior mean of f at fresh
    rows, in units of the variance of f; ``mse_psi`` and ``mse_psi_law``, that of psi over the
    inputs, in units of their variance, against the psi of the data's rows and against that over
    the inputs' law; ``r_hat`` and ``ess_bulk``, the worst of psi; ``steps``, ``divergences``,
    ``seconds``.
    """
    data = simulate(task["design"], task["n"], task["n_features"], task["seed"])
    X, f = fresh_rows(data, task["seed"])
    started = time.perf_counter()
    idata = sample_network(task["network"], data.X, data.y, seed_of(task))
    seconds = time.perf_counter() - started
    psi = idata["posterior"].dataset["psi"].mean(("chain", "draw")).values
    over_the_law = population_importance(data, task["seed"], size=20_000)[0]
    found = {
        "mse_f": standardised_error(function_at(idata, X), f),
        "mse_psi": standardised_error(psi, data.psi),
        "mse_psi_law": standardised_error(psi, over_the_law),
    }
    return pd.DataFrame([{**task, **found, **worst(idata), "seconds": seconds, **machine()}])


def fresh_rows(data: Simulated, random_seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw inputs from the law of the data, independent, and f there."""
    assert data.surface is not None
    X = inputs(FRESH, data.X.shape[1], np.random.default_rng([random_seed, 3]))
    return X, data.surface.value(X)


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean of each error in each cell, with its standard error over the data sets.

    Parameters
    ----------
    rows : DataFrame
        From :func:`run`.

    Returns
    -------
    DataFrame
        One row a design, network and size: ``repetitions``, the errors with their ``_se``, the
        median ``r_hat`` and the mean ``seconds``.
    """
    cells = rows.groupby(CELL, sort=False)
    table = cells.agg(
        repetitions=("seed", "nunique"), r_hat=("r_hat", "median"), seconds=("seconds", "mean")
    )
    return table.join(means(cells, FIGURES)).reset_index()


def rates(rows: pd.DataFrame) -> pd.DataFrame:
    """Powers of n at which the errors fall, and whether psi's falls at least as fast as f's.

    The slope of the logarithm of the error on that of n, within each data set's seed, so that the
    standard errors are over data sets.

    Parameters
    ----------
    rows : DataFrame
        From :func:`run`, several n a seed.

    Returns
    -------
    DataFrame
        One row a design, network and number of inputs: ``rate_f``, ``rate_psi`` (negative where
        the error falls), ``difference`` (psi less f: negative where psi is learned faster), each
        with its ``_se``, and the number of ``seeds``.
    """
    found = []
    for key, cell in rows.groupby(["design", "network", "n_features"], sort=False):
        slopes = []
        for _, own in cell.groupby("seed"):
            if own["n"].nunique() < 2:
                continue
            logs = np.log(own[["mse_f", "mse_psi"]].values)
            slopes.append(np.polyfit(np.log(own["n"].values), logs, 1)[0])
        if not slopes:
            continue
        table = pd.DataFrame(slopes, columns=["rate_f", "rate_psi"])
        table["difference"] = table["rate_psi"] - table["rate_f"]
        errors = table.sem().add_suffix("_se")
        found.append(
            dict(zip(["design", "network", "n_features"], key, strict=True))
            | {"seeds": len(table), **table.mean(), **errors}
        )
    return pd.DataFrame(found)

"""How many hidden units the default should have: accuracy, selection and cost by width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from pymc_bnnvs.experiments.convergence_check import data_set
from pymc_bnnvs.experiments.equations import columns_of, read_equation
from pymc_bnnvs.experiments.fits import f1, sample, standardised_error, summarise_draws
from pymc_bnnvs.experiments.grid import run_grid, seed_of
from pymc_bnnvs.experiments.networks import worst
from pymc_bnnvs.experiments.results import machine, means
from pymc_bnnvs.model import build_model

__all__ = ["DESIGNS", "compare", "run", "summarise"]

DESIGNS = ("linear", "neural", "complex", "matern", "I.15.3x, SNR 5", "II.11.28, SNR 5")
CELL = ["design", "n", "n_features"]
FIGURES = ["mse_f", "mse_psi", "f1", "false", "steps", "ess_bulk"]


def run(
    results: str | Path,
    *,
    designs: Sequence[str] = DESIGNS,
    units: Sequence[int] = (10, 20),
    sizes: Sequence[tuple[int, int]] = ((250, 25), (500, 75)),
    repetitions: int = 4,
    first_seed: int = 100,
    draws: int = 1000,
    chains: int = 4,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Fit every data set that the results file lacks.

    Parameters
    ----------
    results : path
        A csv file; see :func:`grid.run_grid`.
    designs : sequence of str
        See :func:`convergence_check.data_set`; an equation brings its own number of inputs.
    units : sequence of int
        Widths of the one hidden layer; all see the same data.
    sizes : sequence of (int, int)
        Rows and inputs.
    repetitions : int
        Data sets of each design and size.
    first_seed : int
        Seed of the first data set; those from 100 on are for tuning.
    draws, chains : int
        As in ``pm.sample``.
    jobs, progress
        As in :func:`grid.run_grid`.

    Returns
    -------
    DataFrame
        One row a fit, see :func:`fit`.
    """
    cells = {
        (design, n, n_inputs(design, n_features)): None
        for design in designs
        for n, n_features in sizes
    }
    tasks = [
        dict(
            design=design,
            n=n,
            n_features=n_features,
            units=width,
            draws=draws,
            chains=chains,
            seed=seed,
        )
        for seed in range(first_seed, first_seed + repetitions)
        for design, n, n_features in cells
        for width in units
    ]
    return run_grid(tasks, fit, results, jobs=jobs, progress=progress)


def n_inputs(design: str, n_features: int) -> int:
    """Return the number of inputs of a data set: an equation brings its own."""
    found = read_equation(design)
    return n_features if found is None else columns_of(found[0])


def fit(task: dict) -> pd.DataFrame:
    """Fit one width to one data set; one row.

    Columns: those of the task; ``mse_f`` and ``mse_psi``, squared errors of the posterior means of
    f at the rows and of psi, in units of the truth's variance; ``f1`` and number of ``false``
    inputs of the rule ``interval``; those of :func:`networks.worst`; ``seconds`` of sampling.
    """
    data = data_set(task["design"], task["n"], task["n_features"], task["seed"])
    idata = sample(
        build_model(data.X, data.y, hidden=(task["units"],)),
        task,
        int(seed_of(task).integers(2**31)),
        cores=1,
    )
    posterior = idata["posterior"].dataset
    mean = posterior[["f", "psi"]].mean(("chain", "draw"))
    away = summarise_draws(idata)["band_excludes_zero"].values
    known = np.isfinite(data.psi).all()
    found = {
        "mse_f": standardised_error(mean["f"].values, data.f),
        "mse_psi": standardised_error(mean["psi"].values, data.psi) if known else np.nan,
        "f1": f1(away, data.truth),
        "false": int((away & ~data.truth).sum()),
        **worst(idata),
        "seconds": float(posterior.attrs["sampling_time"]),
    }
    return pd.DataFrame([{**task, **found, **machine()}])


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean of each figure by design, size and width, with its standard error over the data sets."""
    cells = rows.groupby([*CELL, "units"], sort=False)
    return cells.agg(data_sets=("seed", "nunique")).join(means(cells, FIGURES)).reset_index()


def compare(rows: pd.DataFrame, than: int) -> pd.DataFrame:
    """Paired differences of each width to another, by size, over all designs.

    Parameters
    ----------
    rows : DataFrame
        From :func:`run`.
    than : int
        The width to compare with.

    Returns
    -------
    DataFrame
        Mean over the data sets of ``log_mse_f``, ``log_mse_psi``, ``log_steps``,
        ``log_ess_bulk`` and ``log_seconds`` (logarithms of ratios) and of ``f1`` and ``false``
        (differences), each with its ``_se``.
    """
    logs = ["mse_f", "mse_psi", "steps", "ess_bulk", "seconds"]
    table = rows[[*CELL, "seed", "units", "f1", "false"]].join(
        np.log(rows[logs]).add_prefix("log_")
    )
    figures = list(table.columns[len(CELL) + 2 :])
    wide = table.set_index([*CELL, "seed", "units"])[figures]
    base = wide.xs(than, level="units")
    others = wide[wide.index.get_level_values("units") != than].reset_index("units")
    paired = others[figures] - base.reindex(others.index)
    paired["units"] = others["units"]
    cells = paired.dropna(subset="f1").reset_index().groupby(["n", "n_features", "units"])
    return cells.agg(data_sets=("seed", "size")).join(means(cells, figures)).reset_index()

"""Memory and disk of a fit with thousands of inputs, whose draws go to disk as they are drawn."""

from __future__ import annotations

import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nutpie
import pandas as pd

from pymc_bnnvs.diagnostics import RARE, ConvergenceWarning
from pymc_bnnvs.experiments.designs import simulate
from pymc_bnnvs.experiments.grid import fit_missing
from pymc_bnnvs.experiments.results import machine
from pymc_bnnvs.model import build_model
from pymc_bnnvs.selection import select
from pymc_bnnvs.storage import open_draws, write_draws

__all__ = ["run"]


def run(
    results: str | Path,
    *,
    n: int = 500,
    n_features: int = 2000,
    draws: int = 1000,
    chains: int = 4,
    random_seed: int = 1000,
    progress: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Fit one data set as docs/sampling.md advises for thousands of inputs, if not done yet.

    Parameters
    ----------
    results : path
        A csv file, made if it does not exist; see :func:`grid.fit_missing`.
    n, n_features : int
        Rows and inputs.
    draws, chains : int
        As in ``pm.sample``.
    random_seed : int
        Of the data set and of its sampling.
    progress : callable, optional
        Told of the fit.

    Returns
    -------
    DataFrame
        One row: gigabytes at the peak so far, of this process (``gb_*``, so call it in a new
        one), megabytes of the file, seconds, and what was found.
    """
    settings = dict(design="neural", n=n, n_features=n_features, draws=draws, chains=chains)
    return fit_missing(results, settings, (random_seed,), fit, progress)


def fit(settings: dict[str, Any], seed: int) -> pd.DataFrame:
    """Fit one data set; one row."""
    data = simulate(settings["design"], settings["n"], settings["n_features"], seed)
    model = build_model(data.X, data.y, check_memory=False)
    row: dict[str, Any] = settings | {"seed": seed}
    with TemporaryDirectory(dir=Path.cwd()) as folder:
        started = time.perf_counter()
        compiled = nutpie.compile_pymc_model(model)
        row["seconds_compiling"] = time.perf_counter() - started
        path = Path(folder) / "draws.zarr"
        store = nutpie.zarr_store.LocalStore(str(path), mkdir=True)
        started = time.perf_counter()
        nutpie.sample(
            compiled,
            draws=settings["draws"],
            tune=1000,
            chains=settings["chains"],
            seed=seed,
            progress_bar=False,
            zarr_store=store,
        )
        row["seconds_sampling"] = time.perf_counter() - started
        row["gb_sampled"] = peak_gb()
        idata = open_draws(path, model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            decision = select(idata)
        row["gb_selected"] = peak_gb()
        file = write_draws(idata, Path(folder) / "draws.nc")
        row["gb_written"] = peak_gb()
        row["mb_file"] = file.stat().st_size / 1e6
        stats = idata["sample_stats"]
        row["steps"] = float(stats["n_steps"].mean())
        row["divergences"] = int(stats["diverging"].sum())
    judged = decision["inclusion"].values > RARE
    row |= {
        "open_gates": float(decision["inclusion"].sum()),
        "true_selected": int(decision["selected"].values[data.psi > 0].sum()),
        "false_selected": int(decision["selected"].values[data.psi == 0].sum()),
        "judged": int(judged.sum()),
        "r_hat": float(decision["r_hat"].values[judged].max()),
        "ess_bulk": float(decision["ess_bulk"].values[judged].min()),
    }
    return pd.DataFrame([row | machine()])


def peak_gb() -> float:
    """Most memory that this process has had, in gigabytes."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1e9 if sys.platform == "darwin" else 1e6)

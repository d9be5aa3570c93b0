"""One fit of a simulated data set: its draws in short, and what every results file tells."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr

from pymc_bnnvs.diagnostics import RARE, ConvergenceWarning
from pymc_bnnvs.experiments.designs import Simulated
from pymc_bnnvs.experiments.results import machine
from pymc_bnnvs.summary import importance

__all__ = [
    "columns",
    "f1",
    "may_be_in",
    "sample",
    "standardised_error",
    "summarise_draws",
    "without_weights",
]


def sample(model: pm.Model, settings: dict[str, Any], seed: int, **options: Any) -> xr.DataTree:
    """Sample with ``pm.sample``, the draws and chains of the settings, and in silence.

    Of ``options``, ``step`` is called in the model's context to make one.
    """
    with model:
        if "step" in options:
            options["step"] = options["step"]()
        return pm.sample(
            settings["draws"],
            chains=settings["chains"],
            random_seed=seed,
            progressbar=False,
            quiet=True,
            **options,
        )


def summarise_draws(idata: xr.DataTree) -> xr.Dataset:
    """Summary of psi, not centred, with pointwise 95 % intervals.

    Without the weights there is no pass over the gradient field, which nobody asks for here.
    """
    with warnings.catch_warnings():
        # Convergence is a column of the results.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return importance(
            without_weights(idata),
            centering="none",
            ci_prob=0.95,
            ci_kind="eti",
        )


def without_weights(idata: xr.DataTree) -> xr.DataTree:
    """Draws of psi and of the inclusion, and nothing else."""
    posterior = idata["posterior"].dataset
    kept = posterior[[name for name in ("psi", "inclusion") if name in posterior]]
    return xr.DataTree.from_dict({"posterior": kept})


def columns(
    settings: dict[str, Any], seed: int, data: Simulated, idata: xr.DataTree, summary: xr.Dataset
) -> dict[str, Any]:
    """Columns that every results file has; one row an input."""
    stats = idata["sample_stats"]
    return {
        **settings,
        "seed": seed,
        "feature": summary["feature"].values,
        "truth": data.psi,
        "psi": summary["psi"].values,
        "sd": summary["sd"].values,
        "away": summary["band_excludes_zero"].values,
        "inclusion": summary["inclusion"].values if "inclusion" in summary else np.nan,
        "r_hat": summary["r_hat"].values,
        "ess_bulk": summary["ess_bulk"].values,
        "steps": float(stats["n_steps"].mean()),
        "divergences": int(stats["diverging"].sum()),
        **machine(),
    }


def may_be_in(rows: pd.DataFrame) -> pd.Series:
    """Whether an input is in often enough to be judged; always, without exact zeros."""
    return rows["inclusion"].fillna(1.0) > RARE


def standardised_error(estimate: np.ndarray, truth: np.ndarray) -> float:
    """Mean squared error in units of the truth's variance; NaN for a constant truth."""
    variance = float(np.var(truth))
    return float(np.mean((estimate - truth) ** 2)) / variance if variance else float("nan")


def f1(selected: np.ndarray, true: np.ndarray) -> float:
    """Harmonic mean of precision and recall; 0 for a selection without a true input."""
    total = selected.sum() + true.sum()
    return 2 * float((selected & true).sum()) / total if total else 1.0

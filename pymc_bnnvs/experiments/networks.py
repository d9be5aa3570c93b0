"""The Bayesian networks of the paper's experiments: its own, a rival's, and our default."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import xarray as xr

from pymc_bnnvs.diagnostics import RARE, convergence
from pymc_bnnvs.gradient_field import Network
from pymc_bnnvs.model import build_model

__all__ = ["NETWORKS", "Recipe", "function_at", "sample_network", "worst"]


class Recipe(NamedTuple):
    """Arguments of ``build_model`` and of ``pm.sample``."""

    model: dict[str, Any]
    sample: dict[str, Any]


#: N(0, 0.1) weights, noise known to be 1, nothing standardised.
PAPER: dict[str, Any] = {"prior": "gaussian", "standardize": False, "noise": 1.0}
#: A draw of these takes several hundred steps, and hardly depends on the one before.
FEW = {"draws": 500, "tune": 500, "chains": 2}
FEWER = {"draws": 300, "tune": 300, "chains": 2}
NETWORKS = {
    "paper": Recipe({**PAPER, "hidden": (50,)}, FEW),
    "paper, 2 layers": Recipe({**PAPER, "hidden": (50, 50)}, FEWER),
    "spike and slab": Recipe({"prior": "spike_slab", "hidden": (5,)}, {"draws": 1000, "chains": 4}),
    "default": Recipe({}, {"draws": 1000, "chains": 4}),
}


def sample_network(
    name: str, X: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> xr.DataTree:
    """Sample one of ``NETWORKS`` in silence, on one core: a grid has other fits for the others."""
    recipe = NETWORKS[name]
    with build_model(X, y, **recipe.model):
        return pm.sample(
            random_seed=int(rng.integers(2**31)),
            cores=1,
            progressbar=False,
            quiet=True,
            **recipe.sample,
        )


def function_at(idata: xr.DataTree, X: np.ndarray, max_bytes: int = 2**26) -> np.ndarray:
    """Posterior mean of the function at rows that it was not fitted to, shape (m,)."""
    posterior, constant = idata["posterior"].dataset, idata["constant_data"].dataset
    network = Network.read(posterior, constant)._replace(X=X - constant["x_center"].values)
    level = float(constant["f_center"] + constant["f_scale"] * posterior["b_0"].mean())
    total = np.zeros(len(X))
    for block in network.blocks(max_bytes):
        total += network.values(block).sum(axis=0)
    return level + total / network.n_draws


def worst(idata: xr.DataTree) -> dict[str, float]:
    """Convergence of a fit, as columns of a results file.

    ``r_hat`` and ``ess_bulk``, the largest and the least of the psi that are in often enough (NaN
    if none is); leapfrog ``steps`` a draw, and ``divergences``.
    """
    posterior, stats = idata["posterior"].dataset, idata["sample_stats"]
    inclusion = posterior.get("inclusion")
    verdict = convergence(posterior["psi"], inclusion, "feature")
    if inclusion is not None:
        verdict = verdict.where(inclusion.mean(("chain", "draw")) > RARE)
    return {
        "r_hat": float(verdict["r_hat"].max()),
        "ess_bulk": float(verdict["ess_bulk"].min()),
        "steps": float(stats["n_steps"].mean()),
        "divergences": int(stats["diverging"].sum()),
    }

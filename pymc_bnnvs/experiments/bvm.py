"""The paper's second figure: spread and shape of the posterior of psi, and its coverage."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import arviz as az
import numpy as np
import pandas as pd
import xarray as xr

from pymc_bnnvs.bernstein_von_mises import (
    cramer_von_mises,
    cramer_von_mises_null,
    network_sigma_bvm,
)
from pymc_bnnvs.diagnostics import ConvergenceWarning
from pymc_bnnvs.errors import check_option
from pymc_bnnvs.experiments.designs import Simulated, simulate
from pymc_bnnvs.experiments.grid import run_grid, seed_of
from pymc_bnnvs.experiments.networks import NETWORKS, sample_network, worst
from pymc_bnnvs.experiments.results import machine
from pymc_bnnvs.summary import importance

__all__ = ["coverage_by_strength", "null_quantiles", "run", "summarise"]

CELL = ["network", "centering", "n", "n_features"]
#: Where the ranges of psi end. A linear input with a psi of 1 brings a variance of 1 / 12, noise 1.
STRENGTHS = (1, 4, 16)


def run(
    results: str | Path,
    *,
    networks: Sequence[str] = ("paper", "default"),
    sizes: Sequence[tuple[int, int]],
    repetitions: int = 20,
    first_seed: int = 8000,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Fit every data set of the design ``neural`` that the results file lacks.

    Parameters
    ----------
    results : path
        A csv file; see :func:`grid.run_grid`.
    networks : sequence of str
        Of ``NETWORKS``.
    sizes : sequence of (int, int)
        Rows and inputs.
    repetitions : int
        Data sets of each size; all networks see the same ones.
    first_seed : int
        Seed of the first data set.
    jobs, scheduler, progress
        As in :func:`grid.run_grid`.

    Returns
    -------
    DataFrame
        One row an input, fit and centring, see :func:`fit`.
    """
    for network in networks:
        check_option("network", network, NETWORKS)
    tasks = [
        dict(network=network, n=n, n_features=n_features, seed=seed)
        for seed in range(first_seed, first_seed + repetitions)
        for n, n_features in sizes
        for network in networks
    ]
    return run_grid(tasks, fit, results, jobs=jobs, scheduler=scheduler, progress=progress)


def fit(task: dict) -> pd.DataFrame:
    """Fit one network to one data set; one row an input and centring.

    Columns: those of the task; ``centering``, ours for the prior and the paper's; ``feature``;
    ``truth``, psi at the data's rows; ``sigma_bvm``, ``sigma_oracle`` and ``sigma_whole``, see
    :func:`limits`; ``sd`` of the centred draws; ``cvm`` and ``ess_shape``, see
    :func:`distance_from_normal`; whether the pointwise interval, ``covered``, and the band,
    ``in_band``, both at 95 %, hold the truth; ``r_hat``, ``ess_bulk`` (the worst of the fit),
    ``seconds``.
    """
    data = simulate("neural", task["n"], task["n_features"], task["seed"])
    started = time.perf_counter()
    idata = sample_network(task["network"], data.X, data.y, seed_of(task))
    seconds = time.perf_counter() - started
    psi = idata["posterior"].dataset["psi"]
    shape = distance_from_normal(psi)
    of_fit = {**worst(idata), "seconds": seconds, **machine()}
    sigma = limits(data)
    rows = []
    for centering in ("auto", "trace"):
        if centering == "trace" and task["network"] == "default":
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = importance(idata, centering=centering, ci_prob=0.95, ci_kind="eti")
        inside = {
            name: (found[f"{kind}_lower"].values <= data.psi)
            & (data.psi <= found[f"{kind}_upper"].values)
            for name, kind in (("covered", "ci"), ("in_band", "band"))
        }
        rows.append(
            pd.DataFrame(
                {
                    **task,
                    "centering": found.attrs["centering"],
                    "feature": found["feature"].values,
                    "truth": data.psi,
                    **sigma,
                    "sd": found["sd"].values,
                    **shape,
                    **inside,
                    **of_fit,
                }
            )
        )
    return pd.concat(rows, ignore_index=True)


def distance_from_normal(psi: xr.DataArray) -> dict[str, np.ndarray]:
    """Cramer-von Mises distance of each input's draws, and how many draws it is worth.

    ``cvm`` and ``ess_shape``, (P,), NaN for draws that are all the same. The distance of normal
    draws falls as one by their number, so that only ``ess_shape * cvm`` compares fits. The draws
    depend on each other, and the distance leaves out their mean and spread, so the number is the
    effective one of the third Hermite polynomial (see :func:`cramer_von_mises_null`).
    """
    draws = psi.transpose("chain", "draw", ...).values
    moves = np.ptp(draws, axis=(0, 1)) > 0
    z = draws[..., moves]
    z = (z - z.mean(axis=(0, 1))) / z.std(axis=(0, 1))
    found = {name: np.full(len(moves), np.nan) for name in ("cvm", "ess_shape")}
    if moves.any():
        found["cvm"][moves] = cramer_von_mises(draws[..., moves], axis=(0, 1))
        cubic = xr.DataArray(z**3 - 3 * z, dims=("chain", "draw", "feature"))
        found["ess_shape"][moves] = az.ess(cubic, method="mean").values
    return found


def limits(data: Simulated) -> dict[str, np.ndarray | bool]:
    """Compute the standard deviations of the limit at the true network, (P,), with its kinks.

    ``sigma_bvm`` is that of a network which has to learn the weights of all inputs, NaN with
    fewer than two rows for each; ``sigma_oracle`` that of one which knows the inputs. They are too
    small by a little where these data can't tell some of the true weights apart (two units that are
    on at all rows, say): ``sigma_whole`` is False then.
    """
    assert data.surface is not None and data.surface.layers is not None
    (W, b), output = data.surface.layers
    n, n_features = data.X.shape
    full, oracle = np.full(n_features, np.nan), np.zeros(n_features)
    own = ((W[data.truth], b), output)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if n >= 2 * W.size:
            full = network_sigma_bvm(data.X, ((W, b), output), derivative="weak")
        oracle[data.truth] = network_sigma_bvm(data.X[:, data.truth], own, derivative="weak")
    return {"sigma_bvm": full, "sigma_oracle": oracle, "sigma_whole": not told}


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Spread, shape and coverage in each cell, for true and for null inputs apart.

    Parameters
    ----------
    rows : DataFrame
        From :func:`run`.

    Returns
    -------
    DataFrame
        One row a network, centring, size and kind of input: ``repetitions``; for the true inputs
        ``mse_sd`` and ``mse_sd_oracle``, the squared errors of the posterior's standard deviation
        as one of the limit's, in units of the limit's variance over the inputs; ``cvm``, the
        median of ``ess_shape * cvm``, see :func:`null_quantiles`;
        ``covered`` and ``in_band``; each but the median with its ``_se`` over data sets.
    """
    found = []
    for key, cell in rows.groupby(CELL, sort=False):
        for kind, part in (("true", cell[cell["truth"] > 0]), ("null", cell[cell["truth"] == 0])):
            by_fit = part.groupby("seed")
            figures = pd.DataFrame(
                {
                    "mse_sd": by_fit.apply(spread_error, "sigma_bvm", include_groups=False),
                    "mse_sd_oracle": by_fit.apply(
                        spread_error, "sigma_oracle", include_groups=False
                    ),
                    "covered": by_fit["covered"].mean(),
                    "in_band": by_fit["in_band"].mean(),
                }
            )
            found.append(
                dict(zip(CELL, key, strict=True))
                | {"inputs": kind, "repetitions": len(figures)}
                | {"cvm": (part["cvm"] * part["ess_shape"]).median()}
                | figures.mean().to_dict()
                | figures.sem().add_suffix("_se").to_dict()
            )
    return pd.DataFrame(found)


def coverage_by_strength(rows: pd.DataFrame) -> pd.DataFrame:
    """Coverage of the pointwise interval at true inputs, by their psi, all sizes together.

    Parameters
    ----------
    rows : DataFrame
        From :func:`run`.

    Returns
    -------
    DataFrame
        One row a ``network``, ``centering`` and range of ``psi``: the share ``covered``, its
        standard error ``covered_se`` over data sets, and the number of ``inputs``.
    """
    true = rows[rows["truth"] > 0]
    edges = [0, *STRENGTHS, np.inf]
    names = [f"< {STRENGTHS[0]}", *(f"{a} to {b}" for a, b in pairwise(STRENGTHS))]
    names.append(f">= {STRENGTHS[-1]}")
    true = true.assign(psi=pd.cut(true["truth"], edges, right=False, labels=names))
    found = []
    # By range first, so that the ranges come in order even where a network lacks one.
    for key, own in true.groupby(["psi", "network", "centering"], observed=True):
        by_data = own.groupby(["n", "n_features", "seed"])["covered"].agg(["sum", "count"])
        share, sets = own["covered"].mean(), len(by_data)
        apart = by_data["sum"] - share * by_data["count"]
        error = (apart.pow(2).sum() * sets / (sets - 1)) ** 0.5 / len(own) if sets > 1 else np.nan
        cell = dict(zip(("psi", "network", "centering"), key, strict=True))
        found.append({**cell, "covered": share, "covered_se": error, "inputs": len(own)})
    return pd.DataFrame(found)


def null_quantiles(levels: Sequence[float], random_seed: int = 1) -> np.ndarray:
    """Quantiles that ``cvm`` of :func:`summarise` would have, were the draws normal.

    They hardly depend on the number of draws; these are of a thousand.
    """
    return 1000 * cramer_von_mises_null(1000, quantiles=levels, random_seed=random_seed)[0]


def spread_error(fit: pd.DataFrame, limit: str) -> float:
    """Mean squared error of ``sd`` in units of the limit's variance; NaN where that is 0."""
    variance = fit[limit].var(ddof=0)
    if not variance > 0:
        return np.nan
    return float(((fit["sd"] - fit[limit]) ** 2).mean() / variance)

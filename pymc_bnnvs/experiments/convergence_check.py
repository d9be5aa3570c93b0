"""Whether the default model's draws converge, on simulated data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pymc_bnnvs.diagnostics import (
    ESS_MIN,
    R_HAT_MAX,
    convergence,
)
from pymc_bnnvs.errors import check_option
from pymc_bnnvs.experiments.designs import Simulated, simulate
from pymc_bnnvs.experiments.equations import feynman, read_equation
from pymc_bnnvs.experiments.fits import columns, f1, may_be_in, sample, summarise_draws
from pymc_bnnvs.experiments.grid import fit_missing
from pymc_bnnvs.model import build_model
from pymc_bnnvs.priors import Gated
from pymc_bnnvs.steps import gate_step

__all__ = ["VARIANTS", "by_cell", "by_fit", "by_variant", "run"]

#: Arguments of ``build_model`` and of ``pm.sample`` that are compared with the defaults.
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "default": ({}, {}),
    "gate moves": ({}, {"step": gate_step}),
    "relu with its kink": ({"activation": "relu"}, {}),
    "no lines": ({"prior": Gated(linear_sd=0.0)}, {}),
    "no lines, kink": ({"prior": Gated(linear_sd=0.0), "activation": "relu"}, {}),
    "slopes, not effects": ({"prior": Gated(reparametrize=False)}, {}),
    "gate with its kink": ({"prior": Gated(softness=0.0)}, {}),
    "10 units": ({"hidden": (10,)}, {}),
    "mass matrix of the draws": ({}, {"nuts": {"adaptation": "draw_diag"}}),
    "low-rank mass matrix": ({}, {"nuts": {"adaptation": "low_rank"}}),
    "trees of depth 5": ({}, {"nuts": {"maxdepth": 5}}),
    "MCLMC": ({}, {"nuts": {"sampler": "mclmc"}}),
}


def data_set(design: str, n: int, n_features: int, random_seed: int) -> Simulated:
    """Draw a data set of ``"neural"``, ``"noise"`` or, as in ``"I.15.3x, SNR 5"``, an equation.

    An equation brings its own number of inputs.
    """
    found = read_equation(design)
    if found is None:
        return simulate(design, n, n_features, random_seed)
    equation, snr = found
    return feynman(equation, n, snr, random_seed)


def run(
    results: str | Path,
    *,
    design: str = "neural",
    variant: str = "default",
    n: int = 250,
    n_features: int = 25,
    seeds: Sequence[int] = tuple(range(3000, 3010)),
    draws: int = 4000,
    chains: int = 4,
    progress: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Fit every data set that the results file lacks.

    Parameters
    ----------
    results : path
        A csv file, made if it does not exist; see :func:`grid.fit_missing`.
    design : str
        ``"neural"``, ``"noise"`` or an equation, ``"I.15.3x, SNR 5"``.
    variant : str
        One of ``VARIANTS``.
    n, n_features : int
        Rows and inputs of a data set; an equation brings its own number of inputs.
    seeds : sequence of int
        One data set each; also the seed of its sampling.
    draws, chains : int
        As in ``pm.sample``.
    progress : callable, optional
        Told of each fit.

    Returns
    -------
    DataFrame
        One row an input and fit, of this design and these settings.
    """
    check_option("variant", variant, VARIANTS)
    settings = dict(
        design=design, variant=variant, n=n, n_features=n_features, draws=draws, chains=chains
    )
    return fit_missing(results, settings, seeds, fit, progress)


def fit(settings: dict, seed: int) -> pd.DataFrame:
    """Fit one data set; one row an input."""
    data = data_set(settings["design"], settings["n"], settings["n_features"], seed)
    of_model, of_sample = VARIANTS[settings["variant"]]
    idata = sample(build_model(data.X, data.y, **of_model), settings, seed, **of_sample)
    posterior = idata["posterior"].dataset
    early: dict[str, np.ndarray] = {}
    for kept in checkpoints(settings["draws"]):
        part = posterior.isel(draw=slice(0, kept))
        verdict = convergence(part["psi"], part["inclusion"], "feature")
        early |= {f"{name}_{kept}": verdict[name].values for name in ("r_hat", "ess_bulk")}
    by_chain = posterior["inclusion"].mean("draw")
    return pd.DataFrame(
        {
            **columns(settings, seed, data, idata, summarise_draws(idata)),
            "inclusion_low": by_chain.min("chain").values,
            "inclusion_high": by_chain.max("chain").values,
            **early,
            "seconds_sampling": float(posterior.attrs["sampling_time"]),
        }
    )


def checkpoints(draws: int) -> list[int]:
    """Numbers of draws a chain at which convergence is judged too: a half, a quarter ..., 500."""
    return [draws // 2**k for k in range(1, 10) if draws // 2**k >= 500]


def by_fit(rows: pd.DataFrame) -> pd.DataFrame:
    """Verdict on each fit, over the inputs with inclusion above 0.1.

    Parameters
    ----------
    rows : DataFrame
        From :func:`run`, any number of designs.

    Returns
    -------
    DataFrame
        One row a fit: ``r_hat`` (worst), ``ess_bulk`` (least), ``converged`` (R-hat at most 1.01
        and an effective sample size of at least 400 for each), ``converged_at``, the smallest
        number of draws a chain of those judged that this holds for (NaN: for none), ``agree``
        (each input is in, at 1/2, by every chain or by none), how many inputs are ``likely``
        and, of these, ``missed`` the target; of the rule ``interval`` ``f1``, how many of the
        ``true`` inputs are ``kept``, how many ``false`` ones; ``left_out``, the largest inclusion
        of a true input that is not kept;
        ``psi_true``, the sum of the posterior means of the true inputs,
        ``per_gradient`` and ``median_per_gradient`` (least and median effective draws a kept
        leapfrog step), ``steps`` a draw, ``divergences``, ``seconds_sampling``.
    """
    keys = ["design", "variant", "n", "n_features", "draws", "chains", "seed"]
    found = []
    for key, own in rows.groupby(keys, sort=False):
        likely, true = own[may_be_in(own)], own["truth"] > 0
        same = own.iloc[0]  # what a fit has once stands in all its rows
        draws = int(same["draws"])
        reached = [draws] if good(likely["r_hat"], likely["ess_bulk"]) else []
        for kept in checkpoints(draws):
            if good(likely[f"r_hat_{kept}"], likely[f"ess_bulk_{kept}"]):
                reached.append(kept)
        gradients = same["steps"] * draws * same["chains"]
        agree = (own["inclusion_low"] > 0.5) == (own["inclusion_high"] > 0.5)
        found.append(
            dict(zip(keys, key, strict=True))
            | {
                "likely": len(likely),
                "r_hat": likely["r_hat"].max(),
                "ess_bulk": likely["ess_bulk"].min(),
                "converged": draws in reached,
                "converged_at": min(reached, default=np.nan),
                "agree": bool(agree.all()),
                "missed": len(likely) - int(is_good(likely["r_hat"], likely["ess_bulk"]).sum()),
                "true": int(true.sum()),
                "kept": int((own["away"] & true).sum()),
                "false": int((own["away"] & ~true).sum()),
                "left_out": own.loc[true & ~own["away"], "inclusion"].max(),
                "f1": f1(own["away"].values, true.values),
                "psi_true": own.loc[true, "psi"].sum(),
                "per_gradient": likely["ess_bulk"].min() / gradients,
                "median_per_gradient": likely["ess_bulk"].median() / gradients,
            }
            | {name: same[name] for name in ("steps", "divergences", "seconds_sampling")}
        )
    return pd.DataFrame(found)


def good(r_hat: pd.Series, ess_bulk: pd.Series) -> bool:
    """Whether every input has converged; so has none at all."""
    return bool(is_good(r_hat, ess_bulk).all())


def is_good(r_hat: pd.Series, ess_bulk: pd.Series) -> pd.Series:
    """Whether each input has converged."""
    return (r_hat <= R_HAT_MAX) & (ess_bulk >= ESS_MIN)


def by_cell(fits: pd.DataFrame) -> pd.DataFrame:
    """Summary of each design and size.

    Parameters
    ----------
    fits : DataFrame
        From :func:`by_fit`, all of one number of draws.

    Returns
    -------
    DataFrame
        One row a cell: ``fits``, how many of them have converged after how many draws a chain,
        in how many the chains ``agree``, ``r_hat`` (worst), ``ess_bulk`` (median), means of
        ``f1``, ``steps``, ``divergences`` and ``seconds_sampling``.
    """
    cells = fits.groupby(["design", "variant", "n", "n_features"], sort=False)
    table = cells.agg(fits=("seed", "size"))
    draws = int(fits["draws"].iloc[0])
    for kept in [*checkpoints(draws)[::-1], draws]:
        table[f"by {kept}"] = cells["converged_at"].agg(lambda at, kept=kept: (at <= kept).sum())
    return table.join(
        cells.agg(
            agree=("agree", "sum"),
            r_hat=("r_hat", "max"),
            ess_bulk=("ess_bulk", "median"),
            f1=("f1", "mean"),
            steps=("steps", "mean"),
            divergences=("divergences", "mean"),
            seconds=("seconds_sampling", "mean"),
        )
    )


def by_variant(fits: pd.DataFrame) -> pd.DataFrame:
    """Summary of each design and variant: what a leapfrog step buys.

    Parameters
    ----------
    fits : DataFrame
        From :func:`by_fit`.

    Returns
    -------
    DataFrame
        One row a design and variant: ``fits``, ``r_hat`` (worst), means of ``steps``,
        ``divergences``, ``f1`` and ``seconds`` of sampling, and effective draws of psi a million
        leapfrog steps, of the worst input (``least``) and of the middle one (``median``), each a
        mean over the fits with its standard error; ``least_a_minute`` and ``median_a_minute`` of
        sampling, to compare only where all was run on one machine; ``psi_ratio``, the mean of
        ``psi_true`` in units of the default's on the same data, with its standard error: 1 for
        a sampler without bias.
    """
    scaled = fits.assign(least=1e6 * fits["per_gradient"], median=1e6 * fits["median_per_gradient"])
    same = ["design", "n", "n_features", "seed"]
    default = fits[fits["variant"] == "default"].groupby(same)["psi_true"].first()
    scaled["psi_ratio"] = (
        fits["psi_true"].values / default.reindex(pd.MultiIndex.from_frame(fits[same])).values
    )
    gradients = fits["steps"] * fits["draws"] * fits["chains"]
    for name in ("least", "median"):
        draws = scaled[name] / 1e6 * gradients
        scaled[f"{name}_a_minute"] = 60 * draws / fits["seconds_sampling"]
    return scaled.groupby(["design", "variant"], sort=False).agg(
        fits=("seed", "size"),
        r_hat=("r_hat", "max"),
        steps=("steps", "mean"),
        divergences=("divergences", "mean"),
        f1=("f1", "mean"),
        least=("least", "mean"),
        least_se=("least", "sem"),
        median=("median", "mean"),
        median_se=("median", "sem"),
        seconds=("seconds_sampling", "mean"),
        least_a_minute=("least_a_minute", "mean"),
        median_a_minute=("median_a_minute", "mean"),
        psi_ratio=("psi_ratio", "mean"),
        psi_ratio_se=("psi_ratio", "sem"),
    )

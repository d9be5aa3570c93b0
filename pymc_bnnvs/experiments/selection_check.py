"""Check of the selection and of the intervals on simulated data whose truth is known."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm

from pymc_bnnvs.centering import gradient_variance
from pymc_bnnvs.diagnostics import ConvergenceWarning
from pymc_bnnvs.errors import check_option
from pymc_bnnvs.experiments.designs import Simulated, neural, pure_noise
from pymc_bnnvs.experiments.results import fit_missing, machine
from pymc_bnnvs.gradient_field import Network, gradient_moments
from pymc_bnnvs.model import build_model
from pymc_bnnvs.summary import importance

__all__ = ["DESIGNS", "centering_table", "run", "shortfalls", "summarise"]

DESIGNS: dict[str, Callable[[int, int, int], Simulated]] = {
    "neural": neural,
    "noise": pure_noise,
}


def run(
    results: str | Path,
    *,
    design: str = "neural",
    prior: str = "gated",
    n: int = 250,
    n_features: int = 25,
    seeds: Sequence[int] = tuple(range(1000, 1020)),
    draws: int = 1000,
    chains: int = 4,
    progress: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Fit every data set that the results file lacks.

    Parameters
    ----------
    results : path
        A csv file, made if it does not exist; written again, through a temporary file, after
        every fit.
    design : {"neural", "noise"}
        Simulated regression; see :mod:`pymc_bnnvs.experiments.designs`.
    prior : str
        Prior of the model, otherwise with :func:`build_model`'s defaults.
    n, n_features : int
        Rows and inputs of a data set.
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
    check_option("design", design, DESIGNS)
    settings = dict(
        design=design, prior=prior, n=n, n_features=n_features, draws=draws, chains=chains
    )
    return fit_missing(results, settings, seeds, fit, progress)


def fit(settings: dict, seed: int) -> pd.DataFrame:
    """Fit one data set; one row an input."""
    data = DESIGNS[settings["design"]](settings["n"], settings["n_features"], seed)
    started = time.perf_counter()
    with build_model(data.X, data.y, prior=settings["prior"]):
        idata = pm.sample(
            settings["draws"],
            chains=settings["chains"],
            random_seed=seed,
            progressbar=False,
            quiet=True,
        )
    seconds = time.perf_counter() - started
    posterior, constant = idata["posterior"].dataset, idata["constant_data"].dataset
    moments = gradient_moments(Network.read(posterior, constant))
    included = None
    if "inclusion" in posterior:
        included = posterior["inclusion"].values.reshape(-1, settings["n_features"]) > 0
    with warnings.catch_warnings():
        # Convergence is a column of the results.
        warnings.simplefilter("ignore", ConvergenceWarning)
        summary = importance(idata, centering="none", ci_prob=0.95, ci_kind="eti")
    f_mean = posterior["f"].mean(("chain", "draw")).values
    rows = pd.DataFrame(
        {
            **settings,
            "seed": seed,
            "feature": summary["feature"].values,
            "truth": data.psi,
            "psi": summary["psi"].values,
            "sd": summary["sd"].values,
            "lower": summary["ci_lower"].values,
            "upper": summary["ci_upper"].values,
            "band_lower": summary["band_lower"].values,
            "band_upper": summary["band_upper"].values,
            "away": summary["band_excludes_zero"].values,
            "gradient_variance": gradient_variance(moments, included),
            "inclusion": summary["inclusion"].values if "inclusion" in summary else np.nan,
            "r_hat": summary["r_hat"].values,
            "ess_bulk": summary["ess_bulk"].values,
            "converged": summary["converged"].values,
            "mse_f": _standardised(f_mean, data.f),
            "steps": float(idata["sample_stats"]["n_steps"].mean()),
            "divergences": int(idata["sample_stats"]["diverging"].sum()),
            "seconds": seconds,
            **machine(),
        }
    )
    return rows


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Summary of one design's fits: each figure with its Monte Carlo standard error.

    Parameters
    ----------
    rows : DataFrame
        From :func:`run`.

    Returns
    -------
    DataFrame
        Columns ``value`` and ``se``, the standard error over data sets; one row a figure.
    """
    by_fit = []
    for _, fit_rows in rows.groupby("seed"):
        true = fit_rows["truth"].values > 0
        figures: dict[str, float] = {}
        rules = {"interval": fit_rows["away"].values}
        if fit_rows["inclusion"].notna().all():
            rules["median"] = fit_rows["inclusion"].values > 0.5
        for rule, selected in rules.items():
            if true.any():
                figures[f"{rule}: F1"] = _f1(selected, true)
            figures[f"{rule}: false selections"] = float((selected & ~true).sum())
            figures[f"{rule}: any selected"] = float(selected.any())
        covered = (fit_rows["lower"] <= fit_rows["truth"]) & (
            fit_rows["truth"] <= fit_rows["upper"]
        )
        band = (fit_rows["band_lower"] <= fit_rows["truth"]) & (
            fit_rows["truth"] <= fit_rows["band_upper"]
        )
        if true.any():
            figures["coverage of true inputs, pointwise 95 %"] = covered[true].mean()
            figures["standardised MSE of f"] = fit_rows["mse_f"].iloc[0]
        figures["coverage of null inputs, pointwise 95 %"] = covered[~true].mean()
        figures["coverage of all at once, 95 % band"] = float(band.all())
        likely = fit_rows["inclusion"].fillna(1.0) > 0.1
        if likely.any():
            figures["worst R-hat (inclusion above .1)"] = fit_rows["r_hat"][likely].max()
        figures["all inputs converged"] = float(fit_rows["converged"].all())
        figures["divergences a fit"] = float(fit_rows["divergences"].iloc[0])
        figures["leapfrog steps a draw"] = fit_rows["steps"].iloc[0]
        figures["seconds a fit, compilation included"] = fit_rows["seconds"].iloc[0]
        by_fit.append(figures)
    table = pd.DataFrame(by_fit)
    return pd.DataFrame(
        {"value": table.mean(), "se": table.std(ddof=1) / np.sqrt(table.count())}
    ).rename_axis("figure")


def shortfalls(rows: pd.DataFrame) -> pd.DataFrame:
    """List what went wrong: inputs missed, not covered or not converged, one row each.

    Parameters
    ----------
    rows : DataFrame
        From :func:`run`.

    Returns
    -------
    DataFrame
        Inputs that matter and that ``interval`` leaves out or whose pointwise interval leaves out
        the truth, and inputs with inclusion above .1 that have not converged; ``share`` is the
        share of psi in its data set.
    """
    true = rows["truth"] > 0
    total = rows.groupby("seed")["truth"].transform("sum")
    likely = rows["inclusion"].fillna(1.0) > 0.1
    table = rows[["seed", "feature", "truth", "psi", "lower", "upper", "inclusion", "r_hat"]]
    table = table.assign(
        share=rows["truth"] / total.where(total > 0),
        missed=true & ~rows["away"],
        uncovered=true & ((rows["truth"] < rows["lower"]) | (rows["truth"] > rows["upper"])),
        unconverged=likely & ~rows["converged"],
    )
    return table[table[["missed", "uncovered", "unconverged"]].any(axis=1)]


def centering_table(
    rows: pd.DataFrame, factors: Sequence[float] = (0.0, 0.5, 1.0, 1.5, 2.0)
) -> pd.DataFrame:
    """Bias and coverage of the true inputs' psi by the multiple of v that is taken off.

    Parameters
    ----------
    rows : DataFrame
        From :func:`run`, any number of priors.
    factors : sequence of float
        Multiples of the posterior variance of the gradient.

    Returns
    -------
    DataFrame
        By prior and factor: ``bias`` of the mean in units of v for the true inputs with its
        standard error over data sets, ``null_bias`` for the null inputs, and pointwise
        ``coverage`` of the true inputs.
    """
    found = []
    for prior, of_prior in rows.groupby("prior"):
        for factor in factors:
            shift = factor * of_prior["gradient_variance"]
            share = of_prior["inclusion"].fillna(1.0)
            error = of_prior["psi"] - share * shift - of_prior["truth"]
            true = of_prior["truth"] > 0
            covered = (of_prior["lower"] - shift <= of_prior["truth"]) & (
                of_prior["truth"] <= of_prior["upper"] - shift
            )
            seed = of_prior["seed"]
            unit = of_prior["gradient_variance"].clip(lower=1e-12)
            bias = (error / unit)[true].groupby(seed[true]).median()
            null = (error / unit)[~true].groupby(seed[~true]).median()
            coverage = covered[true].groupby(seed[true]).mean()
            found.append(
                {
                    "prior": prior,
                    "factor": factor,
                    "bias": bias.mean(),
                    "bias_se": bias.std(ddof=1) / np.sqrt(bias.size),
                    "null_bias": null.mean(),
                    "coverage": coverage.mean(),
                    "coverage_se": coverage.std(ddof=1) / np.sqrt(coverage.size),
                    "data_sets": bias.size,
                }
            )
    return pd.DataFrame(found).set_index(["prior", "factor"])


def _standardised(estimate: np.ndarray, truth: np.ndarray) -> float:
    """Mean squared error in units of the truth's variance; NaN for a constant truth."""
    variance = float(np.var(truth))
    return float(np.mean((estimate - truth) ** 2)) / variance if variance else float("nan")


def _f1(selected: np.ndarray, true: np.ndarray) -> float:
    """Harmonic mean of precision and recall; 0 for a selection without a true input."""
    total = selected.sum() + true.sum()
    return 2 * float((selected & true).sum()) / total if total else 1.0

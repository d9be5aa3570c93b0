"""Check of the selection and of the intervals on simulated data whose truth is known."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from pymc_bnnvs.centering import gradient_variance
from pymc_bnnvs.errors import check_option
from pymc_bnnvs.experiments.designs import DESIGNS, simulate
from pymc_bnnvs.experiments.fits import (
    columns,
    f1,
    may_be_in,
    sample,
    standardised_error,
    summarise_draws,
)
from pymc_bnnvs.experiments.grid import fit_missing
from pymc_bnnvs.experiments.results import of_settings
from pymc_bnnvs.gradient_field import Network, gradient_moments
from pymc_bnnvs.model import build_model

__all__ = ["centering_table", "compare", "run", "shortfalls", "summarise"]

SETTINGS = ["design", "prior", "n", "n_features", "draws", "chains"]


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
        A csv file, made if it does not exist; see :func:`grid.fit_missing`.
    design : {"neural", "noise"}
        Simulated regression; see :func:`pymc_bnnvs.experiments.designs.simulate`.
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
    data = simulate(settings["design"], settings["n"], settings["n_features"], seed)
    started = time.perf_counter()
    idata = sample(build_model(data.X, data.y, prior=settings["prior"]), settings, seed)
    seconds = time.perf_counter() - started
    posterior, constant = idata["posterior"].dataset, idata["constant_data"].dataset
    moments = gradient_moments(Network.read(posterior, constant))
    included = None
    if "inclusion" in posterior:
        included = posterior["inclusion"].values.reshape(-1, settings["n_features"]) > 0
    summary = summarise_draws(idata)
    f_mean = posterior["f"].mean(("chain", "draw")).values
    return pd.DataFrame(
        {
            **columns(settings, seed, data, idata, summary),
            "lower": summary["ci_lower"].values,
            "upper": summary["ci_upper"].values,
            "band_lower": summary["band_lower"].values,
            "band_upper": summary["band_upper"].values,
            "gradient_variance": gradient_variance(moments, included),
            "converged": summary["converged"].values,
            "mse_f": standardised_error(f_mean, data.f),
            "seconds": seconds,
        }
    )


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
    return _mean(figures_of(rows))


def compare(rows: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Paired differences to other fits of the same data sets, such as an earlier version's.

    Parameters
    ----------
    rows : DataFrame
        From :func:`run`.
    others : DataFrame
        Rows of another results file; those with the same settings are taken.

    Returns
    -------
    DataFrame
        As :func:`summarise`, of ``rows`` less ``others``, over the data sets that both have.
    """
    others = of_settings(others, rows.iloc[0][SETTINGS].to_dict())
    return _mean((figures_of(rows) - figures_of(others)).dropna(how="all"))


def figures_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Figures of each fit, one row a seed."""
    by_fit = {}
    for seed, fit_rows in rows.groupby("seed"):
        true = fit_rows["truth"].values > 0
        figures: dict[str, float] = {}
        rules = {"interval": fit_rows["away"].values}
        if fit_rows["inclusion"].notna().all():
            rules["median"] = fit_rows["inclusion"].values > 0.5
        for rule, selected in rules.items():
            if true.any():
                figures[f"{rule}: F1"] = f1(selected, true)
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
        likely = may_be_in(fit_rows)
        if likely.any():
            figures["worst R-hat (inclusion above .1)"] = fit_rows["r_hat"][likely].max()
        figures["all inputs converged"] = float(fit_rows["converged"].all())
        figures["divergences a fit"] = float(fit_rows["divergences"].iloc[0])
        figures["leapfrog steps a draw"] = fit_rows["steps"].iloc[0]
        figures["seconds a fit, compilation included"] = fit_rows["seconds"].iloc[0]
        by_fit[seed] = figures
    return pd.DataFrame.from_dict(by_fit, orient="index")


def _mean(table: pd.DataFrame) -> pd.DataFrame:
    """Mean of each column and its standard error."""
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
    likely = may_be_in(rows)
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

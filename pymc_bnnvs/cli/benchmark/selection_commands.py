"""Selections, intervals and centring on data whose truth is known."""

from __future__ import annotations

from pathlib import Path

from pymc_bnnvs.cli.benchmark.options import RESULTS, Positive
from pymc_bnnvs.cli.terminal import echo, input_errors

__all__ = ["centering", "selection"]


def selection(
    *,
    n: Positive = 250,
    features: Positive = 25,
    data_sets: Positive = 20,
    draws: Positive = 1000,
    chains: Positive = 4,
    prior: str = "gated",
    first_seed: int = 1000,
    results: Path = RESULTS / "selection.csv",
    against: Path | None = None,
) -> int:
    """Check selections and intervals on fresh data sets, half of them pure noise.

    Every fit is saved as it ends; a second start does only what is missing.

    Parameters
    ----------
    n : int
        Rows of a data set.
    features : int
        Inputs of a data set, five of which matter.
    data_sets : int
        Data sets with a signal, and as many of pure noise.
    draws : int
        Draws to keep from each chain.
    chains : int
        Chains.
    prior : str
        Prior of the network.
    first_seed : int
        Seed of the first data set with a signal; those of pure noise start 1000 later.
    results : Path
        csv file with one row an input and fit.
    against : Path, optional
        Results of another version: print the paired differences to them, too.

    Returns
    -------
    int
        Exit code.
    """
    import pandas as pd

    from pymc_bnnvs.experiments.fits import may_be_in
    from pymc_bnnvs.experiments.selection_check import compare, run, shortfalls, summarise
    from pymc_bnnvs.priors import as_prior

    with input_errors():
        as_prior(prior)
        if against is not None and not against.exists():
            raise ValueError(f"--against {against}: there is no such file.")
    others = None if against is None else pd.read_csv(against)
    for design, start in (("neural", first_seed), ("noise", first_seed + 1000)):
        rows = run(
            results,
            design=design,
            prior=prior,
            n=n,
            n_features=features,
            seeds=tuple(range(start, start + data_sets)),
            draws=draws,
            chains=chains,
            progress=echo,
        )
        echo(f"\n{design}, n = {n}, {features} inputs, {data_sets} data sets, prior {prior}")
        echo(summarise(rows).round(3).to_string() + "\n")
        if others is not None:
            echo(f"less {against}, paired\n{compare(rows, others).round(3).to_string()}\n")
        failed = shortfalls(rows)
        likely = int(may_be_in(rows).sum())
        echo(failed.round(3).to_string(index=False))
        echo(
            f"{failed['missed'].sum()} inputs that matter missed by interval, "
            f"{failed['uncovered'].sum()} not covered; of {likely} inputs with inclusion above .1, "
            f"{failed['unconverged'].sum()} not converged\n"
        )
    return 0


def centering(
    *,
    n: Positive = 250,
    features: Positive = 25,
    data_sets: Positive = 8,
    draws: Positive = 500,
    chains: Positive = 2,
    prior: tuple[str, ...] = ("gated", "gaussian", "ard", "horseshoe"),
    first_seed: int = 100,
    results: Path = RESULTS / "centering.csv",
) -> int:
    """Measure the bias of psi by how much of the gradient's variance is taken off, by prior.

    The default seeds are for tuning, apart from those that results are reported on.

    Parameters
    ----------
    n : int
        Rows of a data set.
    features : int
        Inputs of a data set, five of which matter.
    data_sets : int
        Data sets a prior.
    draws : int
        Draws to keep from each chain.
    chains : int
        Chains.
    prior : tuple of str
        Priors to compare.
    first_seed : int
        Seed of the first data set.
    results : Path
        csv file with one row an input and fit.

    Returns
    -------
    int
        Exit code.
    """
    import pandas as pd

    from pymc_bnnvs.experiments.selection_check import centering_table, run
    from pymc_bnnvs.priors import as_prior

    with input_errors():
        for name in prior:
            as_prior(name)
    rows = [
        run(
            results,
            prior=name,
            n=n,
            n_features=features,
            seeds=tuple(range(first_seed, first_seed + data_sets)),
            draws=draws,
            chains=chains,
            progress=echo,
        )
        for name in prior
    ]
    echo(centering_table(pd.concat(rows)).round(3).to_string())
    return 0

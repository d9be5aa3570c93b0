"""Memory and disk that thousands of inputs take."""

from __future__ import annotations

from pathlib import Path

from pymc_bnnvs.cli.benchmark.options import RESULTS, Positive
from pymc_bnnvs.cli.terminal import echo

__all__ = ["memory"]


def memory(
    *,
    n: Positive = 500,
    features: Positive = 2000,
    draws: Positive = 1000,
    chains: Positive = 4,
    seed: int = 1000,
    results: Path = RESULTS / "memory.csv",
) -> int:
    """Measure the memory of a fit whose draws go to disk as they are drawn.

    A fit that the results file has is not run again.

    Parameters
    ----------
    n, features : int
        Rows, and inputs, five of which matter.
    draws : int
        Draws to keep from each chain.
    chains : int
        Chains.
    seed : int
        Of the data set and of its sampling.
    results : Path
        csv file with one row a fit.

    Returns
    -------
    int
        Exit code.
    """
    from pymc_bnnvs.experiments.memory import run

    rows = run(
        results,
        n=n,
        n_features=features,
        draws=draws,
        chains=chains,
        random_seed=seed,
        progress=echo,
    )
    echo(rows.iloc[0].to_string(float_format="{:.3g}".format))
    return 0

"""How many hidden units the default should have."""

from __future__ import annotations

from pathlib import Path

from pymc_bnnvs.cli.benchmark.options import RESULTS, Positive
from pymc_bnnvs.cli.progress import run_with_progress
from pymc_bnnvs.cli.reproduce.tables import with_errors
from pymc_bnnvs.cli.terminal import echo, input_errors

__all__ = ["widths"]


def widths(
    *,
    design: tuple[str, ...] = (),
    n: tuple[Positive, ...] = (250, 500),
    features: tuple[Positive, ...] = (25, 75),
    units: tuple[Positive, ...] = (10, 20),
    data_sets: Positive = 4,
    draws: Positive = 1000,
    chains: Positive = 4,
    first_seed: int = 100,
    jobs: Positive | None = None,
    results: Path = RESULTS / "widths.csv",
) -> int:
    """Compare widths of the hidden layer: accuracy, selection and leapfrog steps.

    Every fit is saved as it ends; a second start does only what is missing. The default seeds are
    for tuning, apart from those that results are reported on.

    Parameters
    ----------
    design : tuple of str
        linear, neural, complex, matern, or an equation such as "I.15.3x, SNR 5"; some of each if
        not given.
    n, features : tuple of int
        Rows of a data set, and as many numbers of inputs, one for each; an equation brings its own
        number of inputs.
    units : tuple of int
        Widths; the last is the one that the others are compared with.
    data_sets : int
        Data sets of each design and size.
    draws : int
        Draws to keep from each chain.
    chains : int
        Chains.
    first_seed : int
        Seed of the first data set.
    jobs : int
        Fits at the same time. Default: as many as there are processors.
    results : Path
        csv file with one row a fit.

    Returns
    -------
    int
        Exit code.
    """
    from pymc_bnnvs.errors import check_option
    from pymc_bnnvs.experiments.designs import DESIGNS as SIMULATED
    from pymc_bnnvs.experiments.equations import EQUATIONS, read_equation
    from pymc_bnnvs.experiments.widths import DESIGNS, compare, run, summarise

    with input_errors():
        for name in design:
            found = read_equation(name)
            check_option("design", found[0] if found else name, EQUATIONS if found else SIMULATED)
        if len(n) != len(features):
            raise ValueError(f"--n and --features: {len(n)} and {len(features)}, give as many.")
    rows = run_with_progress(
        run,
        results,
        designs=design or DESIGNS,
        units=units,
        sizes=list(zip(n, features, strict=True)),
        repetitions=data_sets,
        first_seed=first_seed,
        draws=draws,
        chains=chains,
        jobs=jobs,
    )
    keys = {"design": "design", "n": "n", "n_features": "P", "units": "units"}
    figures = {"mse_f": "f", "mse_psi": "psi", "f1": "F1", "steps": "steps", "ess_bulk": "ESS"}
    echo("squared errors in units of the variance")
    echo(with_errors(summarise(rows), keys, figures))
    if len(units) > 1:
        del keys["design"]
        names = {"log_mse_f": "f", "log_mse_psi": "psi", "log_steps": "steps"}
        names |= {"log_ess_bulk": "ESS", "log_seconds": "seconds"}
        echo(f"\nlogarithms less those of {units[-1]} units, paired, over all designs")
        echo(with_errors(compare(rows, units[-1]), {**keys, "data_sets": "pairs"}, names))
    return 0

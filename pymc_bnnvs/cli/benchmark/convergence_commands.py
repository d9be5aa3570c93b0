"""Whether and how fast the draws of the default model converge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pymc_bnnvs.cli.benchmark.options import RESULTS, Positive
from pymc_bnnvs.cli.pages import write_page
from pymc_bnnvs.cli.terminal import echo, input_errors

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["convergence", "feynman", "geometry"]


def convergence(
    *,
    n: tuple[Positive, ...] = (250, 500),
    features: tuple[Positive, ...] = (25, 75, 200),
    variant: str = "default",
    data_sets: Positive = 10,
    draws: Positive = 4000,
    chains: Positive = 4,
    first_seed: int = 3000,
    results: Path = RESULTS / "convergence.csv",
) -> int:
    """Count the fits of the default model whose draws converge, after how many draws.

    Every fit is saved as it ends; a second start does only what is missing.

    Parameters
    ----------
    n : tuple of int
        Rows of a data set.
    features : tuple of int
        Inputs of a data set, five of which matter.
    variant : str
        Way to sample; "gate moves" is that of gate_step.
    data_sets : int
        Data sets of each size.
    draws : int
        Draws to keep from each chain; convergence is judged after a half of them, a quarter ...,
        too.
    chains : int
        Chains.
    first_seed : int
        Seed of the first data set of each size.
    results : Path
        csv file with one row an input and fit; beside it, as .md, a page of all that it has.

    Returns
    -------
    int
        Exit code.
    """
    _check_variants(variant)
    cells = [("neural", variant, rows, columns) for columns in features for rows in n]
    _print_verdicts(_fit(cells, data_sets, draws, chains, first_seed, results), draws)
    _write_page(results, "bnnvs benchmark convergence")
    return 0


def feynman(
    *,
    equation: tuple[str, ...] = (),
    snr: tuple[float, ...] = (1.0, 5.0),
    variant: str = "default",
    n: Positive = 500,
    data_sets: Positive = 3,
    draws: Positive = 4000,
    chains: Positive = 4,
    first_seed: int = 5000,
    results: Path = RESULTS / "feynman.csv",
) -> int:
    """Fit equations of physics among 50 idle copies of each input, and compare the chains.

    Every fit is saved as it ends; a second start does only what is missing.

    Parameters
    ----------
    equation : tuple of str
        Such as I.15.3x; all of them if not given.
    snr : tuple of float
        Variance of the signal in units of the noise's.
    variant : str
        Way to sample; "gate moves" is that of gate_step.
    n : int
        Rows of a data set.
    data_sets : int
        Data sets of each equation and signal.
    draws : int
        Draws to keep from each chain.
    chains : int
        Chains.
    first_seed : int
        Seed of the first data set of each.
    results : Path
        csv file with one row an input and fit; beside it, as .md, a page of all that it has.

    Returns
    -------
    int
        Exit code.
    """
    from pymc_bnnvs.errors import check_option
    from pymc_bnnvs.experiments.equations import EQUATIONS, columns_of

    _check_variants(variant)
    with input_errors():
        for name in equation:
            check_option("equation", name, EQUATIONS)
    cells = [
        (f"{name}, SNR {level:g}", variant, n, columns_of(name))
        for name in equation or EQUATIONS
        for level in snr
    ]
    _print_verdicts(_fit(cells, data_sets, draws, chains, first_seed, results), draws)
    _write_page(results, "bnnvs benchmark feynman")
    return 0


def geometry(
    *,
    design: tuple[str, ...] = ("neural", "noise", "I.15.3x, SNR 5"),
    variant: tuple[str, ...] = (),
    data_sets: Positive = 4,
    draws: Positive = 1000,
    chains: Positive = 4,
    first_seed: int = 100,
    results: Path = RESULTS / "geometry.csv",
) -> int:
    """Compare ways to sample the default model: effective draws for a leapfrog step.

    The default seeds are for tuning, apart from those that results are reported on.

    Parameters
    ----------
    design : tuple of str
        neural and noise (250 rows, 25 inputs) or an equation of physics (500 rows).
    variant : tuple of str
        Ways to sample; all of them if not given.
    data_sets : int
        Data sets of each design.
    draws : int
        Draws to keep from each chain.
    chains : int
        Chains.
    first_seed : int
        Seed of the first data set.
    results : Path
        csv file with one row an input and fit.

    Returns
    -------
    int
        Exit code.
    """
    from pymc_bnnvs.errors import check_option
    from pymc_bnnvs.experiments.convergence_check import VARIANTS, by_variant
    from pymc_bnnvs.experiments.designs import DESIGNS
    from pymc_bnnvs.experiments.equations import EQUATIONS, columns_of

    sizes = {name: (250, 25) for name in DESIGNS} | {
        f"{name}, SNR {snr}": (500, columns_of(name)) for name in EQUATIONS for snr in (1, 5)
    }
    _check_variants(*variant)
    with input_errors():
        for name in design:
            check_option("design", name, sizes)
    cells = [(name, way, *sizes[name]) for name in design for way in variant or VARIANTS]
    fits = _fit(cells, data_sets, draws, chains, first_seed, results)
    echo(by_variant(fits).round(3).to_string())
    return 0


def _check_variants(*names: str) -> None:
    """Refuse ways to sample that there are not."""
    from pymc_bnnvs.errors import check_option
    from pymc_bnnvs.experiments.convergence_check import VARIANTS

    with input_errors():
        for name in names:
            check_option("variant", name, VARIANTS)


def _fit(
    cells: list[tuple[str, str, int, int]],
    data_sets: int,
    draws: int,
    chains: int,
    first_seed: int,
    results: Path,
) -> pd.DataFrame:
    """Fit what is missing of each design, variant and size; one row a fit."""
    import pandas as pd

    from pymc_bnnvs.experiments.convergence_check import by_fit, run

    rows = [
        run(
            results,
            design=design,
            variant=variant,
            n=n,
            n_features=n_features,
            seeds=tuple(range(first_seed, first_seed + data_sets)),
            draws=draws,
            chains=chains,
            progress=echo,
        )
        for design, variant, n, n_features in cells
    ]
    return by_fit(pd.concat(rows))


def _print_verdicts(fits: pd.DataFrame, draws: int) -> None:
    """Print how many fits of each size have converged, and which have not."""
    from pymc_bnnvs.experiments.convergence_check import by_cell

    echo(by_cell(fits).round(3).to_string())
    failed = fits[~fits["converged"]]
    echo(f"\n{len(fits) - len(failed)} of {len(fits)} fits converged within {draws} draws a chain.")
    if len(failed):
        columns = ["design", "n", "n_features", "seed", "r_hat", "ess_bulk", "agree"]
        echo("The others:\n" + failed[columns].round(3).to_string(index=False))


def _write_page(results: Path, command: str) -> None:
    """Write the page of a results file."""
    from pymc_bnnvs.experiments.convergence_page import convergence_page

    echo(f"\n{write_page(results, convergence_page, command)}")

"""Time to an answer, beside what a user would do otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from pymc_bnnvs.cli.benchmark.options import RESULTS, Positive
from pymc_bnnvs.cli.pages import write_page, write_picture_of
from pymc_bnnvs.cli.terminal import echo, input_errors

__all__ = ["speed"]

Seconds = Annotated[float, Parameter(validator=Number(gt=0))]
Method = Literal["default", "gaussian", "pymc", "numpyro"]


def speed(
    *,
    n: tuple[Positive, ...] = (250, 500, 2000, 10_000),
    features: tuple[Annotated[int, Parameter(validator=Number(gte=5))], ...] = (25, 200, 2000),
    methods: tuple[Method, ...] = ("default", "gaussian", "pymc", "numpyro"),
    limit_s: Seconds = 300.0,
    times_ours: Annotated[float, Parameter(validator=Number(gte=0))] = 0.0,
    max_limit: Seconds = 3600.0,
    data_sets: Positive = 1,
    first_seed: int = 1000,
    skip_gates: bool = False,
    results: Path = RESULTS / "speed.csv",
    picture: Path = Path("docs/speed.png"),
) -> int:
    """Time how long the importance of the true inputs takes to converge, beside rivals.

    Every fit runs in a process of its own and is saved as it ends; a second start does only what
    is missing. Nothing else should run on the machine.

    Parameters
    ----------
    n : tuple of int
        Rows; give it several times for several sizes.
    features : tuple of int
        Inputs, five of which matter.
    methods : tuple of str
        Ours by default, ours with the paper's prior, the script of a PyMC user, numpyro.
    limit_s : float
        Seconds after which a fit is stopped; the results show it as a limit.
    times_ours : float
        Give the others this many times the time of our default, where that is longer.
    max_limit : float
        The longest that --times-ours can make a limit.
    data_sets : int
        Data sets of each size.
    first_seed : int
        Seed of the first data set.
    skip_gates : bool
        Leave out the second table: the time of the gradient with a tenth and with all of the
        gates open, against the product that does not skip closed ones.
    results : Path
        csv file with one row a fit; beside it, as .md, a page of all that it has, and the times
        of the gates in a second csv file.
    picture : Path
        PNG file of all that the csv file has.

    Returns
    -------
    int
        Exit code.
    """
    from pymc_bnnvs.experiments.speed import check_methods, run, run_gates
    from pymc_bnnvs.experiments.speed_picture import draw
    from pymc_bnnvs.experiments.speed_table import gate_table, page, table

    with input_errors():
        check_methods(methods)
    rows = run(
        results,
        n=n,
        features=features,
        methods=methods,
        limit_s=limit_s,
        times_ours=times_ours,
        max_limit_s=max_limit,
        data_sets=data_sets,
        first_seed=first_seed,
        progress=echo,
    )
    echo(f"\n{table(rows)}")
    write_picture_of(results, draw, picture)
    beside = write_page(results, page, "bnnvs benchmark speed")
    echo(f"\nWritten to {results}, {beside} and {picture}.")
    if not skip_gates:
        of_gates = results.with_stem(f"{results.stem}-gates")
        times = run_gates(of_gates, n=n, features=features, first_seed=first_seed, progress=echo)
        echo(f"\n{gate_table(times)}\n\nWritten to {of_gates}.")
    return 0

"""How well each method selects, by size of the data."""

from __future__ import annotations

from pathlib import Path

from pymc_bnnvs.cli.benchmark.options import RESULTS, Positive
from pymc_bnnvs.cli.pages import write_page
from pymc_bnnvs.cli.progress import run_with_progress
from pymc_bnnvs.cli.reproduce.tables import with_errors
from pymc_bnnvs.cli.terminal import echo, input_errors

__all__ = ["table2"]


def table2(
    *,
    n: tuple[Positive, ...] = (250, 300, 350, 400, 450, 500),
    features: tuple[Positive, ...] = (25, 75, 200),
    methods: tuple[str, ...] = (),
    repetitions: Positive = 20,
    first_seed: int = 1000,
    jobs: Positive | None = None,
    scheduler: str | None = None,
    results: Path = RESULTS / "table2.csv",
) -> int:
    """Fit the paper's methods, and some more, to fresh data of each size.

    Every fit is saved as it ends; a second start does only what is missing.

    Parameters
    ----------
    n : tuple of int
        Rows of a data set; give it several times for several sizes.
    features : tuple of int
        Inputs of a data set, five of which matter.
    methods : tuple of str
        Such as lasso-knockoffs; all of them if not given.
    repetitions : int
        Data sets of each size; all methods see the same ones.
    first_seed : int
        Seed of the first data set of each size.
    jobs : int
        Fits at the same time. Default: as many as there are processors.
    scheduler : str
        Address of a dask scheduler: its workers fit, instead of this machine.
    results : Path
        csv file with one row a fit and rule; beside it, as .md, a page of all that it has, with
        the paper's numbers.

    Returns
    -------
    int
        Exit code.
    """
    from pymc_bnnvs.errors import check_option
    from pymc_bnnvs.experiments.rivals import METHODS
    from pymc_bnnvs.experiments.table2 import differences, run, summarise
    from pymc_bnnvs.experiments.table2_page import page

    with input_errors():
        for name in methods:
            check_option("method", name, METHODS)
    rows = run_with_progress(
        run,
        results,
        cells=[(rows, inputs) for inputs in features for rows in n],
        methods=methods or tuple(METHODS),
        repetitions=repetitions,
        first_seed=first_seed,
        jobs=jobs,
        scheduler=scheduler,
    )
    table = summarise(rows)
    for inputs, part in table.groupby("n_features", sort=False):
        wide = part.pivot_table(index=["method", "rule"], columns="n", values="f1", sort=False)
        echo(f"\nF1, {inputs} inputs\n{wide.round(2).to_string()}")
    against = differences(rows, "gated-network", "interval")
    if len(against):
        keys = {"n": "n", "n_features": "P", "method": "best other", "rule": "rule"}
        echo("\nF1 of our default, interval, less that of the best other method, paired")
        echo(with_errors(against, keys, {"difference": "difference"}))
    echo(f"\n{write_page(results, page, 'bnnvs reproduce table2')}")
    return 0

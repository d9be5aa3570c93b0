"""How fast f and psi are learned, and how wide and normal the posterior of psi is."""

from __future__ import annotations

from pathlib import Path

from pymc_bnnvs.cli.benchmark.options import RESULTS, Positive
from pymc_bnnvs.cli.pages import write_page, write_picture_of
from pymc_bnnvs.cli.progress import run_with_progress
from pymc_bnnvs.cli.reproduce.tables import with_errors
from pymc_bnnvs.cli.terminal import echo, input_errors

__all__ = ["bvm", "learning"]


def learning(
    *,
    n: tuple[Positive, ...] = (100, 200, 500, 1000, 2000),
    features: tuple[Positive, ...] = (25, 50, 100, 200),
    designs: tuple[str, ...] = (),
    networks: tuple[str, ...] = ("paper, 2 layers", "default"),
    repetitions: Positive = 20,
    first_seed: int = 7000,
    jobs: Positive | None = None,
    scheduler: str | None = None,
    results: Path = RESULTS / "learning.csv",
    picture: Path = Path("docs/learning.png"),
) -> int:
    """Measure the errors of f and of psi against the number of rows.

    Every fit is saved as it ends; a second start does only what is missing.

    Parameters
    ----------
    n : tuple of int
        Rows of a data set; give it several times for several sizes.
    features : tuple of int
        Inputs of a data set, five of which matter.
    designs : tuple of str
        linear, neural, complex; all of them if not given.
    networks : tuple of str
        "paper, 2 layers", "paper", "default".
    repetitions : int
        Data sets of each size and design; all networks see the same ones.
    first_seed : int
        Seed of the first data set.
    jobs : int
        Fits at the same time. Default: as many as there are processors.
    scheduler : str
        Address of a dask scheduler: its workers fit, instead of this machine.
    results : Path
        csv file with one row a fit; beside it, as .md, a page of all that it has.
    picture : Path
        PNG file of all that the csv file has.

    Returns
    -------
    int
        Exit code.
    """
    from pymc_bnnvs.errors import check_option
    from pymc_bnnvs.experiments.figure_pages import learning_page
    from pymc_bnnvs.experiments.learning import DESIGNS, rates, run, summarise
    from pymc_bnnvs.experiments.networks import NETWORKS
    from pymc_bnnvs.experiments.paper_pictures import draw_learning

    with input_errors():
        for name in designs:
            check_option("design", name, DESIGNS)
        for name in networks:
            check_option("network", name, NETWORKS)
    rows = run_with_progress(
        run,
        results,
        designs=designs or DESIGNS,
        networks=networks,
        sizes=[(rows, inputs) for inputs in features for rows in n],
        repetitions=repetitions,
        first_seed=first_seed,
        jobs=jobs,
        scheduler=scheduler,
    )
    table = summarise(rows)
    keys = {"design": "design", "network": "network", "n": "n", "n_features": "P"}
    echo("squared errors in units of the variance")
    echo(with_errors(table, keys, {"mse_f": "f", "mse_psi": "psi", "r_hat": "R-hat"}))
    powers = rates(rows)
    if len(powers):
        del keys["n"]
        slopes = {"rate_f": "f", "rate_psi": "psi", "difference": "psi - f"}
        echo(f"\npowers of n\n{with_errors(powers, keys, slopes)}")
    write_picture_of(results, lambda found: draw_learning(summarise(found)), picture)
    echo(f"\n{picture}\n{write_page(results, learning_page, 'bnnvs reproduce learning')}")
    return 0


def bvm(
    *,
    n: tuple[Positive, ...] = (100, 300, 1000, 3000, 10000),
    features: tuple[Positive, ...] = (25, 100),
    networks: tuple[str, ...] = ("paper", "default"),
    repetitions: Positive = 20,
    first_seed: int = 8000,
    jobs: Positive | None = None,
    scheduler: str | None = None,
    results: Path = RESULTS / "bvm.csv",
    picture: Path = Path("docs/bvm.png"),
) -> int:
    """Compare the posterior of psi with its normal limit, and its intervals with the truth.

    Every fit is saved as it ends; a second start does only what is missing.

    Parameters
    ----------
    n : tuple of int
        Rows of a data set; give it several times for several sizes.
    features : tuple of int
        Inputs of a data set, five of which matter.
    networks : tuple of str
        "paper", "paper, 2 layers", "default".
    repetitions : int
        Data sets of each size; all networks see the same ones.
    first_seed : int
        Seed of the first data set.
    jobs : int
        Fits at the same time. Default: as many as there are processors.
    scheduler : str
        Address of a dask scheduler: its workers fit, instead of this machine.
    results : Path
        csv file with one row an input, fit and centring; beside it, as .md, a page of all that
        it has.
    picture : Path
        PNG file of all that the csv file has.

    Returns
    -------
    int
        Exit code.
    """
    from pymc_bnnvs.errors import check_option
    from pymc_bnnvs.experiments.bvm import run, summarise
    from pymc_bnnvs.experiments.figure_pages import bvm_page
    from pymc_bnnvs.experiments.networks import NETWORKS
    from pymc_bnnvs.experiments.paper_pictures import draw_uncertainty

    with input_errors():
        for name in networks:
            check_option("network", name, NETWORKS)
    rows = run_with_progress(
        run,
        results,
        networks=networks,
        sizes=[(rows, inputs) for inputs in features for rows in n],
        repetitions=repetitions,
        first_seed=first_seed,
        jobs=jobs,
        scheduler=scheduler,
    )
    table = summarise(rows)
    keys = {"network": "network", "centering": "centring", "n": "n", "n_features": "P"}
    figures = {"mse_sd_oracle": "sd", "cvm": "CvM", "covered": "covered", "in_band": "in band"}
    echo(with_errors(table, {**keys, "inputs": "inputs"}, figures))
    write_picture_of(results, lambda found: draw_uncertainty(summarise(found)), picture)
    echo(f"\n{picture}\n{write_page(results, bvm_page, 'bnnvs reproduce bvm')}")
    return 0

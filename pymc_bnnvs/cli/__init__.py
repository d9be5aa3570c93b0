"""The command ``bnnvs``: which inputs of a file matter.

Nothing heavy is imported before a command runs, so that ``bnnvs --help`` is quick. Further
commands are added with ``app.command(function_or_app, name=...)``; what they return is the exit
code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter
from cyclopts.validators import Number

from pymc_bnnvs.cli.benchmark import benchmark
from pymc_bnnvs.cli.reproduce import reproduce
from pymc_bnnvs.cli.terminal import BAD_INPUT, INTERRUPTED, BadInput, complain, input_errors

__all__ = ["app", "main"]

Positive = Annotated[int, Parameter(validator=Number(gte=1))]
Count = Annotated[int, Parameter(validator=Number(gte=0))]
Rule = Literal["interval", "fdr", "median", "top_k"]
By = Literal["feature", "group"]
Prior = Literal["gated", "gaussian", "ard", "horseshoe", "spike_slab"]
Sampler = Literal["gates", "nuts"]
Likelihood = Literal["normal", "student_t", "bernoulli", "poisson", "negative_binomial"]


def version() -> str:
    """Version of the package."""
    from pymc_bnnvs import __version__

    return __version__


app = App(
    name="bnnvs",
    help="Which inputs of your data matter, with uncertainty you can defend.",
    help_epilogue=(
        "Exit codes: 0 an answer, also that no input was selected; 2 input that can't be used; "
        "3 an answer from draws that have not converged."
    ),
    version=version,
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,  # main() says what was kept
)
app.command(benchmark)
app.command(reproduce)


@app.command
def select(
    data: Path,
    /,
    *,
    target: str,
    prior: Prior = "gated",
    likelihood: Likelihood = "normal",
    hidden: list[str] | None = None,
    group: list[str] | None = None,
    always_in: list[str] | None = None,
    drop: list[str] | None = None,
    rule: Rule = "interval",
    alpha: float = 0.05,
    q: float = 0.1,
    k: int | None = None,
    by: By | None = None,
    sampler: Sampler | None = None,
    draws: Positive = 2000,
    tune: Positive = 1000,
    chains: Positive = 4,
    cores: Positive | None = None,
    seed: Count | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    quiet: bool = False,
) -> int:
    """Fit a network to a file, decide which inputs matter, and keep the draws.

    Parameters
    ----------
    data : Path
        csv or parquet file: one row a case, one column the target, all others inputs. Text
        columns are categories.
    target : str
        Column of the outcome.
    prior : str
        How an input's weights are scaled. gated and spike_slab have exact zeros, and with them
        inclusion probabilities.
    likelihood : str
        Distribution of the outcome.
    hidden : list of str
        Widths of the hidden layers: 20 is one layer, 50,50 two. Default: 20.
    group : list of str
        Columns that enter or leave together, as name=column,column. Repeat it for more groups.
    always_in : list of str
        Column or group that must stay in. Repeat it for more.
    drop : list of str
        Column to leave out. Repeat it for more.
    rule : str
        interval: all selected are in at once with probability 1 - alpha. fdr: false discovery
        rate at most q. median: inclusion probability above 1/2. top_k: the k largest.
    alpha : float
        Level of the rule interval and of the band in the table.
    q : float
        Level of the rule fdr.
    k : int
        Number of inputs for the rule top_k.
    by : str
        Decide on single columns or on groups. Default: group if there are any (a category is
        one), else feature.
    sampler : str
        gates: NUTS beside moves that open and close gates, so that few draws do. nuts: PyMC's
        default, quicker a draw. Default: gates for the gated prior, else nuts.
    draws : int
        Draws to keep from each chain.
    tune : int
        Draws to tune each chain with.
    chains : int
        Chains.
    cores : int
        Chains that run at the same time. Default: as many as there are processors.
    seed : int
        Seed; the same seed gives the same answer. Default: a new one, saved with the draws.
    out : Path
        Folder for draws.nc, importance.csv and importance.png. Default: the data's name with
        -bnnvs added.
    overwrite : bool
        Replace results that are in the folder.
    quiet : bool
        No progress bar.

    Returns
    -------
    int
        Exit code.
    """
    from pymc_bnnvs.cli.data import parse_groups, parse_hidden, read_data

    with input_errors():
        widths = parse_hidden(hidden or ["20"])
        groups = parse_groups(group or [])
        X, y = read_data(data, target, drop or [])

    from pymc_bnnvs.cli.run import Decision, Fit, fit_and_select

    fit = Fit(
        data=str(data.resolve()),
        target=target,
        prior=prior,
        likelihood=likelihood,
        hidden=widths,
        groups=groups,
        always_in=always_in or [],
        drop=drop or [],
        sampler=sampler,
        draws=draws,
        tune=tune,
        chains=chains,
        cores=cores,
        seed=seed,
    )
    decision = Decision(rule=rule, alpha=alpha, q=q, k=k, by=by)
    if out is None:
        out = Path(f"{data.name.split('.')[0]}-bnnvs")
    _, code = fit_and_select(X, y, fit, decision, out=out, overwrite=overwrite, quiet=quiet)
    return code


@app.command
def show(
    folder: Path,
    /,
    *,
    rule: Rule | None = None,
    alpha: float | None = None,
    q: float | None = None,
    k: int | None = None,
    by: By | None = None,
    top: Count = 30,
) -> int:
    """Print the table of a folder again, or decide again from its draws.

    Parameters
    ----------
    folder : Path
        Folder that select has written, or a netCDF file with draws of a model of your own.
    rule : str
        Another rule; without it and the next four, the decision is the one of the folder.
    alpha : float
        Level of the rule interval and of the band in the table.
    q : float
        Level of the rule fdr.
    k : int
        Number of inputs for the rule top_k.
    by : str
        Decide on single columns or on groups.
    top : int
        Rows to print.

    Returns
    -------
    int
        Exit code.
    """
    from dataclasses import replace

    from pymc_bnnvs.cli import run

    given = {"rule": rule, "alpha": alpha, "q": q, "k": k, "by": by}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    with input_errors():
        idata, decision = run.load(folder)
        if rule not in (None, decision.rule):
            # The number of inputs belongs to the rule that is left behind.
            changes.setdefault("k", None)
        summary, warning = run.decide(idata, replace(decision, **changes))
    return run.print_decision(summary, warning, top=top)


@app.command
def demo(
    *,
    draws: Positive = 2000,
    tune: Positive = 500,
    chains: Positive = 4,
    cores: Positive | None = None,
    seed: Count = 1,
    out: Path = Path("bnnvs-demo"),
    quiet: bool = False,
) -> int:
    """Find the inputs of the diabetes data among 20 copies that can't matter.

    The 10 inputs of Efron et al. (2004), 442 patients, stand beside 20 copies of them with
    permuted rows, which have nothing to do with the outcome. Takes some minutes on two cores.

    Parameters
    ----------
    draws : int
        Draws to keep from each chain.
    tune : int
        Draws to tune each chain with.
    chains : int
        Chains.
    cores : int
        Chains that run at the same time. Default: as many as there are processors.
    seed : int
        Seed of the permutations and of the draws.
    out : Path
        Folder for the draws, the table and the picture; what is there is replaced.
    quiet : bool
        No progress bar.

    Returns
    -------
    int
        Exit code.
    """
    from pymc_bnnvs.cli.demo import run_demo

    return run_demo(
        draws=draws, tune=tune, chains=chains, cores=cores, seed=seed, out=out, quiet=quiet
    )


def main(tokens: Sequence[str] | None = None) -> int:
    """Run ``bnnvs``.

    Parameters
    ----------
    tokens : sequence of str, optional
        Arguments; those of the process if not given.

    Returns
    -------
    int
        Exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that lacks a letter of a column's name shows a question mark.
            stream.reconfigure(errors="replace")
    try:
        code = app(
            sys.argv[1:] if tokens is None else tokens,
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
    except (CycloptsError, BadInput) as error:
        complain(str(error))
        return BAD_INPUT
    except KeyboardInterrupt as interrupt:
        complain(f"interrupted. {interrupt}")
        return INTERRUPTED
    return code or 0

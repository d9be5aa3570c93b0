"""Real inputs among copies that can't matter."""

from __future__ import annotations

from pathlib import Path

from pymc_bnnvs.cli.run import PICTURE, Decision, Fit, fit_and_select
from pymc_bnnvs.cli.terminal import echo
from pymc_bnnvs.datasets import load_diabetes, permuted_copies
from pymc_bnnvs.report import wrap

__all__ = ["run_demo"]

N_COPIES = 20


def run_demo(
    *,
    draws: int,
    tune: int,
    chains: int,
    cores: int | None,
    seed: int,
    out: Path,
    quiet: bool,
) -> int:
    """Select among the diabetes data's inputs and permuted copies; return the exit code."""
    X, y = load_diabetes()
    table = permuted_copies(X, N_COPIES, random_seed=seed)
    fit = Fit(
        data="pymc_bnnvs.datasets.load_diabetes, with permuted copies",
        target=str(y.name),
        draws=draws,
        tune=tune,
        chains=chains,
        cores=cores,
        seed=seed,
    )
    summary, code = fit_and_select(table, y, fit, Decision(), out=out, overwrite=True, quiet=quiet)
    selected = set(summary["feature"].values[summary["selected"].values])
    real = [name for name in X.columns if name in selected]
    n_copies = len(selected) - len(real)
    echo()
    echo(
        wrap(
            f"What to see: of the {X.shape[1]} real inputs {len(real)} are kept "
            f"({', '.join(real) or 'none'}); of the {N_COPIES} permuted copies, which can't "
            f"matter, {n_copies or 'none'} {'was' if n_copies == 1 else 'were'} selected. "
            f"The picture is {out / PICTURE}."
        )
    )
    return code

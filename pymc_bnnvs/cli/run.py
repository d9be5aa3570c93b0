"""From a table to draws on disk and a decision on the screen."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import platform
import re
import shlex
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import xarray as xr

import pymc_bnnvs as bvs
from pymc_bnnvs.cli.interrupts import between_draws
from pymc_bnnvs.cli.terminal import ANSWER, UNCONVERGED, complain, echo, input_errors
from pymc_bnnvs.diagnostics import ConvergenceWarning
from pymc_bnnvs.processors import available_cores
from pymc_bnnvs.report import (
    convergence_line,
    decision_line,
    legend,
    replacing,
    summary_table,
    tidy,
    wrap,
)
from pymc_bnnvs.storage import write_draws

__all__ = [
    "DRAWS",
    "PICTURE",
    "TABLE",
    "Decision",
    "Fit",
    "decide",
    "fit_and_select",
    "load",
    "print_decision",
]

DRAWS, TABLE, PICTURE = "draws.nc", "importance.csv", "importance.png"
SETTINGS = "bnnvs"  # attribute of the draws: how they were made and what was asked of them


@dataclass(frozen=True)
class Decision:
    """What is asked of the draws; see :func:`pymc_bnnvs.select`."""

    rule: str = "interval"
    alpha: float = 0.05
    q: float = 0.1
    k: int | None = None
    by: str | None = None


@dataclass(frozen=True)
class Fit:
    """How the draws are made."""

    data: str
    target: str
    prior: str = "gated"
    likelihood: str = "normal"
    hidden: Sequence[int] = (20,)
    groups: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    always_in: Sequence[str] = ()
    drop: Sequence[str] = ()
    sampler: str | None = None
    draws: int = 1000
    tune: int = 1000
    chains: int = 4
    cores: int | None = None
    seed: int | None = None


def fit_and_select(
    X: pd.DataFrame,
    y: pd.Series,
    fit: Fit,
    decision: Decision,
    *,
    out: Path,
    overwrite: bool = False,
    quiet: bool = False,
) -> tuple[xr.Dataset, int]:
    """Sample, save the draws, decide, print and write the rest, in this order.

    Parameters
    ----------
    X : DataFrame, shape (n, columns)
        Inputs.
    y : Series, shape (n,)
        Outcome.
    fit : Fit
        How the draws are made; a seed is drawn if it has none.
    decision : Decision
        What is asked of them.
    out : Path
        Folder for the results.
    overwrite : bool
        Replace results that are there.
    quiet : bool
        No progress bar.

    Returns
    -------
    summary : Dataset
    code : int
        Exit code.

    Raises
    ------
    BadInput
        Before the sampling, if anything can't be used.
    """
    with input_errors():
        check_free(out, overwrite)
        model = bvs.build_model(
            X,
            y,
            hidden=tuple(fit.hidden),
            prior=fit.prior,
            likelihood=fit.likelihood,
            groups=dict(fit.groups) or None,
            always_in=list(fit.always_in) or None,
        )
        if decision.by is None:
            decision = dataclasses.replace(decision, by="group" if has_groups(model) else "feature")
        check_decision(model, decision)
        if fit.sampler is None:
            fit = dataclasses.replace(fit, sampler="gates" if fit.prior == "gated" else "nuts")
        elif fit.sampler == "gates" and fit.prior != "gated":
            raise ValueError(
                f"--sampler gates needs --prior gated: {fit.prior} has no gates to move."
            )
        make_writable(out)
    if fit.seed is None:
        fit = dataclasses.replace(fit, seed=int(np.random.SeedSequence().generate_state(1)[0]))
    if not quiet:
        announce(model, fit)
    idata = sample(model, fit, quiet)
    save(idata, fit, decision, out)
    try:
        summary, warning = decide(idata, decision)
        with replacing(out / TABLE) as temporary:
            tidy(summary).to_csv(temporary, index=False)
        code = print_decision(summary, warning, rest=f"in {out / TABLE}")
        plot(idata, decision, out / PICTURE)
    finally:
        there = [name for name in (DRAWS, TABLE, PICTURE) if (out / name).exists()]
        echo()
        echo(wrap(f"Written to {out}: {', '.join(there)}."))
        echo(f"To see it again, or by another rule: bnnvs show {shlex.quote(str(out))}")
    return summary, code


def print_decision(
    summary: xr.Dataset, warning: str, *, top: int = 30, rest: str | None = None
) -> int:
    """Print the table and the decision in words, and return the exit code."""
    if rest is None:
        rest = f"(--top {summary['psi'].size} shows all)"
    echo(summary_table(summary, top=top, rest=rest))
    echo()
    echo(wrap(legend(summary)))
    echo()
    echo(wrap(decision_line(summary)))
    echo(wrap(warning or convergence_line(summary)))
    return UNCONVERGED if warning or not summary["converged"].all() else ANSWER


def decide(idata: xr.DataTree, decision: Decision) -> tuple[xr.Dataset, str]:
    """Select, and return the text of the convergence warning beside the result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        summary = bvs.select(idata, **arguments(decision))
    warning = ""
    for entry in caught:
        if issubclass(entry.category, ConvergenceWarning):
            warning = for_the_command_line(str(entry.message))
        else:
            warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
    return summary, warning


def for_the_command_line(text: str) -> str:
    """Turn the call of pm.sample that a warning recommends into options."""
    text = re.sub(r"pm\.sample\(draws=(\d+), tune=(\d+)\)", r"--draws \1 --tune \2", text)
    text = re.sub(r"pm\.sample\((\d+), step=[\w.]+\(\)\)", r"--sampler gates --draws \1", text)
    return f"Warning: {text}"


def arguments(decision: Decision) -> dict[str, Any]:
    """Arguments of `select` and of `plot_importance`."""
    return {**dataclasses.asdict(decision), "by": decision.by or "feature"}


def has_groups(model: pm.Model) -> bool:
    """Whether any group of the model has more than one column."""
    return "psi_group" in model.named_vars


def check_decision(model: pm.Model, decision: Decision) -> None:
    """Decide once on made-up draws: a wrong option is told before the sampling, not after."""
    names = model.coords["group" if decision.by == "group" and has_groups(model) else "feature"]
    values = np.random.default_rng(0).uniform(1, 2, size=(1, 20, len(names)))
    dims = ("chain", "draw", "feature")
    posterior = xr.Dataset({"psi": (dims, values)}, coords={"feature": list(names)})
    if "inclusion" in model.named_vars:
        posterior["inclusion"] = xr.ones_like(posterior["psi"])
    inputs = xr.Dataset({"X": (("obs_id", "feature"), values[0])}, posterior.coords)
    made_up = xr.DataTree.from_dict({"posterior": posterior, "constant_data": inputs})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bvs.select(made_up, **arguments(dataclasses.replace(decision, by="feature")))


def check_free(out: Path, overwrite: bool) -> None:
    """Refuse a folder that holds results."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file: give a folder.")
    there = [name for name in (DRAWS, TABLE, PICTURE) if (out / name).exists()]
    if there and not overwrite:
        raise ValueError(
            f"{out} holds results ({', '.join(there)}): pass --overwrite to replace them, or "
            "--out with another folder."
        )


def make_writable(out: Path) -> None:
    """Make the folder, and see before the sampling that draws can be written there."""
    out.mkdir(parents=True, exist_ok=True)
    trial = out / f".trial-{DRAWS}"
    try:
        write_draws(xr.DataTree.from_dict({"posterior": xr.Dataset({"psi": 1.0})}), trial)
    finally:
        trial.unlink(missing_ok=True)


def announce(model: pm.Model, fit: Fit) -> None:
    """Say what is fitted."""
    n, n_features = model["X"].get_value(borrow=True).shape
    units = " + ".join(map(str, fit.hidden))
    sys.stderr.write(
        f"{fit.target}: {n} rows, {n_features} columns; {fit.likelihood} likelihood, {fit.prior} "
        f"prior, {units} hidden units; seed {fit.seed}\n"
    )


def sample(model: pm.Model, fit: Fit, quiet: bool) -> xr.DataTree:
    """Sample with PyMC; if the user stops it, return the draws that there are."""
    # PyMC judges every weight, and weights do not identify: psi is judged in decide().
    # Its progress bar goes to the standard error, so that the output can be piped.
    # With fast math, code compiled now and code from numba's cache may round differently, and the
    # same seed would give other draws the first time.
    strict = pytensor.config.change_flags(numba__fastmath=False)
    with redirect_stdout(sys.stderr), strict, model, ExitStack() as stack:
        options: dict[str, Any] = {}
        if fit.sampler == "gates":
            options["step"] = bvs.gate_step()
            options["callback"] = stack.enter_context(between_draws())
        idata = pm.sample(
            draws=fit.draws,
            tune=fit.tune,
            chains=fit.chains,
            # PyMC counts physical cores, and of a virtual machine's it sees half.
            cores=fit.cores or min(fit.chains, available_cores()),
            random_seed=fit.seed,
            quiet=quiet,
            progressbar=not quiet and sys.stderr.isatty(),
            compute_convergence_checks=False,
            **options,
        )
    lengths = chain_lengths(idata)
    if len(lengths) == fit.chains and min(lengths) == fit.draws:
        return idata
    idata = keep_most(idata, lengths)
    sizes = idata["posterior"].sizes
    plural = "s" * (sizes["chain"] != 1)
    complain(f"interrupted; kept {sizes['chain']} chain{plural} of {sizes['draw']} draws.")
    return idata


def chain_lengths(idata: xr.DataTree) -> np.ndarray:
    """Draws of each chain after tuning; an interrupted one is filled up with NaN."""
    if "posterior" not in idata.children or "psi" not in idata["posterior"].data_vars:
        return np.zeros(0, dtype=int)
    psi = idata["posterior"]["psi"].transpose("chain", "draw", ...).values
    return np.isfinite(psi).all(axis=-1).sum(axis=1)


def keep_most(idata: xr.DataTree, lengths: np.ndarray) -> xr.DataTree:
    """Keep those of the chains, cut to one length, that hold the most draws."""
    ordered = np.sort(lengths)[::-1]
    kept = ordered * np.arange(1, ordered.size + 1)
    if not kept.any():
        raise KeyboardInterrupt("stopped while it was tuning; there are no draws to keep")
    length = int(ordered[kept.argmax()])
    chains = np.flatnonzero(lengths >= length)
    return idata.map_over_datasets(
        lambda data: data.isel(chain=chains, draw=slice(length), missing_dims="ignore")
    )


def save(idata: xr.DataTree, fit: Fit, decision: Decision, out: Path) -> None:
    """Write the draws with all that `show` needs; older results do not outlive older draws."""
    settings = dataclasses.asdict(fit) | dataclasses.asdict(decision) | {"versions": versions()}
    idata.attrs[SETTINGS] = json.dumps(settings)
    write_draws(idata, out / DRAWS)
    for name in (TABLE, PICTURE):
        (out / name).unlink(missing_ok=True)


def load(folder: Path) -> tuple[xr.DataTree, Decision]:
    """Read the draws in a folder (or a file) and the decision that they were made for.

    Raises
    ------
    ValueError
        If there are none, or the file is not netCDF.
    """
    path = folder / DRAWS if folder.is_dir() else folder
    if not path.exists():
        raise ValueError(
            f"there are no draws at {path}: give a folder that bnnvs select has written."
        )
    try:
        with xr.open_datatree(path, engine="h5netcdf") as tree:
            idata = tree.load()
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} can't be read as netCDF: {error}") from error
    settings = json.loads(idata.attrs.get(SETTINGS, "{}"))
    fields = {field.name for field in dataclasses.fields(Decision)}
    return idata, Decision(**{key: settings[key] for key in fields & settings.keys()})


def versions() -> dict[str, str]:
    """Versions of what the draws depend on."""
    packages = ("pymc", "pytensor", "nutpie", "arviz", "numpy", "xarray")
    return {
        "python": platform.python_version(),
        "pymc-bnnvs": bvs.__version__,
        **{name: importlib.metadata.version(name) for name in packages},
    }


def plot(idata: xr.DataTree, decision: Decision, path: Path) -> None:
    """Draw the picture; the table has said already what has not converged."""
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        picture = bvs.plot_importance(idata, backend="matplotlib", **arguments(decision))
    with replacing(path) as temporary:
        picture.savefig(temporary)
    plt.close(picture.viz["figure"].item())

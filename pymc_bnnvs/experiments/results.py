"""Results that grow: one file, written again after every fit; what is in it is not done again."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.typing import DataFrameGroupBy

from pymc_bnnvs.report import replacing

__all__ = ["fit_missing", "machine", "means", "of_settings", "write"]


def fit_missing(
    results: str | Path,
    settings: dict[str, Any],
    seeds: Sequence[int],
    fit: Callable[[dict[str, Any], int], pd.DataFrame],
    progress: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Fit the seeds that the results file lacks under these settings.

    Parameters
    ----------
    results : path
        A csv file, made if it does not exist; written again, through a temporary file, after
        every fit.
    settings : dict
        Columns that tell one fit from another, besides ``seed``.
    seeds : sequence of int
        One fit each.
    fit : callable
        From the settings and a seed to rows, which carry both as columns.
    progress : callable, optional
        Told of each fit.

    Returns
    -------
    DataFrame
        The rows of these settings and seeds.
    """
    path = Path(results)
    keys = [*settings, "seed"]
    done = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=keys)
    for index, seed in enumerate(seeds):
        if not of_settings(done, settings | {"seed": seed}).empty:
            continue
        rows = fit(settings, seed)
        done = rows if done.empty else pd.concat([done, rows], ignore_index=True)
        write(done, path)
        if progress is not None:
            named = ", ".join(str(value) for value in settings.values())
            progress(f"{named}: {index + 1} of {len(seeds)} data sets")
    mine = of_settings(done, settings)
    return mine[mine["seed"].isin(list(seeds))].reset_index(drop=True)


def machine(*others: str) -> dict[str, str]:
    """Machine and versions, of PyMC and of other packages, as columns of a results file."""
    packages = ("pymc", "nutpie", *others)
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "versions": ", ".join(f"{name} {version(name)}" for name in packages),
    }


def means(cells: DataFrameGroupBy, figures: Sequence[str]) -> pd.DataFrame:
    """Means of the figures in each cell, and their standard errors with ``_se`` in the name."""
    chosen = cells[list(figures)]
    return chosen.mean().join(chosen.sem().add_suffix("_se"))


def of_settings(rows: pd.DataFrame, settings: dict[str, Any]) -> pd.DataFrame:
    """Rows with these settings."""
    keep = np.ones(len(rows), dtype=bool)
    for name, value in settings.items():
        keep &= (rows[name] == value).to_numpy()
    return rows[keep]


def write(rows: pd.DataFrame, path: Path) -> None:
    """Write a results file, or leave the old one as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        rows.to_csv(temporary, index=False, float_format="%.8g")

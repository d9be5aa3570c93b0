"""Results files: what stands in them, and how they are written."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.typing import DataFrameGroupBy

from pymc_bnnvs.report import replacing

__all__ = ["machine", "means", "of_settings", "write"]


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

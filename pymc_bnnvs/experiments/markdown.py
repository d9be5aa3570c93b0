"""Tables of results in markdown."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from pymc_bnnvs.diagnostics import R_HAT_MAX

__all__ = ["convergence", "figure", "origin", "span", "table", "versions"]


def origin(rows: pd.DataFrame, command: str) -> str:
    """Tell what made these rows, and on which machine."""
    return (
        f"Made by `{command}`: fresh data in every repetition, Monte Carlo standard errors. "
        f"{versions(rows)}"
    )


def versions(rows: pd.DataFrame) -> str:
    """Tell the versions and the machine behind these rows."""
    named = "; ".join(sorted(rows["versions"].unique()))
    return f"{named}; {', '.join(rows['machine'].unique())}."


def figure(row: pd.Series, name: str, form: str = ".2f") -> str:
    """Write a figure with its standard error, where there is one; nothing for one that is NaN."""
    if pd.isna(row[name]):
        return ""
    error = row.get(f"{name}_se")
    return f"{row[name]:{form}}" + ("" if pd.isna(error) else f" ± {error:{form}}")


def span(counts: pd.Series) -> str:
    """Write the least and the most of counts, once if they are the same."""
    low, high = counts.min(), counts.max()
    return f"{low}" if low == high else f"{low}-{high}"


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Write a table."""
    body = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in body)


def convergence(fits: pd.DataFrame, network: str = "network") -> str:
    """How many fits of each network have converged, and what they took.

    A fit's ``r_hat`` is that of its worst input; one row a fit, and ``network`` its column.
    """
    columns = {"r_hat": ("median R-hat", ".3f")}
    columns |= {"steps": ("steps a draw", ".0f"), "seconds": ("median seconds", ".0f")}
    columns = {name: column for name, column in columns.items() if name in fits}
    lines = []
    for (name, inputs), own in fits.groupby([network, "n_features"], sort=False):
        within = int((own["r_hat"] <= R_HAT_MAX).sum())
        middle = own[list(columns)].median()
        cells = [f"{middle[column]:{form}}" for column, (_, form) in columns.items()]
        lines.append([name, str(inputs), f"{within} of {len(own)}", *cells])
    heads = [head for head, _ in columns.values()]
    return table(["network", "inputs", f"R-hat up to {R_HAT_MAX}", *heads], lines)

"""Tables of results in markdown."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

__all__ = ["figure", "origin", "span", "table", "versions"]


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

"""Results in a terminal of 80 columns, and the page beside a results file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["with_errors", "write_page"]


def with_errors(table: pd.DataFrame, keys: Mapping[str, str], figures: Mapping[str, str]) -> str:
    """Write figures as ``0.95 ± 0.02``; both mappings are from a column to its heading.

    The error stands in the column of the same name with ``_se``, if there is one.
    """
    shown = table[list(keys)].rename(columns=dict(keys))
    for name, heading in figures.items():
        text = table[name].map("{:.3g}".format)
        if f"{name}_se" in table:
            error = table[f"{name}_se"]
            text += error.map(" ± {:.1g}".format).where(error.notna(), "")
        shown[heading] = text
    return shown.to_string(index=False)


def write_page(results: Path, page: Callable[[pd.DataFrame, str], str], command: str) -> Path:
    """Write a page of all that a results file has beside it, as .md; return its path."""
    import pandas as pd

    from pymc_bnnvs.report import replacing

    path = results.with_suffix(".md")
    with replacing(path) as temporary:
        temporary.write_text(page(pd.read_csv(results), command))
    return path

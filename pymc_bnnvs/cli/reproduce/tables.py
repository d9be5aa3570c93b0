"""Results in a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["with_errors"]


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

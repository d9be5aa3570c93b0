"""The page beside a results file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["write_page"]


def write_page(results: Path, page: Callable[[pd.DataFrame, str], str], command: str) -> Path:
    """Write a page of all that a results file has beside it, as .md; return its path."""
    import pandas as pd

    from pymc_bnnvs.report import replacing

    path = results.with_suffix(".md")
    with replacing(path) as temporary:
        temporary.write_text(page(pd.read_csv(results), command))
    return path

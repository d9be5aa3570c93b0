"""The page beside a results file, and the picture: of all that it has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["write_page", "write_picture_of"]


def write_page(results: Path, page: Callable[[pd.DataFrame, str], str], command: str) -> Path:
    """Write a page of all that a results file has beside it, as .md; return its path."""
    import pandas as pd

    from pymc_bnnvs.report import replacing

    path = results.with_suffix(".md")
    with replacing(path) as temporary:
        temporary.write_text(page(pd.read_csv(results), command))
    return path


def write_picture_of(results: Path, draw: Callable[[pd.DataFrame], Figure], picture: Path) -> Path:
    """Draw all that a results file has, also where a run asked for a part; return the path."""
    import pandas as pd

    from pymc_bnnvs.experiments.pictures import write_picture

    write_picture(draw(pd.read_csv(results)), picture)
    return picture

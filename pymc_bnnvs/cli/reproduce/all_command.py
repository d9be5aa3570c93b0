"""The paper's table and both figures, one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pymc_bnnvs.cli.benchmark.options import RESULTS, Positive
from pymc_bnnvs.cli.reproduce.figure_commands import bvm, learning
from pymc_bnnvs.cli.reproduce.table_command import table2
from pymc_bnnvs.cli.terminal import echo

__all__ = ["everything"]

#: Sizes at which everything takes some minutes. They show that it runs, and nothing else.
QUICK: dict[str, dict[str, Any]] = {
    "table2": {"n": (80,), "features": (8,), "repetitions": 1},
    "learning": {"n": (50, 100), "features": (8,), "designs": ("neural",), "repetitions": 1},
    "bvm": {"n": (60,), "features": (8,), "repetitions": 1},
}


def everything(
    *,
    quick: bool = False,
    jobs: Positive | None = None,
    scheduler: str | None = None,
    results: Path | None = None,
    pictures: Path | None = None,
) -> int:
    """Redo the table and both figures. It takes days of one core, or minutes with --quick.

    Every fit is saved as it ends; a second start does only what is missing.

    Parameters
    ----------
    quick : bool
        One data set of a tiny size each: to see that all of it runs.
    jobs : int
        Fits at the same time. Default: as many as there are processors.
    scheduler : str
        Address of a dask scheduler: its workers fit, instead of this machine.
    results : Path
        Folder of the csv files. Default: docs/results, or bnnvs-quick with --quick.
    pictures : Path
        Folder of the PNG files. Default: docs, or bnnvs-quick with --quick.

    Returns
    -------
    int
        Exit code.
    """
    results = results or (Path("bnnvs-quick") if quick else RESULTS)
    pictures = pictures or (results if quick else Path("docs"))
    for command in (table2, learning, bvm):
        name = command.__name__
        echo(f"\n{name}")
        options: dict[str, Any] = {"jobs": jobs, "scheduler": scheduler}
        options["results"] = results / f"{name}.csv"
        if command is not table2:
            options["picture"] = pictures / f"{name}.png"
        command(**options, **(QUICK[name] if quick else {}))
    return 0

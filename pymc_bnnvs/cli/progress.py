"""A grid of fits, with its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["run_with_progress"]


def run_with_progress(
    run: Callable[..., pd.DataFrame], results: Path, *, jobs: int | None, **options: Any
) -> pd.DataFrame:
    """Run a grid; without ``jobs``, with as many as there are processors."""
    from pymc_bnnvs.processors import available_cores

    with grid_progress() as progress:
        return run(results, jobs=jobs or available_cores(), progress=progress, **options)


@contextmanager
def grid_progress() -> Iterator[Callable[[int, int], None]]:
    """Bar on the standard error with what is done and an estimate of what is left.

    Yields what takes the number of tasks done and that of all. Those that an earlier run has done
    tell nothing of the time that one takes.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("fits"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=3600) as bar:
        task = bar.add_task("fits", total=None)

        def advance(done: int, total: int) -> None:
            first = bar.tasks[0].total is None
            bar.update(task, total=total, completed=done)
            if first:
                bar.reset(task, total=total, completed=done)

        yield advance

"""A grid of fits, each on its own: done on this machine or on a cluster, saved one by one."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pymc_bnnvs.experiments.results import write

__all__ = ["missing", "on_cluster", "on_this_machine", "run_grid"]

Task = dict[str, Any]
Work = Callable[[Task], pd.DataFrame]


def run_grid(
    tasks: Sequence[Task],
    work: Work,
    results: str | Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Do the tasks that the results file lacks.

    Parameters
    ----------
    tasks : sequence of dict
        What tells one task from another: the first columns of its rows.
    work : callable
        From a task to its rows, which carry the task's entries as columns. A function of a
        module: it runs in other processes.
    results : path
        A csv file, made if it does not exist; written again, through a temporary file, whenever
        a task ends.
    jobs : int
        Processes on this machine.
    scheduler : str, optional
        Address of a dask scheduler, whose workers do the tasks instead.
    progress : callable, optional
        Told how many of how many tasks are done.

    Returns
    -------
    DataFrame
        The rows of all these tasks.
    """
    path = Path(results)
    done = pd.read_csv(path) if path.exists() else pd.DataFrame()
    left = missing(tasks, done)
    ahead = len(tasks) - len(left)
    if progress is not None:
        progress(ahead, len(tasks))
    found = on_cluster(left, work, scheduler) if scheduler else on_this_machine(left, work, jobs)
    # A consumer that stops, as by Ctrl-C, leaves no work behind.
    with contextlib.closing(found):
        for count, rows in enumerate(found, start=ahead + 1):
            done = rows if done.empty else pd.concat([done, rows], ignore_index=True)
            write(done, path)
            if progress is not None:
                progress(count, len(tasks))
    if not tasks:
        return done
    asked = pd.DataFrame(list(tasks))
    return done.merge(asked.drop_duplicates(), on=list(asked), how="inner")


def missing(tasks: Sequence[Task], done: pd.DataFrame) -> list[Task]:
    """Tasks without rows, in their order."""
    if done.empty:
        return list(tasks)
    there = set(done[list(tasks[0])].itertuples(index=False, name=None)) if tasks else set()
    return [task for task in tasks if tuple(task.values()) not in there]


def on_this_machine(tasks: Sequence[Task], work: Work, jobs: int) -> Generator[pd.DataFrame]:
    """Rows of the tasks as they end."""
    if jobs == 1:
        for task in tasks:
            yield work(task)
        return
    from joblib import Parallel, delayed

    with warnings.catch_warnings():
        # Of tasks that are still at work when the grid is left.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch=jobs)(
            delayed(work)(task) for task in tasks
        )


def on_cluster(tasks: Sequence[Task], work: Work, address: str) -> Generator[pd.DataFrame]:
    """Rows of the tasks as a dask cluster ends them.

    A task whose worker dies is done again by another; each is handed over once.
    """
    from distributed import Client, as_completed

    with Client(address) as client:
        # Not pure: equal tasks of another run are no reason to keep results in memory.
        futures = client.map(work, tasks, pure=False, retries=2)
        try:
            for future in as_completed(futures):
                yield future.result()
                future.release()
        finally:
            client.cancel(futures)


def seed_of(task: Task) -> np.random.Generator:
    """Random numbers of a task: its own, wherever and in whatever order it is done."""
    words = [value for value in task.values() if isinstance(value, int)]
    text = "/".join(str(value) for value in task.values())
    return np.random.default_rng([*words, *text.encode()])

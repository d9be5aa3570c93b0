"""A grid of fits, each on its own: done on this machine or on a cluster, saved one by one."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from traceback import format_exception, format_exception_only
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pymc_bnnvs.experiments.results import write

__all__ = ["fit_missing", "missing", "run_grid", "seed_of"]

Task = dict[str, Any]


class Failure(NamedTuple):
    """A task that could not be done, and why."""

    task: Task
    reason: str
    trace: str = ""


Work = Callable[[Task], pd.DataFrame]
Outcomes = Generator[pd.DataFrame | Failure]


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

    One that fails doesn't stop the others, and is tried again at the next start.

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
        The rows of all these tasks, but for those that failed.

    Warns
    -----
    RuntimeWarning
        For each task that failed, with its error.

    Raises
    ------
    RuntimeError
        If there were tasks to do and all of them failed.
    """
    path = Path(results)
    done = pd.read_csv(path) if path.exists() else pd.DataFrame()
    left = missing(tasks, done)
    ahead = len(tasks) - len(left)
    if progress is not None:
        progress(ahead, len(tasks))
    trial = partial(attempt, work)
    found = on_cluster(left, trial, scheduler) if scheduler else on_this_machine(left, trial, jobs)
    failures = []
    # A consumer that stops, as by Ctrl-C, leaves no work behind.
    with contextlib.closing(found):
        for count, outcome in enumerate(found, start=ahead + 1):
            if isinstance(outcome, Failure):
                failures.append(outcome)
                told = f"{outcome.task} failed: {outcome.reason} The next start tries it again."
                warnings.warn(told, RuntimeWarning, stacklevel=2)
            else:
                done = outcome if done.empty else pd.concat([done, outcome], ignore_index=True)
                write(done, path)
            if progress is not None:
                progress(count, len(tasks))
    if failures and len(failures) == len(left):
        first = failures[0].trace or failures[0].reason
        raise RuntimeError(f"All {len(left)} fits failed, the first of them with\n{first}")
    if done.empty or not tasks:
        return done.iloc[:0]
    asked = pd.DataFrame(list(tasks))
    return done.merge(asked.drop_duplicates(), on=list(asked), how="inner")


def fit_missing(
    results: str | Path,
    settings: Task,
    seeds: Sequence[int],
    fit: Callable[[Task, int], pd.DataFrame],
    progress: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Fit the seeds that the results file lacks under these settings, one after the other.

    Parameters
    ----------
    results : path
        A csv file; see :func:`run_grid`.
    settings : dict
        Columns that tell one fit from another, besides ``seed``.
    seeds : sequence of int
        One fit each.
    fit : callable
        From the settings and a seed to rows, which carry both as columns.
    progress : callable, optional
        Told of each fit.

    Returns
    -------
    DataFrame
        The rows of these settings and seeds, but for fits that failed.
    """
    named = ", ".join(str(value) for value in settings.values())

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress(f"{named}: {done} of {total} data sets")

    return run_grid(
        [settings | {"seed": seed} for seed in seeds],
        lambda task: fit(settings, task["seed"]),
        results,
        progress=tell,
    )


def missing(tasks: Sequence[Task], done: pd.DataFrame) -> list[Task]:
    """Tasks without rows, in their order."""
    if done.empty:
        return list(tasks)
    there = set(done[list(tasks[0])].itertuples(index=False, name=None)) if tasks else set()
    return [task for task in tasks if tuple(task.values()) not in there]


def attempt(work: Work, task: Task) -> pd.DataFrame | Failure:
    """Do a task."""
    try:
        return work(task)
    except Exception as error:
        reason = "".join(format_exception_only(error)).strip()
        return Failure(task, reason, "".join(format_exception(error)))


def on_this_machine(
    tasks: Sequence[Task], trial: Callable[[Task], pd.DataFrame | Failure], jobs: int
) -> Outcomes:
    """Yield what comes of the tasks, as they end."""
    if jobs == 1:
        yield from map(trial, tasks)
        return
    from joblib import Parallel, delayed

    with warnings.catch_warnings():
        # Of tasks that are still at work when the grid is left.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch=jobs)(
            delayed(trial)(task) for task in tasks
        )


def on_cluster(
    tasks: Sequence[Task], trial: Callable[[Task], pd.DataFrame | Failure], address: str
) -> Outcomes:
    """Yield what comes of the tasks, as a dask cluster ends them.

    A task whose worker dies is done again by another; each is handed over once.
    """
    from distributed import Client, KilledWorker, as_completed

    with Client(address) as client:
        # Not pure: equal tasks of another run are no reason to keep results in memory.
        futures = client.map(trial, tasks, pure=False, retries=2)
        task_of = dict(zip(futures, tasks, strict=True))
        try:
            for future in as_completed(futures):
                try:
                    yield future.result()
                except KilledWorker as error:
                    yield Failure(task_of[future], str(error))
                future.release()
        finally:
            client.cancel(futures)


def seed_of(task: Task) -> np.random.Generator:
    """Random numbers of a task: its own, wherever and in whatever order it is done."""
    words = [value for value in task.values() if isinstance(value, int)]
    text = "/".join(str(value) for value in task.values())
    return np.random.default_rng([*words, *text.encode()])

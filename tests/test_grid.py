"""A grid loses nothing and does nothing twice, on this machine and on a cluster."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

import pandas as pd
import pytest

from pymc_bnnvs.experiments.grid import missing, run_grid, seed_of


def tasks_of(count, marks):
    """Tasks that carry all they need: a process of an earlier test may do them."""
    return [dict(design="a", n=10, marks=str(marks), seed=seed) for seed in range(count)]


def work(task):
    """One row, and a mark on the disk for each time that it was done."""
    Path(task["marks"], f"{task['seed']}-{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(0.05)
    return pd.DataFrame([{**task, "value": float(seed_of(task).normal())}])


@pytest.fixture
def marks(tmp_path):
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("jobs", [1, 2])
def test_second_start_does_only_what_is_missing(tmp_path, marks, jobs):
    path = tmp_path / "results.csv"
    told = []
    first = run_grid(
        tasks_of(3, marks), work, path, jobs=jobs, progress=lambda *at: told.append(at)
    )
    assert sorted(first["seed"]) == [0, 1, 2]
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert len(list(marks.iterdir())) == 3
    more = run_grid(tasks_of(5, marks), work, path, jobs=jobs)
    assert sorted(more["seed"]) == [0, 1, 2, 3, 4]
    assert len(list(marks.iterdir())) == 5
    # A subset of what the file holds is that subset.
    assert sorted(run_grid(tasks_of(2, marks), work, path)["seed"]) == [0, 1]
    assert len(pd.read_csv(path)) == 5


def test_a_task_has_its_own_numbers(tmp_path, marks):
    one = run_grid(tasks_of(4, marks), work, tmp_path / "one.csv").set_index("seed")["value"]
    other = run_grid(tasks_of(4, marks)[::-1], work, tmp_path / "other.csv").set_index("seed")[
        "value"
    ]
    pd.testing.assert_series_equal(one, other.loc[one.index])
    assert one.nunique() == 4


def test_interrupted_run_keeps_its_rows(tmp_path, marks):
    path = tmp_path / "results.csv"

    def stop(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_grid(tasks_of(4, marks), work, path, progress=stop)
    assert len(pd.read_csv(path)) == 2
    assert len(run_grid(tasks_of(4, marks), work, path)) == 4
    assert len(list(marks.iterdir())) == 4


def fails_twice(task):
    """Fail at two seeds."""
    if task["seed"] in (1, 2):
        raise ValueError(f"no {task['seed']}")
    return work(task)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_task_that_fails_does_not_stop_the_others(tmp_path, marks, jobs):
    path = tmp_path / "results.csv"
    told = []
    with pytest.warns(RuntimeWarning) as warned:
        rows = run_grid(
            tasks_of(5, marks), fails_twice, path, jobs=jobs, progress=lambda *at: told.append(at)
        )
    assert sorted(rows["seed"]) == sorted(pd.read_csv(path)["seed"]) == [0, 3, 4]
    assert told[-1] == (5, 5)
    messages = sorted(str(each.message) for each in warned)
    assert len(messages) == 2
    assert "'seed': 1" in messages[0]
    assert "ValueError: no 1" in messages[0]
    # The next start does them.
    assert sorted(run_grid(tasks_of(5, marks), work, path)["seed"]) == [0, 1, 2, 3, 4]
    assert len(list(marks.iterdir())) == 5


def test_all_tasks_fail(tmp_path, marks):
    bad = [task for task in tasks_of(3, marks) if task["seed"]]
    with pytest.warns(RuntimeWarning), pytest.raises(RuntimeError, match=r"(?s)All 2 fits .*no 1"):
        run_grid(bad, fails_twice, tmp_path / "results.csv")
    assert not (tmp_path / "results.csv").exists()


def test_several_rows_a_task(marks):
    rows = pd.DataFrame(
        {
            "design": ["a", "a", "a"],
            "n": 10,
            "marks": str(marks),
            "seed": [0, 0, 2],
            "rule": list("xyx"),
        }
    )
    assert [task["seed"] for task in missing(tasks_of(4, marks), rows)] == [1, 3]
    assert missing([], rows) == []


@pytest.mark.slow
def test_worker_dies_and_nothing_is_lost_or_counted_twice(tmp_path, marks):
    distributed = pytest.importorskip("distributed")
    path = tmp_path / "results.csv"
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
    ):
        # Of sockets and logs of the worker that is killed.
        warnings.simplefilter("ignore")
        killed = []

        def kill_one(done, total):
            if done == 5 and not killed:
                worker = next(iter(cluster.workers.values()))
                killed.append(worker.pid)
                os.kill(worker.pid, 9)

        rows = run_grid(
            tasks_of(30, marks), work, path, scheduler=cluster.scheduler_address, progress=kill_one
        )
    assert killed
    assert sorted(rows["seed"]) == list(range(30))
    assert sorted(pd.read_csv(path)["seed"]) == list(range(30))

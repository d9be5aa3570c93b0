"""Speed benchmark: time until the psi of every true input has converged, side by side.

Four methods on the same data: ours by default, ours with the paper's prior, and what one writes by
hand in PyMC and in numpyro. Every fit runs in a process of its own, with threads and limit set
from here, and adds one row to a results file.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pymc_bnnvs.errors import check_option
from pymc_bnnvs.experiments.results import write
from pymc_bnnvs.experiments.speed_table import KEYS, METHODS, is_at, seconds_of, time_of
from pymc_bnnvs.experiments.speed_watch import CONFIRM_S
from pymc_bnnvs.processors import available_cores

__all__ = ["check_methods", "run", "run_gates"]

COLUMNS = [
    *KEYS,
    "status",
    "seconds",
    "limit_s",
    "seconds_to_target",
    "draws_to_target",
    "seconds_compile",
    "seconds_compile_again",
    "seconds_sampling",
    "seconds_in_all",
    "draws",
    "tune",
    "max_draws",
    "r_hat",
    "ess_bulk",
    "gradients",
    "steps",
    "microseconds_per_gradient",
    "gradient_us",
    "gradient_open_gates",
    "open_gates",
    "divergences",
    "rss_mb",
    "chains",
    "cores",
    "cpu",
    "threads",
    "versions",
    "run",
    "error",
]

GRACE_S = 60.0  # for a fit to end by itself, and for the gradient alone
START_S = 300.0  # to import all that a fit needs
GRADIENT_S = 600.0  # to compile and time a gradient without a fit
TOUCH_S = 0.1  # limit of a fit that is to compile and no more
POLL_S = 0.1

WORKER = [sys.executable, "-m", "pymc_bnnvs.experiments.speed_fit"]
THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def run(
    results: str | Path,
    *,
    n: Sequence[int] = (250, 500, 2000, 10_000),
    features: Sequence[int] = (25, 200, 2000),
    methods: Sequence[str] = tuple(METHODS),
    limit_s: float = 300.0,
    times_ours: float = 0.0,
    max_limit_s: float = 3600.0,
    data_sets: int = 1,
    first_seed: int = 1000,
    chains: int = 4,
    max_draws: int = 16_000,
    progress: Callable[[str], None] = lambda line: None,
) -> pd.DataFrame:
    """Do every fit that the results file lacks.

    A fit that was stopped at its limit is done again only for a longer limit.

    Parameters
    ----------
    results : path
        A csv file, made if it does not exist; written again, through a temporary file, after
        every fit.
    n, features : sequence of int
        Rows and inputs of the data sets, in all combinations.
    methods : sequence of str
        Of ``"default"``, ``"gaussian"``, ``"pymc"`` and ``"numpyro"``; the default comes first.
    limit_s : float
        Wall time after which a fit is stopped, from the building of its model on.
    times_ours : float
        If positive, the others get this many times the time that our default took to the target
        on the same data, where that is more than ``limit_s``.
    max_limit_s : float
        The longest that ``times_ours`` can make it.
    data_sets, first_seed : int
        Data sets of each size, and the seed of the first; also the seed of its sampling.
    chains : int
        Chains; all run at once.
    max_draws : int
        Draws a chain after which a fit that has not reached the target is over.
    progress : callable, optional
        Told of each fit.

    Returns
    -------
    DataFrame
        One row a fit of this grid. ``status`` is ``"reached"``; ``"not reached"``, with all its
        draws; ``"limit"``, where ``seconds`` is the limit; or ``"failed"``, with the ``error``.
        ``seconds_to_target`` is there only if it was reached. ``r_hat`` and ``ess_bulk`` are the
        worst of the true inputs at the last check, whatever the status.
        ``seconds_compile`` is from nothing, ``seconds_compile_again`` for other data of the same
        size in another process, with what PyTensor has kept on disk.
        ``microseconds_per_gradient`` is that of the sampler, cores times seconds over gradients,
        warm-up included; ``gradient_us`` is that of one evaluation alone in the process.

    Raises
    ------
    ValueError
        If a method is not known, or its package is not there.
    """
    check_methods(methods)
    path = Path(results)
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    asked = {"run": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")} | machine()
    cells = [
        (size, width, seed)
        for width in features
        for size in n
        for seed in range(first_seed, first_seed + data_sets)
    ]
    for index, (size, width, seed) in enumerate(cells):
        for method in [name for name in METHODS if name in methods]:
            key = {"method": method, "n": size, "n_features": width, "seed": seed}
            limit = limit_s
            if method != "default" and times_ours > 0:
                ours = seconds_of(rows, key | {"method": "default"})
                limit = float(np.clip(times_ours * ours, limit_s, max(max_limit_s, limit_s)))
            old = [row for row in rows if is_at(row, key)]
            if old and not (old[0]["status"] == "limit" and old[0]["limit_s"] < 0.999 * limit):
                continue
            row = fit(key | {"limit_s": limit, "chains": chains, "max_draws": max_draws})
            rows = [other for other in rows if not is_at(other, key)]
            rows.append(asked | row)
            write(pd.DataFrame(rows, columns=COLUMNS), path)
            progress(
                f"n = {size}, P = {width} ({index + 1} of {len(cells)}), {METHODS[method]}: "
                f"{time_of(row)}"
            )
    wanted = {(*cell, method) for cell in cells for method in methods}
    found = pd.DataFrame(rows, columns=COLUMNS)
    at = zip(found["n"], found["n_features"], found["seed"], found["method"], strict=True)
    return found[[where in wanted for where in at]].reset_index(drop=True)


def check_methods(methods: Iterable[str]) -> None:
    """Refuse a method that is not known, and numpyro where it is not installed."""
    for method in methods:
        check_option("methods", method, METHODS)
    if "numpyro" in methods and importlib.util.find_spec("numpyro") is None:
        raise ValueError(
            "methods: numpyro is not installed. Install it, pip install 'pymc-bnnvs[jax]', or "
            "leave it out."
        )


def fit(job: dict[str, Any]) -> dict[str, Any]:
    """Fit in a process of its own, and return the row of the results.

    Parameters
    ----------
    job : dict
        ``method``, ``n``, ``n_features``, ``seed``, ``limit_s``, ``chains`` and ``max_draws``.

    Returns
    -------
    dict
    """
    limit_s = job["limit_s"]
    with tempfile.TemporaryDirectory(prefix="bnnvs-compiled-") as folder:
        compiled = Path(folder)
        state, error = work(job | {"fit": True}, limit_s, CONFIRM_S * limit_s, compiled)
        row = {name: job[name] for name in (*KEYS, "limit_s", "chains")}
        row |= {name: value for name, value in state.get("row", {}).items() if name in COLUMNS}
        if row.get("status", "running") == "running":
            stopped = error is None
            row |= {"status": "limit" if stopped else "failed"}
            row["seconds"] = limit_s if stopped else None
        if row["status"] == "limit" and "gradient_us" not in row:
            # Stopped from outside: its gradient is the same in another process.
            again, error = work(job | {"fit": False}, GRADIENT_S, GRADIENT_S, compiled)
            timed = again.get("row", {})
            row |= {name: timed[name] for name in timed if name.startswith("gradient_")}
        if row.get("seconds_compile"):
            other = job | {"fit": True, "seed": job["seed"] + 1, "limit_s": TOUCH_S}
            again, _ = work(other, GRADIENT_S, GRADIENT_S, compiled)
            row["seconds_compile_again"] = again.get("row", {}).get("seconds_compile")
    cores = min(available_cores(), job["chains"])
    if row.get("gradients"):
        row["microseconds_per_gradient"] = 1e6 * cores * row["seconds_sampling"] / row["gradients"]
    return row | {"error": error}


def work(
    job: dict[str, Any], limit_s: float, confirm_s: float, compiled: Path
) -> tuple[dict[str, Any], str | None]:
    """Start a worker, wait for it no longer than its limit and a grace, and kill what is left.

    Parameters
    ----------
    job : dict
        What the worker is told.
    limit_s, confirm_s : float
        Seconds that it has, and that it has once it holds the target.
    compiled : Path
        Folder where PyTensor keeps what it compiles.

    Returns
    -------
    state : dict
        The last that it wrote.
    error : str or None
        Why it failed; None if it ended by itself, or at its limit.
    """
    with tempfile.TemporaryDirectory(prefix="bnnvs-speed-") as name:
        folder = Path(name)
        told, state_path, errors = folder / "job.json", folder / "state.json", folder / "errors"
        told.write_text(json.dumps(job))
        with errors.open("wb") as stream:
            process = subprocess.Popen(
                [*WORKER, str(told), str(state_path)],
                env=environment(job["chains"], compiled),
                stdout=subprocess.DEVNULL,
                stderr=stream,
                start_new_session=True,
            )
        began = time.time()
        error = None
        try:
            while process.poll() is None:
                state = read_state(state_path)
                holds = state.get("row", {}).get("holds", False)
                if "started" not in state and time.time() - began > START_S:
                    return state, f"did not start within {START_S:.0f} s"
                allowed = (confirm_s if holds else limit_s) + GRACE_S
                if time.time() - state.get("started", np.inf) > allowed:
                    return state, None
                time.sleep(POLL_S)
            if process.returncode:
                error = last_line(errors.read_text(errors="replace"), process.returncode)
            return read_state(state_path), error
        finally:
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Kill a worker that still runs, with all that it has started."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()


def read_state(path: Path) -> dict[str, Any]:
    """Read what a worker has written; nothing, if it has not yet."""
    return json.loads(path.read_text()) if path.exists() else {}


def last_line(errors: str, code: int) -> str:
    """Say in one line why a worker failed."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    if code == -getattr(signal, "SIGKILL", 9):
        return "killed by the system, as it does when the memory runs out"
    return lines[-1] if lines else f"exit code {code}"


def environment(chains: int, compiled: Path) -> dict[str, str]:
    """Environment of a worker: one thread a chain, and a place for what it compiles.

    PyTensor keeps what it has compiled for the next time and JAX does not; in an empty folder,
    both compile everything.
    """
    flags = ",".join(
        filter(None, [os.environ.get("PYTENSOR_FLAGS"), f"base_compiledir={compiled}"])
    )
    return {
        **os.environ,
        **dict.fromkeys(THREADS, "1"),
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={chains} "
        "--xla_cpu_multi_thread_eigen=false",
        "JAX_PLATFORMS": "cpu",
        "PYTENSOR_FLAGS": flags,
    }


def machine() -> dict[str, Any]:
    """Machine, thread settings and versions."""
    names = ("pymc", "pytensor", "nutpie", "numba", "numpyro", "jax", "numpy", "pymc-bnnvs")
    found = [f"python {platform.python_version()}"]
    for name in names:
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return {
        "cores": available_cores(),
        "cpu": cpu_name(),
        "threads": "1 thread for BLAS, numba and XLA; one JAX device a chain",
        "versions": ", ".join(found),
    }


def cpu_name(path: str = "/proc/cpuinfo") -> str:
    """Name of the processor, as far as the system tells it."""
    with suppress(OSError):
        for line in Path(path).read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def run_gates(
    results: str | Path,
    *,
    n: Sequence[int] = (250, 500, 2000, 10_000),
    features: Sequence[int] = (25, 200, 2000),
    first_seed: int = 1000,
    progress: Callable[[str], None] = lambda line: None,
) -> pd.DataFrame:
    """Time the gradient with the gated and with the whole product, where the file lacks it.

    Parameters
    ----------
    results : path
        A csv file, as in :func:`run`.
    n, features : sequence of int
        Rows and inputs, in all combinations.
    first_seed : int
        Seed of the data.
    progress : callable, optional
        Told of each size.

    Returns
    -------
    DataFrame
        Of :func:`pymc_bnnvs.experiments.speed_gradient.gradient_times`, with the machine.
    """
    path = Path(results)
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    keys = [
        {"n": size, "n_features": width, "seed": first_seed} for width in features for size in n
    ]
    for key in keys:
        if any(is_at(row, key) for row in rows):
            continue
        job = key | {"method": "gates", "chains": 1}
        with tempfile.TemporaryDirectory(prefix="bnnvs-compiled-") as folder:
            state, error = work(job, GRADIENT_S, GRADIENT_S, Path(folder))
        label = f"gates at n = {key['n']}, P = {key['n_features']}"
        if "rows" not in state:
            progress(f"{label}: {error or f'stopped after {GRADIENT_S:.0f} s'}")
            continue
        rows += [row | machine() for row in state["rows"]]
        write(pd.DataFrame(rows), path)
        progress(f"{label}: timed")
    found = [row for row in rows if any(is_at(row, key) for key in keys)]
    return pd.DataFrame(found)

"""Clock of one fit of the speed benchmark, and judge of its draws as they come."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from pymc_bnnvs.diagnostics import ESS_MIN, R_HAT_MAX, convergence

__all__ = ["CONFIRM_S", "Check", "Watch", "time_to_target"]

FIRST = 100  # draws a chain before the first check
GROWTH = 1.05  # of the draws from check to check, and so the precision of the time
CONFIRM = 1.25  # growth of the draws over which the target must hold
CONFIRM_S = 1.5  # times the limit that a fit may last to confirm what it reached before
RESTS = 20  # times the length of a check that pass before the next one


class Check(NamedTuple):
    """Convergence of the true inputs' psi at one time of a fit: the worst of each."""

    seconds: float
    draws: int
    r_hat: float
    ess_bulk: float

    @property
    def reached(self) -> bool:
        """Whether all of them are there; a psi that never changes has no R-hat, and is not."""
        return self.r_hat <= R_HAT_MAX and self.ess_bulk >= ESS_MIN


def holds_since(checks: Sequence[Check]) -> Check | None:
    """First check of the unbroken run up to the last one in which the target is reached."""
    first = None
    for check in reversed(checks):
        if not check.reached:
            break
        first = check
    return first


def time_to_target(checks: Sequence[Check], *, ended: bool = False) -> Check | None:
    """First check from which on the target holds.

    One check alone can be lucky. The target counts as reached where it holds at every later check
    too, until there are a quarter more draws, or until the fit has all of its draws.

    Parameters
    ----------
    checks : sequence of Check
        In the order of their draws.
    ended : bool
        Whether the last check has all the draws that the fit may take.

    Returns
    -------
    Check or None
        None where it is not reached.
    """
    first = holds_since(checks)
    if first is None or (checks[-1].draws < CONFIRM * first.draws and not ended):
        return None
    return first


def worst(psi: np.ndarray) -> tuple[float, float]:
    """Largest R-hat and least bulk ESS of draws (chains, draws, inputs); NaN if any has none."""
    judged = convergence(xr.DataArray(psi, dims=("chain", "draw", "feature")), None, "feature")
    r_hat, ess_bulk = judged["r_hat"], judged["ess_bulk"]
    return float(r_hat.max(skipna=False)), float(ess_bulk.min(skipna=False))


class Watch:
    """Clock of a fit and judge of its draws.

    Parameters
    ----------
    limit_s : float
        Seconds after which a fit that is not at the target is over.
    max_draws : int
        Draws a chain after which any fit is over.
    report : callable, optional
        Told what is known of the fit after every check.
    """

    def __init__(
        self,
        limit_s: float,
        max_draws: int,
        report: Callable[[dict[str, Any]], None] = lambda row: None,
    ) -> None:
        self.limit_s, self.max_draws, self.report = limit_s, max_draws, report
        self.checks: list[Check] = []
        self.facts: dict[str, Any] = {}
        # ArviZ loads and compiles at its first call, which is no part of the fit.
        worst(np.random.default_rng(0).normal(size=(4, FIRST, 2)))
        self.started = time.perf_counter()
        self.rest_until = 0.0

    @property
    def seconds(self) -> float:
        """Seconds since the fit began."""
        return time.perf_counter() - self.started

    @property
    def ended(self) -> bool:
        """Whether all draws have been judged."""
        return bool(self.checks) and self.checks[-1].draws >= self.max_draws

    @property
    def over(self) -> bool:
        """Whether to stop: at the target, out of draws or out of time."""
        holds = holds_since(self.checks) is not None
        limit_s = self.limit_s * (CONFIRM_S if holds else 1.0)
        return bool(self.target) or self.ended or self.seconds > limit_s

    @property
    def target(self) -> Check | None:
        """Where the target was reached."""
        return time_to_target(self.checks, ended=self.ended)

    def due(self, draws: int) -> bool:
        """Whether this many draws a chain are worth a check."""
        last = self.checks[-1].draws if self.checks else 0
        enough = min(max(FIRST, GROWTH * last), self.max_draws)
        return draws > last and draws >= enough and self.seconds >= self.rest_until

    def judge(self, psi: np.ndarray, seconds: float) -> None:
        """Check the draws that were there after so many seconds.

        Checks rest for twenty times their own length: they take at most a twentieth of the time.

        Parameters
        ----------
        psi : array, shape (chains, draws, inputs)
            Of the true inputs.
        seconds : float
        """
        self.checks.append(Check(seconds, psi.shape[1], *worst(psi)))
        self.rest_until = self.seconds + RESTS * (self.seconds - seconds)
        self.report(self.row())

    def row(self) -> dict[str, Any]:
        """Tell what is known of the fit: where it is, and its result once there is one."""
        row: dict[str, Any] = {
            "status": "running",
            "holds": holds_since(self.checks) is not None,
            "seconds": self.seconds,
            "seconds_in_all": self.seconds,
            "rss_mb": peak_memory(),
            **self.facts,
        }
        if self.checks:
            row |= {name: getattr(self.checks[-1], name) for name in ("r_hat", "ess_bulk")}
        if self.target is not None:
            row |= {"status": "reached", "seconds": self.target.seconds}
            row |= {"seconds_to_target": self.target.seconds}
            row |= {"draws_to_target": self.target.draws}
        elif self.ended:
            row["status"] = "not reached"
        elif self.over:
            row |= {"status": "limit", "seconds": self.limit_s}
        return row


def peak_memory() -> float:
    """Largest resident memory of this process so far, in MB; NaN where it is not known."""
    try:
        import resource
    except ImportError:
        return float("nan")
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit

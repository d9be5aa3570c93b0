"""Simultaneous credible bands over all inputs at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import norm, rankdata

from pymc_bnnvs.errors import check_option

__all__ = ["BANDS", "Band", "joint_nonzero_set", "simultaneous_band"]

N_SIMULATED = 20_000


class Band(NamedTuple):
    """Ends ``(P,)`` of a simultaneous band and the common critical value."""

    lower: np.ndarray
    upper: np.ndarray
    critical: float


class Ruler(NamedTuple):
    """Tails of each draw ``(S, P)`` in its input's own distribution, and the quantiles.

    ``below`` and ``above`` are the probabilities beyond the draw on either side; ``quantile``
    takes a probability below, and one above, by input.
    """

    below: np.ndarray
    above: np.ndarray
    quantile: Callable[[np.ndarray, np.ndarray], np.ndarray]


def joint_nonzero_set(included: np.ndarray, alpha: float) -> np.ndarray:
    """Largest set, by inclusion probability, that is all in with probability ``1 - alpha``.

    Parameters
    ----------
    included : array of bool, shape (S, P)
        Draws of the inclusion of each input.
    alpha : float
        Probability, in (0, 1), that any of the set is out.

    Returns
    -------
    array of bool, shape (P,)
    """
    order = np.argsort(-included.mean(axis=0), kind="stable")
    # The share of draws that hold the first k can only fall with k.
    lost = (~np.logical_and.accumulate(included[:, order], axis=1)).sum(axis=0)
    chosen = np.zeros(included.shape[1], dtype=bool)
    chosen[order[lost <= may_lose(len(included), alpha)]] = True
    return chosen


def may_lose(n_draws: int, alpha: float) -> int:
    """Count the draws that may be outside of what holds with probability ``1 - alpha``."""
    return int(alpha * n_draws + 1e-9)  # alpha * n_draws may be just below a whole number


def simultaneous_band(
    draws: np.ndarray,
    alpha: float = 0.05,
    method: str = "sup_t",
    included: np.ndarray | None = None,
) -> Band:
    """Band that holds all inputs at once with posterior probability ``1 - alpha``.

    Parameters
    ----------
    draws : array, shape (S, P)
        Draws of the (centred) psi.
    alpha : float
        Probability, in (0, 1), that any input leaves the band.
    method : {"sup_t", "rank", "mvn"}
        ``sup_t``: maximal deviation on the cube-root scale, where a chi-square is nearly normal
        (Wilson and Hilferty 1931). ``rank``: common rank in every input (Besag et al. 1995); it
        needs draws enough for tails of ``alpha / P``. ``mvn``: the paper's, a multivariate
        normal with the draws' correlation, symmetric about the mean on psi's own scale.
    included : array of bool, shape (S, P), optional
        Where the prior has exact zeros. The ends then come from the draws with the input in,
        their tails from all draws; a draw without the input is inside the band of an input
        whose band reaches 0, and outside the band of the others, which are those of
        :func:`joint_nonzero_set`. The band of an input leaves out 0 if, and only if, that set
        holds it (uncentred draws).

    Returns
    -------
    Band

    References
    ----------
    Besag, J., Green, P., Higdon, D. and Mengersen, K. (1995). Bayesian computation and
    stochastic systems. Statistical Science 10.

    Montiel Olea, J. L. and Plagborg-Moller, M. (2019). Simultaneous confidence bands: theory,
    implementation, and an application to SVARs. Journal of Applied Econometrics 34.

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal(3.0, 1.0, size=(4000, 10))
    >>> band = simultaneous_band(draws, alpha=0.05, method="mvn")
    >>> inside = np.all((draws >= band.lower) & (draws <= band.upper), axis=1)
    >>> bool(abs(inside.mean() - 0.95) < 0.02)
    True
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha!r}: give a probability between 0 and 1.")
    check_option("band", method, BANDS)
    known = np.ones(draws.shape, dtype=bool) if included is None else included.astype(bool)
    ruler = BANDS[method](np.where(known, draws, np.nan))
    share = known.mean(axis=0)
    # Where 0 is inside, only the upper end can be crossed, and by an open draw.
    away = np.ones(draws.shape[1], dtype=bool)
    if included is not None:
        away = joint_nonzero_set(known, alpha)
    above = share * ruler.above
    below = (1 - share) + share * ruler.below
    tail = np.where(away, np.minimum(above, below), above)
    tail = np.where(known, tail, np.where(away, 0.0, 1.0))
    if method == "mvn":
        least = norm.sf(_normal_critical(np.where(known, draws, 0.0), alpha))
    else:
        least = float(np.sort(tail.min(axis=1))[may_lose(len(tail), alpha)])
    inside = tail.min(axis=1) >= least

    # An input that is never in has the band {0}.
    chance = np.where(share > 0, np.clip(least / np.where(share > 0, share, 1.0), 0.0, 1.0), 1.0)
    upper = np.where(chance < 1, ruler.quantile(1 - chance, chance), 0.0)
    chance = np.clip(1 - (1 - least) / np.where(share > 0, share, 1.0), 0.0, 1.0)
    lower = np.where(chance > 0, ruler.quantile(chance, 1 - chance), -np.inf)
    if inside.any():
        # The draws inside stay inside, whatever the ends lose to rounding.
        smallest, largest = draws[inside].min(axis=0), draws[inside].max(axis=0)
        if included is not None:
            # A ruler may reach below 0 where 0 is outside.
            lower = np.where(away & (lower <= 0), smallest, lower)
            lower = np.where(away, lower, 0.0)
        lower, upper = np.minimum(lower, smallest), np.maximum(upper, largest)
    return Band(lower, upper, float(norm.isf(least)))


def _normal_tails(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return norm.cdf(scores), norm.sf(scores)


def _normal_score(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Score of a probability, from the smaller side, where it is exact."""
    with np.errstate(divide="ignore"):
        return np.where(below < 0.5, norm.ppf(below), norm.isf(above))


def _sup_t(draws: np.ndarray) -> Ruler:
    """Ruler of a normal on the cube-root scale."""
    root = np.cbrt(draws)
    mean, sd = _mean_sd(root)
    below, above = _normal_tails((root - mean) / np.where(sd > 0, sd, 1.0))
    return Ruler(below, above, lambda b, a: (mean + sd * _finite(_normal_score(b, a))) ** 3)


def _mvn(draws: np.ndarray) -> Ruler:
    """Ruler of a normal on psi's own scale."""
    mean, sd = _mean_sd(draws)
    below, above = _normal_tails((draws - mean) / np.where(sd > 0, sd, 1.0))
    return Ruler(below, above, lambda b, a: mean + sd * _finite(_normal_score(b, a)))


def _rank(draws: np.ndarray) -> Ruler:
    """Ranks among the draws."""
    count = np.sum(~np.isnan(draws), axis=0)
    below = rankdata(draws, axis=0, nan_policy="omit") / (count + 1)
    ordered = np.sort(draws, axis=0)  # NaN last

    def quantile(b: np.ndarray, a: np.ndarray) -> np.ndarray:
        # Outwards to the next draw, so that a draw at the end is inside.
        last = np.maximum(count, 1)
        low = np.floor(b * (count + 1) + 1e-9)
        high = count + 1 - np.floor(a * (count + 1) + 1e-9)
        rank = np.clip(np.where(b < 0.5, low, high), 1, last).astype(int)
        return ordered[rank - 1, np.arange(draws.shape[1])]

    return Ruler(below, 1 - below, quantile)


def _finite(scores: np.ndarray) -> np.ndarray:
    """Scores of probabilities that underflow, at the edge of the double range."""
    return np.clip(scores, -38.0, 38.0)


def _mean_sd(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation over the draws that are not NaN."""
    known = ~np.isnan(draws)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, draws, 0.0).sum(axis=0) / count
    spread = np.where(known, draws - mean, 0.0)
    return mean, np.sqrt(np.sum(spread**2, axis=0) / count)


def _normal_critical(draws: np.ndarray, alpha: float) -> float:
    """Quantile of the maximum of ``|z|``, z normal with the draws' correlation."""
    sd = draws.std(axis=0)
    z = (draws - draws.mean(axis=0))[:, sd > 0] / sd[sd > 0]
    if z.shape[1] == 0:
        return 0.0
    # Random combinations of the standardised draws have exactly their correlation.
    rng = np.random.default_rng(0)
    worst = np.concatenate(
        [
            np.abs(rng.normal(size=(500, z.shape[0])) @ z).max(axis=1) / np.sqrt(z.shape[0])
            for _ in range(N_SIMULATED // 500)
        ]
    )
    return float(np.quantile(worst, 1 - alpha))


BANDS: dict[str, Callable[[np.ndarray], Ruler]] = {"sup_t": _sup_t, "rank": _rank, "mvn": _mvn}

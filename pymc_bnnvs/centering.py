"""Centring: what the noise of the data adds to a posterior draw of psi, and taking it off."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pymc_bnnvs.errors import check_option
from pymc_bnnvs.gradient_field import GradientMoments

__all__ = ["CENTERINGS", "gradient_variance", "shift"]


def gradient_variance(moments: GradientMoments, included: np.ndarray | None = None) -> np.ndarray:
    """Posterior variance of the gradient, averaged over the rows.

    ``v_p = E[psi_p(f)] - psi_p(E f) = mean_i Var(d_p f(x_i))``, from draws alone.

    Parameters
    ----------
    moments : GradientMoments
        From the streaming pass over the draws.
    included : array of bool, shape (S, P), optional
        Where the prior has exact zeros: the variance is then given that the input is in, since
        a draw without the input is exactly 0 and needs no centring.

    Returns
    -------
    array, shape (P,)
        In the unit of psi.
    """
    mean_psi = moments.psi.mean(axis=0)
    plug_in = np.mean(moments.field**2, axis=0)
    if included is not None:
        share = included.mean(axis=0)
        open_share = np.where(share > 0, share, 1.0)
        mean_psi, plug_in = mean_psi / open_share, plug_in / open_share**2
    return np.maximum(mean_psi - plug_in, 0.0)


def _posterior(
    moments: GradientMoments,
    included: np.ndarray | None,
    noise: np.ndarray | None,
    factor: float,
) -> np.ndarray:
    return np.broadcast_to(factor * gradient_variance(moments, included), moments.psi.shape)


def _plugin(
    moments: GradientMoments,
    included: np.ndarray | None,
    noise: np.ndarray | None,
    factor: float,
) -> np.ndarray:
    # The mean of the shifted draws is psi(E f) - v.
    return _posterior(moments, included, noise, 2.0)


def _trace(
    moments: GradientMoments,
    included: np.ndarray | None,
    noise: np.ndarray | None,
    factor: float,
) -> np.ndarray:
    if moments.trace is None or noise is None:
        raise ValueError(
            'centering="trace" is the paper\'s, for a network under a normal likelihood: '
            'these draws have no sigma or no weights. Use centering="posterior".'
        )
    return noise[:, None] ** 2 * moments.trace


Centering = Callable[[GradientMoments, np.ndarray | None, np.ndarray | None, float], np.ndarray]

CENTERINGS: dict[str, Centering] = {"posterior": _posterior, "plugin": _plugin, "trace": _trace}


def shift(
    method: str,
    moments: GradientMoments,
    *,
    included: np.ndarray | None = None,
    noise: np.ndarray | None = None,
    factor: float = 2.0,
) -> np.ndarray:
    """Amount to subtract from each draw of psi.

    Parameters
    ----------
    method : {"posterior", "plugin", "trace"}
        ``posterior``: ``factor * v_p``. A draw carries the sampling noise of the posterior mean
        and its own spread, ``2 v_p`` under a flat prior; a shrinking prior leaves less of the
        first, and about ``v_p`` in all for a null input (docs/selection.md). ``plugin``: so that
        the draws' mean is ``psi_p(E f) - v_p``. ``trace``: the paper's ``tr(H_p) / n`` of each
        draw on its last hidden layer, ``sigma**2 / n * ||dPhi_p Phi^+||_F**2``. It ignores the
        uncertainty of the hidden weights and depends on the cut-off of the pseudo-inverse of
        ``Phi'Phi``, here that of the author's code, ``10 K`` times the precision of single floats
        for ``K`` units. With many inputs it takes off too little and nearly everything is
        selected; with a smaller cut-off it takes off too much, and true inputs are lost.
    moments : GradientMoments
        From the streaming pass; with ``trace`` for that method.
    included : array of bool, shape (S, P), optional
        Draws that are exactly 0 where False: they are not shifted.
    noise : array, shape (S,), optional
        Noise standard deviation of each draw, for ``trace``.
    factor : float
        Multiple of ``v_p`` for ``posterior``.

    Returns
    -------
    array, shape (S, P)
    """
    check_option("centering", method, CENTERINGS)
    amount = CENTERINGS[method](moments, included, noise, factor)
    return amount if included is None else np.where(included, amount, 0.0)

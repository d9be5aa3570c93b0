"""How close a posterior of psi is to its normal limit: its spread and its shape."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, special, stats

from pymc_bnnvs.errors import check_option

__all__ = ["cramer_von_mises", "cramer_von_mises_null", "network_features"]
__all__ += ["network_sigma_bvm", "sigma_bvm", "sigma_bvm_joint"]

UNSEEN = 0.02  # part of a gradient outside the features' span that is not round-off or kernel

Layers = Sequence[tuple[ArrayLike, ArrayLike]]
Gradients = np.ndarray | Sequence[ArrayLike] | Callable[[int], ArrayLike]


def sigma_bvm(
    features: ArrayLike,
    feature_gradients: Gradients,
    gradient: ArrayLike,
    noise: float = 1.0,
    rcond: float = 1e-12,
) -> np.ndarray:
    """Compute the standard deviation of the Bernstein-von Mises limit of each ``psi``.

    Write ``f = Phi b``, ``D_p = dPhi_p Phi^+`` (n x n: values of f to values of its derivative),
    ``H_p = D_p' D_p``, ``g_p = D_p f_0``. Then ``psi_p = |g_p|^2 / n`` has the gradient
    ``2 dPhi_p' g_p / n`` in b, and ``Cov(b_hat) = noise^2 (Phi'Phi)^+``: by the delta method ::

        sigma_p^2 = 4 noise^2 g_p' dPhi_p (Phi'Phi)^+ dPhi_p' g_p / n^2
                  = 4 noise^2 |D_p' g_p|^2 / n^2 = 4 noise^2 ||H_p f_0||_n^2 / n

    with ``||h||_n^2 = mean(h^2)`` (the paper's section 2.3, Bernstein-von Mises theorem, at noise
    1). For linear ``f_0`` this is ``4 beta_p^2 noise^2 [(X'X)^-1]_pp``.

    Parameters
    ----------
    features : array_like, shape (n, K)
        ``Phi``: functions that span the model near ``f_0``, at the data.
    feature_gradients : array_like, shape (P, n, K), or callable p -> (n, K)
        ``dPhi_p = d Phi / d x_p``. A callable keeps one input in memory.
    gradient : array_like, shape (n, P)
        ``d f_0(x_i) / d x_p``, in outcome unit / input unit.
    noise : float
        Known standard deviation of Gaussian noise, in outcome units.
    rcond : float
        Directions with a singular value of at most ``rcond`` times the largest are dropped, after
        scaling columns to unit norm, so that units do not matter. What is dropped counts as known:
        a larger cut-off shrinks sigma, a smaller one lets near-collinear features inflate it.

    Returns
    -------
    numpy.ndarray, shape (P,)
        In (outcome unit / input unit)^2; 0 where ``f_0`` is flat in ``x_p``: the limit is a point
        there and says nothing about a null input.

    Raises
    ------
    ValueError
        Shapes that do not fit, values that are not finite, ``noise`` or ``rcond`` out of range.

    Warns
    -----
    UserWarning
        ``psi`` moves along directions that the data cannot tell apart (collinear columns, more
        weights than data): sigma leaves them out and is too small.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> sigma = sigma_bvm(X, lambda p: np.tile(np.eye(2)[p], (50, 1)), np.full((50, 2), 3.0))
    >>> np.allclose(sigma**2, 4 * 3.0**2 * np.diag(np.linalg.inv(X.T @ X)))
    True
    """
    scores = _scores(features, feature_gradients, gradient, noise, rcond)
    return np.sqrt((scores**2).sum(axis=1))


def sigma_bvm_joint(
    features: ArrayLike,
    feature_gradients: Gradients,
    gradient: ArrayLike,
    noise: float = 1.0,
    rcond: float = 1e-12,
) -> np.ndarray:
    """Compute the covariance of the joint limit, ``4 noise^2 <H_p f_0, H_q f_0>_n / n``.

    This is the paper's ``V_0 / n`` (appendix, multivariate theorem), shape (P, P), in (outcome
    unit)^4 / (input p unit * input q unit)^2. The diagonal is `sigma_bvm` squared; parameters,
    errors and warnings are its own. Network: ``sigma_bvm_joint(*network_features(X, weights))``.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> sigma_bvm_joint(X, lambda p: np.tile(np.eye(2)[p], (50, 1)), np.ones((50, 2))).shape
    (2, 2)
    """
    scores = _scores(features, feature_gradients, gradient, noise, rcond)
    return scores @ scores.T


def network_sigma_bvm(
    X: ArrayLike, weights: Layers, noise: float = 1.0, derivative: str = "pointwise"
) -> np.ndarray:
    """Compute `sigma_bvm` at a ReLU network: ``noise^2 grad psi_p' (J'J)^+ grad psi_p``.

    The operator form with ``Phi = J = df / d weights``, all weights: ``grad psi_p = 2 dJ_p' g_p /
    n``. See `network_features` for the arguments, `sigma_bvm` for unit, errors, warnings, source.

    Examples
    --------
    >>> X = np.linspace([0.0, 1.0], [1.0, 0.0], 100) ** 2
    >>> network_sigma_bvm(X, [([[1.0], [0.0]], [-0.5]), ([2.0], 0.0)]).round(1)
    array([4.9, 0. ])
    """
    return sigma_bvm(*network_features(X, weights, derivative), noise)


def network_features(
    X: ArrayLike, weights: Layers, derivative: str = "pointwise"
) -> tuple[np.ndarray, Callable[[int], np.ndarray], np.ndarray]:
    """Compute a ReLU network's tangent features and their gradients, as `sigma_bvm` takes them.

    Parameters
    ----------
    X : array_like, shape (n, P)
        Inputs.
    weights : sequence of pairs
        Hidden layers ``(W, b)``, ``relu(a @ W + b)``, of shapes (fan_in, units) and (units,); then
        the output ``(beta, b0)``, of shapes (units,) and ().
    derivative : {"pointwise", "weak"}
        ``"pointwise"`` differentiates at each data point: the gradient of the sample's ``psi``,
        blind to kinks that move past points. ``"weak"`` counts them, with a step's weak derivative
        as a Gaussian kernel of sd ``sd(pre-activation) / sqrt(n)``: the gradient of ``psi`` over
        the inputs' distribution. The difference does not vanish with n: for ``b relu(x - c)`` at
        n = 20,000 the exact posterior's sd was .148, ``"weak"`` .145, ``"pointwise"`` .190.

    Returns
    -------
    tuple
        ``J = df / d weights``, shape (n, q), columns in the order of ``weights``, rows of W first;
        ``p -> dJ / d x_p``, shape (n, q); ``df / dx``, shape (n, P).

    Raises
    ------
    ValueError
        Layers that do not fit, values that are not finite, an unknown ``derivative``.

    Examples
    --------
    >>> J, dJ, gradient = network_features([[1.0, 2.0]], [([[1.0], [2.0]], [0.0]), ([3.0], 0.0)])
    >>> J.tolist(), dJ(1).tolist(), gradient.tolist()
    ([[3.0, 6.0, 3.0, 5.0, 1.0]], [[0.0, 3.0, 0.0, 2.0, 0.0]], [[3.0, 6.0]])
    """
    check_option("derivative", derivative, ["pointwise", "weak"])
    if len(weights) == 0:
        raise ValueError("weights is empty: give (W, b) of each hidden layer, then (beta, b0).")
    a, layers = [_finite("X", X, 2)], []
    n = len(a[0])
    for depth, pair in enumerate(weights, start=1):
        last = depth == len(weights)
        W, b = _finite("weights: W", pair[0], 1 if last else 2), _finite("weights: b", pair[1])
        W, b = W.reshape(len(W), -1), b.ravel()
        if W.shape != (a[-1].shape[1], len(b)):
            raise ValueError(
                f"weights[{depth - 1}] has shapes {W.shape}, {b.shape}: W needs "
                f"({a[-1].shape[1]}, {len(b)}), the layer below by this one."
            )
        z = a[-1] @ W + b
        hard = np.ones_like(z) if last else (z > 0).astype(float)
        soft, peak, spread = hard.copy(), np.zeros_like(z), z.std(axis=0) / np.sqrt(n)
        if derivative == "weak" and not last:
            on = spread > 0  # a unit that never varies has no kink to smooth
            soft[:, on] = special.ndtr(z[:, on] / spread[on])
            peak[:, on] = stats.norm.pdf(z[:, on], scale=spread[on])
        a.append(z * hard)
        layers.append((W, hard, soft, peak))

    def outer(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return (left[:, :, None] * right[:, None]).reshape(n, -1)

    def backward(which: int) -> tuple[np.ndarray, list[np.ndarray]]:
        back, deltas = np.ones((n, 1)), list[np.ndarray]()
        for layer in reversed(layers):
            deltas.insert(0, back * layer[which])
            back = deltas[0] @ layer[0].T
        return back, deltas

    gradient, deltas = backward(2)
    pairs = zip(a[:-1], backward(1)[1], strict=True)
    J = np.hstack([block for below, delta in pairs for block in (outer(below, delta), delta)])

    def feature_gradient(p: int) -> np.ndarray:
        along, moved = [np.zeros_like(a[0])], []  # d a_l / d x_p and d z_l / d x_p
        along[0][:, p] = 1.0
        for W, _, soft, _ in layers:
            moved.append(along[-1] @ W)
            along.append(moved[-1] * soft)
        back, turned, blocks = np.ones((n, 1)), np.zeros((n, 1)), list[np.ndarray]()
        for depth in reversed(range(len(layers))):
            W, _, soft, peak = layers[depth]
            turn = turned * soft + back * peak * moved[depth]  # d delta / d x_p
            blocks[:0] = [outer(along[depth], deltas[depth]) + outer(a[depth], turn), turn]
            back, turned = deltas[depth] @ W.T, turn @ W.T
        return np.hstack(blocks)

    return J, feature_gradient, gradient


def cramer_von_mises(
    draws: ArrayLike,
    axis: int | Sequence[int] = 0,
    center: ArrayLike | None = None,
    scale: ArrayLike | None = None,
) -> np.ndarray:
    """Compute ``mean_m [F_hat(x_m) - Phi(x_m)]^2`` of standardised draws: CvM, paper section 3.1.

    ``F_hat`` takes the middle of its jump, ``(m - 1/2) / M`` at the m-th smallest draw, so both
    tails count alike and ``M CvM = T - 1 / (12 M)``, T being scipy.stats.cramervonmises's. (The
    jump's top, ``m / M``, would add ``1/2 - mean(Phi(x)) + 1 / (4 M)`` to ``M CvM``.) scipy's
    p-value fails for an estimated centre and for correlated draws: see `cramer_von_mises_null`.

    Parameters
    ----------
    draws : array_like
        Draws of ``psi``, any unit, e.g. of shape (chain, draw, feature).
    axis : int or sequence of int
        Axes of the draws; M is their total length, at least 10.
    center, scale : array_like, optional
        Both, e.g. the limit's, of the other axes' shape. Default: the draws' mean and sd.

    Returns
    -------
    numpy.ndarray
        Without unit, of the other axes' shape.

    Raises
    ------
    ValueError
        Draws too few, constant or not finite; only one of center and scale; scale <= 0.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(2, 500, 2)) ** [1, 2]  # normal, chi-square
    >>> cramer_von_mises(draws, axis=(0, 1)).round(3)
    array([0.   , 0.016])
    """
    axes = np.atleast_1d(axis)
    x = np.moveaxis(_finite("draws", draws), axes, range(-len(axes), 0))
    x = x.reshape(*x.shape[: -len(axes)], -1)
    if x.shape[-1] < 10:
        raise ValueError(f"draws: {x.shape[-1]} along axis={axis}: give 10 or more.")
    if (center is None) != (scale is None):
        raise ValueError("center, scale: give both, or neither to use the draws' own.")
    constant = np.argwhere(np.ptp(x, axis=-1) == 0).tolist()
    if constant:
        raise ValueError(f"draws are constant, so have no shape, at {constant}: leave these out.")
    center = x.mean(axis=-1) if center is None else _finite("center", center)
    scale = x.std(axis=-1, ddof=1) if scale is None else _finite("scale", scale)
    if np.any(scale <= 0):
        raise ValueError("scale must be positive: leave out inputs whose limit has sd 0.")
    x = (x - center[..., None]) / scale[..., None]
    return _statistic(x) - 1 / (12 * x.shape[-1] ** 2)


def cramer_von_mises_null(
    n_draws: int,
    n_sim: int = 4000,
    quantiles: ArrayLike = (0.05, 0.10, 0.25, 0.75, 0.90, 0.95),
    random_seed: int | np.random.Generator | None = None,
    standardized: bool = True,
    ess: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Simulate quantiles of `cramer_von_mises` for Gaussian draws: the shade of paper figure 2.

    Parameters
    ----------
    n_draws, n_sim : int
        M, at least 10; simulated statistics, at least 100.
    quantiles : array_like, shape (Q,)
        Levels inside (0, 1).
    random_seed : int or numpy.random.Generator, optional
        Same seed, same answer.
    standardized : bool
        True: the statistic used the draws' mean and sd; False: a known centre and scale.
    ess : float, optional
        Effective number of draws, at least 10, if they are correlated. For standardised draws
        ``z`` give the ESS of ``z**3 - 3 * z``, as mean and sd are taken out: for AR(1) draws the
        band is then up to twice too wide; with the ESS of ``z`` 3 to 10 times.

    Returns
    -------
    values, mc_error : numpy.ndarray, shape (Q,)
        Quantiles and their Monte Carlo (Maritz-Jarrett) standard errors.

    Raises
    ------
    ValueError
        Counts too small, levels outside (0, 1).

    Examples
    --------
    >>> values, mc_error = cramer_von_mises_null(500, 1000, [0.5, 0.95], random_seed=0)
    >>> (500 * values).round(2)
    array([0.05, 0.13])
    """
    ess = n_draws if ess is None else ess
    for name, value, least in [("n_draws", n_draws, 10), ("ess", ess, 10), ("n_sim", n_sim, 100)]:
        if not (np.isfinite(value) and value >= least):
            raise ValueError(f"{name}={value!r}: give {least} or more.")
    levels = np.atleast_1d(_finite("quantiles", quantiles))
    if np.any((levels <= 0) | (levels >= 1)):
        raise ValueError("quantiles: levels must lie inside (0, 1), e.g. (0.05, 0.95).")
    rng, size, parts = np.random.default_rng(random_seed), round(ess), []
    for start in range(0, n_sim, chunk := max(1, 1_000_000 // size)):  # 8 MB at a time
        x = rng.normal(size=(min(chunk, n_sim - start), size))
        if standardized:
            x = stats.zscore(x, axis=1, ddof=1)
        parts.append(_statistic(x))
    null = np.concatenate(parts) - 1 / (12 * n_draws**2)
    return np.quantile(null, levels), np.asarray(stats.mstats.mjci(null, levels))


def _statistic(x: np.ndarray) -> np.ndarray:
    """Integrate ``(F_hat - Phi)^2 dPhi`` over the last axis: scipy's T by the number of draws."""
    return np.asarray(stats.cramervonmises(x, "norm", axis=-1).statistic) / x.shape[-1]


def _scores(
    features: ArrayLike, gradients: Gradients, gradient: ArrayLike, noise: float, rcond: float
) -> np.ndarray:
    """Rows ``2 noise U' H_p f_0 / n``, U the features' left singular vectors: (P, rank)."""
    features, gradient = _finite("features", features, 2), _finite("gradient", gradient, 2)
    if not (np.isfinite(noise) and noise > 0):
        raise ValueError(f"noise={noise!r}: give a positive standard deviation.")
    if not 0 <= rcond < 1:
        raise ValueError(f"rcond={rcond!r}: give a relative cut-off in [0, 1).")
    n, P = gradient.shape
    if len(features) != n or (not callable(gradients) and len(gradients) != P):
        raise ValueError(
            f"features {features.shape}, feature_gradients and gradient {gradient.shape} do not "
            "fit: give shapes (n, K), (P, n, K) and (n, P)."
        )
    pulled = np.empty((P, features.shape[1]))  # dPhi_p' g_p
    for p in range(P):
        slopes = gradients(p) if callable(gradients) else gradients[p]
        slopes = _finite(f"feature_gradients[{p}]", slopes, 2)
        if slopes.shape != features.shape:
            raise ValueError(f"feature_gradients[{p}] is {slopes.shape}, not {features.shape}.")
        pulled[p] = gradient[:, p] @ slopes
    norms = np.sqrt((features**2).sum(axis=0))
    norms[norms == 0] = 1.0
    pulled /= norms
    _, s, Vt = linalg.svd(features / norms, full_matrices=False)
    keep = s > rcond * s[0]
    seen = pulled @ Vt[keep].T
    rest = np.linalg.norm(pulled - seen @ Vt[keep], axis=1)
    unseen = np.flatnonzero(rest > UNSEEN * np.linalg.norm(pulled, axis=1)).tolist()
    if unseen:
        warnings.warn(
            f"sigma is too small for inputs {unseen}: their psi depends on weights that these data "
            "cannot tell apart. Use more data, fewer features, no collinear columns.",
            stacklevel=3,
        )
    return 2 * noise / n * seen / s[keep]


def _finite(name: str, value: ArrayLike, ndim: int | None = None) -> np.ndarray:
    """Return a float array, or raise an error that names it."""
    array = np.asarray(value, dtype=float)
    if array.size == 0 or ndim not in (None, array.ndim):
        raise ValueError(f"{name} has shape {array.shape}: give {ndim or 1} filled dimension(s).")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has values that are not finite: remove or impute them.")
    return array

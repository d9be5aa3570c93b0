"""The lasso: its support, knockoffs, and the covariance test along the path."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.stats import f as f_distribution
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV, lars_path
from sklearn.model_selection import KFold

from pymc_bnnvs.experiments.rivals.knockoffs import filtered, gaussian_knockoffs
from pymc_bnnvs.experiments.rivals.selection import Selection, standardise

__all__ = ["covariance_test", "lasso", "lasso_knockoffs", "lasso_test"]


def cross_validated(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> LassoCV:
    """Lasso whose penalty has the least error in 10-fold cross-validation."""
    folds = KFold(10, shuffle=True, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        # The smallest penalties of the path, which no fold chooses, may not converge.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LassoCV(cv=folds).fit(X, y)


def lasso(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> dict[str, Selection]:
    """Select inputs whose coefficient is not 0."""
    size = np.abs(cross_validated(standardise(X), y, rng).coef_)
    return {"threshold": Selection(size > 0, size)}


def lasso_knockoffs(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> dict[str, Selection]:
    """Filter the difference between an input's coefficient and its knockoff's, in size."""
    Z = standardise(X)
    both = np.hstack([Z, gaussian_knockoffs(Z, rng)])
    size = np.abs(cross_validated(both, y, rng).coef_)
    own, knockoff = np.split(size, 2)
    return filtered(own - knockoff)


def lasso_test(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> dict[str, Selection]:
    """Select inputs whose entry into the path is significant at 5 %, after Bonferroni."""
    p_value = covariance_test(X, y, rng)
    return {"test": Selection(p_value <= 0.05 / X.shape[1], -np.log(p_value))}


def covariance_test(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """P-value of each input where it enters the least-angle path; 1 for those that don't.

    The noise variance is that of the full least-squares fit, or of the cross-validated lasso where
    there are as many inputs as rows.

    Parameters
    ----------
    X : array, shape (n, P)
    y : array, shape (n,)
    rng : Generator

    Returns
    -------
    array, shape (P,)

    References
    ----------
    Lockhart, R., Taylor, J., Tibshirani, R. J. and Tibshirani, R. (2014). A significance test for
    the lasso. Annals of Statistics 42.
    """
    n, n_features = X.shape
    Z = standardise(X) / np.sqrt(n)
    y = y - y.mean()
    if n > n_features + 1:
        residual = y - Z @ np.linalg.lstsq(Z, y)[0]
        left = n - n_features - 1
    else:
        model = cross_validated(np.sqrt(n) * Z, y, rng)
        residual = y - model.predict(np.sqrt(n) * Z)
        left = max(n - np.count_nonzero(model.coef_) - 1, 1)
    variance = residual @ residual / left

    knots, order, path = lars_path(Z, y, method="lar")
    knots = knots * n  # sklearn divides the correlations by the rows
    p_value = np.ones(n_features)
    for k in range(min(len(order), len(knots) - 1)):
        before = list(order[:k])
        fitted = Z @ path[:, k + 1]
        # The path on as if the input had not entered.
        fitted_without = np.zeros(n)
        if before:
            A = Z[:, before]
            signs = np.sign(A.T @ (y - Z @ path[:, k]))
            onward = np.linalg.solve(A.T @ A, signs)
            fitted_without = A @ (path[before, k] + (knots[k] - knots[k + 1]) * onward)
        drop = (y @ fitted - y @ fitted_without) / variance
        p_value[order[k]] = f_distribution.sf(drop, 2, left)
    return p_value

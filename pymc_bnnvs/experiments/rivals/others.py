"""What else a user would try: t-tests, conditional feature importance, BART."""

from __future__ import annotations

from contextlib import redirect_stderr
from io import StringIO

import numpy as np
import pymc as pm
from scipy.stats import t as t_distribution
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold

from pymc_bnnvs.experiments.rivals.alone import alone
from pymc_bnnvs.experiments.rivals.selection import Selection, standardise

__all__ = ["bart", "conditional_importance", "t_tests"]


def t_tests(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> dict[str, Selection]:
    """Test least-squares coefficients, 5 % after Bonferroni; none with too few rows."""
    n, n_features = X.shape
    left = n - n_features - 1
    if left < 1:
        return {"test": Selection(np.zeros(n_features, bool), np.zeros(n_features))}
    Z = np.column_stack([np.ones(n), standardise(X)])
    coefficients, residues, *_ = np.linalg.lstsq(Z, y)
    errors = np.sqrt(np.diag(np.linalg.inv(Z.T @ Z)) * residues.item() / left)
    size = np.abs(coefficients / errors)[1:]
    p_value = 2 * t_distribution.sf(size, left)
    return {"test": Selection(p_value <= 0.05 / n_features, size)}


def conditional_importance(
    X: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> dict[str, Selection]:
    """Test hidimstat's conditional feature importance of a forest, 5-fold, Bonferroni.

    References
    ----------
    Chamma, A., Engemann, D. A. and Thirion, B. (2023). Statistically valid variable importance
    assessment through conditional permutations. NeurIPS 36.
    """
    from hidimstat import CFICV

    seed = int(rng.integers(2**31))
    importance = CFICV(
        RandomForestRegressor(200, max_features=1 / 3, random_state=seed),
        cv=KFold(5, shuffle=True, random_state=seed),
        n_permutations=20,
        feature_types="continuous",
        random_state=seed,
    )
    # Its three progress bars are not ours to show.
    with redirect_stderr(StringIO()):
        by_fold = importance.fit_importance(standardise(X), y)
    return {"test": Selection(importance.pvalues_ <= 0.05 / X.shape[1], by_fold.mean(axis=1))}


def bart(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> dict[str, Selection]:
    """Select the fewest inputs that predict as well as all do, by pymc-bart's importance.

    As well: the mean R squared with the whole model's predictions reaches the interval of the
    whole model's own.

    References
    ----------
    Quiroga, M., Garay, P. G., Alonso, J. M., Loyola, J. M. and Martin, O. A. (2023). Bayesian
    additive regression trees for probabilistic programming. arXiv 2206.03619.
    """
    # pymc-bart keeps the trees of every model, and a process for them, until the interpreter ends.
    found = alone(bart_importance, X, y, int(rng.integers(2**31)))
    enough = found["r2_mean"] >= found["r2_hdi"][-1, 0]
    selected = np.zeros(X.shape[1], bool)
    selected[found["indices"][: 1 + int(np.argmax(enough))]] = True
    score = np.zeros(X.shape[1])
    score[found["indices"]] = np.arange(X.shape[1], 0, -1)
    return {"R squared": Selection(selected, score)}


def bart_importance(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Order of the inputs, most important first, and R squared with the first, the first two ..."""
    import pymc_bart as pmb

    with pm.Model():
        mean = pmb.BART("mean", X, y, m=50)
        sigma = pm.HalfNormal("sigma", y.std())
        pm.Normal("y", mean, sigma, observed=y)
        idata = pm.sample(random_seed=seed, chains=4, cores=1, progressbar=False, quiet=True)
    found = pmb.compute_variable_importance(idata, mean, X, random_seed=seed)
    return {name: np.asarray(found[name]) for name in ("indices", "r2_mean", "r2_hdi")}

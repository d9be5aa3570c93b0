"""The rival methods, each on a case whose answer is known."""

from __future__ import annotations

import multiprocessing
import os

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("sklearn", reason="the rivals need the extra 'experiments'")

from pymc_bnnvs.experiments.rivals import METHODS
from pymc_bnnvs.experiments.rivals.alone import alone
from pymc_bnnvs.experiments.rivals.forest import forest, parametric_p_value
from pymc_bnnvs.experiments.rivals.knockoffs import (
    FILTERS,
    filtered,
    gaussian_knockoffs,
    knockoff_threshold,
)
from pymc_bnnvs.experiments.rivals.lasso import covariance_test, lasso, lasso_knockoffs, lasso_test
from pymc_bnnvs.experiments.rivals.others import t_tests
from pymc_bnnvs.experiments.rivals.selection import standardise
from pymc_bnnvs.experiments.rivals.sparse_network import (
    SparseNetwork,
    descend,
    group_lasso_network,
    objective,
    random_network,
)


def linear_data(seed, n=200, n_features=12, slopes=(3.0, -2.0, 1.0)):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    y = X[:, : len(slopes)] @ np.array(slopes) + rng.normal(size=n)
    return X, y, rng


def correlated(n, rho=0.6, n_features=6, seed=1):
    rng = np.random.default_rng(seed)
    covariance = rho ** np.abs(np.subtract.outer(np.arange(n_features), np.arange(n_features)))
    return rng.multivariate_normal(np.zeros(n_features), covariance, size=n), covariance, rng


def test_knockoffs_swap():
    """Swapping an input with its knockoff leaves the covariance of all as it is."""
    X, covariance, rng = correlated(200_000)
    X = standardise(X)
    both = np.cov(np.hstack([X, gaussian_knockoffs(X, rng)]), rowvar=False)
    np.testing.assert_allclose(both[:6, :6], covariance, atol=0.02)
    np.testing.assert_allclose(both[6:, 6:], covariance, atol=0.02)
    off = ~np.eye(6, dtype=bool)
    np.testing.assert_allclose(both[:6, 6:][off], covariance[off], atol=0.02)
    # As far from the inputs as the least eigenvalue lets the equi-correlated ones be.
    s = 1 - np.diag(both[:6, 6:])
    np.testing.assert_allclose(s, 2 * np.linalg.eigvalsh(covariance)[0], atol=0.02)


def test_knockoff_threshold_by_hand():
    statistics = np.array([5.0, 4.0, 3.0, -2.5, 2.0, 1.0, -0.5, 0.0])
    # At 3: none of 3 below -3. At 2.5 there is one of three.
    assert knockoff_threshold(statistics, 0.1, offset=0) == 3.0
    assert knockoff_threshold(statistics, 0.3, offset=0) == 1.0  # 1 of 5
    assert knockoff_threshold(statistics, 0.34, offset=1) == 3.0  # (1 + 0) of 3
    assert knockoff_threshold(statistics, 0.1, offset=1) == np.inf
    found = filtered(statistics)
    assert set(found) == set(FILTERS)
    assert found["q=0.1, offset 0"].selected.tolist() == [True] * 3 + [False] * 5
    assert not filtered(np.zeros(4))["q=0.5, offset 1"].selected.any()


def test_knockoffs_keep_the_false_discovery_rate():
    """Fifteen strong inputs of forty: (knockoff+) false discoveries at most one in five."""
    rates = []
    for seed in range(20):
        X, y, rng = linear_data(seed, n=300, n_features=40, slopes=(0.5,) * 15)
        chosen = lasso_knockoffs(X, y, rng)["q=0.2, offset 1"].selected
        rates.append(chosen[15:].sum() / max(chosen.sum(), 1))
    assert np.mean(rates) <= 0.2 + 3 * np.std(rates) / np.sqrt(len(rates))


def test_lasso_finds_a_line():
    X, y, rng = linear_data(1)
    found = lasso(X, y, rng)["threshold"]
    assert found.selected[:3].all()
    assert np.argsort(-found.score)[:3].tolist() == [0, 1, 2]


def test_covariance_test_by_hand():
    """With orthonormal inputs the statistic is ``knot (knot - next knot) / variance``."""
    rng = np.random.default_rng(3)
    n = 100
    Q = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=(n, 5))]))[0][:, 1:]
    y = Q @ np.array([9.0, -5.0, 2.0, 0.5, 0.0]) + rng.normal(size=n)
    p_value = covariance_test(Q, y, rng)
    effects = Q.T @ (y - y.mean())
    residual = y - y.mean() - Q @ effects
    variance = residual @ residual / (n - 6)
    order = np.argsort(-np.abs(effects))
    knots = np.append(np.abs(effects)[order], 0.0)
    by_hand = knots[:-1] * (knots[:-1] - knots[1:]) / variance
    np.testing.assert_allclose(p_value[order], stats.f.sf(by_hand, 2, n - 6), rtol=1e-6)


def test_covariance_test_of_the_first_null():
    """After the true inputs the statistic of the next is about Exp(1), or smaller."""
    first = []
    for seed in range(300):
        X, y, rng = linear_data(seed, n=100, n_features=10, slopes=(6.0, 5.0))
        first.append(np.sort(covariance_test(X, y, rng)[2:])[0])
    # The least p-value of the nulls is that of the first to enter, mostly.
    assert np.mean(np.array(first) <= 0.05) == pytest.approx(0.05, abs=0.04)


def test_lasso_test_selects_the_line():
    X, y, rng = linear_data(4)
    assert np.flatnonzero(lasso_test(X, y, rng)["test"].selected).tolist() == [0, 1, 2]
    wide = lasso_test(X[:10], y[:10], rng)["test"]  # fewer rows than inputs
    assert wide.selected.shape == (12,)


def test_t_tests_against_statsmodels_by_hand():
    X, y, rng = linear_data(5, n=60, n_features=4)
    found = t_tests(X, y, rng)["test"]
    for p in range(4):
        others = np.column_stack([np.ones(60), np.delete(X, p, axis=1)])
        left = X[:, p] - others @ np.linalg.lstsq(others, X[:, p])[0]
        outcome = y - others @ np.linalg.lstsq(others, y)[0]
        slope = left @ outcome / (left @ left)
        residual = outcome - slope * left
        error = np.sqrt(residual @ residual / 55 / (left @ left))
        assert found.score[p] == pytest.approx(abs(slope) / error)
    assert found.selected.tolist() == [True, True, True, False]
    assert not t_tests(X[:5], y[:5], rng)["test"].selected.any()


def test_forest_sees_what_a_line_does_not():
    rng = np.random.default_rng(6)
    X = rng.uniform(-1, 1, size=(300, 8))
    y = 4 * X[:, 0] ** 2 + 0.3 * rng.normal(size=300)
    found = forest(X, y, rng)["threshold"]
    assert found.score.sum() == pytest.approx(1.0)
    assert int(found.score.argmax()) == 0


@pytest.mark.parametrize(
    "law", [stats.norm(3, 0.1), stats.lognorm(0.8, scale=2), stats.gamma(2, scale=3)]
)
def test_parametric_p_value(law):
    """Of the right order where ranks of the null values can't tell."""
    null = law.rvs(size=2000, random_state=1)
    value = law.isf(1e-3)
    assert 2e-4 < parametric_p_value(value, null) < 5e-3
    assert parametric_p_value(law.median(), null) == pytest.approx(0.5, abs=0.05)


def test_null_importance_that_is_all_the_same():
    assert parametric_p_value(0.0, np.zeros(50)) == 1.0


def test_objective_by_finite_differences():
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    net = random_network(3, y, rng)
    slope = objective(net, X, y)[1]
    for name, part in net._asdict().items():
        direction = rng.normal(size=np.shape(part))
        moved = [
            objective(net._replace(**{name: part + h * direction}), X, y)[0] for h in (1e-6, -1e-6)
        ]
        along = np.sum(getattr(slope, name) * direction)
        assert (moved[0] - moved[1]) / 2e-6 == pytest.approx(along, rel=1e-5, abs=1e-9)


def test_descent_to_a_stationary_point():
    """A row that is 0 has a slope within the penalty; the others balance it."""
    X, y, rng = linear_data(8, n=100, n_features=6)
    y = y / y.std()
    penalty = 0.05
    start = random_network(6, y, rng)
    value, net = descend(start, X, y, penalty, steps=5000)
    assert value <= objective(start, X, y)[0] + penalty * start.sizes.sum()
    slope = objective(net, X, y)[1].W
    out = net.sizes == 0
    assert out[3:].all() and not out[:3].any()
    assert (np.linalg.norm(slope[out], axis=1) <= penalty + 1e-6).all()
    balance = slope[~out] + penalty * net.W[~out] / net.sizes[~out][:, None]
    # Up to what one row adds that sits at a unit's kink.
    residual = net.predict(X) - y
    jump = np.abs(np.einsum("i,k,ip->ipk", residual, net.beta, X)).max() / len(y)
    assert np.abs(balance).max() <= jump


def test_network_predicts():
    net = SparseNetwork(np.array([[1.0, -1.0]]), np.zeros(2), np.ones(2), np.array(0.5))
    np.testing.assert_allclose(net.predict(np.array([[2.0], [-3.0]])), [2.5, 3.5])


@pytest.mark.slow
def test_group_lasso_network_finds_a_bend():
    rng = np.random.default_rng(9)
    X = rng.uniform(-1, 1, size=(200, 6))
    y = 3 * np.abs(X[:, 0]) + 2 * X[:, 1] + 0.3 * rng.normal(size=200)
    found = group_lasso_network(X, y, rng)["group lasso"]
    assert found.selected[:2].all()
    assert set(np.argsort(-found.score)[:2]) == {0, 1}


def test_every_method_has_a_model_and_a_function():
    assert len(METHODS) == 13
    assert all(method.model and callable(method.fit) for method in METHODS.values())


def test_function_in_an_interpreter_of_its_own():
    np.testing.assert_array_equal(alone(np.sort, np.array([3.0, 1.0])), [1.0, 3.0])
    assert alone(os.getpid) != os.getpid()
    with pytest.raises(RuntimeError, match=r"(?s)inv ended with code 1: .*LinAlgError"):
        alone(np.linalg.inv, np.zeros((2, 2)))


def test_function_of_its_own_in_a_worker_that_may_have_no_children():
    """As those of a dask cluster are."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(alone, (abs, -2)) == 2

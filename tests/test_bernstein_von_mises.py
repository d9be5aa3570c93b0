"""Spread and shape of the normal limit against brute force, finite differences and scipy."""

import numpy as np
import pytest
from scipy import signal, stats

from pymc_bnnvs.bernstein_von_mises import (
    cramer_von_mises,
    cramer_von_mises_null,
    network_features,
    network_sigma_bvm,
    sigma_bvm,
    sigma_bvm_joint,
)

NOISE = 0.7


def linear(n=60, P=4, intercept=False, seed=0):
    """Features, their gradients, the gradient and the coefficients of a linear function."""
    rng = np.random.default_rng(seed)
    X, beta = rng.normal(2.0, [1.0, 10.0, 0.1, 3.0][:P], size=(n, P)), rng.normal(size=P)
    beta[-1] = 0.0
    Phi = np.column_stack([X, np.ones(n)]) if intercept else X
    dPhi = np.zeros((P, n, Phi.shape[1]))
    dPhi[np.arange(P), :, np.arange(P)] = 1.0
    return Phi, dPhi, np.tile(beta, (n, 1)), beta


def network(n=60, P=3, units=(3,), seed=0):
    """Inputs and weights of a random network whose kinks lie within the data."""
    rng = np.random.default_rng(seed)
    X, weights, fan_in = rng.uniform(size=(n, P)), [], P
    for K in units:
        W = rng.normal(size=(fan_in, K)) * 2.0
        weights.append((W, -W.sum(axis=0) / 2 + 0.2 * rng.normal(size=K)))
        fan_in = K
    return X, [*weights, (rng.normal(size=fan_in) + 1.0, 0.3)]


def flatten(weights):
    return np.concatenate([np.ravel(part) for pair in weights for part in pair])


def unflatten(theta, weights):
    shapes = [np.shape(part) for pair in weights for part in pair]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    parts = [v.reshape(s) for v, s in zip(np.split(theta, ends[:-1]), shapes, strict=True)]
    return list(zip(parts[::2], parts[1::2], strict=True))


def predict(X, weights):
    for W, b in weights[:-1]:
        X = np.maximum(X @ W + b, 0)
    return X @ weights[-1][0] + weights[-1][1]


def psi(X, weights):
    """psi of every input by forward differentiation, apart from the code under test."""
    a, slope = X, np.broadcast_to(np.eye(X.shape[1]), (len(X), X.shape[1], X.shape[1]))
    for W, b in weights[:-1]:
        z = a @ W + b
        slope = (slope @ W) * (z > 0)[:, None]
        a = np.maximum(z, 0)
    return ((slope @ weights[-1][0]) ** 2).mean(axis=0)


def differences(function, theta, step=1e-6):
    """Central differences, one row a coordinate of theta."""
    rows = [function(theta + e) - function(theta - e) for e in step * np.eye(len(theta))]
    return np.array(rows) / (2 * step)


@pytest.mark.parametrize("intercept", [False, True])
def test_linear_is_four_beta_squared_times_the_sampling_variance(intercept):
    Phi, dPhi, gradient, beta = linear(intercept=intercept)
    sampling = NOISE**2 * np.linalg.inv(Phi.T @ Phi)[:4, :4]
    sigma = sigma_bvm(Phi, dPhi, gradient, noise=NOISE)
    np.testing.assert_allclose(sigma**2, 4 * beta**2 * np.diag(sampling), rtol=1e-10)
    joint = sigma_bvm_joint(Phi, dPhi, gradient, noise=NOISE)
    np.testing.assert_allclose(joint, 4 * np.outer(beta, beta) * sampling, rtol=1e-9, atol=1e-18)
    assert sigma[-1] == 0.0  # a null input: the limit is a point


def test_operator_as_the_paper_writes_it():
    Phi, dPhi, gradient, _ = linear()
    n = len(Phi)
    D = dPhi @ np.linalg.pinv(Phi)
    f_0 = Phi @ gradient[0]
    Hf = np.einsum("pij,pik,k->pj", D, D, f_0)
    expected = 4 * Hf @ Hf.T / n * NOISE**2 / n
    joint = sigma_bvm_joint(Phi, lambda p: dPhi[p], gradient, noise=NOISE)
    np.testing.assert_allclose(joint, expected, rtol=1e-8, atol=1e-16)


def test_linear_delta_method_by_simulation():
    Phi, dPhi, gradient, beta = linear(n=2000, P=2, intercept=True)
    beta = np.array([1.0, 2.0, 0.5])
    gradient = np.tile(beta[:2], (2000, 1))
    rng = np.random.default_rng(1)
    y = Phi @ beta + NOISE * rng.normal(size=(3000, 2000))
    psi_hat = np.linalg.lstsq(Phi, y.T, rcond=None)[0][:2] ** 2
    np.testing.assert_allclose(
        psi_hat.std(axis=1), sigma_bvm(Phi, dPhi, gradient, noise=NOISE), rtol=0.05
    )


def test_collinear_columns_warn_name_the_inputs_and_leave_the_others_exact():
    Phi, dPhi, gradient, _ = linear()
    twin = np.column_stack([Phi, Phi[:, 0]])  # input 4 repeats input 0
    slopes = np.zeros((5, 60, 5))
    slopes[np.arange(5), :, np.arange(5)] = 1.0
    with pytest.warns(UserWarning, match=r"inputs \[0, 4\]") as caught:
        sigma = sigma_bvm(twin, slopes, np.column_stack([gradient, np.ones(60)]))
    assert caught[0].filename == __file__
    alone = sigma_bvm(Phi, dPhi, gradient)
    np.testing.assert_allclose(sigma[1:3], alone[1:3], rtol=1e-10)
    assert 0 < sigma[0] < alone[0]


def test_cutoff_only_shrinks_sigma():
    Phi, dPhi, gradient, _ = linear()
    Phi = Phi.copy()
    Phi[:, 1] = Phi[:, 0] + 1e-5 * Phi[:, 1]
    with pytest.warns(UserWarning, match="too small"):
        cut = sigma_bvm(Phi, dPhi, gradient, rcond=1e-3)
    full = sigma_bvm(Phi, dPhi, gradient)
    assert np.all(cut[:2] < 1e-2 * full[:2])
    assert np.all(cut <= full)


@pytest.mark.parametrize("units", [(3,), (4, 3), (3, 4, 3)])
def test_network_jacobian_and_gradient_by_finite_differences(units):
    X, weights = network(units=units)
    theta, n = flatten(weights), len(X)
    J, dJ, gradient = network_features(X, weights)
    expected = differences(lambda t: predict(X, unflatten(t, weights)), theta)
    np.testing.assert_allclose(J.T, expected, atol=1e-7)
    np.testing.assert_allclose((gradient**2).mean(axis=0), psi(X, weights), rtol=1e-12)
    step = 1e-6 * np.eye(X.shape[1])
    for p in range(X.shape[1]):
        up, down = (network_features(X + sign * step[p], weights)[0] for sign in (1, -1))
        np.testing.assert_allclose(dJ(p), (up - down) / 2e-6, atol=1e-7)
    grad_psi = differences(lambda t: psi(X, unflatten(t, weights)), theta).T
    ours = [2 * gradient[:, p] @ dJ(p) / n for p in range(X.shape[1])]
    np.testing.assert_allclose(ours, grad_psi, atol=1e-6)


def test_network_is_the_delta_method_and_the_operator_form():
    X, weights = network()
    J, dJ, gradient = network_features(X, weights)
    grad_psi = differences(lambda t: psi(X, unflatten(t, weights)), flatten(weights))
    variance = NOISE**2 * grad_psi.T @ np.linalg.pinv(J.T @ J, rcond=1e-12) @ grad_psi
    sigma = network_sigma_bvm(X, weights, noise=NOISE)
    np.testing.assert_allclose(sigma**2, np.diag(variance), rtol=1e-5)
    joint = sigma_bvm_joint(*network_features(X, weights), noise=NOISE)
    np.testing.assert_allclose(joint, variance, rtol=1e-5, atol=1e-5 * joint.max())
    stacked = np.stack([dJ(p) for p in range(3)])
    np.testing.assert_allclose(sigma, sigma_bvm(J, stacked, gradient, noise=NOISE), rtol=1e-10)


def gauss_newton_psi(X, weights, noise, n_draws=1500, seed=0):
    """Draw psi from the Gaussian posterior of the weights, linearised at the truth."""
    J = network_features(X, weights)[0]
    _, s, Vt = np.linalg.svd(J, full_matrices=False)
    keep = s > 1e-9 * s[0]
    half = noise * Vt[keep].T / s[keep]
    steps = np.random.default_rng(seed).normal(size=(n_draws, keep.sum())) @ half.T
    theta = flatten(weights)
    return np.array([psi(X, unflatten(theta + step, weights)) for step in steps])


def test_network_against_gauss_newton_draws():
    X, weights = network()
    # So little noise that no kink passes a data point: there, both derivatives' linear regime.
    draws = gauss_newton_psi(X, weights, noise=1e-5)
    sigma = network_sigma_bvm(X, weights, noise=1e-5)
    np.testing.assert_allclose(draws.std(axis=0), sigma, rtol=0.07)
    joint = sigma_bvm_joint(*network_features(X, weights), noise=1e-5)
    np.testing.assert_allclose(np.cov(draws.T), joint, atol=0.12 * joint.max())


def test_weak_derivative_counts_the_kinks_that_pass_data_points():
    X, weights = network(n=5000, seed=1)
    draws = gauss_newton_psi(X, weights, noise=0.1, n_draws=400).std(axis=0)
    weak = network_sigma_bvm(X, weights, 0.1, derivative="weak") / draws
    pointwise = network_sigma_bvm(X, weights, 0.1) / draws
    assert np.all(np.abs(weak - 1) < 0.15)
    assert np.all(np.abs(weak - 1) < np.abs(pointwise - 1))


def test_weak_derivative_against_an_exact_posterior():
    # f = beta relu(x - c), flat prior on (beta, c): psi = beta^2 mean(x > c) on a grid.
    n, beta, c, ratios = 10_000, 3.0, 0.4, []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = np.sort(rng.uniform(size=n))
        y = beta * np.maximum(x - c, 0) + rng.normal(size=n)
        J, dJ, gradient = network_features(x[:, None], [([[1.0]], [-c]), ([beta], 0.0)], "weak")
        J = J[:, 1:3]  # the weights that vary: -c and beta
        slopes = dJ(0)[None, :, 1:3]
        half = 6 * np.sqrt(np.diag(np.linalg.inv(J.T @ J)))
        C, B = np.linspace(c - half[0], c + half[0], 201), np.linspace(-1, 1, 101) * half[1] + beta
        hinge = np.maximum(x - C[:, None], 0)
        log_p = B * (hinge @ y)[:, None] - B**2 * (hinge**2).sum(axis=1)[:, None] / 2
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        value = B**2 * (x > C[:, None]).mean(axis=1)[:, None]
        sd = np.sqrt((p * value**2).sum() - (p * value).sum() ** 2)
        ratios.append([sigma_bvm(J, slopes, gradient)[0] / sd])
    np.testing.assert_allclose(np.median(ratios), 1.0, atol=0.1)


@pytest.mark.parametrize("derivative", ["pointwise", "weak"])
def test_units_and_order_of_inputs(derivative):
    X, weights = network()
    (W, b), output = weights
    sigma = network_sigma_bvm(X, weights, NOISE, derivative)
    scale = np.array([1e-3, 1.0, 20.0])
    rescaled = network_sigma_bvm(X * scale, [(W / scale[:, None], b), output], NOISE, derivative)
    np.testing.assert_allclose(rescaled, sigma / scale**2, rtol=1e-6)
    order = [2, 0, 1]
    moved = network_sigma_bvm(X[:, order], [(W[order], b), output], NOISE, derivative)
    np.testing.assert_allclose(moved, sigma[order], rtol=1e-6)
    scaled = [(W * 2.0, b * 2.0), (output[0] / 2.0, output[1])]
    np.testing.assert_allclose(  # the same function, other weights
        network_sigma_bvm(X, scaled, NOISE, derivative), sigma, rtol=1e-6
    )
    np.testing.assert_allclose(
        network_sigma_bvm(X, weights, 3 * NOISE, derivative), 3 * sigma, rtol=1e-10
    )


def test_null_input_dead_unit_and_no_hidden_layer():
    X, weights = network()
    (W, b), output = weights
    W = W.copy()
    W[1] = 0.0
    sigma = network_sigma_bvm(X, [(W, b), output], derivative="weak")
    assert sigma[1] == 0.0
    assert np.all(sigma[[0, 2]] > 0)
    dead = [(np.column_stack([W, np.zeros(3)]), [*b, -1.0]), ([*output[0], 2.0], output[1])]
    np.testing.assert_allclose(network_sigma_bvm(X, dead, derivative="weak"), sigma, rtol=1e-10)
    Phi = np.column_stack([X, np.ones(len(X))])
    expected = 4 * output[0] ** 2 * np.diag(np.linalg.inv(Phi.T @ Phi))[:3]
    np.testing.assert_allclose(network_sigma_bvm(X, [output]) ** 2, expected, rtol=1e-10)


def test_more_weights_than_data_warns():
    X, weights = network(n=8)
    with pytest.warns(UserWarning, match="cannot tell apart"):
        network_sigma_bvm(X, weights)


def test_cvm_maps_on_scipy_and_on_both_ends_of_the_jump():
    draws = np.random.default_rng(0).gamma(3.0, size=(2, 150, 3)) * [1.0, 10.0, 0.1]
    cvm = cramer_von_mises(draws, axis=(0, 1))
    flat = draws.reshape(300, 3)
    z = np.sort(stats.zscore(flat, ddof=1), axis=0)
    T = stats.cramervonmises(z, "norm").statistic
    np.testing.assert_allclose(300 * cvm, T - 1 / 3600, rtol=1e-12)
    np.testing.assert_allclose(cramer_von_mises(flat), cvm, rtol=1e-12)
    np.testing.assert_allclose(cramer_von_mises(flat[:, 0]), cvm[0], rtol=1e-12)
    m = np.arange(1, 301)[:, None]
    np.testing.assert_allclose(cvm, (((m - 0.5) / 300 - stats.norm.cdf(z)) ** 2).mean(axis=0))
    top = 300 * ((m / 300 - stats.norm.cdf(z)) ** 2).mean(axis=0)
    offset = 0.5 - stats.norm.cdf(z).mean(axis=0) + 1 / 1200
    np.testing.assert_allclose(top - 300 * cvm, offset, rtol=1e-9)


def test_cvm_with_a_given_limit():
    draws = np.random.default_rng(0).normal([0.0, 5.0], [1.0, 2.0], size=(2000, 2))
    right = cramer_von_mises(draws, center=[0.0, 5.0], scale=[1.0, 2.0])
    wrong = cramer_von_mises(draws, center=[0.0, 5.0], scale=[2.0, 4.0])
    assert np.all(right < 1e-3)
    assert np.all(wrong > 5e-3)
    np.testing.assert_allclose(cramer_von_mises(draws, center=0.0, scale=1.0)[0], right[0])


@pytest.mark.parametrize("standardized", [True, False])
def test_null_covers_at_the_stated_rates(standardized):
    levels = np.array([0.05, 0.10, 0.25, 0.75, 0.90, 0.95])
    values, mc_error = cramer_von_mises_null(200, 3000, random_seed=0, standardized=standardized)
    draws = np.random.default_rng(1).normal(size=(200, 2000))
    known = {} if standardized else {"center": 0.0, "scale": 1.0}
    cvm = cramer_von_mises(draws, **known)
    rate = (cvm[:, None] <= values).mean(axis=0)
    # Both the reference and the check are simulated.
    error = np.sqrt(levels * (1 - levels) * (1 / 3000 + 1 / 2000))
    assert np.all(np.abs(rate - levels) < 4 * error)
    assert np.all((mc_error > 0) & (mc_error < 0.2 * values))
    if not standardized:  # Anderson and Darling (1952): the limit's 90 and 95 % points
        np.testing.assert_allclose(200 * values[-2:], [0.3473, 0.4614], rtol=0.1)
    else:  # Stephens (1974): 0.104 and 0.126 with mean and sd estimated
        np.testing.assert_allclose(200 * values[-2:], [0.104, 0.126], rtol=0.08)


def test_null_error_is_that_of_repeated_runs():
    runs = [cramer_von_mises_null(50, 400, [0.5, 0.95], random_seed=seed) for seed in range(60)]
    values, errors = np.array(runs).transpose(1, 0, 2)
    np.testing.assert_allclose(values.std(axis=0), errors.mean(axis=0), rtol=0.35)


def test_null_seed_and_skew():
    first, again = (cramer_von_mises_null(100, 500, random_seed=3) for _ in range(2))
    np.testing.assert_array_equal(first[0], again[0])
    skewed = np.random.default_rng(0).chisquare(3, size=(100, 50))
    assert np.mean(cramer_von_mises(skewed) > first[0][-1]) > 0.9


@pytest.mark.parametrize("standardized", [True, False])
def test_null_of_correlated_draws(standardized):
    rho, M = 0.8, 1000
    shocks = np.random.default_rng(0).normal(size=(500, M + 200)) * np.sqrt(1 - rho**2)
    draws = signal.lfilter([1.0], [1.0, -rho], shocks, axis=1)[:, 200:]
    known = {} if standardized else {"center": 0.0, "scale": 1.0}
    upper = np.quantile(cramer_von_mises(draws, axis=1, **known), 0.9)

    def ratio(power=None):
        ess = None if power is None else M * (1 - rho**power) / (1 + rho**power)
        args = {"random_seed": 1, "standardized": standardized, "ess": ess}
        return upper / cramer_von_mises_null(M, 1000, [0.9], **args)[0][0]

    assert ratio() > 1.4  # as if independent: the band is too narrow
    if standardized:
        assert 0.5 < ratio(3) < 1.0  # with the ESS of z^3 - 3 z: somewhat too wide
        assert ratio(1) < 0.3  # with that of z: far too wide
    else:
        assert 0.6 < ratio(1) < 1.1


PHI, DPHI, GRADIENT, _ = linear(n=20, P=2)
NET = network(n=20)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise": 0.0}, "noise=0.0: give a positive"),
        ({"noise": np.nan}, "noise=nan"),
        ({"rcond": -1.0}, "rcond=-1.0: give a relative"),
        ({"features": PHI[:10]}, r"features \(10, 2\)"),
        ({"features": PHI[:, 0]}, "features has shape"),
        ({"features": PHI * np.nan}, "features has values that are not finite"),
        ({"gradient": GRADIENT[:, :1]}, r"give shapes \(n, K\)"),
        ({"feature_gradients": DPHI[:, :5]}, r"feature_gradients\[0\] is \(5, 2\)"),
        ({"feature_gradients": lambda p: DPHI[p] + np.inf}, r"feature_gradients\[0\] has values"),
    ],
)
def test_sigma_refuses(change, message):
    arguments = {"features": PHI, "feature_gradients": DPHI, "gradient": GRADIENT} | change
    for function in (sigma_bvm, sigma_bvm_joint):
        with pytest.raises(ValueError, match=message):
            function(**arguments)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([], "weights is empty"),
        ([(np.ones((2, 3)), np.ones(3)), NET[1][1]], r"W needs \(3, 3\)"),
        ([NET[1][0], (np.ones(2), 0.0)], r"weights\[1\] has shapes \(2, 1\)"),
        ([NET[1][0], (np.ones((3, 2)), np.zeros(2))], "weights: W has shape"),
        ([NET[1][0], (np.ones(3), np.nan)], "weights: b has values"),
    ],
)
def test_network_refuses(weights, message):
    with pytest.raises(ValueError, match=message):
        network_sigma_bvm(NET[0], weights)


def test_unknown_derivative():
    with pytest.raises(ValueError, match="derivative='strong'"):
        network_sigma_bvm(*NET, derivative="strong")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"draws": np.arange(9.0)}, "draws: 9 along axis=0: give 10"),
        ({"draws": np.arange(40.0).reshape(20, 2) * [1, 0]}, r"constant.*at \[\[1\]\]"),
        ({"draws": np.full(20, np.nan)}, "draws has values that are not finite"),
        ({"draws": np.arange(20.0), "center": 0.0}, "give both"),
        ({"draws": np.arange(20.0), "center": 0.0, "scale": 0.0}, "scale must be positive"),
    ],
)
def test_cvm_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        cramer_von_mises(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_draws": 5}, "n_draws=5: give 10"),
        ({"n_draws": 50, "ess": 3.0}, "ess=3.0"),
        ({"n_draws": 50, "ess": np.nan}, "ess=nan"),
        ({"n_draws": 50, "n_sim": 20}, "n_sim=20: give 100"),
        ({"n_draws": 50, "quantiles": [0.5, 1.0]}, "quantiles: levels"),
    ],
)
def test_null_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        cramer_von_mises_null(**arguments)

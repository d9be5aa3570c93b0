"""The streaming pass: against brute force, and its bound on memory."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from pymc_bnnvs.activations import as_activation
from pymc_bnnvs.gradient_field import InputWeights, Network, gradient_moments


def random_network(draws=40, n=25, n_features=4, widths=(3, 2), activation="relu", seed=0):
    rng = np.random.default_rng(seed)
    hidden = tuple(
        (rng.normal(size=(draws, a, b)), rng.normal(size=(draws, b))) for a, b in pairwise(widths)
    )
    return Network(
        X=rng.normal(size=(n, n_features)),
        inputs=rng.normal(size=(draws, n_features, widths[0])),
        bias=rng.normal(size=(draws, widths[0])),
        hidden=hidden,
        beta=rng.normal(size=(draws, widths[-1])),
        activation=activation,
    )


def brute_force(network):
    """Gradients (draws, n, P) row by row, by the chain rule on Jacobians."""
    act = as_activation(network.activation)
    draws = network.n_draws
    gradients = np.empty((draws, *network.X.shape))
    jacobians = []
    for s in range(draws):
        of_draw = []
        for i, x in enumerate(network.X):
            z = x @ network.inputs[s] + network.bias[s]
            jacobian = act.derivative(z)[:, None] * network.inputs[s].T
            unit = act.value(z)
            for W, b in network.hidden:
                z = unit @ W[s] + b[s]
                jacobian = act.derivative(z)[:, None] * (W[s].T @ jacobian)
                unit = act.value(z)
            gradients[s, i] = network.beta[s] @ jacobian
            of_draw.append((jacobian, unit))
        jacobians.append(of_draw)
    return gradients, jacobians


@pytest.mark.parametrize("activation", ["relu", "tanh", "softplus"])
@pytest.mark.parametrize("widths", [(3,), (3, 2), (4, 3, 2)])
def test_moments_equal_brute_force(widths, activation):
    network = random_network(widths=widths, activation=activation)
    gradients, _ = brute_force(network)
    moments = gradient_moments(network)
    np.testing.assert_allclose(moments.field, gradients.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(moments.average, gradients.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(moments.psi, np.mean(gradients**2, axis=1), rtol=1e-10)
    assert moments.trace is None


@pytest.mark.parametrize("widths", [(3,), (3, 2)])
def test_trace_is_the_papers(widths):
    network = random_network(draws=5, widths=widths)
    moments = gradient_moments(network, trace=True)
    _, jacobians = brute_force(network)
    n = network.X.shape[0]
    for s, of_draw in enumerate(jacobians):
        phi = np.array([unit for _, unit in of_draw])
        pseudo_inverse = np.linalg.pinv(phi)
        for p in range(network.X.shape[1]):
            derivative = np.array([jacobian[:, p] for jacobian, _ in of_draw])
            by_hand = np.linalg.norm(derivative @ pseudo_inverse) ** 2 / n
            assert moments.trace[s, p] == pytest.approx(by_hand, rel=1e-6)


def test_trace_leaves_out_what_single_precision_would():
    """Two units that are nearly the same count as one, as in the author's code."""
    network = random_network(draws=1, widths=(2,))
    inputs = network.inputs[:].copy()
    inputs[..., 1] = inputs[..., 0] + 1e-4 * inputs[..., 1]
    twins = network._replace(inputs=inputs, bias=np.full((1, 2), 2.0))
    _, jacobians = brute_force(twins)
    phi = np.array([unit for _, unit in jacobians[0]])
    pseudo_inverse = np.linalg.pinv(phi, rcond=np.sqrt(20 * np.finfo(np.float32).eps))
    derivative = np.array([jacobian[:, 0] for jacobian, _ in jacobians[0]])
    by_hand = np.linalg.norm(derivative @ pseudo_inverse) ** 2 / network.X.shape[0]
    exact = np.linalg.norm(derivative @ np.linalg.pinv(phi)) ** 2 / network.X.shape[0]
    assert gradient_moments(twins, trace=True).trace[0, 0] == pytest.approx(by_hand, rel=1e-6)
    assert exact > 1.1 * by_hand


@pytest.mark.parametrize("max_bytes", [1, 10_000, 2**27])
def test_blocks_do_not_change_the_answer(max_bytes):
    network = random_network(draws=17)
    whole, parts = gradient_moments(network), gradient_moments(network, max_bytes=max_bytes)
    np.testing.assert_allclose(parts.field, whole.field, rtol=1e-12)
    np.testing.assert_allclose(parts.psi, whole.psi, rtol=1e-12)


def test_memory_stays_below_the_bound():
    network = random_network(draws=400, n=300, n_features=50, widths=(10, 10))
    max_bytes = 4 * 2**20
    assert network.block_size(max_bytes) > 1
    results = 8 * (300 * 50 + 2 * 400 * 50)
    tracemalloc.start()
    gradient_moments(network, max_bytes=max_bytes)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # One product of a block, (n, P), is a result in the making.
    assert peak < max_bytes + results + 8 * 300 * 50 + 2**18
    assert peak < 8 * 400 * 300 * 50 / 4, "the gradient of every draw was stored"


def test_the_weights_of_all_draws_are_never_written_down_at_once():
    rng = np.random.default_rng(0)
    draws, n_features, width = 200, 400, 10
    inputs = InputWeights(
        rows=rng.normal(size=(draws, n_features, width)),
        x_scale=rng.uniform(0.5, 2.0, size=n_features),
        scale=rng.uniform(size=(draws, n_features)),
        line=rng.normal(size=(draws, n_features)),
        category_of=np.repeat([-1, 0, 1], [300, 50, 50]),
    )
    network = random_network(draws=draws, n=20, n_features=n_features, widths=(width,))
    network = network._replace(line=1.5)
    tracemalloc.start()
    parts = gradient_moments(network._replace(inputs=inputs), max_bytes=2**20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < inputs.rows.nbytes / 2
    whole = gradient_moments(network._replace(inputs=inputs[:]))
    np.testing.assert_allclose(parts.psi, whole.psi, rtol=1e-10)
    np.testing.assert_allclose(parts.field, whole.field, atol=1e-12)

"""psi as a graph: against derivatives by hand, closed forms and finite differences."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pymc_bnnvs as bvs
from pymc_bnnvs.activations import ACTIVATIONS
from pymc_bnnvs.gradient import network_importance

FAST = "FAST_COMPILE"


def evaluate(model, *names, **values):
    """Values of variables of the model at its free variables' values."""
    shapes = model.eval_rv_shapes()
    rng = np.random.default_rng(1)
    inputs = {}
    for rv in model.free_RVs:
        value = np.asarray(rng.normal(size=shapes[rv.name]))
        positive = model.rvs_to_transforms[rv] is not None
        inputs[rv] = values.get(rv.name, np.abs(value) if positive else value)
    function = pytensor.function(
        list(inputs), [model[name] for name in names], mode=FAST, on_unused_input="ignore"
    )
    return inputs, function(*inputs.values())


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(30, 3))


def coords():
    return {"feature": ["a", "b", "c"]}


def test_linear_predictor(X):
    with pm.Model(coords=coords()) as model:
        data = pm.Data("X", X, dims=("obs_id", "feature"))
        b = pm.Normal("b", dims="feature")
        bvs.gradient_importance(pt.dot(data, b), data)
    inputs, (psi,) = evaluate(model, "psi")
    np.testing.assert_allclose(psi, inputs[b] ** 2, rtol=1e-12)
    assert model.named_vars_to_dims["psi"] == ("feature",)


def test_polynomial(X):
    with pm.Model(coords=coords()) as model:
        data = pm.Data("X", X, dims=("obs_id", "feature"))
        b = pm.Normal("b")
        f = b * data[:, 0] ** 2 * data[:, 1] + data[:, 2] ** 3
        bvs.gradient_importance(f, data, name="importance")
    inputs, (psi,) = evaluate(model, "importance")
    value = inputs[b]
    by_hand = [
        np.mean((2 * value * X[:, 0] * X[:, 1]) ** 2),
        np.mean((value * X[:, 0] ** 2) ** 2),
        np.mean((3 * X[:, 2] ** 2) ** 2),
    ]
    np.testing.assert_allclose(psi, by_hand, rtol=1e-12)


def test_gaussian_process_mean(X):
    knots = np.random.default_rng(2).normal(size=(8, 3))
    with pm.Model(coords=coords()) as model:
        data = pm.Data("X", X, dims=("obs_id", "feature"))
        centres = pm.Data("knots", knots)
        a = pm.Normal("a", shape=8)
        f = pt.dot(pm.gp.cov.ExpQuad(3, ls=1.3)(data, centres), a)
        bvs.gradient_importance(f, data)
    inputs, (psi,) = evaluate(model, "psi")
    difference = X[:, None, :] - knots[None]
    kernel = np.exp(-0.5 * np.sum(difference**2, axis=2) / 1.3**2)
    gradient = np.einsum("ij,ijp,j->ip", kernel, -difference / 1.3**2, inputs[a])
    np.testing.assert_allclose(psi, np.mean(gradient**2, axis=0), rtol=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("hidden", [(5,), (5, 4), (4, 5, 4)])
def test_network_chain_equals_full_gradient(X, activation, hidden):
    with pm.Model() as model:
        data = pm.Data("X", X)
        f = bvs.relu_network("f", data, hidden=hidden, activation=activation, prior="ard")
        pm.Deterministic("full", pt.mean(pytensor.grad(f.sum(), data) ** 2, axis=0))
    _, (psi, full) = evaluate(model, "f_psi", "full", f_input_scale=np.array([0.5, 1.0, 2.0]))
    np.testing.assert_allclose(psi, full, rtol=1e-10)
    assert (psi > 0).all()


@pytest.mark.parametrize("hidden", [(5,), (5, 4)])
def test_network_psi_by_finite_differences(X, hidden):
    def f_at(points):
        with pm.Model() as model:
            data = pm.Data("X", points)
            # Fixed centre and scale: the network must be the same function at both points.
            bvs.relu_network("f", data, hidden=hidden, activation="tanh", standardize=False)
        for name in ("f_x_center", "f_x_scale"):
            model[name].set_value(np.full(3, 0.3 if name.endswith("center") else 1.0))
        return evaluate(model, "f", "f_psi", f_gate=np.full(3, 2.0), f_threshold=np.array(0.4))[1]

    step = 1e-5
    gradient = np.empty_like(X)
    for p in range(3):
        move = np.zeros(3)
        move[p] = step
        gradient[:, p] = (f_at(X + move)[0] - f_at(X - move)[0]) / (2 * step)
    np.testing.assert_allclose(f_at(X)[1], np.mean(gradient**2, axis=0), rtol=1e-6)


def test_one_unit_by_hand():
    X = np.array([[1.0, 2.0], [-1.0, 0.0], [0.5, 3.0]])
    W = np.array([[2.0], [-1.0]])
    b, beta = 0.25, 3.0
    z = pt.constant(X) @ pt.constant(W) + b
    f = beta * pt.maximum(z, 0.0)[:, 0]
    psi = network_importance(f, z, pt.constant(W)).eval(mode=FAST)
    # Pre-activations 0.25, -1.75, -1.75: one row of three is on.
    np.testing.assert_allclose(psi, np.array([36.0, 9.0]) / 3)


def test_closed_gate_is_exactly_zero(X):
    with pm.Model() as model:
        bvs.relu_network("f", X, hidden=(5,))
    _, (psi, inclusion) = evaluate(
        model, "f_psi", "f_inclusion", f_gate=np.array([2.0, 0.4, 1.0]), f_threshold=np.array(0.5)
    )
    assert psi[1] == 0.0
    assert list(inclusion) == [1, 0, 1]


def test_copy_of_the_data_is_refused(X):
    with pm.Model():
        data = pm.Data("X", X)
        f = pt.dot(pt.constant(X), pm.Normal("b", shape=3))
        with pytest.raises(ValueError, match=r"does not depend on the X.*not a copy"):
            bvs.gradient_importance(f, data)


@pytest.mark.parametrize(
    ("f_of", "X_of", "message"),
    [
        (lambda d: d, lambda d: d, "one value a row"),
        (lambda d: d[:, 0], lambda d: d[0], "shape"),
    ],
)
def test_shapes_are_checked(X, f_of, X_of, message):
    with pm.Model():
        data = pm.Data("X", X)
        with pytest.raises(ValueError, match=message):
            bvs.gradient_importance(f_of(data), X_of(data))

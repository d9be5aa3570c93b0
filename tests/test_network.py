"""The network as a component of the user's own model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_bnnvs as bvs

FAST = {"mode": "FAST_COMPILE"}


@pytest.fixture(scope="module")
def X():
    return pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])


def compile_at(model, names, **values):
    outs = model.replace_rvs_by_values([model[name] for name in names])
    fn = model.compile_fn(outs, mode="FAST_COMPILE", on_unused_input="ignore")
    return fn(model.initial_point() | values)


def test_two_networks_beside_a_group_intercept_and_an_offset(X):
    rng = np.random.default_rng(1)
    counts, clinic, exposure = rng.poisson(2, 40), rng.integers(4, size=40), rng.uniform(1, 2, 40)
    with pm.Model(coords={"clinic": range(4)}) as model:
        level = pm.Normal("level", 0, 1, dims="clinic")
        f = bvs.relu_network("f", X, hidden=3)
        g = bvs.relu_network("g", X[["a", "b"]], hidden=(3, 2), prior="ard")
        log_rate = f + g + level[clinic] + np.log(exposure)
        pm.Poisson("y", pm.math.exp(log_rate), observed=counts)
        draws = pm.sample_prior_predictive(20, random_seed=1, compile_kwargs=FAST)
    assert model.named_vars_to_dims["f_psi"] == ("feature",)
    assert model.named_vars_to_dims["g_psi"] == ("g_feature",)
    assert list(draws.prior["g_psi"]["g_feature"].values) == ["a", "b"]
    assert np.isfinite(model.compile_logp(mode="FAST_COMPILE")(model.initial_point()))
    for name in ("f_psi", "g_psi"):
        summary = bvs.importance(draws, var_name=name, group="prior")
        assert summary["share"].sum() == pytest.approx(1.0)
        assert "mean_gradient" in summary


def test_same_data_variable_twice(X):
    with pm.Model(coords={"row": range(40), "input": list(X)}) as model:
        data = pm.Data("X", X.to_numpy(), dims=("row", "input"))
        bvs.relu_network("f", data, hidden=3)
        bvs.relu_network("g", data, hidden=3)
        draws = pm.sample_prior_predictive(10, random_seed=1, compile_kwargs=FAST)
    assert model.named_vars_to_dims["f_psi"] == model.named_vars_to_dims["g_psi"] == ("input",)
    assert model.named_vars_to_dims["f"] == ("row",)
    assert bvs.importance(draws, var_name="g_psi", group="prior").sizes == {"input": 3}


@pytest.mark.parametrize("prior", ["gated", "gaussian"])
def test_standardising_inside_does_not_change_the_meaning_of_psi(X, prior):
    """Same function values, inputs in other units: psi scales with the square."""
    factor = np.array([4.0, 0.5, 256.0])
    found = []
    for table in (X, X * factor + 7.0):
        with pm.Model() as model:
            bvs.relu_network("f", table, hidden=4, prior=prior)
        found.append(compile_at(model, ["f", "f_psi"], **_weights(model)))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9)
    np.testing.assert_allclose(found[0][1], found[1][1] * factor**2, rtol=1e-9)


def test_order_of_columns(X):
    order = [2, 0, 1]
    found = []
    for columns in (slice(None), order):
        with pm.Model() as model:
            bvs.relu_network("f", X.iloc[:, columns], hidden=4)
        weights = _weights(model)
        for name in ("f_gate", "f_z", "f_effect"):
            weights[name] = weights[name][columns]
        found.append(compile_at(model, ["f", "f_psi"], **weights))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    np.testing.assert_allclose(found[0][1][order], found[1][1], rtol=1e-12)


def test_relabelling_of_groups(X):
    found = []
    for groups in ({"g": ["a", "c"]}, {"other": ["c", "a"]}):
        with pm.Model() as model:
            bvs.relu_network("f", X, hidden=4, groups=groups)
        found.append(compile_at(model, ["f_psi", "f_psi_group"], **_weights(model)))
    for left, right in zip(*found, strict=True):
        np.testing.assert_array_equal(left, right)


def _weights(model):
    rng = np.random.default_rng(5)
    return {name: rng.normal(size=np.shape(v)) for name, v in model.initial_point().items()} | {
        name: np.linspace(1.5, 2.5, np.size(v))
        for name, v in model.initial_point().items()
        if name.endswith("gate")
    }


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"hidden": ()}, "hidden="),
        ({"hidden": (5, 0)}, "positive integers"),
        ({"hidden": 2.5}, "positive integers"),
        ({"activation": "rely"}, "Did you mean 'relu'"),
        ({"prior": "horsehoe"}, "Did you mean 'horseshoe'"),
        ({"scale": 0.0}, "scale=0.0"),
        ({"groups": {"g": ["a", "z"]}}, "z"),
        ({"always_in": "z"}, "z"),
    ],
)
def test_bad_options_are_named(X, kwargs, message):
    with pm.Model(), pytest.raises(ValueError, match=message):
        bvs.relu_network("f", X, **kwargs)


def test_a_tensor_that_is_no_data_is_refused(X):
    with pm.Model():
        latent = pm.Normal("latent", shape=(40, 3))
        with pytest.raises(ValueError, match=r"not a pm\.Data variable"):
            bvs.relu_network("f", latent)


def test_outside_a_model(X):
    with pytest.raises(TypeError, match="model"):
        bvs.relu_network("f", X)


@pytest.mark.parametrize("prior", ["gated", "gaussian", "spike_slab"])
def test_weights_of_a_category_are_contrasts(prior):
    """A shift of all indicators of a category, which no data can show, leaves f alone."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.normal(size=40), "kind": rng.choice(["u", "v", "w"], 40)})
    with pm.Model() as model:
        bvs.relu_network("f", X, hidden=4, prior=prior)
    weights = _weights(model)
    if prior == "spike_slab":
        weights["f_latent"] *= 4
    f, psi = compile_at(model, ["f", "f_psi"], **weights)
    data = model["f_X"].get_value()
    model["f_X"].set_value(data + np.array([0.0, 5.0, 5.0, 5.0]))
    f_moved, psi_moved = compile_at(model, ["f", "f_psi"], **weights)
    np.testing.assert_allclose(f_moved, f, rtol=1e-10)
    np.testing.assert_allclose(psi_moved, psi, rtol=1e-10)
    assert (psi > 0).all()


def test_two_levels_are_one_column_like_a_boolean():
    rng = np.random.default_rng(3)
    sex = rng.choice(["f", "m"], 40)
    X = pd.DataFrame({"a": rng.normal(size=40), "sex": sex})
    found = []
    for table in (X, X.assign(sex=sex == "m")):
        with pm.Model() as model:
            bvs.relu_network("f", table, hidden=4)
        found.append(compile_at(model, ["f", "f_psi"], **_weights(model)))
    assert list(model.coords["feature"]) == ["a", "sex"]
    for left, right in zip(*found, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12)

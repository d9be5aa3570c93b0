"""build_model: names, invariances, bad input, and PyMC's own verbs on what it returns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest
import xarray as xr

import pymc_bnnvs as bvs
from pymc_bnnvs import table as table_module

FAST = {"mode": "FAST_COMPILE"}
FEATURES = ["a", "b", "c", "d", "kind[u]", "kind[v]", "kind[w]"]


def test_names_and_dims(model):
    assert [rv.name for rv in model.observed_RVs] == ["y"]
    dims = model.named_vars_to_dims
    assert dims["X"] == ("obs_id", "feature")
    assert dims["f"] == ("obs_id",)
    assert dims["psi"] == dims["inclusion"] == ("feature",)
    assert dims["psi_group"] == dims["inclusion_group"] == ("group",)
    assert list(model.coords["feature"]) == FEATURES
    assert list(model.coords["group"]) == ["a", "b", "c", "d", "kind"]
    assert "sigma" in model.named_vars
    assert model.coords["obs_id"] is None


def test_group_psi_is_the_sum_of_its_columns(prior_draws):
    for prior in ("gated", "gaussian"):
        _, draws = prior_draws(prior)
        psi = draws.prior["psi"].values
        by_hand = np.concatenate([psi[..., :4], psi[..., 4:].sum(-1, keepdims=True)], axis=-1)
        np.testing.assert_allclose(draws.prior["psi_group"].values, by_hand, rtol=1e-12)


@pytest.mark.parametrize("kind", ["pandas", "polars", "xarray", "numpy"])
def test_tables_of_all_kinds_give_one_model(kind):
    rng = np.random.default_rng(0)
    values, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    names = ["u", "v", "w"]
    X = {
        "pandas": lambda: pd.DataFrame(values, columns=names),
        "polars": lambda: pl.DataFrame(values, schema=names),
        "xarray": lambda: xr.DataArray(values, dims=("row", "input"), coords={"input": names}),
        "numpy": lambda: values,
    }[kind]()
    kwargs = {"feature_names": names} if kind == "numpy" else {}
    model = bvs.build_model(X, y, hidden=3, **kwargs)
    reference = bvs.build_model(values, y, hidden=3, feature_names=names)
    assert list(model.coords["feature"]) == names
    point = reference.initial_point(random_seed=1)
    assert model.compile_logp(mode="FAST_COMPILE")(point) == pytest.approx(
        reference.compile_logp(mode="FAST_COMPILE")(point)
    )


def random_point(model, seed=3):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=np.shape(v)) for name, v in model.initial_point().items()}


def evaluate(model, point, *names):
    outs = model.replace_rvs_by_values([model[name] for name in names])
    fn = model.compile_fn(
        outs, inputs=model.value_vars, mode="FAST_COMPILE", on_unused_input="ignore"
    )
    return fn(point)


@pytest.mark.parametrize("prior", ["gated", "gaussian", "ard", "horseshoe", "spike_slab"])
@pytest.mark.parametrize("hidden", [(3,), (3, 2)])
def test_units_of_inputs_and_outcome(prior, hidden):
    """Other units: the same log density up to the outcome's unit, psi by the square."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    factor, unit = np.array([8.0, 0.25, 1024.0]), 32.0
    first = bvs.build_model(X, y, hidden=hidden, prior=prior)
    second = bvs.build_model(X * factor + 3.0, unit * y - 5.0, hidden=hidden, prior=prior)
    point = random_point(first)
    other = point | {"sigma_log__": point["sigma_log__"] + np.log(unit)}
    (f, psi), (f_other, psi_other) = (
        evaluate(m, p, "f", "psi") for m, p in ((first, point), (second, other))
    )
    np.testing.assert_allclose(unit * f - 5.0, f_other, rtol=1e-8)
    np.testing.assert_allclose(psi * (unit / factor) ** 2, psi_other, rtol=1e-8)
    logp, logp_other = (
        m.compile_logp(mode="FAST_COMPILE")(p) for m, p in ((first, point), (second, other))
    )
    assert logp_other == pytest.approx(logp - 30 * np.log(unit), rel=1e-8)


def test_bias_at_the_centre_is_the_papers_model(prior_draws):
    """Same log density as with the bias at the origin: the change of variable has unit Jacobian."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(30, 3)), rng.normal(size=30)
    model = bvs.build_model(X, y, hidden=4, prior="gaussian", standardize=False, noise=1.0)
    point = random_point(model)
    with pm.Model() as plain:
        W = pm.Normal("W_1", 0, np.sqrt(0.1), shape=(3, 4))
        b_1 = pm.Normal("b_1", 0, np.sqrt(0.1), shape=4)
        beta = pm.Normal("beta", 0, np.sqrt(0.1), shape=4)
        b_0 = pm.Normal("b_0", 0, np.sqrt(0.1))
        pm.Normal("y", b_0 + pm.math.maximum(X @ W + b_1, 0) @ beta, 1.0, observed=y)
    at_origin = point | {"b_1": point["b_1"] - X.mean(axis=0) @ point["W_1"]}
    assert model.compile_logp(mode="FAST_COMPILE")(point) == pytest.approx(
        plain.compile_logp(mode="FAST_COMPILE")(at_origin), rel=1e-10
    )


@pytest.mark.parametrize(
    ("likelihood", "make"),
    [
        ("student_t", lambda rng: rng.standard_t(3, size=60)),
        ("bernoulli", lambda rng: rng.integers(2, size=60)),
        ("poisson", lambda rng: rng.poisson(3.0, size=60)),
        ("negative_binomial", lambda rng: rng.negative_binomial(2, 0.3, size=60)),
    ],
)
def test_likelihoods_have_finite_gradients(table, likelihood, make):
    y = make(np.random.default_rng(2))
    model = bvs.build_model(table, y, hidden=3, likelihood=likelihood)
    gradient = model.compile_dlogp(mode="FAST_COMPILE")(model.initial_point(random_seed=1))
    assert np.isfinite(gradient).all()
    with model:
        draws = pm.sample_prior_predictive(5, random_seed=1, compile_kwargs=FAST)
    assert draws.prior_predictive["y"].sizes["obs_id"] == 60


def test_do_and_observe(table, outcome):
    model = bvs.build_model(table, outcome, hidden=3)
    quiet = pm.do(model, {"sigma": 2.0})
    with quiet:
        draws = pm.sample_prior_predictive(5, random_seed=1, compile_kwargs=FAST)
    assert "sigma" not in draws.prior
    plain = bvs.priors.Gated(reparametrize=False)
    for name, prior in (("level", "gated"), ("b_0", plain), ("b_0", "ard")):
        free = bvs.build_model(table, outcome, hidden=3, prior=prior)
        fixed = pm.observe(free, {name: 0.5})
        assert name in [rv.name for rv in fixed.observed_RVs]
        point = free.initial_point()
        expected = free.compile_logp(mode="FAST_COMPILE")(point | {name: np.asarray(0.5)})
        del point[name]
        assert fixed.compile_logp(mode="FAST_COMPILE")(point) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("change", "kwargs", "message"),
    [
        (lambda X, y: (X.assign(a=np.nan), y), {}, "'?a'?.*(drop|impute)"),
        (lambda X, y: (X.assign(b=np.inf), y), {}, "b"),
        (lambda X, y: (X.assign(c=1.0), y), {}, "c.*constant|constant.*c"),
        (lambda X, y: (X.assign(e=X["a"]), y), {}, "a.*e|e.*a"),
        (lambda X, y: (X.iloc[:1], y[:1]), {}, "two rows"),
        (lambda X, y: (X, y[:-1]), {}, "59.*60|60.*59"),
        (lambda X, y: (X, y.where(y > y.min())), {}, "missing"),
        (lambda X, y: (X, y[::-1]), {}, "different indexes"),
        (lambda X, y: (X, y), {"prior": "gatd"}, "Did you mean 'gated'"),
        (lambda X, y: (X, y), {"likelihood": "poison"}, "Did you mean 'poisson'"),
        (lambda X, y: (X, y), {"activation": "rely"}, "Did you mean 'relu'"),
        (lambda X, y: (X, y), {"noise": -1.0}, "noise=-1.0"),
        (lambda X, y: (X, y), {"hidden": (0,)}, "positive integers"),
        (lambda X, y: (X, y), {"groups": {"g": ["a", "zz"]}}, "zz"),
        (lambda X, y: (X, y), {"groups": {"g": ["a"], "h": ["a"]}}, "a"),
        (lambda X, y: (X, y), {"likelihood": "poisson"}, "count"),
        (lambda X, y: (X, y), {"likelihood": "bernoulli"}, "0 and 1|0/1"),
    ],
)
def test_bad_input_is_named_before_compilation(table, outcome, change, kwargs, message):
    X, y = change(table, outcome)
    with pytest.raises(ValueError, match=message):
        bvs.build_model(X, y, **kwargs)


def test_more_columns_than_memory(table, outcome, monkeypatch):
    monkeypatch.setattr(table_module, "physical_memory", lambda: 10**6)
    with pytest.raises(ValueError, match="check_memory=False"):
        bvs.build_model(table, outcome)
    assert bvs.build_model(table, outcome, check_memory=False) is not None

"""Priors: their laws, their exact zeros and their options."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_bnnvs import priors
from pymc_bnnvs.gradient_field import Network
from pymc_bnnvs.network import relu_network

FAST = {"mode": "FAST_COMPILE"}


def first_layer_draws(prior, n_features=3, hidden=4, draws=2000, **kwargs):
    X = np.random.default_rng(0).normal(size=(20, n_features))
    with pm.Model():
        relu_network("f", X, hidden=hidden, prior=prior, **kwargs)
        tree = pm.sample_prior_predictive(draws, random_seed=1, compile_kwargs=FAST)
    constant = tree.constant_data.dataset
    network = Network.read(tree.prior.dataset, constant, "f_")
    return tree.prior, network.inputs[:] * constant["f_x_scale"].values[:, None]


def test_spike_slab_weight_is_the_exact_mixture():
    prior = priors.SpikeSlab(inclusion=0.6, slab_sd=2.0)
    draws, W = first_layer_draws(prior, hidden=2)
    rate = 1 - 0.4**0.5
    weights = W.ravel()
    zero = weights == 0
    assert np.mean(~zero) == pytest.approx(rate, abs=4 * np.sqrt(rate / weights.size))
    assert stats.kstest(weights[~zero] / 2.0, "norm").pvalue > 1e-3
    assert draws["f_inclusion"].values.mean() == pytest.approx(0.6, abs=0.03)


def test_spike_slab_transport_has_finite_gradients_everywhere():
    u = pt.dvector()
    w = priors.spike_slab_transport(u, 0.1)
    f = pytensor.function([u], [w, pytensor.grad(w.sum(), u)], mode="FAST_COMPILE")
    grid = np.concatenate([np.linspace(-40, 40, 4001), [0.0]])
    value, gradient = f(grid)
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()
    assert (gradient >= 0).all()
    edge = stats.norm.isf(0.05)
    inside = np.abs(grid) < edge - 1e-9
    assert (value[inside] == 0).all()
    assert (value[np.abs(grid) > edge + 1e-6] != 0).all()


def test_gate_has_the_stated_prior_inclusion():
    draws, W = first_layer_draws("gated", n_features=5, draws=4000)
    closed = stats.norm.cdf(1.0 / np.sqrt(1 + 0.5**2))
    included = draws["f_inclusion"].values[0] == 1
    # The threshold is shared: the standard error is that of 4,000 draws, not of 20,000 gates.
    assert included.mean() == pytest.approx(1 - closed, abs=0.02)
    np.testing.assert_array_equal((W != 0).any(axis=2), included)
    assert (W[~included] == 0).all()


def test_gaussian_is_the_papers():
    draws, W = first_layer_draws("gaussian", standardize=False)
    for weights in (W, draws["f_beta"].values, draws["f_b_0"].values):
        assert np.var(weights) == pytest.approx(0.1, rel=0.1)
    # The bias is written at the centre of the inputs; at their origin it is N(0, 0.1) again.
    X = np.random.default_rng(0).normal(size=(20, 3))
    at_origin = draws["f_b_1"].values[0] - np.einsum("p,spk->sk", X.mean(axis=0), W)
    assert np.var(at_origin) == pytest.approx(0.1, rel=0.1)
    assert abs(np.corrcoef(at_origin[:, 0], W[:, 0, 0])[0, 1]) < 0.06


def test_regularised_horseshoe_is_bounded_by_its_slab():
    draws, _ = first_layer_draws("horseshoe")
    scale, slab = draws["f_scale"].values[0], np.sqrt(draws["f_slab"].values[0])
    assert (scale < slab[:, None] + 1e-12).all()
    # The same law by hand: 3 inputs, at most half of them expected, 20 rows.
    rng = np.random.default_rng(2)
    tau = np.abs(stats.cauchy.rvs(size=20_000, random_state=rng)) / np.sqrt(20)
    lam = np.abs(stats.cauchy.rvs(size=20_000, random_state=rng))
    slab = np.sqrt(stats.invgamma.rvs(2.0, scale=2.0, size=20_000, random_state=rng))
    by_hand = tau * lam * slab / np.sqrt(slab**2 + (tau * lam) ** 2)
    assert np.median(scale[:, 0]) == pytest.approx(np.median(by_hand), rel=0.15)


@pytest.mark.parametrize("kind", ["gated", "spike_slab"])
def test_exact_zeros_are_declared(kind):
    draws, _ = first_layer_draws(kind, draws=50)
    assert "f_inclusion" in draws
    assert priors.PRIORS[kind].exact_zeros


@pytest.mark.parametrize("kind", ["gaussian", "ard", "horseshoe"])
def test_no_inclusion_without_exact_zeros(kind):
    draws, W = first_layer_draws(kind, draws=50)
    assert "f_inclusion" not in draws
    assert (W != 0).all()


@pytest.mark.parametrize("kind", ["gated", "ard", "horseshoe", "spike_slab"])
def test_groups_share_a_gate_and_always_in_stays_open(kind):
    draws, W = first_layer_draws(
        kind, n_features=4, groups={"pair": ["x0", "x2"]}, always_in="x3", draws=200
    )
    if kind == "spike_slab":
        assert (W[:, 3] != 0).all()
    else:
        scale = draws["f_scale"].values[0]
        np.testing.assert_array_equal(scale[:, 0], scale[:, 2])
        assert (scale[:, 3] > 0).all()
    if "f_inclusion" in draws:
        included = draws["f_inclusion"].values[0]
        np.testing.assert_array_equal(included[:, 0], included[:, 2])
        assert included[:, 3].all()
        assert not included[:, 1].all()
        np.testing.assert_array_equal(draws["f_inclusion_group"].values[0], included[:, [0, 1, 3]])
        assert list(draws["f_group"].values) == ["pair", "x1", "x3"]


def test_sampling_starts_with_open_gates_and_no_initval():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pm.Model() as model:
        relu_network("f", X, groups={"pair": ["x0", "x1"]})
    point = model.initial_point()
    assert (point["f_gate"] > point["f_threshold"] + 1).all()
    # pm.do and pm.observe refuse models with an initval.
    assert all(value is None for value in model.rvs_to_initial_values.values())
    normal = stats.norm.logpdf(point["f_gate"]).sum()
    assert model.compile_logp(model["f_gate"], mode="FAST_COMPILE")(point) == pytest.approx(normal)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: priors.as_prior("gate"), "Did you mean 'gated'"),
        (lambda: priors.as_prior(3), "prior=3 is not known"),
        (lambda: priors.Gated(threshold_sd=0), "threshold_sd=0"),
        (lambda: priors.Gated(softness=-0.5), "softness=-0.5"),
        (lambda: priors.Gated(softness=np.nan), "softness=nan"),
        (lambda: priors.Gaussian(variance=-1.0), "variance=-1.0"),
        (lambda: priors.SpikeSlab(inclusion=1.0), "inclusion=1.0"),
        (lambda: priors.ARD(output_sd=np.inf), "output_sd=inf"),
    ],
)
def test_bad_options(make, message):
    with pytest.raises(ValueError, match=message):
        make()

"""Tests that sample: PyMC's own verbs, the seed, and the posterior itself."""

from __future__ import annotations

import logging

import arviz as az
import numpy as np
import nutpie
import pandas as pd
import pymc as pm
import pytest
from scipy import stats

import pymc_bnnvs as bvs
from pymc_bnnvs.gradient_field import Network

pytestmark = pytest.mark.usefixtures("quiet_convergence")
QUIET = {"progressbar": False, "quiet": True}


@pytest.fixture(scope="module")
def small():
    """A model quick to compile and to sample."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    y = 2.0 * X["a"] + 0.5 * rng.normal(size=40)
    return X, y, bvs.build_model(X, y, hidden=3)


def test_default_finds_the_inputs(idata):
    found = bvs.select(idata, by="group")
    assert list(found["group"].values[found["selected"].values]) == ["a", "kind"]


def test_same_seed_same_answer(small):
    _, _, model = small
    with model:
        first, second = (
            pm.sample(50, tune=100, chains=2, random_seed=7, **QUIET) for _ in range(2)
        )
    np.testing.assert_array_equal(first.posterior["psi"], second.posterior["psi"])
    left, right = bvs.select(first), bvs.select(second)
    assert left.identical(right)


def test_new_inputs_have_their_own_length_and_values(model, idata, table):
    network = Network.read(idata["posterior"].dataset, idata["constant_data"].dataset)
    new = idata["constant_data"]["X"].values[:7] + 0.25
    with model:
        pm.set_data({"X": new})
        try:
            predicted = pm.sample_posterior_predictive(
                idata,
                var_names=["f", "psi", "y"],
                predictions=True,
                random_seed=1,
                progressbar=False,
            )
        finally:
            pm.set_data({"X": idata["constant_data"]["X"].values})
    assert predicted.predictions["f"].sizes["obs_id"] == 7
    assert predicted.predictions["y"].sizes["obs_id"] == 7
    moved = network._replace(X=new - idata["constant_data"]["x_center"].values)
    by_hand = moved.values(slice(None))
    b_0 = idata["posterior"]["b_0"].values.reshape(-1, 1)
    constant = idata["constant_data"]
    by_hand = constant["f_center"].item() + by_hand + constant["f_scale"].item() * b_0
    np.testing.assert_allclose(
        predicted.predictions["f"].values.reshape(by_hand.shape), by_hand, rtol=1e-8
    )
    slope, _, _ = moved.slopes(slice(None))
    gradient = np.einsum("snk,spk->snp", slope, network.inputs[:])
    np.testing.assert_allclose(
        predicted.predictions["psi"].values.reshape(-1, 7), np.mean(gradient**2, axis=1), rtol=1e-8
    )


def test_variational_draws_have_one_chain(small):
    _, _, model = small
    with model:
        idata = pm.fit(500, progressbar=False, random_seed=1).sample(100, random_seed=1)
    found = bvs.select(idata)
    assert np.isnan(found["r_hat"]).all()
    assert np.isfinite(found["psi"]).all()


def test_gaussian_prior_is_the_plain_pymc_script():
    """The paper's set-up: same posterior of psi as a script that shares no line with ours."""
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(80, 3))
    y = 4.0 * X[:, 0] - 3.0 * np.abs(X[:, 1] - 0.5) + rng.normal(size=80)
    settings = {"chains": 2, "random_seed": 5, **QUIET}

    model = bvs.build_model(X, y, prior="gaussian", standardize=False, noise=1.0, hidden=8)
    with model:
        ours = pm.sample(2000, tune=1000, **settings).posterior["psi"]

    with pm.Model():
        W = pm.Normal("W", 0, np.sqrt(0.1), shape=(3, 8))
        b = pm.Normal("b", 0, np.sqrt(0.1), shape=8)
        beta = pm.Normal("beta", 0, np.sqrt(0.1), shape=8)
        b_0 = pm.Normal("b_0", 0, np.sqrt(0.1))
        hidden = X @ W + b
        pm.Normal("y", b_0 + pm.math.maximum(hidden, 0) @ beta, 1.0, observed=y)
        gradient = ((hidden > 0) * beta) @ W.T
        pm.Deterministic("psi", (gradient**2).mean(axis=0))
        plain_psi = pm.sample(4000, tune=1000, **settings).posterior["psi"]

    draws = [
        d.rename({d.dims[2]: "input"}).drop_vars(d.dims[2], errors="ignore")
        for d in (ours, plain_psi)
    ]
    for statistic, method in ((np.mean, "mean"), (np.std, "sd")):
        left, right = (statistic(d.values.reshape(-1, 3), axis=0) for d in draws)
        mcse = np.hypot(*(az.mcse(d, method=method).values for d in draws))
        assert (np.abs(left - right) < 4 * mcse).all(), (method, left, right, mcse)


def test_simulation_based_calibration():
    """Ranks of the prior's truth among posterior draws are uniform: psi, noise and f at a row."""
    logging.getLogger("nutpie").setLevel(logging.ERROR)
    rng = np.random.default_rng(11)
    X = rng.normal(size=(15, 2))
    n_sets, n_draws, thin = 120, 300, 10
    y = rng.normal(size=15)
    model = bvs.build_model(X, y, hidden=2, standardize=False)
    with model:
        prior = pm.sample_prior_predictive(n_sets, random_seed=12)
    compiled = nutpie.compile_pymc_model(model)
    ranks = {"psi_0": [], "psi_1": [], "sigma": [], "f": []}
    names = list(ranks)
    for index in range(n_sets):
        truth = prior.prior.isel(chain=0, draw=index)
        replicate = prior.prior_predictive["y"].isel(chain=0, draw=index).values
        draws = nutpie.sample(
            compiled.with_data(y_observed=replicate),
            draws=n_draws,
            tune=300,
            chains=2,
            cores=2,
            seed=index,
            progress_bar=False,
        ).posterior.isel(draw=slice(None, None, thin))
        pairs = [
            (truth["psi"].values[0], draws["psi"].values[..., 0]),
            (truth["psi"].values[1], draws["psi"].values[..., 1]),
            (truth["sigma"].item(), draws["sigma"].values),
            (truth["f"].values[0], draws["f"].values[..., 0]),
        ]
        for name, (value, drawn) in zip(names, pairs, strict=True):
            drawn = drawn.ravel()
            # A truth of exactly 0 ties with the closed draws: its rank is uniform among them.
            below, ties = (drawn < value).sum(), (drawn == value).sum()
            ranks[name].append((below + rng.uniform() * (ties + 1)) / (drawn.size + 1))
    for name, values in ranks.items():
        # Four tests at 0.1 % each: a false alarm in 250 changes of the seeds.
        assert stats.kstest(values, "uniform").pvalue > 1e-3, name

"""All paths have one posterior: the default's is that of the whole product in plain coordinates."""

from __future__ import annotations

import functools

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_bnnvs as bvs
from pymc_bnnvs.experiments.speed_gradient import dense
from pymc_bnnvs.priors import Gated


def line_and_bend():
    """Draw two inputs that are always in, and one that matters little."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(80, 3))
    y = np.maximum(X[:, 0], 0.0) + 0.4 * X[:, 1] + 0.7 * rng.normal(size=80)
    return X, y, {}


def lines_of_correlated():
    """Draw two inputs that are always in, correlated with each other and with two idle ones."""
    rng = np.random.default_rng(10)
    X = rng.normal(size=(100, 4)) + rng.normal(size=(100, 1))
    y = X[:, 0] - X[:, 1] + 0.7 * rng.normal(size=100)
    return X, y, {}


def counts_with_a_category():
    """Draw counts that depend on a category and on a pair of columns that share a gate."""
    rng = np.random.default_rng(11)
    X = pd.DataFrame(rng.uniform(size=(120, 3)), columns=list("abc"))
    X["kind"] = rng.choice(["u", "v", "w"], size=120)
    y = rng.poisson(np.exp(0.5 + 1.5 * X["a"] + (X["kind"] == "u")))
    return X, y, {"likelihood": "poisson", "groups": {"pair": ["a", "b"]}}


def draws_of(case, *, reference, moves=False):
    """Draws of the default model, or of the whole product in plain coordinates."""
    X, y, options = case()
    model = bvs.build_model(X, y, hidden=3, prior=Gated(reparametrize=not reference), **options)
    with dense(model) if reference else model:
        idata = pm.sample(
            2000 if reference else 1000,
            tune=800,
            chains=4,
            # The plain coordinates have narrow places, where long steps miss.
            **({} if moves else {"target_accept": 0.95}),
            step=bvs.gate_step(moves=5) if moves else None,
            random_seed=10,
            progressbar=False,
            quiet=True,
        )
    draws = idata["posterior"].dataset
    draws = draws[[name for name in ("psi", "inclusion", "sigma", "b_0") if name in draws]]
    inclusion = draws["inclusion"].astype(float)
    return draws.assign(root=np.sqrt(draws["psi"]), inclusion=inclusion)


@functools.cache
def reference_of(case):
    """Sample the plain model, once for all that are compared with it."""
    return draws_of(case, reference=True)


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_convergence")
@pytest.mark.parametrize(
    ("case", "moves"),
    [
        (line_and_bend, False),
        (lines_of_correlated, False),
        (counts_with_a_category, False),
        (counts_with_a_category, True),
    ],
)
def test_same_posterior(case, moves):
    found = [draws_of(case, reference=False, moves=moves), reference_of(case)]
    for method, statistic in (("mean", "mean"), ("sd", "std")):
        if method == "sd":  # of what is 0 or 1 it follows from the mean
            found = [draws.drop_vars("inclusion") for draws in found]
        left, right = (getattr(draws, statistic)(("chain", "draw")) for draws in found)
        mcse = np.hypot(*(az.mcse(draws, method=method) for draws in found))
        for name in left:
            gap = np.abs(left[name] - right[name])
            # An input that is in, in every draw, has no error.
            assert (gap <= 4 * mcse[name].fillna(0.0)).all(), (method, name)

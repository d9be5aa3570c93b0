"""Small models and their draws, sampled once a session; most tests never sample."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

import pymc_bnnvs as bvs

RANDOM_SEED = 20_261_127
FAST = {"mode": "FAST_COMPILE"}


@pytest.fixture(scope="session")
def table():
    """Inputs with a category: 60 rows, four numbers and a category of three levels."""
    rng = np.random.default_rng(RANDOM_SEED)
    X = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd"))
    X["b"] = 1e3 * X["b"] + 5e3
    X["kind"] = pd.Categorical(rng.choice(["u", "v", "w"], size=60))
    return X


@pytest.fixture(scope="session")
def outcome(table):
    """Depends on ``a`` and on the category."""
    rng = np.random.default_rng(RANDOM_SEED + 1)
    y = 3.0 * table["a"] + 2.0 * (table["kind"] == "u") + rng.normal(size=len(table))
    return 10.0 * y + 100.0


@pytest.fixture(scope="session")
def model(table, outcome):
    """The default model of the table."""
    return bvs.build_model(table, outcome, hidden=(4,))


@pytest.fixture(scope="session")
def idata(model):
    """Draws of the default model; short, so not always converged."""
    with model:
        return pm.sample(
            300, tune=400, chains=2, random_seed=RANDOM_SEED, progressbar=False, quiet=True
        )


@pytest.fixture
def quiet_convergence():
    """Short draws have not converged; tests of anything else don't want to hear of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bvs.ConvergenceWarning)
        yield


@pytest.fixture(scope="session")
def prior_draws(table, outcome):
    """Prior draws by prior and depth, made once each."""
    made: dict[tuple, tuple[pm.Model, xr.DataTree]] = {}

    def draw(prior="gated", hidden=(4,), draws=100, **kwargs):
        key = (prior, hidden, draws, tuple(sorted(kwargs.items(), key=str)).__repr__())
        if key not in made:
            model = bvs.build_model(table, outcome, prior=prior, hidden=hidden, **kwargs)
            with model:
                made[key] = (
                    model,
                    pm.sample_prior_predictive(draws, random_seed=RANDOM_SEED, compile_kwargs=FAST),
                )
        return made[key]

    return draw


@pytest.fixture
def fake_draws():
    """Build a tree of draws of psi with a point mass at 0, without a network."""

    def build(psi, *, chains=4, names=None, X=None, included=None, f=None):
        psi = np.asarray(psi, dtype=float)
        n_draws, n_features = psi.shape
        shape = (chains, n_draws // chains)
        names = [f"x{i}" for i in range(n_features)] if names is None else names
        data = {"psi": (("chain", "draw", "feature"), psi.reshape(*shape, n_features))}
        if included is not None:
            included = np.asarray(included).reshape(*shape, n_features)
            data["inclusion"] = (("chain", "draw", "feature"), included.astype("int8"))
        if f is not None:
            data["f"] = (("chain", "draw", "obs_id"), np.asarray(f).reshape(*shape, -1))
        tree = {"posterior": xr.Dataset(data, coords={"feature": names})}
        if X is not None:
            tree["constant_data"] = xr.Dataset(
                {"X": (("obs_id", "feature"), X)}, coords={"feature": names}
            )
        return xr.DataTree.from_dict(tree)

    return build

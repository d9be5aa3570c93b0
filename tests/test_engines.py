"""Other samplers than nutpie, and the backend that they compile to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from pymc.model.transform.optimization import freeze_dims_and_data

import pymc_bnnvs as bvs
from pymc_bnnvs.priors import Gated

QUIET = {"progressbar": False, "quiet": True}


@pytest.fixture(scope="module")
def small():
    """A model quick to compile and to sample."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    y = 2.0 * X["a"] + 0.5 * rng.normal(size=40)
    return bvs.build_model(X, y, hidden=3)


@pytest.mark.usefixtures("quiet_convergence")
@pytest.mark.parametrize("sampler", ["pymc", "numpyro", "blackjax"])
def test_other_engines(small, sampler):
    options = {}
    if sampler != "pymc":
        pytest.importorskip(sampler)
        # One device has no two chains side by side.
        options = {"nuts": {"chain_method": "vectorized"}}
    with small:
        idata = pm.sample(
            200,
            tune=300,
            chains=2,
            cores=1,
            random_seed=1,
            nuts_sampler=sampler,
            **options,
            **QUIET,
        )
    psi = idata["posterior"]["psi"]
    assert psi.dims == ("chain", "draw", "feature")
    assert psi.shape == (2, 200, 3)
    assert list(psi["feature"].values) == ["a", "b", "c"]
    assert np.isfinite(psi).all()
    found = bvs.importance(idata)
    assert "mean_gradient" in found
    assert found["inclusion"].values[0] == pytest.approx(1.0, abs=0.05)
    assert float(found["psi"][0]) == pytest.approx(4.0, abs=1.5)


@pytest.mark.parametrize(
    ("hidden", "prior"),
    [((3,), "gated"), ((3, 2), Gated(softness=0.0))],
)
def test_jax_has_the_density_and_gradient_of_numba(table, outcome, hidden, prior):
    """With gates open, closed and a category, and where a chain starts."""
    pytest.importorskip("jax")
    # XLA wants shapes that it knows, and so does what PyMC does for numpyro and blackjax.
    model = freeze_dims_and_data(bvs.build_model(table, outcome, hidden=hidden, prior=prior))
    outs = [model.logp(), model.dlogp()]
    numba, jax = (
        model.compile_fn(outs, inputs=model.value_vars, mode=mode) for mode in ("NUMBA", "JAX")
    )
    rng = np.random.default_rng(1)
    points = [model.initial_point()]
    for shift in (-8.0, 0.0, 0.0, 8.0):
        point = {k: np.asarray(rng.normal(size=np.shape(v))) for k, v in points[0].items()}
        point["gate"] = point["gate"] + shift
        points.append(point)
    for point in points:
        for left, right in zip(numba(point), jax(point), strict=True):
            # A sum that cancels is accurate next to its terms, not next to itself.
            largest = np.abs(left).max()
            np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12 * largest)

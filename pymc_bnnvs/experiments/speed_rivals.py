"""What one writes without this package: the paper's network by hand, in PyMC and in numpyro.

Both have the same priors as the paper, N(0, 0.1) on every weight and bias, the inputs as they come
in [0, 1], the outcome as it comes, and a learned noise, HalfNormal(1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

__all__ = ["numpyro_model", "numpyro_psi", "pymc_script"]

VARIANCE = 0.1


def pymc_script(X_values: np.ndarray, y_values: np.ndarray, hidden: int = 50) -> pm.Model:
    """Build the model as a PyMC user would write it down.

    Parameters
    ----------
    X_values : array, shape (n, P)
        Inputs.
    y_values : array, shape (n,)
        Outcome.
    hidden : int
        Units of the hidden layer.

    Returns
    -------
    pm.Model
        With ``psi`` (P,) as a ``Deterministic``, by PyTensor's gradient of f in X.
    """
    sd = np.sqrt(VARIANCE)
    with pm.Model() as model:
        X = pm.Data("X", X_values)
        W_1 = pm.Normal("W_1", 0, sd, shape=(X_values.shape[1], hidden))
        b_1 = pm.Normal("b_1", 0, sd, shape=hidden)
        beta = pm.Normal("beta", 0, sd, shape=hidden)
        b_0 = pm.Normal("b_0", 0, sd)
        sigma = pm.HalfNormal("sigma", 1)

        f = pt.maximum(X @ W_1 + b_1, 0) @ beta + b_0
        pm.Normal("y", f, sigma, observed=y_values)

        gradient = pytensor.grad(f.sum(), X)
        pm.Deterministic("psi", (gradient**2).mean(axis=0))
    return model


def numpyro_model(hidden: int = 50) -> Callable[[Any, Any], None]:
    """Return the same model as a numpyro function of ``X`` (n, P) and ``y`` (n,)."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    sd = np.sqrt(VARIANCE)

    def model(X: Any, y: Any) -> None:
        W_1 = numpyro.sample("W_1", dist.Normal(0, sd).expand([X.shape[1], hidden]).to_event(2))
        b_1 = numpyro.sample("b_1", dist.Normal(0, sd).expand([hidden]).to_event(1))
        beta = numpyro.sample("beta", dist.Normal(0, sd).expand([hidden]).to_event(1))
        b_0 = numpyro.sample("b_0", dist.Normal(0, sd))
        sigma = numpyro.sample("sigma", dist.HalfNormal(1))
        f = jnp.maximum(X @ W_1 + b_1, 0) @ beta + b_0
        numpyro.sample("y", dist.Normal(f, sigma), obs=y)

    return model


def numpyro_psi(weights: dict[str, Any], X: Any) -> Any:
    """Integrated squared gradient (P,) of one draw of the numpyro model, by JAX's gradient."""
    import jax
    import jax.numpy as jnp

    def f(x: Any) -> Any:
        unit = jnp.maximum(x @ weights["W_1"] + weights["b_1"], 0)
        return unit @ weights["beta"] + weights["b_0"]

    return (jax.vmap(jax.grad(f))(X) ** 2).mean(axis=0)

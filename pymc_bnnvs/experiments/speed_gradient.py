"""Wall time of one log density with its gradient, alone in its process.

Called as the samplers call it: the function that numba compiled for nutpie by its C address, and a
loop inside the compiled program for JAX. Python's own time is in neither.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import nutpie
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
from pymc.model.fgraph import fgraph_from_model, model_from_fgraph

from pymc_bnnvs.experiments.designs import neural
from pymc_bnnvs.gated_dot import GatedDot
from pymc_bnnvs.model import build_model

__all__ = [
    "compile_gradient",
    "dense",
    "gradient_times",
    "numpyro_timer",
    "pymc_timer",
    "seconds_a_call",
]

BATCHES = 15
BATCH_S = 0.05

#: Mean seconds of a call, over the given number in a row.
Timer = Callable[[int], float]


def compile_gradient(model: pm.Model) -> Any:
    """Compile the log density and its gradient as ``pm.sample`` does: by numba, for nutpie."""
    return nutpie.compile_pymc_model(model, var_names=[])


def pymc_timer(compiled: Any, *, n_open: int | None = None, random_seed: int = 0) -> Timer:
    """Time the log density and gradient that nutpie compiled, at a point near 0.

    Parameters
    ----------
    compiled : nutpie's compiled model
    n_open : int, optional
        Gates to open, of inputs chosen at random; for models that have gates.
    random_seed : int
        Seed of the point and of the choice.

    Returns
    -------
    callable
    """
    rng = np.random.default_rng(random_seed)
    point = rng.normal(scale=0.1, size=compiled.n_dim)
    if n_open is not None:
        where = dict(zip(*compiled.shape_info[:2], strict=True))
        gate = where["gate"]
        point[where["threshold"]] = 1.0
        point[gate] = np.where(rng.permutation(gate.stop - gate.start) < n_open, 2.0, 0.0)
    arrays = (point, np.empty_like(point), np.empty(1))
    pointer = ctypes.POINTER(ctypes.c_double)
    function = compiled.compiled_logp_func.ctypes

    def timer(calls: int) -> float:
        addresses = [array.ctypes.data_as(pointer) for array in arrays]
        arguments = (compiled.n_dim, *addresses, compiled.user_data.ctypes.data)
        started = time.perf_counter()
        for _ in range(calls):
            code = function(*arguments)
        seconds = time.perf_counter() - started
        if code:
            raise FloatingPointError(f"the log density can't be evaluated: nutpie's code {code}")
        return seconds / calls

    return timer


def numpyro_timer(model: Callable[..., None], X: np.ndarray, y: np.ndarray) -> Timer:
    """Time the potential of a numpyro model of ``X`` and ``y``, and its gradient.

    Parameters
    ----------
    model : callable
    X, y : array, shape (n, P) and (n,)

    Returns
    -------
    callable
    """
    import jax
    from numpyro.infer.util import initialize_model

    start = initialize_model(jax.random.key(0), model, model_args=(X, y), dynamic_args=True)

    @jax.jit
    def evaluate(point: Any, calls: int, X: Any, y: Any) -> Any:
        def step(_: int, carry: Any) -> Any:
            point, total = carry
            value, gradient = jax.value_and_grad(start.potential_fn(X, y))(point)
            # Every evaluation hangs on the one before, so that none can be left out.
            moved = jax.tree.map(lambda z, g: z - 1e-12 * g, point, gradient)
            return moved, total + value

        return jax.lax.fori_loop(0, calls, step, (point, 0.0))[1]

    X, y = jax.device_put(X), jax.device_put(y)
    evaluate(start.param_info.z, 1, X, y).block_until_ready()

    def timer(calls: int) -> float:
        started = time.perf_counter()
        evaluate(start.param_info.z, calls, X, y).block_until_ready()
        return (time.perf_counter() - started) / calls

    return timer


def seconds_a_call(timer: Timer) -> float:
    """Median over batches of the mean seconds of a call."""
    calls = batch_size(timer)
    return float(np.median([timer(calls) for _ in range(BATCHES)]))


def batch_size(timer: Timer) -> int:
    """Count the calls that fill a batch; the first, which may be slow, is left out."""
    timer(1)
    return max(1, round(BATCH_S / timer(3)))


def dense(model: pm.Model) -> pm.Model:
    """Copy a model with the gated product replaced by the whole product.

    Parameters
    ----------
    model : pm.Model
        From :func:`build_model` with the gated prior.

    Returns
    -------
    pm.Model

    Raises
    ------
    ValueError
        If the model has no gated product.
    """
    graph, _ = fgraph_from_model(model)
    gated = [node for node in graph.toposort() if isinstance(node.op, GatedDot)]
    if not gated:
        raise ValueError("the model has no gated product")
    for node in gated:
        X, center, *parts = node.inputs
        weights = node.op.weights(*parts)
        whole = pt.dot(X, weights) - pt.dot(center, weights)
        graph.replace(node.outputs[0], whole, import_missing=True)
    return model_from_fgraph(graph, mutate_fgraph=True)


def gradient_times(
    n: int,
    n_features: int,
    seed: int,
    *,
    shares: Sequence[float] = (0.1, 1.0),
    pairs: int = 25,
) -> pd.DataFrame:
    """Time the gradient of the default model and of the same model with the whole product.

    The two are timed in turn, and compared pair by pair, so that a machine that slows down for a
    while slows both.

    Parameters
    ----------
    n, n_features : int
        Rows and inputs.
    seed : int
        Seed of the data and of the choice of open gates.
    shares : sequence of float
        Shares of the gates that are open.
    pairs : int
        Batches of each model.

    Returns
    -------
    DataFrame
        One row a share: ``n_open``, ``gated_us`` and ``dense_us`` (medians over batches,
        microseconds), and ``dense_by_gated``, the median of the ratios, with its quartiles
        ``ratio_lower`` and ``ratio_upper``.
    """
    data = neural(n, n_features, seed)
    model = build_model(data.X, data.y, check_memory=False)
    both = [compile_gradient(model), compile_gradient(dense(model))]
    rows = []
    for share in shares:
        n_open = round(share * n_features)
        timers = [pymc_timer(one, n_open=n_open, random_seed=seed) for one in both]
        sizes = [batch_size(timer) for timer in timers]
        times = np.array(
            [
                [timer(calls) for timer, calls in zip(timers, sizes, strict=True)]
                for _ in range(pairs)
            ]
        )
        lower, middle, upper = np.quantile(times[:, 1] / times[:, 0], [0.25, 0.5, 0.75])
        gated_us, dense_us = 1e6 * np.median(times, axis=0)
        rows.append(
            {
                "n": n,
                "n_features": n_features,
                "seed": seed,
                "share": share,
                "n_open": n_open,
                "gated_us": gated_us,
                "dense_us": dense_us,
                "dense_by_gated": middle,
                "ratio_lower": lower,
                "ratio_upper": upper,
            }
        )
    return pd.DataFrame(rows)

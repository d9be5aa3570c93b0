"""From a table to a PyMC model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm

from pymc_bnnvs.network import Scales, add_network, read_options
from pymc_bnnvs.outcome import add_likelihood, read_outcome
from pymc_bnnvs.priors import Prior
from pymc_bnnvs.start import start_open
from pymc_bnnvs.table import check_memory as check_memory_of
from pymc_bnnvs.table import read_table

__all__ = ["build_model"]


def build_model(
    X: Any,
    y: Any,
    *,
    hidden: int | Sequence[int] = (20,),
    prior: str | Prior = "gated",
    likelihood: str = "normal",
    noise: float | None = None,
    standardize: bool = True,
    activation: str | None = None,
    feature_names: Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    always_in: str | Sequence[str] | None = None,
    check_memory: bool = True,
) -> pm.Model:
    """Build the Bayesian network of an outcome as a PyMC model, with the importance of each input.

    Parameters
    ----------
    X : DataFrame (pandas, polars), DataArray or array, shape (n, P)
        Inputs. Text and category columns are one-hot coded into one group (two levels: one
        column, for the second level); booleans are 0 and 1.
    y : Series, DataArray or array, shape (n,)
        Outcome.
    hidden : int or sequence of int
        Widths of the hidden layers: ``(20,)`` is one layer, ``(50, 50)`` two.
    prior : str or Prior
        How an input's weights are scaled: ``"gated"`` (exact zeros), ``"gaussian"`` (the
        paper's), ``"ard"``, ``"horseshoe"``, ``"spike_slab"`` (exact zeros), or a prior with its
        own parameters, as in ``bvs.priors.Gated(threshold_mean=1.5)``.
    likelihood : str
        ``"normal"``, ``"student_t"``, ``"bernoulli"`` (logit), ``"poisson"`` (log) or
        ``"negative_binomial"`` (log).
    noise : float, optional
        Known noise standard deviation, in the outcome's unit; learned if not given.
    standardize : bool
        Centre and scale inputs and outcome inside the model. ``f``, ``psi``, ``sigma`` and
        predictions are on the user's scale either way.
    activation : str, optional
        ``"relu"``; ``"rounded_relu"``, with a parabola of width 0.4 in the place of the kink, so
        that NUTS takes longer steps; ``"softplus"`` or ``"tanh"``. By default
        ``"rounded_relu"`` for the prior ``"gated"``, and ``"relu"`` for the others.
    feature_names : sequence of str, optional
        Names of the inputs, where ``X`` has none.
    groups : mapping of str to sequence of str, optional
        Columns that belong together and share one gate.
    always_in : str or sequence of str, optional
        Columns or groups that must stay in: their gate is fixed open.
    check_memory : bool
        Refuse what the machine's memory can't hold at PyMC's default number of draws.

    Returns
    -------
    pm.Model
        With ``X`` (``pm.Data``; dims ``obs_id``, ``feature``), ``f`` (``obs_id``; the mean, or
        the linear predictor on the link's scale), ``psi`` (``feature``; unit of f squared by
        unit of the input squared), ``inclusion`` (``feature``; 0 or 1, where the prior has
        exact zeros), ``sigma`` and the outcome ``y``. If any group has more than one column,
        also ``psi_group``, the sum of ``psi`` over a group's columns, and ``inclusion_group``.

    Raises
    ------
    ValueError
        If a column, the outcome or an option can't be used; the message names it and the cure.

    See Also
    --------
    relu_network : the same network inside a model of your own.
    importance : the posterior of ``psi`` in numbers.

    Notes
    -----
    The default prior is ``f(x) = b_0 + l' x + beta' relu(W' x + b)`` with ``W_p = s_p z_p`` and
    the line ``l_p = s_p g_p / 2``, where ``s_p`` is exactly 0 while the gate ``u_p`` is below the
    threshold ``c``; see :class:`pymc_bnnvs.priors.Gated`.

    A chain starts with all gates open or, where there are more than half as many inputs as rows,
    with a quarter as many as there are rows open: those of the inputs whose association with the
    outcome is strongest.

    The indicators of a category of three levels or more sum to 1, so their weights are taken
    against the mean over its levels: the gradient of a level is its difference from that mean.

    Examples
    --------
    >>> import pymc_bnnvs as bvs
    >>> from pymc_bnnvs.datasets import load_diabetes
    >>> model = bvs.build_model(*load_diabetes())
    >>> model.named_vars_to_dims["psi"]
    ('feature',)

    Then sample it with PyMC, ``with model: idata = pm.sample()``, and ask
    ``bvs.select(idata)``.
    """
    prior, hidden, activation = read_options(prior, hidden, activation)
    check_same_index(X, y)
    table = read_table(X, feature_names=feature_names, groups=groups, always_in=always_in)
    n, n_features = table.values.shape
    outcome = read_outcome(y, n, likelihood=likelihood, noise=noise, standardize=standardize)
    if check_memory:
        check_memory_of(n, n_features, hidden[0])

    scales = Scales(
        x_center=table.center,
        x_scale=table.scale if standardize else np.ones(n_features),
        f_center=outcome.center,
        f_scale=outcome.scale,
        standardized=standardize,
    )
    with pm.Model(coords={"feature": list(table.features)}) as model:
        data = pm.Data("X", table.values, dims=("obs_id", "feature"))
        observed = pm.Data("y_observed", outcome.values, dims="obs_id")
        f = add_network(
            data,
            table,
            name="f",
            rename=lambda variable: variable,
            hidden=hidden,
            prior=prior,
            activation=activation,
            scales=scales,
            dims=("obs_id", "feature"),
            starts_open=start_open(table, outcome.values),
        )
        add_likelihood("y", f, observed, outcome, dims="obs_id", scale=model["f_scale"])
    return model


def check_same_index(X: Any, y: Any) -> None:
    """Refuse a pandas outcome whose rows are not those of the inputs."""
    is_pandas = isinstance(X, pd.DataFrame) and isinstance(y, pd.Series | pd.DataFrame)
    if is_pandas and len(X) == len(y) and not X.index.equals(y.index):
        raise ValueError(
            "X and y have different indexes, so their rows may not belong together: align them "
            "with y = y.loc[X.index], or pass y.to_numpy() if the order is right."
        )

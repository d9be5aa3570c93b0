"""The network as a component of a PyMC model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable

from pymc_bnnvs.activations import Activation, as_activation
from pymc_bnnvs.gradient import network_importance
from pymc_bnnvs.priors import Prior, Slot, as_prior
from pymc_bnnvs.table import Table, read_table

__all__ = ["add_network", "read_options", "relu_network"]


class Scales(NamedTuple):
    """Where the network is centred and what its units are, in the user's units."""

    x_center: np.ndarray
    x_scale: np.ndarray
    f_center: float
    f_scale: float
    standardized: bool


def check_hidden(hidden: int | Sequence[int]) -> tuple[int, ...]:
    """Return the hidden layers' widths as a tuple of positive integers."""
    widths = tuple(hidden) if isinstance(hidden, Sequence | np.ndarray) else (hidden,)
    good = [isinstance(k, int | np.integer) and not isinstance(k, bool) and k > 0 for k in widths]
    if not widths or not all(good):
        raise ValueError(
            f"hidden={hidden!r}: give the widths of the hidden layers as positive integers, "
            f"such as (20,) for one layer or (50, 50) for two."
        )
    return tuple(int(k) for k in widths)


def read_options(
    prior: str | Prior, hidden: int | Sequence[int], activation: str | None
) -> tuple[Prior, tuple[int, ...], str]:
    """Read what kind of network is asked for; without an activation it is the prior's."""
    prior = as_prior(prior)
    widths = check_hidden(hidden)
    activation = prior.activation if activation is None else activation
    as_activation(activation)
    return prior, widths, activation


def add_network(
    X: TensorVariable,
    table: Table,
    *,
    name: str,
    rename: Callable[[str], str],
    hidden: tuple[int, ...],
    prior: Prior,
    activation: str,
    scales: Scales,
    dims: tuple[str | None, str],
    starts_open: np.ndarray | None = None,
) -> TensorVariable:
    """Register a network's variables, its ``psi`` and its inclusion in the current model.

    ``rename`` adds the network's prefix to a variable's name; ``dims`` are those of ``X``;
    ``starts_open`` (groups) are the gates that are open where a chain starts, all by default.
    """
    model = pm.modelcontext(None)
    obs_dim, feature = dims
    group = feature
    if table.has_groups:
        group = rename("group")
        model.add_coord(group, list(table.groups))
    layers = [rename(f"hidden_{i}") for i in range(1, len(hidden) + 1)]
    for layer, width in zip(layers, hidden, strict=True):
        model.add_coord(layer, np.arange(width))

    # The draws carry what it takes to read them again: importance() needs no model.
    x_center = pm.Data(rename("x_center"), scales.x_center, dims=feature)
    x_scale = pm.Data(rename("x_scale"), scales.x_scale, dims=feature)
    f_center = pm.Data(rename("f_center"), scales.f_center)
    f_scale = pm.Data(rename("f_scale"), scales.f_scale)
    labels = [f"{prior.kind} input", *(f"{activation} {i}" for i in range(1, len(hidden) + 1))]
    model.add_coord(rename("layer"), labels)
    pm.Data(rename("width"), np.array([len(table.features), *hidden]), dims=rename("layer"))
    if table.has_groups:
        pm.Data(rename("group_of"), table.group_of, dims=feature)
    if table.always_in.any():
        fixed = table.always_in[table.group_of].astype("int8")
        pm.Data(rename("always_in"), fixed, dims=feature)

    slot = Slot(
        name=rename,
        feature=feature,
        group=group,
        hidden=layers[0],
        units=hidden[0],
        n_obs=table.values.shape[0],
        group_of=table.group_of,
        always_in=table.always_in,
        starts_open=np.ones(len(table.groups), bool) if starts_open is None else starts_open,
    )
    act = as_activation(activation)
    deeper = [
        (
            prior.hidden_layer(rename(f"W_{i}"), hidden[i - 2], (layers[i - 2], layers[i - 1])),
            prior.hidden_bias(rename(f"b_{i}"), layers[i - 1]),
        )
        for i in range(2, len(hidden) + 1)
    ]
    beta = prior.output(rename, hidden[-1], layers[-1])
    sampled = prior.first_layer(slot)
    if (table.category_of >= 0).any():
        pm.Data(rename("category_of"), table.category_of, dims=feature)
    first = sampled.contrasts(table.category_of)
    # A bias at the centre of the inputs: same model, but NUTS sees no ridge along the mean.
    at_center = 0.0
    if not scales.standardized:
        at_center = first.product(x_center[None, :], None, x_scale)[0]
    b_1 = prior.hidden_bias(rename("b_1"), layers[0], at_center)
    spread = first.spread(table.scale / scales.x_scale)
    # Half of the units of a layer are active, about, where nothing better is known.
    slope = beta
    for W, _ in deeper[::-1]:
        slope = pt.dot(W, 0.5 * slope)
    slope = slope * (act.normal_slope(b_1, spread) if act.normal_slope else 0.5)
    first = prior.line(slot, sampled, slope).contrasts(table.category_of)

    product = first.product(X, x_center, x_scale)
    # Likewise the level of f in the place of its value where all units are 0.
    if deeper or act.normal_mean is None or not prior.samples_level:
        b_0 = prior.intercept(rename("b_0"))
    else:
        units_mean = pt.dot(act.normal_mean(b_1, spread), beta)
        b_0 = prior.intercept(rename("level"), units_mean) - units_mean
        b_0 = pm.Deterministic(rename("b_0"), b_0)
    value = b_0 + forward(act, product, b_1, deeper, beta, hidden, first.line_sd)
    f = pm.Deterministic(name, f_center + f_scale * value, dims=(obs_dim,))

    psi = pm.Deterministic(
        rename("psi"),
        network_importance(f, product, first.weights() / x_scale[:, None]),
        dims=feature,
    )
    included = first.included
    if included is not None:
        pm.Deterministic(rename("inclusion"), included.astype("int8"), dims=feature)
    if table.has_groups:
        lead = np.unique(table.group_of, return_index=True)[1]
        zeros = pt.zeros(len(table.groups))
        by_group = pt.inc_subtensor(zeros[table.group_of], psi)
        pm.Deterministic(rename("psi_group"), by_group, dims=group)
        if included is not None:
            pm.Deterministic(rename("inclusion_group"), included[lead].astype("int8"), dims=group)
    return f


def forward(
    act: Activation,
    product: TensorVariable,
    bias: TensorVariable,
    deeper: Sequence[tuple[TensorVariable, TensorVariable]],
    beta: TensorVariable,
    hidden: tuple[int, ...],
    line_sd: float | None,
) -> TensorVariable:
    """Return the network less its level, given the first layer's product.

    ``line_sd`` is the output weight of the product's last column, if that is a line.
    """
    above = [*(W for W, _ in deeper), beta]
    if line_sd is not None:
        # To cut the line off would copy the product: it is a unit that no other takes up.
        bias = pt.concatenate([bias, [0.0]])
        above[0] = pt.concatenate([above[0], np.zeros((1, *hidden[1:2]))])
    unit = act.graph(product + bias)
    for W, (_, b) in zip(above, deeper, strict=False):
        unit = act.graph(pt.dot(unit, W) + b)
    value = pt.dot(unit, above[-1])
    if line_sd is None:
        return value
    return value + pt.dot(product, line_sd * np.eye(hidden[0] + 1)[-1])


def relu_network(
    name: str,
    X: Any,
    *,
    hidden: int | Sequence[int] = (20,),
    prior: str | Prior = "gated",
    activation: str | None = None,
    scale: float = 1.0,
    standardize: bool = True,
    feature_names: Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    always_in: str | Sequence[str] | None = None,
) -> TensorVariable:
    """Add a Bayesian network to the model on the context stack.

    Registers the network's weights as ``{name}_...``, ``{name}`` itself, ``{name}_psi`` with the
    dim of the inputs and, if the prior has exact zeros, ``{name}_inclusion``. Use what it
    returns under any likelihood, beside any other term, as often as you like.

    Parameters
    ----------
    name : str
        Name of the function's ``Deterministic``, dim ``obs_id``, and prefix of all the rest.
    X : pm.Data variable, DataFrame, DataArray or array, shape (n, P)
        Inputs. A table is registered as ``pm.Data("{name}_X")`` with dims
        ``("obs_id", "feature")``, or ``"{name}_feature"`` where the model's ``feature`` has
        other names. A ``pm.Data`` variable of the model is used as it is, with its dims.
    hidden : int or sequence of int
        Widths of the hidden layers.
    prior : str or Prior
        ``"gated"``, ``"gaussian"``, ``"ard"``, ``"horseshoe"``, ``"spike_slab"``, or a prior
        with its own parameters, as in ``bvs.priors.Gated(threshold_mean=1.5)``.
    activation : str, optional
        ``"relu"``; ``"rounded_relu"``, with a parabola of width 0.4 in the place of the kink, so
        that NUTS takes longer steps; ``"softplus"`` or ``"tanh"``. By default
        ``"rounded_relu"`` for the prior ``"gated"``, and ``"relu"`` for the others.
    scale : float
        Unit of the function: the prior is that of a function of standard deviation about 1,
        times ``scale``. Give the outcome's standard deviation for a Gaussian outcome.
    standardize : bool
        Centre and scale the inputs inside; ``psi`` is on the user's scale either way.
    feature_names : sequence of str, optional
        Names of the inputs, where ``X`` has none.
    groups : mapping of str to sequence of str, optional
        Columns that share one gate.
    always_in : str or sequence of str, optional
        Columns or groups whose gate stays open.

    Returns
    -------
    TensorVariable, shape (n,)
        The function at the rows of ``X``.

    Raises
    ------
    ValueError
        If the inputs can't be used, or an option is not known; the message names the culprit.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_bnnvs as bvs
    >>> rng = np.random.default_rng(1)
    >>> X, y = rng.normal(size=(50, 3)), rng.poisson(2.0, size=50)
    >>> with pm.Model() as model:
    ...     f = bvs.relu_network("f", X, hidden=(5,))
    ...     _ = pm.Poisson("y", mu=pm.math.exp(f), observed=y)
    >>> model.named_vars_to_dims["f_psi"]
    ('feature',)
    """
    model = pm.modelcontext(None)
    prior, hidden, activation = read_options(prior, hidden, activation)
    if not np.isfinite(scale) or scale <= 0:
        raise ValueError(f"scale={scale!r}: give a positive, finite number.")
    options: dict[str, Any] = {"groups": groups, "always_in": always_in}
    if isinstance(X, TensorVariable):
        data, table, dims = _from_model(model, name, X, feature_names, options)
    else:
        table = read_table(X, feature_names=feature_names, **options)
        dims = ("obs_id", _feature_dim(model, "feature", f"{name}_feature", table.features))
        data = pm.Data(f"{name}_X", table.values, dims=dims)
    scales = Scales(
        x_center=table.center,
        x_scale=table.scale if standardize else np.ones_like(table.scale),
        f_center=0.0,
        f_scale=float(scale),
        standardized=standardize,
    )
    return add_network(
        data,
        table,
        name=name,
        rename=lambda variable: f"{name}_{variable}",
        hidden=hidden,
        prior=prior,
        activation=activation,
        scales=scales,
        dims=dims,
    )


def _from_model(
    model: pm.Model,
    name: str,
    X: TensorVariable,
    feature_names: Sequence[str] | None,
    options: Mapping[str, Any],
) -> tuple[TensorVariable, Table, tuple[str | None, str]]:
    """Read the inputs of a network from a ``pm.Data`` variable of the model."""
    if not hasattr(X, "get_value") or X.name not in model.named_vars:
        raise ValueError(
            "X is a tensor but not a pm.Data variable of this model: the network needs its values "
            'to centre and scale the inputs. Register it with pm.Data("X", ...).'
        )
    dims = model.named_vars_to_dims.get(X.name, ())
    obs_dim, feature = (*dims, None, None)[:2]
    if feature_names is None and feature is not None and model.coords.get(feature) is not None:
        feature_names = [str(label) for label in model.coords[feature]]
    table = read_table(X.get_value(), feature_names=feature_names, **options)
    if feature is None:
        feature = _feature_dim(model, "feature", f"{name}_feature", table.features)
    elif model.coords.get(feature) is None:
        raise ValueError(
            f"dim {feature!r} of {X.name!r} has no names: "
            f"give them in pm.Model(coords={{{feature!r}: [...]}})."
        )
    return X, table, (obs_dim, feature)


def _feature_dim(model: pm.Model, wanted: str, fallback: str, names: Sequence[str]) -> str:
    """Return a dim with these coordinate values, made if it does not exist."""
    for dim in (wanted, fallback):
        if dim not in model.coords:
            model.add_coord(dim, list(names))
            return dim
        values = model.coords[dim]
        if values is not None and list(map(str, values)) == list(names):
            return dim
    raise ValueError(f"dims {wanted!r} and {fallback!r} of the model already have other names.")

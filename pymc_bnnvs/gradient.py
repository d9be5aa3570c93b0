"""psi, the integrated squared gradient of each input, as a graph."""

from __future__ import annotations

import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.graph.traversal import ancestors
from pytensor.tensor import TensorVariable

__all__ = ["gradient_importance", "network_importance"]


def network_importance(
    f: TensorVariable, preactivation: TensorVariable, weights: TensorVariable
) -> TensorVariable:
    """Integrated squared gradient of a network, through its first pre-activation.

    ``f`` is linear in the inputs up to ``preactivation = X @ weights + b``. With
    ``D = d f / d preactivation`` (rows are independent, so it is the gradient of the sum),
    ``psi = diag(W (D'D / n) W')``, which costs ``n K**2 + P K**2`` instead of ``n P K``.

    Parameters
    ----------
    f : TensorVariable, shape (n,)
    preactivation : TensorVariable, shape (n, K)
    weights : TensorVariable, shape (P, K)
        On the scale of the inputs that ``psi`` is wanted for.

    Returns
    -------
    TensorVariable, shape (P,)
    """
    slope = pytensor.grad(f.sum(), preactivation)
    second_moment = pt.dot(slope.T, slope) / slope.shape[0]
    return pt.sum(pt.dot(weights, second_moment) * weights, axis=1)


def gradient_importance(f: TensorVariable, X: TensorVariable, name: str = "psi") -> TensorVariable:
    """Register the integrated squared gradient of any differentiable function of the inputs.

    ``psi_p = (1/n) sum_i (d f(x_i) / d x_p)**2``, by PyTensor's own differentiation.

    Parameters
    ----------
    f : TensorVariable, shape (n,)
        One value a row of ``X``. Row ``i`` may depend on row ``i`` of ``X`` alone: the gradient
        of the sum of ``f`` is then the gradient of each row. A Gaussian process mean qualifies
        when its training inputs are another ``pm.Data`` than ``X``.
    X : TensorVariable, shape (n, P)
        The ``pm.Data`` variable that ``f`` is built from; that very variable, not a copy.
    name : str
        Name of the ``Deterministic``; its dim is the second dim of ``X``.

    Returns
    -------
    TensorVariable, shape (P,)
        In units of (unit of f / unit of the input) squared.

    Raises
    ------
    ValueError
        If ``f`` does not depend on ``X``, or a shape does not fit.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_bnnvs as bvs
    >>> with pm.Model(coords={"feature": ["a", "b"]}) as model:
    ...     X = pm.Data("X", np.eye(2), dims=("obs_id", "feature"))
    ...     f = X @ pm.Normal("b", dims="feature")
    ...     psi = bvs.gradient_importance(f, X)
    >>> model.named_vars_to_dims["psi"]
    ('feature',)
    """
    model = pm.modelcontext(None)
    if getattr(f, "ndim", None) != 1:
        raise ValueError("f must be a tensor with one value a row of X: shape (n,).")
    if getattr(X, "ndim", None) != 2:
        raise ValueError("X must be the pm.Data variable with shape (n, P).")
    if X not in set(ancestors([f])):
        raise ValueError(
            "f does not depend on the X that was given. Build f from the pm.Data variable itself "
            '(X = pm.Data("X", ...)) and pass that same variable, not a copy or the raw array.'
        )
    gradient = pytensor.grad(f.sum(), X)
    gradient.name = f"{name}::gradient"
    dims = model.named_vars_to_dims.get(X.name)
    return pm.Deterministic(
        name, pt.mean(gradient**2, axis=0), dims=None if dims is None else (dims[1],)
    )

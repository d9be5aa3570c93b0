"""The gated product where the part of each row along one direction is given apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_and_cache_key
from pytensor.tensor import TensorVariable

from pymc_bnnvs.gated_dot import (
    GatedDot,
    OpenProduct,
    OpenProductGrad,
    open_gradient,
    open_inner,
    open_product,
    open_rows,
    open_scale,
    total,
)

__all__ = ["GatedAlong", "GatedAlongGrad", "gated_along", "rows_along"]


class GatedAlong(OpenProduct):
    """``(X - center) @ W`` over the open rows; see ``gated_along``."""

    names = (*GatedDot.names, "along", "direction")
    gufunc_signature = "(n,p),(p),(p),(p,k),(p),(k)->(n,k)"

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list) -> None:
        """Multiply without the closed rows, in numpy."""
        X, center, scale, rows, along, direction = inputs
        is_open = ~(scale <= 0)
        part = along[is_open] - rows[is_open] @ direction
        weights = scale[is_open, None] * (rows[is_open] + part[:, None] * direction)
        output_storage[0][0] = (X[:, is_open] - center[is_open]) @ weights

    def weights(self, scale: Any, rows: Any, along: Any, direction: Any) -> TensorVariable:
        """Weights with the closed rows at 0."""
        return open_scale(scale)[..., None] * rows_along(rows, along, direction)

    def gradient(self) -> OpenProductGrad:
        """Return the operation of the weights' gradients."""
        return GatedAlongGrad()


class GatedAlongGrad(OpenProductGrad):
    """Gradients of ``gated_along`` in all but ``X`` and its centre, given the product's, ``G``."""

    names = (*GatedAlong.names, "G")
    gufunc_signature = "(n,p),(p),(p),(p,k),(p),(k),(n,k)->(p),(p,k),(p),(k)"

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list) -> None:
        """Fill in the gradients of the open rows, in numpy."""
        X, center, scale, rows, along, direction, G = inputs
        is_open = ~(scale <= 0)
        own, s = rows[is_open], scale[is_open]
        part = along[is_open] - own @ direction
        inner = (X[:, is_open] - center[is_open]).T @ G
        scaled = s[:, None] * inner
        slope = scaled @ direction
        grads = [np.zeros_like(value) for value in (scale, rows, along)]
        grads[0][is_open] = np.sum(own * inner, axis=1) + part * (inner @ direction)
        grads[1][is_open] = scaled - slope[:, None] * direction
        grads[2][is_open] = slope
        for storage, grad in zip(
            output_storage, [*grads, part @ scaled - slope @ own], strict=True
        ):
            storage[0] = grad

    def dense(
        self, X: Any, center: Any, scale: Any, rows: Any, along: Any, direction: Any, G: Any
    ) -> list[TensorVariable]:
        """Write the gradients out with ordinary operations."""
        line = direction[..., None, :]
        part = along - total(rows * line, axis=-1)
        inner = open_inner(X, center, scale, rows, G)
        scaled = open_scale(scale)[..., None] * inner
        slope = total(scaled * line, axis=-1)
        return [
            total((rows + part[..., None] * line) * inner, axis=-1),
            scaled - slope[..., None] * line,
            slope,
            total(part[..., None] * scaled - slope[..., None] * rows, axis=-2),
        ]


def gated_along(
    X: Any, center: Any, scale: Any, rows: Any, along: Any, direction: Any
) -> TensorVariable:
    """Multiply a table with gated weights whose part along a direction is given apart.

    As :func:`pymc_bnnvs.gated_dot.gated_dot` with the rows ``z_p + (along_p - z_p'd) d``; only
    the open ones are ever written down.

    Parameters
    ----------
    X : tensor, shape (n, P)
        Table of inputs, finite.
    center : tensor, shape (P,)
        Taken off the columns of ``X``.
    scale : tensor, shape (P,)
        Opening of each gate; 0 or less is closed.
    rows : tensor, shape (P, K)
        The ``z_p``.
    along : tensor, shape (P,)
        Part of each row along ``direction``.
    direction : tensor, shape (K,)
        The unit vector ``d``.

    Returns
    -------
    TensorVariable, shape (n, K)

    Raises
    ------
    ValueError
        If a number of dimensions, or a length that is known, does not fit.

    Examples
    --------
    >>> from pymc_bnnvs.gated_along import gated_along
    >>> table, center, scale = [[1.0, 2.0], [3.0, 4.0]], [0.0, 0.0], [0.0, 0.5]
    >>> out = gated_along(table, center, scale, [[1.0, 1.0], [2.0, 8.0]], [0.0, 4.0], [1.0, 0.0])
    >>> out.eval(mode="FAST_COMPILE")
    array([[ 4.,  8.],
           [ 8., 16.]])
    """
    return GatedAlong()(X, center, scale, rows, along, direction)


def rows_along(rows: Any, along: Any, direction: Any) -> TensorVariable:
    """Rows with their part along the direction replaced, any batch dimensions first."""
    line = direction[..., None, :]
    part = along - total(rows * line, axis=-1)
    return rows + part[..., None] * line


def key_on_disk(kernel: str) -> str:
    """Return the name by which PyTensor finds a compiled kernel again."""
    return sha256(f"{__name__} {kernel}".encode()).hexdigest()


@numba_njit
def check(rows: Any, along: Any, direction: Any) -> None:
    # numba does not check an index.
    if along.size != rows.shape[0] or direction.size != rows.shape[1]:
        raise ValueError("gated_along: along or direction does not fit the rows")


# Bump the number in a key with any change to a kernel or to a function that it calls.
@register_funcify_and_cache_key(GatedAlong)
def numba_gated_along(op: GatedAlong, node: Apply, **kwargs: Any) -> tuple[Callable, str | None]:
    """Pack the open columns of ``X`` and multiply them by BLAS."""

    @numba_njit
    def gated_along(X: Any, center: Any, scale: Any, rows: Any, along: Any, direction: Any) -> Any:
        n, width = X.shape[0], rows.shape[1]
        is_open = open_rows(X, center, scale, rows)
        check(rows, along, direction)
        if is_open.size == 0:
            return np.zeros((n, width), X.dtype)
        weights = np.empty((is_open.size, width), rows.dtype)
        for j in range(is_open.size):
            p = is_open[j]
            part = along[p]
            for k in range(width):
                part -= rows[p, k] * direction[k]
            for k in range(width):
                weights[j, k] = scale[p] * (rows[p, k] + part * direction[k])
        return open_product(X, center, is_open, weights)

    return gated_along, key_on_disk("gated_along 2")


@register_funcify_and_cache_key(GatedAlongGrad)
def numba_gated_along_grad(
    op: GatedAlongGrad, node: Apply, **kwargs: Any
) -> tuple[Callable, str | None]:
    """Pack the open columns of ``X``, multiply them by BLAS and put the result in its rows."""

    @numba_njit
    def gated_along_grad(
        X: Any, center: Any, scale: Any, rows: Any, along: Any, direction: Any, G: Any
    ) -> Any:
        n, width = G.shape
        if X.shape[0] != n or rows.shape[1] != width:
            raise ValueError("gated_along: the gradient has not the shape of the product")
        is_open = open_rows(X, center, scale, rows)
        check(rows, along, direction)
        grad_scale = np.zeros(scale.size, scale.dtype)
        grad_rows = np.zeros(rows.shape, rows.dtype)
        grad_along = np.zeros(along.size, along.dtype)
        grad_direction = np.zeros(width, direction.dtype)
        if is_open.size == 0:
            return grad_scale, grad_rows, grad_along, grad_direction
        inner = open_gradient(X, center, is_open, G)
        for j in range(is_open.size):
            p = is_open[j]
            s, part, slope = scale[p], along[p], inner[j, 0] * 0
            for k in range(width):
                part -= rows[p, k] * direction[k]
                slope += inner[j, k] * direction[k]
            for k in range(width):
                grad_scale[p] += (rows[p, k] + part * direction[k]) * inner[j, k]
                grad_rows[p, k] = s * (inner[j, k] - slope * direction[k])
                grad_direction[k] += s * (part * inner[j, k] - slope * rows[p, k])
            grad_along[p] = s * slope
        return grad_scale, grad_rows, grad_along, grad_direction

    return gated_along_grad, key_on_disk("gated_along_grad 2")

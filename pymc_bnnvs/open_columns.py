"""What numba makes of the gated product: the open columns, packed once for value and gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import (
    numba_njit,
    register_funcify_and_cache_key,
)

__all__ = ["OpenColumns", "OpenDot", "OpenDotGrad"]

#: Share of the columns, and number of values, up to which they are kept from value to gradient.
KEPT_SHARE, KEPT_VALUES = 0.5, 2**17
#: Rows packed at a time where they are not kept: these stay in a core's own cache.
BLOCK = 128


def gather(X: np.ndarray, center: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Open columns of ``X - center``, and which they are, (P,), in numpy."""
    is_open = ~(scale <= 0)
    return X[:, is_open] - center[is_open], is_open


def product(
    X: np.ndarray, center: np.ndarray, scale: np.ndarray, rows: np.ndarray, more: np.ndarray
) -> np.ndarray:
    """Product of the open columns with their weights, in numpy."""
    columns, is_open = gather(X, center, scale)
    return columns @ (scale[is_open, None] * np.hstack([rows[is_open], more[is_open]]))


def gradients(
    X: np.ndarray,
    center: np.ndarray,
    scale: np.ndarray,
    rows: np.ndarray,
    more: np.ndarray,
    G: np.ndarray,
) -> list[np.ndarray]:
    """Gradients along ``scale``, ``rows`` and ``more``, given that of the product, in numpy."""
    columns, is_open = gather(X, center, scale)
    inner = columns.T @ G
    grads = [np.zeros_like(of) for of in (scale, rows, more)]
    grads[0][is_open] = np.sum(np.hstack([rows[is_open], more[is_open]]) * inner, axis=1)
    inner *= scale[is_open, None]
    grads[1][is_open], grads[2][is_open] = np.split(inner, [rows.shape[1]], axis=1)
    return grads


class OpenColumns(Op):
    """Columns of ``X - center`` with ``scale > 0``, (n, m), and their numbers, (m,).

    Where most of a large table is open it would be copied: then there are no rows, (0, m), and
    the operations below take blocks of ``X``.
    """

    __props__ = ()

    def make_node(self, X: Any, center: Any, scale: Any) -> Apply:
        """Take inputs that ``GatedDot`` has checked."""
        columns = pt.tensor(dtype=X.dtype, shape=(None, None))
        return Apply(self, [X, center, scale], [columns, pt.lvector()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list) -> None:
        """Gather them, in numpy."""
        X, center, scale = inputs
        columns, is_open = gather(X, center, scale)
        kept = is_kept(X.shape[0], X.shape[1], columns.shape[1])
        output_storage[0][0] = columns if kept else columns[:0]
        output_storage[1][0] = np.flatnonzero(is_open)


class OpenDot(Op):
    """Product of the open columns with their weights, ``scale[:, None] * [rows, more]``."""

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply:
        """Take what ``OpenColumns`` gives and takes, and the weights of all gates."""
        _, _, X, _, _, rows, more = inputs
        width = rows.type.shape[1]
        if width is not None:
            width += more.type.shape[1]
        out = pt.tensor(dtype=X.dtype, shape=(X.type.shape[0], width))
        return Apply(self, list(inputs), [out])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list) -> None:
        """Multiply, in numpy."""
        output_storage[0][0] = product(*inputs[2:])


class OpenDotGrad(Op):
    """Gradients along ``scale``, ``rows`` and ``more``, given that of the product, ``G``."""

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply:
        """Take the inputs of ``OpenDot``, and ``G``."""
        return Apply(self, list(inputs), [variable.type() for variable in inputs[4:7]])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list) -> None:
        """Fill in the gradients of the open gates, in numpy."""
        for storage, grad in zip(output_storage, gradients(*inputs[2:]), strict=True):
            storage[0] = grad


def is_kept(n: int, n_columns: int, n_open: int) -> bool:
    """Whether the open columns are kept from value to gradient."""
    return n_open <= KEPT_SHARE * n_columns or n * n_open <= KEPT_VALUES


is_kept_jit = numba_njit(is_kept)


@numba_njit
def pack(X: Any, first: int, at: Any, shift: Any, out: Any) -> None:
    # No view of a row: numba counts its references, at a cost of several values.
    for i in range(out.shape[0]):
        # The columns are in order and apart: as many as there are need no lookup.
        if at.size == X.shape[1]:
            for j in range(at.size):
                out[i, j] = X[first + i, j] - shift[j]
        else:
            for j in range(at.size):
                out[i, j] = X[first + i, at[j]] - shift[j]


@numba_njit
def unsigned(where: Any) -> Any:
    # A number without a sign needs no look whether it counts from the end.
    return where.astype(np.uintp)


@numba_njit
def open_product(X: Any, center: Any, columns: Any, where: Any, weights: Any) -> Any:
    n = X.shape[0]
    out = np.zeros((n, weights.shape[1]), X.dtype)
    # BLAS does not take a matrix without rows or columns.
    if out.size == 0 or where.size == 0:
        return out
    if columns.shape[0] == n:
        np.dot(columns, weights, out)
        return out
    at, shift = unsigned(where), center[where]
    buffer = np.empty((BLOCK, where.size), X.dtype)
    for first in range(0, n, BLOCK):
        block = buffer[: min(BLOCK, n - first)]
        pack(X, first, at, shift, block)
        np.dot(block, weights, out[first : first + block.shape[0]])
    return out


@numba_njit
def open_gradient(X: Any, center: Any, columns: Any, where: Any, G: Any) -> Any:
    n, width = G.shape
    inner = np.zeros((where.size, width), X.dtype)
    if inner.size == 0 or n == 0:
        return inner
    contiguous = np.ascontiguousarray(G)
    if columns.shape[0] == n:
        np.dot(columns.T, contiguous, inner)
        return inner
    at, shift = unsigned(where), center[where]
    part = np.empty((where.size, width), X.dtype)
    buffer = np.empty((BLOCK, where.size), X.dtype)
    for first in range(0, n, BLOCK):
        block = buffer[: min(BLOCK, n - first)]
        pack(X, first, at, shift, block)
        np.dot(block.T, contiguous[first : first + block.shape[0]], part)
        inner += part
    return inner


# PyTensor knows a kernel on disk by its key, not by its source: bump the number in it with any
# change to the kernel, or to a function above.
def key(name: str) -> str:
    return sha256(f"{__name__} {name} 2".encode()).hexdigest()


@register_funcify_and_cache_key(OpenColumns)
def numba_open_columns(op: OpenColumns, node: Apply, **kwargs: Any) -> tuple[Callable, str | None]:
    """Pack the open columns."""

    @numba_njit
    def open_columns(X: Any, center: Any, scale: Any) -> Any:
        # numba does not check an index.
        if X.shape[1] != scale.size or center.size != scale.size:
            raise ValueError("gated_dot: X, center and scale differ in the number of inputs")
        where = np.flatnonzero(~(scale <= 0))
        kept = X.shape[0] if is_kept_jit(X.shape[0], X.shape[1], where.size) else 0
        columns = np.empty((kept, where.size), X.dtype)
        pack(X, 0, unsigned(where), center[where], columns)
        return columns, where

    return open_columns, key("open_columns")


@register_funcify_and_cache_key(OpenDot)
def numba_open_dot(op: OpenDot, node: Apply, **kwargs: Any) -> tuple[Callable, str | None]:
    """Multiply the open columns with their weights by BLAS."""

    @numba_njit
    def open_dot(
        columns: Any, where: Any, X: Any, center: Any, scale: Any, rows: Any, more: Any
    ) -> Any:
        units = rows.shape[1]
        if rows.shape[0] != scale.size or more.shape[0] != scale.size:
            raise ValueError("gated_dot: rows and scale differ in the number of inputs")
        weights = np.empty((where.size, units + more.shape[1]), rows.dtype)
        for j in range(where.size):
            p = where[j]
            for k in range(units):
                weights[j, k] = scale[p] * rows[p, k]
            for k in range(more.shape[1]):
                weights[j, units + k] = scale[p] * more[p, k]
        return open_product(X, center, columns, where, weights)

    return open_dot, key("open_dot")


@register_funcify_and_cache_key(OpenDotGrad)
def numba_open_dot_grad(op: OpenDotGrad, node: Apply, **kwargs: Any) -> tuple[Callable, str | None]:
    """Multiply the open columns with the gradient by BLAS and put the result in their rows."""

    @numba_njit
    def open_dot_grad(
        columns: Any, where: Any, X: Any, center: Any, scale: Any, rows: Any, more: Any, G: Any
    ) -> Any:
        units = rows.shape[1]
        if X.shape[0] != G.shape[0] or units + more.shape[1] != G.shape[1]:
            raise ValueError("gated_dot: the gradient has not the shape of the product")
        if rows.shape[0] != scale.size or more.shape[0] != scale.size:
            raise ValueError("gated_dot: rows and scale differ in the number of inputs")
        grad_scale = np.zeros(scale.size, scale.dtype)
        grad_rows = np.zeros(rows.shape, rows.dtype)
        grad_more = np.zeros(more.shape, more.dtype)
        inner = open_gradient(X, center, columns, where, G)
        for j in range(where.size):
            p = where[j]
            for k in range(units):
                grad_scale[p] += rows[p, k] * inner[j, k]
                grad_rows[p, k] = scale[p] * inner[j, k]
            for k in range(more.shape[1]):
                grad_scale[p] += more[p, k] * inner[j, units + k]
                grad_more[p, k] = scale[p] * inner[j, units + k]
        return grad_scale, grad_rows, grad_more

    return open_dot_grad, key("open_dot_grad")

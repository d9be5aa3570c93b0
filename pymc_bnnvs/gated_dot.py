"""The product of a table with gated weights, at the cost of the open gates alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile import optdb
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.link.numba.dispatch.basic import (
    numba_funcify_and_cache_key,
    numba_njit,
    register_funcify_and_cache_key,
)
from pytensor.tensor import TensorVariable
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.math import Dot

__all__ = ["gated_dot"]

# Rows of X packed at a time: with 10 % of 2,000 gates open they stay in a core's own cache.
BLOCK = 128


NDIM = {"X": 2, "center": 1, "scale": 1, "rows": 2, "G": 2}
#: The axis of each input that runs over the gates.
LENGTHS = {"X": 1, "center": 0, "scale": 0, "rows": 0}


class OpenProduct(Op):
    """``X - center`` times weights that are 0 where the gate is closed.

    Inputs are ``X``, its centre and what the weights are made of, the scale and the rows first.
    """

    __props__ = ()
    names: ClassVar[tuple[str, ...]]

    def make_node(self, *given: Any) -> Apply:
        """Check and cast the inputs."""
        inputs = as_inputs(self.names, given)
        X, rows = inputs[0], inputs[3]
        shape = (X.type.shape[0], rows.type.shape[1])
        return Apply(self, inputs, [pt.tensor(dtype=X.dtype, shape=shape)])

    def infer_shape(self, node: Apply, shapes: list) -> list:
        """Shape from those of the inputs."""
        return [(shapes[0][0], shapes[3][1])]

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        """Gradients of the inputs."""
        (G,) = cotangents
        d_X = pt.dot(G, self.weights(*inputs[2:]).T)
        return [d_X, -total(d_X, axis=0), *self.gradient()(*inputs, G)]

    def dense(self, X: Any, center: Any, *parts: Any) -> list[TensorVariable]:
        """Write the product out with ordinary operations, any batch dimensions first."""
        return [pt.matmul(X - center[..., None, :], self.weights(*parts))]

    def weights(self, *parts: Any) -> TensorVariable:
        """Weights (P, K) with the closed rows at 0."""
        raise NotImplementedError

    def gradient(self) -> OpenProductGrad:
        """Return the operation of the weights' gradients."""
        raise NotImplementedError


class OpenProductGrad(Op):
    """Gradients of a product in what its weights are made of, given that of the product, ``G``."""

    __props__ = ()
    names: ClassVar[tuple[str, ...]]

    def make_node(self, *given: Any) -> Apply:
        """Check and cast the inputs."""
        inputs = as_inputs(self.names, given)
        return Apply(self, inputs, [variable.type() for variable in inputs[2:-1]])

    def infer_shape(self, node: Apply, shapes: list) -> list:
        """Shapes of the inputs."""
        return shapes[2:-1]

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        """Second derivatives, which few ask for, by those of the whole product."""
        used = [
            (place, cotangent)
            for place, cotangent in enumerate(cotangents)
            if not isinstance(cotangent.type, DisconnectedType)
        ]
        # Variables of their own: inputs and cotangents may be functions of one another.
        own = [variable.type() for variable in inputs]
        weights = [cotangent.type() for _, cotangent in used]
        outs = self.dense(*own)
        loss = sum(pt.sum(outs[place] * w) for (place, _), w in zip(used, weights, strict=True))
        grads = pytensor.grad(loss, own, disconnected_inputs="ignore")
        real = [*inputs, *(cotangent for _, cotangent in used)]
        return clone_replace(grads, dict(zip([*own, *weights], real, strict=True)))

    def dense(self, *inputs: Any) -> list[TensorVariable]:
        """Write the gradients out with ordinary operations, any batch dimensions first."""
        raise NotImplementedError


class GatedDot(OpenProduct):
    """``(X - center) @ (s[:, None] * Z)`` over the rows with ``s > 0``; see ``gated_dot``."""

    names = ("X", "center", "scale", "rows")
    gufunc_signature = "(n,p),(p),(p),(p,k)->(n,k)"

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list) -> None:
        """Multiply without the closed rows, in numpy."""
        X, center, scale, rows = inputs
        is_open = ~(scale <= 0)
        weights = scale[is_open, None] * rows[is_open]
        output_storage[0][0] = (X[:, is_open] - center[is_open]) @ weights

    def weights(self, scale: Any, rows: Any) -> TensorVariable:
        """Weights with the closed rows at 0."""
        return open_scale(scale)[..., None] * rows

    def gradient(self) -> OpenProductGrad:
        """Return the operation of the weights' gradients."""
        return GatedDotGrad()


class GatedDotGrad(OpenProductGrad):
    """Gradients of ``gated_dot`` along ``s`` and ``Z``, given that of the product, ``G``."""

    names = (*GatedDot.names, "G")
    gufunc_signature = "(n,p),(p),(p),(p,k),(n,k)->(p),(p,k)"

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list) -> None:
        """Fill in the gradients of the open rows, in numpy."""
        X, center, scale, rows, G = inputs
        is_open = ~(scale <= 0)
        inner = (X[:, is_open] - center[is_open]).T @ G
        grad_scale, grad_rows = np.zeros_like(scale), np.zeros_like(rows)
        grad_scale[is_open] = np.sum(rows[is_open] * inner, axis=1)
        grad_rows[is_open] = scale[is_open, None] * inner
        output_storage[0][0], output_storage[1][0] = grad_scale, grad_rows

    def dense(self, X: Any, center: Any, scale: Any, rows: Any, G: Any) -> list[TensorVariable]:
        """Write the gradients out with ordinary operations."""
        inner = open_inner(X, center, scale, rows, G)
        return [total(rows * inner, axis=-1), open_scale(scale)[..., None] * inner]


def gated_dot(X: Any, scale: Any, rows: Any, center: Any = None) -> TensorVariable:
    """Multiply a table with gated weights, skipping the rows of closed gates.

    The value is that of ``(X - center) @ (scale[:, None] * rows)`` with ``scale`` cut off at 0,
    and so are the gradients; but time grows with the number of open gates, ``scale > 0``, and not
    with ``P``. Most of it is saved by the numba backend; JAX computes the dense product.

    Parameters
    ----------
    X : tensor, shape (n, P)
        Table of inputs, finite.
    scale : tensor, shape (P,)
        Opening of each gate, as in ``pt.maximum(u - c, 0)``; 0 or less is closed.
    rows : tensor, shape (P, K)
        Weights at a scale of 1.
    center : tensor, shape (P,), optional
        Taken off the columns of ``X``; 0 if not given.

    Returns
    -------
    TensorVariable, shape (n, K)
        Of the dtype that the dtypes promote to.

    Raises
    ------
    ValueError
        If a number of dimensions, or a length that is known, does not fit.

    Notes
    -----
    A closed gate has no gradient: neither its scale nor its row moves the product while the
    scale stays below 0. At exactly 0 that is a choice, the subgradient 0 of the cut.

    Examples
    --------
    >>> from pymc_bnnvs.gated_dot import gated_dot
    >>> X = [[1.0, 2.0], [3.0, 4.0]]
    >>> gated_dot(X, scale=[0.0, 0.5], rows=[[10.0], [20.0]]).eval(mode="FAST_COMPILE")
    array([[20.],
           [40.]])
    """
    if center is None:
        center = pt.zeros_like(scale)
    return GatedDot()(X, center, scale, rows)


def as_inputs(names: Sequence[str], values: Sequence[Any]) -> list[TensorVariable]:
    """Tensors of one floating dtype, which BLAS needs, with ndims and lengths that fit."""
    tensors = dict(zip(names, map(pt.as_tensor_variable, values), strict=True))
    # The centre last: one that was not given is made from the scale.
    for name in sorted(tensors, key="center".__eq__):
        if tensors[name].ndim != NDIM[name]:
            raise ValueError(f"{name} has {tensors[name].ndim} dimensions, not {NDIM[name]}.")
    lengths = {n: tensors[n].type.shape[axis] for n, axis in LENGTHS.items() if n in tensors}
    if len({length for length in lengths.values() if length is not None}) > 1:
        raise ValueError(
            f"X has {lengths['X']} columns, center {lengths['center']} values, scale "
            f"{lengths['scale']} gates and rows {lengths['rows']} rows: these must be the same "
            "number."
        )
    dtype = pytensor.scalar.upcast(*(tensor.dtype for tensor in tensors.values()))
    if dtype not in ("float32", "float64"):
        dtype = pytensor.config.floatX
    return [tensor.astype(dtype) for tensor in tensors.values()]


def open_scale(scale: TensorVariable) -> TensorVariable:
    """Scale of the open gates, 0 for the others; one that is not a number stays so."""
    return pt.switch(scale <= 0, 0, scale)


def open_inner(X: Any, center: Any, scale: Any, rows: Any, G: Any) -> TensorVariable:
    """Gradient along the weights, 0 in the closed rows."""
    inner = pt.matmul((X - center[..., None, :]).mT, G)
    # The zeros carry the batch shape of the rows, should nothing else have it.
    return pt.switch((scale <= 0)[..., None], pt.zeros_like(rows), inner)


def total(values: TensorVariable, axis: int) -> TensorVariable:
    """Sum in the dtype of the values: with a wider accumulator JAX would return that."""
    return pt.sum(values, axis=axis, acc_dtype=values.dtype)


@node_rewriter([OpenProduct, OpenProductGrad, Blockwise])
def dense_product(fgraph: Any, node: Apply) -> list[TensorVariable] | None:
    """Write the products out with ordinary operations."""
    op = getattr(node.op, "core_op", node.op)
    return op.dense(*node.inputs) if isinstance(op, OpenProduct | OpenProductGrad) else None


# XLA needs shapes that it knows, so it can't skip a row. A rewrite, because to register with
# PyTensor's JAX dispatch means to import JAX, whether it is used or not.
optdb.register("jax_gated_dot", dfs_rewriter(dense_product), "jax", position=0.9)


@numba_njit
def open_rows(X: Any, center: Any, scale: Any, rows: Any) -> Any:
    # numba does not check an index.
    if X.shape[1] != scale.size or center.size != scale.size or rows.shape[0] != scale.size:
        raise ValueError("gated_dot: X, center, scale and rows differ in the number of inputs")
    return np.flatnonzero(~(scale <= 0))


@numba_njit
def _most(is_open: Any, scale: Any) -> bool:
    # Past three gates in four, packing costs more than it saves.
    return 4 * is_open.size > 3 * scale.size


@numba_njit
def _pack(X: Any, center: Any, columns: Any, first: int, out: Any) -> None:
    for i in range(out.shape[0]):
        for j in range(columns.size):
            out[i, j] = X[first + i, columns[j]] - center[columns[j]]


@numba_njit
def open_product(X: Any, center: Any, is_open: Any, weights: Any) -> Any:
    n = X.shape[0]
    out = np.zeros((n, weights.shape[1]), X.dtype)
    buffer = np.empty((min(n, BLOCK), is_open.size), X.dtype)
    for first in range(0, n, BLOCK):
        block = buffer[: min(BLOCK, n - first)]
        _pack(X, center, is_open, first, block)
        np.dot(block, weights, out[first : first + block.shape[0]])
    return out


@numba_njit
def open_gradient(X: Any, center: Any, is_open: Any, G: Any) -> Any:
    n, width = G.shape
    inner = np.zeros((is_open.size, width), X.dtype)
    part = np.empty((is_open.size, width), X.dtype)
    buffer = np.empty((min(n, BLOCK), is_open.size), X.dtype)
    contiguous = np.ascontiguousarray(G)
    for first in range(0, n, BLOCK):
        block = buffer[: min(BLOCK, n - first)]
        _pack(X, center, is_open, first, block)
        np.dot(block.T, contiguous[first : first + block.shape[0]], part)
        inner += part
    return inner


def _dense_dot(X: Any, Y: Any, kernel: str) -> tuple[Callable, str | None]:
    """PyTensor's own product of two matrices, and the key on disk of the kernel that holds it."""
    dot, key = numba_funcify_and_cache_key(Dot(), node=Dot().make_node(X, Y))
    return dot, key and sha256(f"{__name__} {kernel} {key}".encode()).hexdigest()


# PyTensor knows a kernel on disk by this key, not by its source: bump the number in it with any
# change to the kernel or to a function above.
@register_funcify_and_cache_key(GatedDot)
def numba_gated_dot(op: GatedDot, node: Apply, **kwargs: Any) -> tuple[Callable, str | None]:
    """Pack the open columns of ``X`` and multiply them by BLAS."""
    X, _, _, rows = node.inputs
    dense, key = _dense_dot(X, rows, "gated_dot 3")

    @numba_njit
    def gated_dot(X: Any, center: Any, scale: Any, rows: Any) -> Any:
        n, width = X.shape[0], rows.shape[1]
        is_open = open_rows(X, center, scale, rows)
        if _most(is_open, scale):
            weights = np.zeros(rows.shape, rows.dtype)
            at_center = np.zeros(width, rows.dtype)
            for p in is_open:
                for k in range(width):
                    weights[p, k] = scale[p] * rows[p, k]
                    at_center[k] += center[p] * weights[p, k]
            return dense(X, weights) - at_center
        if is_open.size == 0:
            return np.zeros((n, width), X.dtype)
        weights = np.empty((is_open.size, width), rows.dtype)
        for j in range(is_open.size):
            for k in range(width):
                weights[j, k] = scale[is_open[j]] * rows[is_open[j], k]
        return open_product(X, center, is_open, weights)

    return gated_dot, key


@register_funcify_and_cache_key(GatedDotGrad)
def numba_gated_dot_grad(
    op: GatedDotGrad, node: Apply, **kwargs: Any
) -> tuple[Callable, str | None]:
    """Pack the open columns of ``X``, multiply them by BLAS and put the result in its rows."""
    X, *_, G = node.inputs
    dense, key = _dense_dot(X.T, G, "gated_dot_grad 3")

    @numba_njit
    def gated_dot_grad(X: Any, center: Any, scale: Any, rows: Any, G: Any) -> Any:
        n, width = G.shape
        if X.shape[0] != n or rows.shape[1] != width:
            raise ValueError("gated_dot: the gradient has not the shape of the product")
        is_open = open_rows(X, center, scale, rows)
        grad_scale = np.zeros(scale.size, scale.dtype)
        grad_rows = np.zeros(rows.shape, rows.dtype)
        if is_open.size == 0:
            return grad_scale, grad_rows
        all_rows = _most(is_open, scale)
        if all_rows:
            total = np.zeros(width, X.dtype)
            for i in range(n):
                for k in range(width):
                    total[k] += G[i, k]
            inner = dense(X.T, G) - np.outer(center, total)
        else:
            inner = open_gradient(X, center, is_open, G)
        for j in range(is_open.size):
            p = is_open[j]
            row = p if all_rows else j
            for k in range(width):
                grad_scale[p] += rows[p, k] * inner[row, k]
                grad_rows[p, k] = scale[p] * inner[row, k]
        return grad_scale, grad_rows

    return gated_dot_grad, key

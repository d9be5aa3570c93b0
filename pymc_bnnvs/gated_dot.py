"""The product of a table with gated weights, at the cost of the open gates alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensor
import pytensor.tensor as pt
from pytensor.compile import optdb
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.tensor import TensorVariable
from pytensor.tensor.blockwise import Blockwise

from pymc_bnnvs.open_columns import OpenColumns, OpenDot, OpenDotGrad, gradients, product

__all__ = ["gated_dot"]


NDIM = {"X": 2, "center": 1, "scale": 1, "rows": 2, "more": 2, "G": 2}
#: The axis of each input that runs over the gates.
LENGTHS = {"X": 1, "center": 0, "scale": 0, "rows": 0, "more": 0}


class GatedDot(Op):
    """``(X - center) @ (s[:, None] * [Z, M])`` over the rows with ``s > 0``; see ``gated_dot``."""

    __props__ = ()
    names = ("X", "center", "scale", "rows", "more")
    gufunc_signature = "(n,p),(p),(p),(p,k),(p,l)->(n,m)"

    def make_node(self, *given: Any) -> Apply:
        """Check and cast the inputs."""
        inputs = as_inputs(self.names, given)
        n, width = inputs[0].type.shape[0], inputs[3].type.shape[1]
        if width is not None:
            width += inputs[4].type.shape[1]
        return Apply(self, inputs, [pt.tensor(dtype=inputs[0].dtype, shape=(n, width))])

    def infer_shape(self, node: Apply, shapes: list) -> list:
        """Shape from those of the inputs."""
        return [(shapes[0][0], shapes[3][1] + shapes[4][1])]

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list) -> None:
        """Multiply without the closed rows, in numpy."""
        output_storage[0][0] = product(*inputs)

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        """Gradients of the inputs."""
        (G,) = cotangents
        d_X = pt.dot(G, self.weights(*inputs[2:]).T)
        return [d_X, -total(d_X, axis=0), *GatedDotGrad()(*inputs, G)]

    def dense(self, X: Any, center: Any, *parts: Any) -> list[TensorVariable]:
        """Write the product out with ordinary operations, any batch dimensions first."""
        return [pt.matmul(X - center[..., None, :], self.weights(*parts))]

    def weights(self, scale: Any, rows: Any, more: Any) -> TensorVariable:
        """Weights (P, K + L) with the closed rows at 0."""
        return open_scale(scale)[..., None] * beside(rows, more)


class GatedDotGrad(Op):
    """Gradients of ``gated_dot`` along ``s``, ``Z`` and ``M``, given that of the product, ``G``."""

    __props__ = ()
    names = (*GatedDot.names, "G")
    gufunc_signature = "(n,p),(p),(p),(p,k),(p,l),(n,m)->(p),(p,k),(p,l)"

    def make_node(self, *given: Any) -> Apply:
        """Check and cast the inputs."""
        inputs = as_inputs(self.names, given)
        return Apply(self, inputs, [variable.type() for variable in inputs[2:-1]])

    def infer_shape(self, node: Apply, shapes: list) -> list:
        """Shapes of the inputs."""
        return shapes[2:-1]

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list) -> None:
        """Fill in the gradients of the open rows, in numpy."""
        for storage, grad in zip(output_storage, gradients(*inputs), strict=True):
            storage[0] = grad

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

    def dense(
        self, X: Any, center: Any, scale: Any, rows: Any, more: Any, G: Any
    ) -> list[TensorVariable]:
        """Write the gradients out with ordinary operations."""
        both = beside(rows, more)
        inner = open_inner(X, center, scale, both, G)
        grad = open_scale(scale)[..., None] * inner
        # In a number that is known: JAX can't cut at another.
        last = more.type.shape[-1]
        parts = [grad[..., :-last], grad[..., -last:]] if last else [grad, grad[..., :0]]
        return [total(both * inner, axis=-1), *parts]


def gated_dot(
    X: Any, scale: Any, rows: Any, center: Any = None, more: Any = None
) -> TensorVariable:
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
    more : tensor, shape (P, L), optional
        Weights at a scale of 1 of further columns, behind those of ``rows``, where to put them
        there would copy the rows. ``L`` must be a part of the type.

    Returns
    -------
    TensorVariable, shape (n, K + L)
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
    if more is None:
        more = pt.as_tensor_variable(rows)[..., :0]
        more = pt.specify_shape(more, (*more.type.shape[:-1], 0))
    return GatedDot()(X, center, scale, rows, more)


def as_inputs(names: Sequence[str], values: Sequence[Any]) -> list[TensorVariable]:
    """Tensors of one floating dtype, which BLAS needs, with ndims and lengths that fit."""
    tensors = dict(zip(names, map(pt.as_tensor_variable, values), strict=True))
    # These two last: those that were not given are made from the others.
    for name in sorted(tensors, key=("center", "more").__contains__):
        if tensors[name].ndim != NDIM[name]:
            raise ValueError(f"{name} has {tensors[name].ndim} dimensions, not {NDIM[name]}.")
    lengths = {n: tensors[n].type.shape[axis] for n, axis in LENGTHS.items() if n in tensors}
    if len({length for length in lengths.values() if length is not None}) > 1:
        raise ValueError(
            f"X has {lengths['X']} columns, center {lengths['center']} values, scale "
            f"{lengths['scale']} gates and rows {lengths['rows']} rows: these must be the same "
            "number."
        )
    if "more" in tensors and tensors["more"].type.shape[1] is None:
        raise ValueError("more has an unknown number of columns: give it a static shape.")
    dtype = pytensor.scalar.upcast(*(tensor.dtype for tensor in tensors.values()))
    if dtype not in ("float32", "float64"):
        dtype = pytensor.config.floatX
    return [tensor.astype(dtype) for tensor in tensors.values()]


def beside(rows: Any, more: Any) -> TensorVariable:
    """Columns of both; either may have batch dimensions."""
    if rows.ndim != more.ndim:
        of_rows, of_more = pt.broadcast_arrays(rows[..., :1], more[..., :1])
        rows, more = rows + pt.zeros_like(of_rows), more + pt.zeros_like(of_more)
    return pt.concatenate([rows, more], axis=-1)


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


@node_rewriter([GatedDot, GatedDotGrad, Blockwise])
def dense_product(fgraph: Any, node: Apply) -> list[TensorVariable] | None:
    """Write the products out with ordinary operations."""
    op = getattr(node.op, "core_op", node.op)
    return op.dense(*node.inputs) if isinstance(op, GatedDot | GatedDotGrad) else None


# XLA needs shapes that it knows, so it can't skip a row. A rewrite, because to register with
# PyTensor's JAX dispatch means to import JAX, whether it is used or not.
optdb.register("jax_gated_dot", dfs_rewriter(dense_product), "jax", position=0.9)


@node_rewriter([GatedDot, GatedDotGrad])
def packed_product(fgraph: Any, node: Apply) -> list[TensorVariable]:
    """Pack the open columns in an operation of its own."""
    op = OpenDot() if isinstance(node.op, GatedDot) else OpenDotGrad()
    return op(*OpenColumns()(*node.inputs[:3]), *node.inputs, return_list=True)


# Late, when the shapes are known, and just before equal operations are merged: the gradient takes
# the columns of the value.
optdb.register("numba_gated_dot", dfs_rewriter(packed_product), "numba", position=48.9)


@node_rewriter([Blockwise])
def dense_batch(fgraph: Any, node: Apply) -> list[TensorVariable] | None:
    """Write the products of a batch out: each has open columns of its own."""
    return dense_product.transform(fgraph, node)


optdb.register("numba_gated_batch", dfs_rewriter(dense_batch), "numba", position=0.9)

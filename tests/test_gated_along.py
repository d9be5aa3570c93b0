"""The gated product with a part along a direction: against the whole product, in every backend."""

from __future__ import annotations

import functools

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytensor.gradient import verify_grad
from pytensor.graph.replace import vectorize_graph

from pymc_bnnvs.gated_along import GatedAlong, GatedAlongGrad, gated_along
from pymc_bnnvs.gated_dot import BLOCK

FAST = "FAST_COMPILE"
NUMERIC = [FAST, "NUMBA"]
NAMES = ("X", "center", "scale", "rows", "along", "direction")
SHARES = [0.0, 0.1, 0.5, 1.0]


def dense(X, center, scale, rows, along, direction):
    rows = rows + (along - pt.dot(rows, direction))[:, None] * direction
    return pt.dot(X - center, pt.maximum(scale, 0)[:, None] * rows)


@functools.cache
def value_and_gradients(mode, product, dtype="float64"):
    """Compile the product and its gradients in all inputs."""
    if mode == "JAX":
        pytest.importorskip("jax")
    ndims = (2, 1, 1, 2, 1, 1)
    inputs = [
        pt.tensor(name, dtype=dtype, shape=(None,) * ndim)
        for name, ndim in zip(NAMES, ndims, strict=True)
    ]
    target = pt.matrix("target", dtype=dtype)
    out = product(*inputs)
    # Not linear, so that the cotangent depends on the value; tanh would lose its digits near 1.
    loss = pt.sum(pt.sqrt(1 + out**2) * target)
    return pytensor.function([*inputs, target], [out, *pytensor.grad(loss, inputs)], mode=mode)


def draw(n=7, n_features=12, width=3, share=0.1, seed=0):
    """Random inputs and target, with a share of the gates open."""
    rng = np.random.default_rng(seed)
    scale = -rng.uniform(0.1, 2.0, size=n_features)
    scale[rng.permutation(n_features)[: round(share * n_features)]] += 3.0
    return [
        rng.normal(size=(n, n_features)),
        rng.normal(size=n_features),
        scale,
        rng.normal(size=(n_features, width)),
        rng.normal(size=n_features),
        rng.normal(size=width),
        rng.normal(size=(n, width)),
    ]


def assert_equals_dense(mode, values, rtol=1e-10):
    dtype = values[0].dtype.name
    got = value_and_gradients(mode, gated_along, dtype)(*values)
    want = value_and_gradients(FAST, dense)(*[np.asarray(v, "float64") for v in values])
    for actual, desired in zip(got, want, strict=True):
        assert actual.dtype == dtype
        # A sum that cancels is accurate next to its terms, not next to itself.
        largest = np.max(np.abs(desired), initial=0.0)
        np.testing.assert_allclose(actual, desired, rtol=rtol, atol=rtol * largest)


@pytest.mark.parametrize("mode", NUMERIC)
@given(
    n=st.integers(0, 2 * BLOCK + 3),
    n_features=st.integers(0, 40),
    width=st.integers(1, 6),
    share=st.sampled_from(SHARES),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_equals_the_dense_product_and_its_gradients(mode, n, n_features, width, share, seed):
    assert_equals_dense(mode, draw(n, n_features, width, share, seed))


@pytest.mark.parametrize("mode", [*NUMERIC, "JAX"])
@pytest.mark.parametrize("share", SHARES)
def test_every_share_of_open_gates(mode, share):
    assert_equals_dense(mode, draw(n=BLOCK + 9, n_features=20, width=4, share=share))


@pytest.mark.parametrize("mode", [*NUMERIC, "JAX"])
def test_float32(mode):
    assert_equals_dense(mode, [v.astype("float32") for v in draw(share=0.5)], rtol=2e-5)


@pytest.mark.parametrize("mode", NUMERIC)
@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
        lambda a: a[::-1].copy()[::-1],
    ],
    ids=["fortran", "strided", "reversed"],
)
def test_any_memory_layout(mode, layout):
    assert_equals_dense(mode, [layout(value) for value in draw(n=BLOCK + 5, share=0.5)])


def test_gradient_by_finite_differences():
    verify_grad(gated_along, draw(share=0.5)[:6], rng=np.random.default_rng(0), mode=FAST)


@pytest.mark.parametrize("output", range(4))
def test_second_derivatives_by_finite_differences(output):
    verify_grad(
        lambda *inputs: GatedAlongGrad()(*inputs)[output],
        draw(share=0.5),
        rng=np.random.default_rng(0),
        mode=FAST,
    )


def test_second_derivatives_where_everything_hangs_together():
    """Of a function of several gradients, in a vector that several inputs are made of."""
    X, center, scale, rows, along, direction, target = draw(share=0.5)

    def loss(shift):
        inputs = [X, center, scale + shift, pt.sin(shift)[:, None] * rows, along * shift, direction]
        out = gated_along(*map(pt.as_tensor_variable, inputs))
        return pt.sum(out**2 * target)

    def second(shift):
        return pt.sum(pytensor.grad(loss(shift), shift) ** 2)

    shift = np.random.default_rng(1).uniform(0.02, 0.08, size=along.size)
    verify_grad(second, [shift], rng=np.random.default_rng(0), mode=FAST)


@pytest.mark.parametrize("mode", [*NUMERIC, "JAX"])
def test_a_scale_that_is_not_a_number_is_not_a_closed_gate(mode):
    values = draw(share=0.0)
    values[2][1] = np.nan
    value, *_, grad_along, _ = value_and_gradients(mode, gated_along)(*values)
    assert np.isnan(value).all() and np.isnan(grad_along[1])


@pytest.mark.parametrize("mode", NUMERIC)
def test_what_is_closed_is_not_read(mode):
    values = draw(n_features=30)
    closed = values[2] <= 0
    values[0][:, closed] = values[1][closed] = np.nan
    values[3][closed] = values[4][closed] = np.nan
    out, _, _, *grads = value_and_gradients(mode, gated_along)(*values)
    for result in (out, *grads):
        assert np.isfinite(result).all()
    assert (grads[0][closed] == 0).all() and (grads[1][closed] == 0).all()


@pytest.mark.parametrize(
    ("mode", "batched"), [(FAST, name) for name in NAMES] + [("JAX", "scale"), ("NUMBA", "rows")]
)
def test_batches(mode, batched):
    if mode == "JAX":
        pytest.importorskip("jax")
    values = dict(zip(NAMES, draw(share=0.5)[:6], strict=True))
    core = [pt.tensor(name, shape=value.shape) for name, value in values.items()]
    out = gated_along(*core)
    outputs = [out, *pytensor.grad(pt.sum(out**2), core[2:])]
    one = next(variable for variable in core if variable.name == batched)
    batch = pt.tensor(batched, shape=(2, *one.type.shape))
    inputs = [batch if variable is one else variable for variable in core]
    vectorized = pytensor.function(inputs, vectorize_graph(outputs, {one: batch}), mode=mode)
    single = pytensor.function(core, outputs, mode=FAST)
    stack = np.stack([values[batched], 1.5 * values[batched]])
    found = vectorized(*(values | {batched: stack}).values())
    for i, value in enumerate(stack):
        wanted = single(*(values | {batched: value}).values())
        for actual, desired in zip(found, wanted, strict=True):
            np.testing.assert_allclose(actual[i], desired, rtol=1e-10, atol=1e-12)


def test_shapes_without_the_product():
    inputs = [pt.matrix(), *pt.vectors(2), pt.matrix(), *pt.vectors(2)]
    out = gated_along(*inputs)
    shapes = [out.shape, *[g.shape for g in GatedAlongGrad()(*inputs, out)]]
    compiled = pytensor.function(inputs, shapes, mode=FAST)
    ops = {type(node.op) for node in compiled.maker.fgraph.apply_nodes}
    assert not ops & {GatedAlong, GatedAlongGrad}
    found = compiled(*draw()[:6])
    assert [tuple(shape) for shape in found] == [(7, 3), (12,), (12, 3), (12,), (3,)]


@pytest.mark.parametrize("mode", [*NUMERIC, "JAX"])
@pytest.mark.parametrize("wrong", range(7))
def test_lengths_are_checked_when_run(mode, wrong):
    values = draw(share=0.5)
    values[wrong] = np.concatenate([values[wrong]] * 2, axis=0 if wrong == 6 else -1)
    with pytest.raises((ValueError, IndexError, TypeError)):
        value_and_gradients(mode, gated_along)(*values)


def test_dimensions_are_checked():
    values = draw()[:6]
    values[4] = values[4][:, None]
    with pytest.raises(ValueError, match="along has 2 dimensions, not 1"):
        gated_along(*values)

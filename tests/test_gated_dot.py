"""The product that skips closed gates: against the dense product, in every backend."""

from __future__ import annotations

import functools
import itertools
import pickle
import subprocess
import sys

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytensor.compile.mode import NUMBA
from pytensor.gradient import verify_grad
from pytensor.graph.replace import clone_replace, vectorize_graph

from pymc_bnnvs.gated_dot import GatedDot, GatedDotGrad, gated_dot
from pymc_bnnvs.open_columns import BLOCK, OpenColumns, is_kept

FAST = "FAST_COMPILE"
NUMERIC = [FAST, "NUMBA"]
SHARES = {"none": 0.0, "one": None, "few": 0.1, "half": 0.5, "most": 0.9, "all": 1.0}


def dense_dot(X, scale, rows, center):
    return pt.dot(X - center, pt.maximum(scale, 0)[:, None] * rows)


def apart(rows):
    """Last column and those before it."""
    return rows[:, :-1], pt.specify_shape(rows[:, -1:], (None, 1))


def in_two_parts(X, scale, rows, center):
    """Multiply with the last column apart."""
    first, last = apart(rows)
    return gated_dot(X, scale, first, center, last)


def is_ours(op):
    return type(op).__module__.startswith("pymc_bnnvs")


def function(inputs, outputs, mode):
    if mode == "JAX":
        pytest.importorskip("jax")
    return pytensor.function(inputs, outputs, mode=mode)


@functools.cache
def value_and_gradients(mode, product, dtype="float64"):
    """Compile the product and its gradients in all inputs, for gates of ``u - c``."""
    X, Z, target = (pt.matrix(name, dtype=dtype) for name in ("X", "Z", "target"))
    u, center = pt.vector("u", dtype=dtype), pt.vector("center", dtype=dtype)
    c = pt.scalar("c", dtype=dtype)
    out = product(X, pt.maximum(u - c, 0), Z, center)
    # Not linear, so that the cotangent depends on the value; tanh would lose its digits near 1.
    loss = pt.sum(pt.sqrt(1 + out**2) * target)
    inputs = [X, u, c, Z, center]
    return function([*inputs, target], [out, *pytensor.grad(loss, inputs)], mode)


def draw(n=7, n_features=12, width=3, share="few", seed=0):
    """Random X, u, c, Z, center and target with a share of the gates ``u > c`` open."""
    rng = np.random.default_rng(seed)
    fraction = SHARES[share]
    n_open = min(1, n_features) if fraction is None else round(fraction * n_features)
    c = 0.3
    u = c - rng.uniform(0.1, 2.0, size=n_features)
    u[rng.permutation(n_features)[:n_open]] += 4.0
    return [
        rng.normal(size=(n, n_features)),
        u,
        np.asarray(c),
        rng.normal(size=(n_features, width)),
        rng.normal(size=n_features),
        rng.normal(size=(n, width)),
    ]


def assert_equals_dense(mode, values, rtol=1e-10, product=gated_dot):
    dtype = values[0].dtype.name
    got = value_and_gradients(mode, product, dtype)(*values)
    want = value_and_gradients(FAST, dense_dot)(*[np.asarray(v, "float64") for v in values])
    assert got[0].dtype == got[-1].dtype == dtype
    for actual, desired in zip(got, want, strict=True):
        # A sum that cancels is accurate next to its terms, not next to itself.
        largest = np.max(np.abs(desired), initial=0.0)
        np.testing.assert_allclose(actual, desired, rtol=rtol, atol=rtol * largest)


@pytest.mark.parametrize("mode", NUMERIC)
@given(
    n=st.integers(0, 2 * BLOCK + 3),
    n_features=st.integers(0, 40),
    width=st.integers(0, 6),
    share=st.sampled_from(list(SHARES)),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_equals_the_dense_product_and_its_gradients(mode, n, n_features, width, share, seed):
    assert_equals_dense(mode, draw(n, n_features, width, share, seed))


@pytest.mark.parametrize("mode", [*NUMERIC, "JAX"])
@pytest.mark.parametrize("share", list(SHARES))
def test_every_share_of_open_gates(mode, share):
    assert_equals_dense(mode, draw(n=BLOCK + 9, n_features=20, width=4, share=share))


@pytest.mark.parametrize("share", list(SHARES))
def test_a_table_too_large_to_copy(share):
    values = draw(n=5 * BLOCK + 9, n_features=220, width=4, share=share)
    assert_equals_dense("NUMBA", values)
    assert_equals_dense("NUMBA", values, product=in_two_parts)


def test_most_of_a_large_table_is_not_copied():
    inputs = [pt.matrix("X"), pt.vector("center"), pt.vector("scale")]
    compiled = pytensor.function(inputs, OpenColumns()(*inputs), mode="NUMBA")
    X = np.zeros((5 * BLOCK, 220))
    for n_open, rows in ((0, 5 * BLOCK), (110, 5 * BLOCK), (219, 0), (220, 0)):
        columns, where = compiled(X, X[0], np.repeat([1.0, 0.0], [n_open, 220 - n_open]))
        assert columns.shape == (rows, n_open)
        np.testing.assert_array_equal(where, np.arange(n_open))
        assert is_kept(5 * BLOCK, 220, n_open) == bool(rows)


def test_the_gradient_takes_the_columns_of_the_value():
    graph = value_and_gradients("NUMBA", in_two_parts).maker.fgraph
    assert [type(node.op).__name__ for node in graph.toposort() if is_ours(node.op)] == [
        "OpenColumns",
        "OpenDot",
        "OpenDotGrad",
    ]


def test_packing_keeps_the_known_shapes():
    X, Z, scale = pt.matrix(shape=(5, 3)), pt.matrix(shape=(3, 2)), pt.vector(shape=(3,))
    out = gated_dot(X, scale, Z)
    compiled = pytensor.function([X, scale, Z], [out, *pytensor.grad(out.sum(), [scale, Z])])
    packed = {
        type(node.op).__name__: [variable.type.shape for variable in node.outputs]
        for node in compiled.maker.fgraph.apply_nodes
        if is_ours(node.op)
    }
    assert packed["OpenDot"] == [(5, 2)]
    assert packed["OpenDotGrad"] == [(3,), (3, 2), (3, 0)]


@pytest.mark.parametrize("share", list(SHARES))
def test_packed_columns_in_numpy(share):
    """The operations for numba, run by Python."""
    X, u, c, Z, center, target = draw(share=share)
    inputs = [pt.matrix("X"), pt.vector("scale"), pt.matrix("Z"), pt.vector("center")]
    out = in_two_parts(*inputs)
    outputs = [out, *pytensor.grad(pt.sum(out * target), inputs[1:3])]
    packed = NUMBA.clone(linker="py")
    compiled = pytensor.function(inputs, outputs, mode=packed)
    assert any(isinstance(node.op, OpenColumns) for node in compiled.maker.fgraph.apply_nodes)
    values = [X, np.maximum(u - c, 0), Z, center]
    desired = pytensor.function(inputs, outputs, mode=FAST)(*values)
    for found, value in zip(compiled(*values), desired, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-12)


@pytest.mark.parametrize("mode", [*NUMERIC, "JAX"])
@pytest.mark.parametrize("share", list(SHARES))
def test_a_column_apart(mode, share):
    values = draw(n=BLOCK + 9, n_features=20, width=4, share=share)
    assert_equals_dense(mode, values, product=in_two_parts)
    values = [value.astype("float32") for value in values]
    assert_equals_dense(mode, values, rtol=1e-4, product=in_two_parts)


@pytest.mark.parametrize("mode", [*NUMERIC, "JAX"])
@pytest.mark.parametrize("share", ["few", "all"])
def test_float32(mode, share):
    values = [value.astype("float32") for value in draw(share=share)]
    assert_equals_dense(mode, values, rtol=1e-5)


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (("float32", "float64", "float32"), "float64"),
        (("int64", "float32", "float32"), "float64"),
        (("int8", "float32", "float32"), "float32"),
        (("int64", "int64", "bool"), "float64"),
    ],
)
def test_mixed_dtypes_promote(dtypes, expected):
    values = [[[1, 2], [3, 4]], [0, 1], [[1], [1]]]
    arrays = [np.array(value, dtype) for value, dtype in zip(values, dtypes, strict=True)]
    out = gated_dot(*map(pt.as_tensor_variable, arrays))
    assert out.dtype == expected
    np.testing.assert_array_equal(out.eval(mode="NUMBA"), [[2.0], [4.0]])


def padded(array):
    return np.repeat(array, 2, axis=-1)[..., ::2]


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided": padded,
    "reversed": lambda array: array[::-1].copy()[::-1],
    "both": lambda array: padded(array.T).T,
}


@pytest.mark.parametrize("mode", NUMERIC)
@pytest.mark.parametrize("share", ["few", "most"])
@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_any_memory_layout(mode, share, layout):
    values = draw(n=BLOCK + 5, share=share)
    values = [LAYOUTS[layout](value) if value.ndim else value for value in values]
    assert_equals_dense(mode, values)


def finite_difference_points():
    rng = np.random.default_rng(3)
    X, Z, G = rng.normal(size=(4, 6)), rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    # Away from 0, where the product has a kink.
    return [X, np.array([0.7, -0.5, 1.2, 0.4, -1.0, 2.0]), Z, rng.normal(size=6), G]


@pytest.mark.parametrize("product", [gated_dot, in_two_parts])
def test_gradient_by_finite_differences(product):
    rng = np.random.default_rng(0)
    verify_grad(product, finite_difference_points()[:4], rng=rng, mode=FAST)


@pytest.mark.parametrize(
    "reduce",
    [
        lambda grad_scale, grad_rows: grad_scale,
        lambda grad_scale, grad_rows: grad_rows,
        lambda grad_scale, grad_rows: pt.sin(grad_scale)[:, None] * grad_rows,
    ],
    ids=["scale", "rows", "both"],
)
def test_second_derivatives_by_finite_differences(reduce):
    def gradient(X, scale, rows, center, G):
        grad_scale, *parts = GatedDotGrad()(X, center, scale, *apart(rows), G)
        return reduce(grad_scale, pt.concatenate(parts, axis=1))

    verify_grad(gradient, finite_difference_points(), rng=np.random.default_rng(0), mode=FAST)


def test_third_derivatives_by_finite_differences():
    X, scale, rows, center, _ = finite_difference_points()

    def second(scale, rows):
        loss = pt.sum(gated_dot(X, scale, rows, center) ** 3)
        return pytensor.grad(pt.sum(pytensor.grad(loss, scale) ** 2), rows)

    verify_grad(second, [scale, rows], rng=np.random.default_rng(0), mode=FAST, rel_tol=1e-3)


@pytest.mark.parametrize("mode", [*NUMERIC, "JAX"])
def test_a_gate_at_exactly_zero_or_below_is_closed(mode):
    X, Z = np.eye(3), np.ones((3, 2))
    scale, rows = pt.vector("scale"), pt.matrix("rows")
    out = gated_dot(X, scale, rows)
    compiled = function([scale, rows], [out, *pytensor.grad(out.sum(), [scale, rows])], mode)
    value, grad_scale, grad_rows = compiled(np.array([0.0, -2.0, 0.5]), Z)
    np.testing.assert_array_equal(value, [[0, 0], [0, 0], [0.5, 0.5]])
    np.testing.assert_array_equal(grad_scale, [0, 0, 2])
    np.testing.assert_array_equal(grad_rows, value)


@pytest.mark.parametrize("mode", [*NUMERIC, "JAX"])
@pytest.mark.parametrize("n_features", [2, 20])
def test_a_scale_that_is_not_a_number_is_not_a_closed_gate(mode, n_features):
    X, u, c, Z, center, target = draw(n_features=n_features, share="none")
    u[1] = np.nan
    value, *_, grad_Z, _ = value_and_gradients(mode, gated_dot)(X, u, c, Z, center, target)
    assert np.isnan(value).all()
    assert np.isnan(grad_Z[1]).all()


@pytest.mark.parametrize("mode", NUMERIC)
def test_closed_columns_are_not_read(mode):
    X, u, c, Z, center, target = draw(share="few", n_features=30)
    X[:, u <= c] = center[u <= c] = np.nan
    compiled = value_and_gradients(mode, gated_dot)
    value, _, grad_u, _, grad_Z, _ = compiled(X, u, c, Z, center, target)
    for result in (value, grad_u, grad_Z):
        assert np.isfinite(result).all()


def test_shapes_without_the_product():
    X, Z = pt.matrix("X", shape=(5, None)), pt.matrix("Z", shape=(None, 2))
    scale = pt.vector("scale")
    out = gated_dot(X, scale, Z)
    assert out.type.shape == (5, 2)
    X, Z = pt.matrix("X"), pt.matrix("Z")
    out = gated_dot(X, scale, Z)
    shapes = [out.shape, *[g.shape for g in GatedDotGrad()(X, scale, scale, *apart(Z), out)]]
    compiled = pytensor.function([X, scale, Z], shapes, mode=FAST)
    ops = {type(node.op) for node in compiled.maker.fgraph.apply_nodes}
    assert not ops & {GatedDot, GatedDotGrad}
    found = compiled(np.ones((5, 3)), np.ones(3), np.ones((3, 2)))
    assert [tuple(shape) for shape in found] == [(5, 2), (3,), (3, 1), (3, 1)]


def test_copies_of_the_graph():
    X, scale, Z = pt.matrix("X"), pt.vector("scale"), pt.matrix("Z")
    out = gated_dot(X, scale, Z)
    gradients = pytensor.grad(out.sum(), [scale, Z])
    values = [np.eye(2), np.array([0.0, 2.0]), np.ones((2, 1))]
    clone = clone_replace(out, {scale: 2 * scale})
    np.testing.assert_array_equal(
        clone.eval(dict(zip([X, scale, Z], values, strict=True))), [[0], [4]]
    )
    inputs, outputs = pickle.loads(pickle.dumps(([X, scale, Z], [out, *gradients])))
    assert outputs[0].owner.op == out.owner.op
    value, grad_scale, _ = pytensor.function(inputs, outputs, mode=FAST)(*values)
    np.testing.assert_array_equal(value, [[0], [2]])
    np.testing.assert_array_equal(grad_scale, [0, 1])


@pytest.mark.parametrize(
    ("mode", "batched"),
    # numba takes long to compile a batch.
    [*itertools.product([FAST, "JAX"], ["rows", "scale", "X", "center"]), ("NUMBA", "scale")],
)
def test_batches(mode, batched):
    names = ["X", "scale", "rows", "center"]
    values = dict(zip(names, finite_difference_points()[:4], strict=True))
    core = [pt.tensor(name, shape=value.shape) for name, value in values.items()]
    out = gated_dot(*core)
    outputs = [out, *pytensor.grad(pt.sum(out**2), core[1:3])]
    one = next(variable for variable in core if variable.name == batched)
    batch = pt.tensor(batched, shape=(2, *one.type.shape))
    inputs = [batch if variable is one else variable for variable in core]
    vectorized = function(inputs, vectorize_graph(outputs, {one: batch}), mode)
    single = function(core, outputs, FAST)
    stack = np.stack([values[batched], 1.5 * values[batched]])
    found = vectorized(*(values | {batched: stack}).values())
    for i, value in enumerate(stack):
        for actual, desired in zip(
            found, single(*(values | {batched: value}).values()), strict=True
        ):
            np.testing.assert_allclose(actual[i], desired, rtol=1e-12)


def gated_model(X, y):
    with pm.Model() as model:
        data = pm.Data("X", X)
        u, Z = pm.Normal("u", shape=X.shape[1]), pm.Normal("Z", shape=(X.shape[1], 2))
        f = pt.tanh(gated_dot(data, pt.maximum(u - 0.5, 0), Z)).sum(axis=1)
        pm.Normal("y", f, 1.0, observed=pm.Data("outcome", y), shape=f.shape)
    return model


def test_data_of_another_length():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 5)), rng.normal(size=9)
    model = gated_model(X, y)
    compiled = model.compile_fn([model.logp(), model.dlogp()], inputs=model.value_vars)
    point = {"u": rng.normal(1.0, size=5), "Z": rng.normal(size=(5, 2))}
    for rows in (np.arange(9), np.arange(4), np.tile(np.arange(9), 20)):
        with model:
            pm.set_data({"X": X[rows], "outcome": y[rows]})
        fresh = gated_model(X[rows], y[rows])
        expected = fresh.compile_fn(
            [fresh.logp(), fresh.dlogp()], inputs=fresh.value_vars, mode=FAST
        )
        for actual, desired in zip(compiled(point), expected(point), strict=True):
            np.testing.assert_allclose(actual, desired, rtol=1e-10)


def test_jax_transformations():
    """As PyMC's JAX samplers use a model: jitted, differentiated and mapped by JAX."""
    jax = pytest.importorskip("jax")
    sampling = pytest.importorskip("pymc.sampling.jax")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 5)), rng.normal(size=9)
    model = gated_model(X, y)
    logp = sampling.get_jaxified_logp(model)
    u, Z = rng.normal(0.5, size=(4, 5)), rng.normal(size=(4, 5, 2))
    mapped = jax.jit(jax.vmap(jax.value_and_grad(lambda u, Z: logp([u, Z]), argnums=(0, 1))))
    values, (grad_u, grad_Z) = mapped(u, Z)
    expected = model.compile_fn([model.logp(), model.dlogp()], inputs=model.value_vars, mode=FAST)
    for i in range(4):
        value, gradient = expected({"u": u[i], "Z": Z[i]})
        np.testing.assert_allclose(values[i], value, rtol=1e-10)
        found = np.concatenate([grad_u[i], np.ravel(grad_Z[i])])
        np.testing.assert_allclose(found, gradient, rtol=1e-10, atol=1e-12)


def test_importing_it_does_not_import_jax():
    code = "import sys, pymc_bnnvs.gated_dot; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((3,), (3,), (3, 2)), "X has 1 dimensions, not 2"),
        (((4, 3), (3, 1), (3, 2)), "scale has 2 dimensions, not 1"),
        (((4, 3), (3,), (3,)), "rows has 1 dimensions, not 2"),
        (((4, 3), (2,), (3, 2)), "X has 3 columns, center 2 values, scale 2 gates and rows 3 rows"),
        (((4, 3), (3,), (3, 2), (4,)), "center 4 values"),
        (((4, 3), (3,), (3, 2), (3,), (3,)), "more has 1 dimensions, not 2"),
        (((4, 3), (3,), (3, 2), (3,), (4, 1)), "must be the same number"),
    ],
)
def test_shapes_are_checked(shapes, message):
    with pytest.raises(ValueError, match=message):
        gated_dot(*(np.ones(shape) for shape in shapes))


def test_an_unknown_number_of_further_columns_is_refused():
    with pytest.raises(ValueError, match="give it a static shape"):
        gated_dot(np.ones((2, 3)), np.ones(3), np.ones((3, 1)), more=pt.matrix())


@pytest.mark.parametrize("mode", [*NUMERIC, "JAX"])
@pytest.mark.parametrize("wrong", [0, 1, 3, 4])
def test_lengths_are_checked_when_run(mode, wrong):
    values = draw()
    values[wrong] = np.concatenate([values[wrong]] * 2, axis=-1 if wrong < 3 else 0)
    with pytest.raises((ValueError, IndexError, TypeError)):
        value_and_gradients(mode, gated_dot)(*values)

"""The first layer of the default prior: the same model in coordinates that NUTS walks faster."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import xarray as xr
from scipy import stats

import pymc_bnnvs as bvs
from pymc_bnnvs.activations import ACTIVATIONS, ROUNDING
from pymc_bnnvs.gradient_field import Network
from pymc_bnnvs.priors import PRIORS, Gated, Slot, as_prior

FAST = {"mode": "FAST_COMPILE"}
SHARED = ["z", "gate", "threshold", "beta_raw", "tau_log__", "b_1", "W_2", "b_2", "sigma_log__"]


@pytest.fixture(scope="module")
def numbers():
    """Four numbers, on scales of their own."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(25, 4)), columns=list("abcd"))
    return X.assign(b=30.0 * X["b"] + 7.0), rng.normal(size=25)


@pytest.fixture(scope="module")
def mixed(numbers):
    """The numbers and a category of three levels."""
    X, y = numbers
    return X.assign(kind=np.array(["u", "v", "w"] * 9)[:25]), y


def compiled(model, names=()):
    """Function of a point: the log density and variables of the model."""
    outs = [model.logp(), *model.replace_rvs_by_values([model[name] for name in names])]
    return model.compile_fn(
        outs, inputs=model.value_vars, mode="FAST_COMPILE", on_unused_input="ignore"
    )


def random_point(model, pattern, rng, spread=0.7):
    """Random values, with all, some or none of the gates above the threshold."""
    point = {
        name: np.asarray(rng.normal(scale=spread, size=np.shape(value)))
        for name, value in model.initial_point().items()
    }
    # The slope, with which the density is compared to nine digits, is not as good as 0.
    point["tau_log__"] = np.asarray(rng.uniform(0.5, 1.0))
    above = rng.uniform(0.2, 1.5, size=point["gate"].shape)
    closed = {"all": 0, "some": above.size // 2, "none": above.size}[pattern]
    above[rng.permutation(above.size)[:closed]] *= -1
    point["gate"] = point["threshold"] + above
    return point


GROUPS = {"groups": {"pair": ["a", "c"]}, "always_in": "d"}
CASES = {
    "numbers": ("numbers", {"hidden": (3,)}),
    "raw numbers": ("numbers", {"hidden": (3,), "standardize": False}),
    "groups": ("mixed", {"hidden": (3,), **GROUPS}),
    "raw groups": ("mixed", {"hidden": (3,), "standardize": False, **GROUPS}),
    "two layers": ("mixed", {"hidden": (4, 3), **GROUPS}),
    "two raw layers": ("mixed", {"hidden": (4, 3), "standardize": False}),
    "softplus": ("mixed", {"hidden": (3,), "activation": "softplus"}),
    "tanh": ("numbers", {"hidden": (3,), "activation": "tanh"}),
    "relu gate": ("numbers", {"hidden": (3,), "softness": 0.0, "output_sd": 2.0}),
    "steep lines": ("numbers", {"hidden": (3,), "linear_sd": 3.0}),
    "no lines": ("mixed", {"hidden": (3,), "linear_sd": 0.0, **GROUPS}),
}


@pytest.mark.parametrize("case", CASES)
def test_density_is_that_of_the_plain_model(case, request):
    """One density, up to the Jacobian."""
    data, options = CASES[case]
    X, y = request.getfixturevalue(data)
    names = ("softness", "output_sd", "linear_sd")
    own = {name: options[name] for name in names if name in options}
    kwargs = {name: value for name, value in options.items() if name not in own}
    model, plain = (
        bvs.build_model(X, y, prior=Gated(reparametrize=flag, **own), **kwargs)
        for flag in (True, False)
    )
    public = ["f", "psi", "inclusion", "scale", "beta"]
    has_line = own.get("linear_sd") != 0
    ours = compiled(model, ["b_0", *public, *["line"] * has_line])
    theirs = compiled(plain, public)
    rng = np.random.default_rng(1)
    for pattern in ("all", "some", "none", "some"):
        point = random_point(model, pattern, rng)
        logp, b_0, *values = ours(point)
        other = {name: point[name] for name in SHARED if name in point} | {"b_0": np.asarray(b_0)}
        jacobian = 0.0
        if has_line:
            other["line"] = values.pop()
            steepness = values[3] * own.get("linear_sd", 0.5) / 0.1
            jacobian = np.log(np.hypot(steepness, 1.0)).sum()
        assert set(other) == {value.name for value in plain.value_vars}
        logp_plain, *values_plain = theirs(other)
        assert logp == pytest.approx(logp_plain - jacobian, rel=1e-9)
        for name, value, value_plain in zip(public, values, values_plain, strict=True):
            np.testing.assert_allclose(
                value, value_plain, rtol=1e-10, atol=1e-13 * np.abs(value).max(), err_msg=name
            )
        open_gates = (values[2] == 1).mean()
        if pattern == "none":
            assert open_gates == (1 / 7 if "always_in" in options else 0)
        else:
            assert (open_gates == 1) == (pattern == "all")


def test_effect_is_the_linear_effect_of_an_open_gate():
    """In units of 0.1: the slope of the least squares line through f, with many normal rows."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20_000, 4)) * [1.0, 30.0, 1.0, 0.1]
    model = bvs.build_model(X, rng.normal(size=len(X)), hidden=3)
    for _ in range(3):
        point = random_point(model, "all", rng)
        # Then what the lines have to make up for is little beside them.
        point["gate"] = point["gate"] + 3.0
        point["effect"] = 10.0 * point["effect"]
        _, f, y_scale = compiled(model, ["f", "f_scale"])(point)
        table = np.column_stack([np.ones(len(X)), (X - X.mean(axis=0)) / X.std(axis=0)])
        line = np.linalg.lstsq(table, f / y_scale)[0]
        error = np.std(f / y_scale - table @ line) / np.sqrt(len(X))
        # The bend of f is largest far out, so the errors are larger than these.
        np.testing.assert_allclose(0.1 * point["effect"], line[1:], atol=8 * error)


def test_effect_of_a_closed_gate_is_noise():
    X = np.random.default_rng(3).normal(size=(30, 3))
    model = bvs.build_model(X, X[:, 0], hidden=3)
    point = random_point(model, "none", np.random.default_rng(4))
    _, line, f = compiled(model, ["line", "f"])(point)
    np.testing.assert_array_equal(line, point["effect"])
    assert np.ptp(f) < 1e-12


@pytest.fixture(scope="module")
def prior_law():
    """Prior draws of both sets of coordinates."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    drawn = []
    for flag in (True, False):
        with bvs.build_model(X, X[:, 0], hidden=3, prior=Gated(reparametrize=flag)):
            tree = pm.sample_prior_predictive(4000, random_seed=3 + flag, compile_kwargs=FAST)
        drawn.append(tree.prior.dataset.isel(chain=0))
    return drawn


def test_prior_law_of_the_lines(prior_law):
    """Standard normal, independent of each other and of all that the effects are made from."""
    draws, _ = prior_law
    lines = draws["line"].values
    for line in lines.T:
        assert stats.kstest(line, "norm").pvalue > 1e-4
    others = np.column_stack(
        [draws[name].values.reshape(4000, -1) for name in ("z", "beta", "scale", "tau", "b_1")]
    )
    # 3 + 3 * 20 correlations, and those of the squares.
    bound = stats.norm.isf(1e-6) / np.sqrt(4000)
    for left, right in ((lines, others), (lines**2, others), (lines**2, np.abs(others))):
        correlation = np.corrcoef(left, right, rowvar=False)
        np.fill_diagonal(correlation, 0.0)
        assert np.abs(correlation[:3]).max() < bound


def test_prior_law_of_the_level(prior_law):
    draws, _ = prior_law
    b_0 = draws["b_0"].values
    assert stats.kstest(b_0, "norm").pvalue > 1e-4
    level = draws["level"].values
    assert np.corrcoef(b_0, level - b_0)[0, 1] == pytest.approx(0.0, abs=5 / np.sqrt(4000))
    assert (np.abs(level - b_0) > 0.1).mean() > 0.3


@pytest.mark.parametrize("name", ["psi", "f", "inclusion", "scale", "b_1", "beta"])
def test_prior_law_is_that_of_the_plain_model(prior_law, name):
    ours, plain = (draws[name].values for draws in prior_law)
    for power in (0.5, 1, 2):
        left, right = (np.sign(x) * np.abs(x) ** power for x in (ours, plain))
        error = np.hypot(*(np.std(x, axis=0) / np.sqrt(len(x)) for x in (left, right)))
        assert (np.abs(left.mean(axis=0) - right.mean(axis=0)) < 4.5 * error).all(), power
    for left, right in zip(ours.T, plain.T, strict=True):
        assert stats.ks_2samp(left, right, method="asymp").pvalue > 1e-4


@pytest.mark.parametrize("softness", [0.5, 0.0])
@pytest.mark.parametrize("hidden", [(3,), (3, 2)])
def test_gradients_are_finite_where_things_vanish(mixed, hidden, softness):
    model = bvs.build_model(*mixed, hidden=hidden, prior=Gated(softness=softness), **GROUPS)
    gradient = model.compile_dlogp(mode="FAST_COMPILE")
    start = model.initial_point()
    assert (start["beta_raw"] == 0).all()
    point = random_point(model, "some", np.random.default_rng(4))
    zero = {"beta_raw": np.zeros(hidden[-1])}
    closed = {"gate": point["threshold"] - np.linspace(0.5, 30.0, point["gate"].size)}
    edge = {"gate": np.full_like(point["gate"], point["threshold"])}
    no_slope = {"tau_log__": np.asarray(-50.0)}
    changes = [{}, zero, closed, edge, no_slope, closed | zero, edge | zero, closed | no_slope]
    for at in (start, *(point | change for change in changes)):
        values = gradient(at)
        assert values.size == sum(np.size(value) for value in at.values())
        assert np.isfinite(values).all()


def test_gradient_by_finite_differences(mixed):
    model = bvs.build_model(*mixed, hidden=3, activation="tanh", **GROUPS)
    point = random_point(model, "some", np.random.default_rng(5))
    logp = model.compile_logp(mode="FAST_COMPILE")
    gradient = model.compile_dlogp(mode="FAST_COMPILE")(point)
    by_hand = []
    for value in model.value_vars:
        for index in np.ndindex(point[value.name].shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = point[value.name].copy()
                moved[index] += step
                ends.append(logp(point | {value.name: moved}))
            by_hand.append((ends[0] - ends[1]) / 2e-5)
    np.testing.assert_allclose(gradient, by_hand, rtol=1e-5, atol=1e-5 * np.abs(gradient).max())


@pytest.mark.parametrize("always_in", [(0, 0, 0), (1, 0, 0)])
@pytest.mark.parametrize("kind", [*PRIORS, "gated, plain", "gated, relu"])
def test_product_is_that_with_the_weights(kind, always_in):
    """Groups and a category included, whatever the prior and the gates."""
    made = {
        "gated, plain": Gated(reparametrize=False),
        "gated, relu": Gated(softness=0.0),
    }
    prior = made[kind] if kind in made else as_prior(kind)
    coords = {"feature": list("abcuvw"), "group": ["a", "bc", "kind"], "hidden": range(4)}
    with pm.Model(coords=coords) as model:
        slot = Slot(
            name=str,
            feature="feature",
            group="group",
            hidden="hidden",
            units=4,
            n_obs=20,
            group_of=np.array([0, 1, 1, 2, 2, 2]),
            always_in=np.array(always_in, dtype=bool),
            starts_open=np.ones(len(always_in), dtype=bool),
        )
        first = prior.line(slot, prior.first_layer(slot), pm.Normal("slope", dims="hidden"))
        first = first.contrasts(np.array([-1, -1, -1, 0, 0, 0]))
    assert (first.included is not None) == prior.exact_zeros
    rng = np.random.default_rng(6)
    X, x_scale = rng.normal(size=(11, 6)), rng.uniform(0.5, 20.0, size=6)
    x_center = rng.normal(size=6)
    outs = [first.product(*map(pt.constant, (X, x_center, x_scale))), first.weights()]
    both = model.compile_fn(
        model.replace_rvs_by_values(outs),
        inputs=model.value_vars,
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    zeros = []
    for shift in (-6.0, -0.5, 0.0, 0.0, 0.0, 6.0):
        point = {
            name: rng.normal(scale=1.5, size=np.shape(value))
            for name, value in model.initial_point().items()
        }
        if "gate" in point:
            point["gate"] += shift
        product, weights = both(point)
        expected = ((X - x_center) / x_scale) @ weights
        np.testing.assert_allclose(
            product, expected, rtol=1e-10, atol=1e-13 * max(np.abs(weights).max(), 1.0)
        )
        np.testing.assert_allclose(weights[3:].sum(axis=0), 0.0, atol=1e-12)
        zeros.append(np.mean((weights == 0).all(axis=1)))
    assert (max(zeros) > 0) == prior.exact_zeros
    if kind.startswith("gated"):
        assert max(zeros) == (5 / 6 if any(always_in) else 1)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("hidden", [(3,), (3, 2)])
def test_prediction_at_new_inputs_is_exact(mixed, hidden, standardize):
    """Draws with all, some and none of the gates open, at rows of another number."""
    X, y = mixed
    prior = Gated(threshold_mean=0.2)
    model = bvs.build_model(X, y, hidden=hidden, standardize=standardize, prior=prior)
    with model:
        tree = pm.sample_prior_predictive(300, random_seed=7, compile_kwargs=FAST)
        constant = tree.constant_data.dataset
        closed = (tree.prior["inclusion"].values == 0).all(axis=2)
        assert closed.any()
        assert (tree.prior["inclusion"].values == 1).all(axis=2).any()
        new = np.random.default_rng(8).normal(size=(9, 7)) * 2.0 + 1.0
        pm.set_data({"X": new})
        predicted = pm.sample_posterior_predictive(
            xr.DataTree.from_dict({"posterior": tree.prior.dataset, "constant_data": constant}),
            var_names=["f", "psi"],
            predictions=True,
            random_seed=1,
            progressbar=False,
            compile_kwargs=FAST,
        ).predictions
    network = Network.read(tree.prior.dataset, constant)
    network = network._replace(X=new - constant["x_center"].values)
    level = constant["f_center"].item() + constant["f_scale"].item() * tree.prior["b_0"].values[0]
    f = level[:, None] + network.values(slice(None))
    np.testing.assert_allclose(predicted["f"].values[0], f, rtol=1e-9, atol=1e-9)
    assert (np.ptp(predicted["f"].values[closed], axis=1) < 1e-12).all()
    slope, _, _ = network.slopes(slice(None))
    gradient = np.einsum("snk,spk->snp", slope, network.inputs[:])
    psi = np.mean(gradient**2, axis=1)
    np.testing.assert_allclose(predicted["psi"].values[0], psi, rtol=1e-9, atol=1e-12)


def gate_scale(softness, reparametrize=True):
    """Function of (gate, threshold): the scale of one input and its derivative in the gate."""
    no, yes = np.zeros(1, dtype=bool), np.ones(1, dtype=bool)
    slot = Slot(str, "feature", "feature", "hidden", 1, 20, np.arange(1), no, yes)
    with pm.Model(coords={"feature": ["x"], "hidden": [0]}) as model:
        prior = Gated(softness=softness, reparametrize=reparametrize)
        layer = prior.first_layer(slot)
        (scale,) = model.replace_rvs_by_values([layer.scale[0]])
        gate, threshold = (model.rvs_to_values[model[name]] for name in ("gate", "threshold"))
    outs = [scale, pytensor.grad(scale, gate)[0]]
    f = pytensor.function([gate, threshold], outs, mode="FAST_COMPILE")
    return lambda u, c=0.3: np.array([f(np.array([v]), c) for v in np.atleast_1d(u)]).T


@pytest.mark.parametrize("reparametrize", [True, False])
def test_no_softness_is_the_relu_gate(reparametrize):
    u = np.linspace(-3.0, 4.0, 30)
    scale, slope = gate_scale(0.0, reparametrize)(u)
    np.testing.assert_array_equal(scale, np.maximum(u - 0.3, 0.0))
    np.testing.assert_array_equal(slope, u > 0.3)


@pytest.mark.parametrize("softness", [0.05, 0.5, 3.0])
def test_a_soft_gate_opens_without_a_kink(softness):
    gate, c = gate_scale(softness), 0.3
    u = c + np.linspace(-0.5, 3.0, 36)
    scale, slope = gate(u)
    t = np.maximum(u - c, 0.0)
    np.testing.assert_allclose(scale, t**2 / (t + softness), rtol=1e-12)
    assert (scale[u < c] == 0).all()
    assert (slope[u < c] == 0).all()
    h = 1e-6
    np.testing.assert_allclose(slope, (gate(u + h)[0] - gate(u - h)[0]) / (2 * h), atol=5e-5)
    # The second derivative is at most 2 / softness: both sides meet at the threshold.
    for step in 10.0 ** np.arange(-8, -1):
        (left, at, right), (slope_left, slope_at, slope_right) = gate([c - step, c, c + step])
        assert left == at == slope_left == slope_at == 0
        assert 0 < right <= step**2 / softness
        assert 0 < slope_right <= 2 * step / softness
    assert gate(c + 1e6 * softness)[1] == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["relu", "rounded_relu", "softplus"])
def test_mean_of_a_unit_is_about_that_of_a_normal_input(name):
    """It only shifts the level: exact for the relu, near enough for the others."""
    act = ACTIVATIONS[name]
    assert ACTIVATIONS["tanh"].normal_mean is None
    z = np.linspace(-9, 9, 4001)
    weights = stats.norm.pdf(z) * (z[1] - z[0])
    for mean, sd in [(0.0, 1.0), (1.5, 0.5), (-2.0, 0.7), (-30.0, 0.1), (4.0, 0.1)]:
        value = float(act.normal_mean(pt.constant(mean), pt.constant(sd)).eval(mode="FAST_COMPILE"))
        expected = weights @ act.value(mean + sd * z)
        assert value == pytest.approx(expected, abs=1e-5 if name == "relu" else 0.7)


def test_a_rounded_relu_is_a_relu_away_from_its_kink():
    act, relu = ACTIVATIONS["rounded_relu"], ACTIVATIONS["relu"]
    z = np.linspace(-5.0, 5.0, 5001)
    value, slope = act.value(z), act.derivative(z)
    far = np.abs(z) >= ROUNDING
    np.testing.assert_allclose(value[far], relu.value(z[far]), atol=1e-15)
    assert (np.diff(value) >= 0).all()
    # It lies above by at most a quarter of the half width, and its slope has no jump.
    gap = value - relu.value(z)
    assert gap.min() >= -1e-15
    assert gap.max() == pytest.approx(ROUNDING / 4)
    assert np.abs(np.diff(slope)).max() <= (z[1] - z[0]) / (2 * ROUNDING) * (1 + 1e-9)
    np.testing.assert_allclose(np.gradient(value, z)[1:-1], slope[1:-1], atol=2e-3)
    for scale in (1.0, 1e4):
        graph = act.graph(pt.constant(scale * z)).eval(mode="FAST_COMPILE")
        np.testing.assert_allclose(graph, act.value(scale * z), rtol=1e-10, atol=1e-10)


def test_derivatives_of_the_rounded_relu():
    """Its gradient is written by hand; the second derivative is the curvature of the parabola."""
    act = ACTIVATIONS["rounded_relu"]
    z = pt.vector("z")
    slope = pytensor.grad(act.graph(z).sum(), z)
    found = pytensor.function([z], [slope, pytensor.grad(slope.sum(), z)], mode="FAST_COMPILE")
    points = np.array([-3.0, -0.7, -0.9, -0.1, 0.0, 0.3, 0.9, 1.1, 5.0]) * ROUNDING
    first, second = found(points)
    np.testing.assert_allclose(first, act.derivative(points), atol=1e-15)
    np.testing.assert_allclose(second, (np.abs(points) < ROUNDING) / (2 * ROUNDING))

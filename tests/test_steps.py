"""Moves of the gates: they leave the posterior where it is, whatever the model."""

from __future__ import annotations

import cloudpickle
import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats

import pymc_bnnvs as bvs
from pymc_bnnvs.priors import Gated
from pymc_bnnvs.steps import GateMoves, chances, how_many

RNG = np.random.default_rng(3)
X = pd.DataFrame(RNG.uniform(size=(30, 4)), columns=list("abcd"))
Y = 2 * X["a"] + RNG.normal(size=30)


def plain():
    return bvs.build_model(X, Y, hidden=3)


def plain_coordinates():
    return bvs.build_model(X, Y, hidden=3, prior=Gated(reparametrize=False, softness=0.0))


def counts_of_groups():
    table = X.assign(kind=list("uvw") * 10)
    counts = np.random.default_rng(1).poisson(2.0, size=30)
    return bvs.build_model(
        table,
        counts,
        hidden=3,
        likelihood="poisson",
        groups={"pair": ["a", "b"]},
        always_in="d",
    )


def two_layers_of_tanh():
    return bvs.build_model(X, Y, hidden=(3, 2), activation="tanh", likelihood="student_t")


def two_networks():
    with pm.Model() as model:
        f = bvs.relu_network("f", X, hidden=3)
        g = bvs.relu_network("g", X[["a", "b"]].to_numpy(), hidden=2)
        y = pm.Data("y_observed", np.asarray(Y))
        pm.Normal("y", f * pm.math.sigmoid(g), 0.5, observed=y)
    return model


def inputs_as_they_are():
    table = X.assign(kind=list("uvw") * 10)
    return bvs.build_model(table, Y, hidden=3, standardize=False)


MODELS = [
    plain,
    plain_coordinates,
    counts_of_groups,
    two_layers_of_tanh,
    two_networks,
    inputs_as_they_are,
]


def points_of(model, draws):
    """Values of a model's variables at the draws of its prior."""
    drawn = {}
    for rv in model.free_RVs:
        value, transform = model.rvs_to_values[rv], model.rvs_to_transforms[rv]
        drawn[value.name] = draws[rv.name].values[0]
        if transform is not None:  # of these models': elementwise
            forward = transform.forward(drawn[value.name], *rv.owner.inputs)
            drawn[value.name] = forward.eval(mode="FAST_COMPILE")
    size = draws.sizes["draw"]
    return [{name: np.asarray(v[index]) for name, v in drawn.items()} for index in range(size)]


def lines_at(network, point):
    """Lines of a network, at values of the model's variables."""
    for name, shared in network.shared.items():
        shared.set_value(point[name])
    return network.read()["line"]


@pytest.mark.parametrize("build", MODELS)
def test_what_the_moves_think_is_what_the_model_says(build, monkeypatch):
    """Likelihood before and after the moves, and the bias; of another gate nothing has moved."""
    model = build()
    moving = GateMoves(model=model, moves=12, rng=4)
    with model:
        draws = pm.sample_prior_predictive(5, random_seed=2)["prior"].dataset
    network = moving.networks[0]
    prefix = network.names["gate"].removesuffix("gate")
    raw = len(network.table) > len(model["y_observed"].get_value())
    density = model.compile_logp(vars=model.observed_RVs + [model[f"{prefix}b_1"]] * raw)
    (bias,) = model.replace_rvs_by_values([model[f"{prefix}b_0"]])
    bias = model.compile_fn(bias, inputs=model.value_vars, on_unused_input="ignore")
    states, move = [], network.move

    def watched(gates, *others):
        states.append((gates, gates.logp))
        return move(gates, *others)

    monkeypatch.setattr(network, "move", watched)
    total = 0
    for before in points_of(model, draws):
        states.clear()
        shares = np.full(len(network.columns), 1 / len(network.columns))
        after, accepted = network.sweep(before, shares, 12, moving.rng)
        total += accepted
        assert states[0][1] == pytest.approx(density(before), rel=1e-9)
        assert states[-1][0].logp == pytest.approx(density(after), rel=1e-9)
        np.testing.assert_allclose(bias(after), bias(before), atol=1e-9)
        gate, z = network.names["gate"], network.names["z"]
        stayed = np.flatnonzero(before[gate] == after[gate])
        columns = np.concatenate([network.columns[group] for group in stayed] + [[]]).astype(int)
        np.testing.assert_array_equal(before[z][columns], after[z][columns])
        lines = [lines_at(network, point)[columns] for point in (before, after)]
        np.testing.assert_allclose(*lines, rtol=1e-9, atol=1e-9)
        others = set(before) - set(network.names.values())
        assert all(before[name] is after[name] for name in others)
    assert total > 0


@pytest.mark.parametrize("build", MODELS)
def test_the_prior_is_stationary(build):
    """Geweke's check: data drawn from the prior, then moves given them, and it is the prior."""
    model, size = build(), 600
    moving = GateMoves(model=model, moves=6, rng=5)
    with model:
        draws = pm.sample_prior_predictive(size, random_seed=3)
    values = draws["prior"].dataset
    outcomes = draws["prior_predictive"]["y"].values[0]
    data = model["y_observed"]
    network = moving.networks[-1]
    names = network.names
    line_of = "effect" if "effect" in names else "line"
    shares = np.full(len(network.columns), 1 / len(network.columns))
    found = {"before": [], "after": []}
    for outcome, before in zip(outcomes, points_of(model, values), strict=True):
        data.set_value(outcome.astype(data.dtype))
        after, _ = network.sweep(before, shares, 6, moving.rng)
        for when, point in (("before", before), ("after", after)):
            u, z = point[names["gate"]], point[names["z"]]
            inside = u > point[names["threshold"]]
            own = np.concatenate([network.columns[g] for g in np.flatnonzero(inside)] + [[]])
            own = own.astype(int)
            found[when].append(
                [
                    inside.sum(),
                    u[0],
                    u[-1],
                    u.max(),
                    z[0, 0],
                    (z[own] ** 2).sum(),
                    np.abs(point[names[line_of]][own]).sum(),
                    float(point[names["level"]]) if "level" in names else 0.0,
                ]
            )
    left, right = np.array(found["before"]), np.array(found["after"])
    assert (left[:, 1:3] != right[:, 1:3]).any(axis=0).all()
    for column in range(left.shape[1]):
        assert stats.ks_2samp(left[:, column], right[:, column]).pvalue > 1e-3, column
    # The number of open gates, draw by draw: sharper than comparing its two distributions.
    gap = right[:, 0] - left[:, 0]
    assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(size)


def test_a_gate_that_must_stay_open_is_left_alone():
    model = counts_of_groups()
    network = GateMoves(model=model).networks[0]
    groups = list(model.coords["group"])
    assert not network.movable[groups.index("d")]
    assert network.movable.sum() == len(groups) - 1


def test_chances_go_where_the_data_are_unsure():
    share = np.array([0.0, 0.5, 1.0, 0.01])
    found = chances(share)
    assert found.sum() == pytest.approx(1.0)
    assert found[1] > 2 * found[3] > 2 * found[0] > 0
    assert chances(np.zeros(4)) * 4 == pytest.approx(0.25)


def test_as_many_moves_as_gates_are_unsure():
    assert how_many(np.repeat([0.0, 1.0], 50)) == 30
    assert how_many(np.repeat([0.0, 0.5, 1.0], [90, 7, 5])) == 8 * 7
    assert how_many(np.full(500, 0.5)) == 100
    model = plain()
    for moves, tried in ((None, 8 * 4), (3, 3)):
        moving = GateMoves(model=model, moves=moves, rng=1)
        assert moving.step(model.initial_point())[1][0]["gates_tried"] == tried


def test_models_it_is_not_for():
    with pytest.raises(ValueError, match="no gates to move"):
        GateMoves(model=bvs.build_model(X, Y, hidden=3, prior="gaussian"))
    with pm.Model() as model:
        bvs.relu_network("f", X, hidden=3)
    with pytest.raises(ValueError, match="do not depend on 'f'"):
        GateMoves(model=model)
    with pytest.raises(ValueError, match="moves=0"):
        GateMoves(model=plain(), moves=0)


def test_beside_nuts():
    """In the chains of ``pm.sample``: the same from the same seed, and importance knows of it."""
    found = []
    with plain():
        step = bvs.gate_step(moves=5)
        for _ in range(2):
            found.append(
                pm.sample(
                    40,
                    tune=80,
                    chains=2,
                    cores=1,
                    step=step,
                    random_seed=1,
                    progressbar=False,
                )
            )
    moved = found[0]["sample_stats"]["gates_moved"].values
    assert moved.shape == (2, 40) and moved.sum() > 0
    np.testing.assert_array_equal(
        found[0]["posterior"]["psi"].values, found[1]["posterior"]["psi"].values
    )
    # The advice where draws have not converged: to let the gates move, if they did not.
    with pytest.warns(bvs.ConvergenceWarning) as caught:
        bvs.importance(found[0])
    assert "gate_step" not in str(caught[0].message)
    del found[1]["sample_stats"]
    with pytest.warns(bvs.ConvergenceWarning, match=r"step=bvs\.gate_step\(\)"):
        bvs.importance(found[1])


def test_draws_without_weights_decide():
    """With thousands of inputs the weights take gigabytes: only what is asked for is stored."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    wanted = ["f", "psi", "inclusion", "sigma"]
    with bvs.build_model(X, X[:, 0] + 0.1 * rng.normal(size=60), hidden=3):
        idata = pm.sample(
            60,
            tune=60,
            chains=2,
            cores=1,
            step=bvs.gate_step(moves=5),
            var_names=wanted,
            random_seed=1,
            progressbar=False,
        )
    assert set(idata["posterior"].data_vars) == set(wanted)
    with pytest.warns(bvs.ConvergenceWarning):
        summary = bvs.select(idata, rule="top_k", k=1)
    assert summary["selected"].values.tolist() == [True, False, False, False]
    assert "mean_gradient" not in summary


def test_it_goes_to_another_process():
    """As PyMC sends it where a chain runs."""
    model = plain()
    moving = GateMoves(model=model, rng=1)
    sent = cloudpickle.loads(cloudpickle.dumps(moving))
    point = model.initial_point()
    first, second = moving.step(point), sent.step(point)
    assert first[1] == second[1]
    for name in first[0]:
        np.testing.assert_array_equal(first[0][name], second[0][name])


def test_what_a_chain_has_learnt_can_be_stored():
    """As PyMC does to go on with a chain."""
    moving = GateMoves(model=plain(), rng=1)
    point, _ = moving.step(plain().initial_point())
    state = moving.sampling_state
    other = GateMoves(model=plain(), rng=2)
    other.sampling_state = state
    assert other.seen == 1
    first, second = moving.step(point), other.step(point)
    for name in first[0]:
        np.testing.assert_array_equal(first[0][name], second[0][name])

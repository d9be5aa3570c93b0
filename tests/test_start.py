"""Which gates are open where a chain starts: choice, invariances, and what the jitter may do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pymc_bnnvs as bvs
from pymc_bnnvs.start import association, start_open
from pymc_bnnvs.table import read_table

RANDOM_SEED = 12


@pytest.fixture(scope="module")
def wide():
    """Four times as many inputs as rows: one enters as a line, one as a square."""
    rng = np.random.default_rng(RANDOM_SEED)
    X = rng.normal(size=(60, 240))
    return X, X[:, 7] + X[:, 200] ** 2 + 0.1 * rng.normal(size=60)


def test_all_are_open_where_there_are_few():
    rng = np.random.default_rng(RANDOM_SEED)
    X, y = rng.normal(size=(60, 30)), rng.normal(size=60)
    assert start_open(read_table(X), y).all()


def test_a_quarter_of_the_rows_otherwise(wide):
    X, y = wide
    chosen = start_open(read_table(X), y)
    assert chosen.sum() == 15
    assert chosen[[7, 200]].all()


def test_line_and_square_have_the_correlation_of_numpy(wide):
    X, y = wide
    found = association(X, y)
    line = X - X.mean(axis=0)
    for p in (0, 7, 200):
        bend = line[:, p] ** 2
        fit = np.polynomial.Polynomial.fit(X[:, p], bend, 1)
        expected = [np.corrcoef(values, y)[0, 1] ** 2 for values in (X[:, p], bend - fit(X[:, p]))]
        assert found[p] == pytest.approx(max(expected), rel=1e-10)


@given(
    scale=st.floats(1e-6, 1e6),
    shift=st.floats(-1e3, 1e3),
    sign=st.sampled_from([-1.0, 1.0]),
    seed=st.integers(0, 10),
)
def test_units_and_order_change_nothing(wide, scale, shift, sign, seed):
    X, y = wide
    order = np.random.default_rng(seed).permutation(X.shape[1])
    moved = association((sign * scale * (X + shift))[:, order], -3.0 * y + 2.0)
    np.testing.assert_allclose(moved, association(X, y)[order], atol=1e-6)


def test_a_binary_input_has_no_square():
    rng = np.random.default_rng(RANDOM_SEED)
    x = rng.integers(2, size=(80, 1)).astype(float)
    y = x[:, 0] + rng.normal(size=80)
    assert association(x, y)[0] == pytest.approx(np.corrcoef(x[:, 0], y)[0, 1] ** 2)


def test_groups_open_as_a_whole_and_what_stays_in_is_open(wide):
    X, y = wide
    frame = pd.DataFrame(X).add_prefix("x")
    # x7 takes its group along; the last input is there because it must be.
    table = read_table(frame, groups={"pair": ["x7", "x8"]}, always_in="x239")
    chosen = dict(zip(table.groups, start_open(table, y), strict=True))
    assert chosen["pair"] and chosen["x200"] and chosen["x239"]
    assert sum(chosen.values()) in (15, 16)


@pytest.mark.parametrize("prior", ["gated", "spike_slab"])
def test_the_model_starts_there(wide, prior):
    X, y = wide
    model = bvs.build_model(X, y, prior=prior, hidden=3)
    point = model.initial_point()
    [inclusion] = model.replace_rvs_by_values([model["inclusion"]])
    inclusion = model.compile_fn(
        inclusion, inputs=model.value_vars, on_unused_input="ignore", mode="FAST_COMPILE"
    )(point)
    np.testing.assert_array_equal(inclusion, start_open(read_table(X), y))
    assert set(pm.do(model, {"tau": 1.0}).initial_point()) < set(point)


def test_jitter_opens_no_gate(wide):
    X, y = wide
    model = bvs.build_model(X, y, hidden=3)
    point = model.initial_point()
    closed = ~start_open(read_table(X), y)
    assert point["gate"][closed].max() + 1.0 <= point["threshold"] - 1.0 + 1e-9


def test_where_it_starts_is_not_part_of_the_model(wide):
    """Prior draws of the gate are standard normal whatever the start."""
    X, y = wide
    model = bvs.build_model(X, y, hidden=3)
    gate = pm.draw(model["gate"], draws=200, random_seed=RANDOM_SEED)
    assert abs(gate.mean()) < 0.03 and abs(gate.std() - 1.0) < 0.03
    logp = model.compile_logp(vars=model["gate"], mode="FAST_COMPILE")
    point = model.initial_point() | {"gate": np.zeros(240)}
    assert logp(point) == pytest.approx(-120.0 * np.log(2 * np.pi))

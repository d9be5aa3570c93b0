"""Designs: signal, noise, gradients and importance are what they say."""

from __future__ import annotations

import numpy as np
import pytest

from pymc_bnnvs.experiments.designs import (
    inputs,
    matern,
    neural,
    population_importance,
    pure_noise,
    simulate,
)
from pymc_bnnvs.experiments.surfaces import LAWS, formula_value, paper_formula, random_line

SMOOTH = ("linear", "neural", "complex")


@pytest.mark.parametrize("design", (*SMOOTH, "matern"))
def test_signal_and_noise(design):
    data = simulate(design, 400, 8, 3, snr=4.0)
    assert np.var(data.f) == pytest.approx(4.0)
    assert np.mean(data.f) == pytest.approx(0.0, abs=1e-9)
    assert np.var(data.y - data.f) == pytest.approx(1.0, abs=0.2)
    assert list(data.truth) == [True] * 5 + [False] * 3
    again, other = simulate(design, 400, 8, 3), simulate(design, 400, 8, 4)
    np.testing.assert_array_equal(data.y, again.y)
    assert not np.allclose(data.y, other.y)


@pytest.mark.parametrize("design", SMOOTH)
@pytest.mark.parametrize("random_positions", [False, True])
def test_gradient_by_finite_differences(design, random_positions):
    data = simulate(design, 200, 9, 5, random_positions=random_positions)
    assert data.truth.sum() == 5
    gradient = data.surface.gradient(data.X)
    step = 1e-6
    for p in range(9):
        up, down = data.X.copy(), data.X.copy()
        up[:, p] += step
        down[:, p] -= step
        slope = (data.surface.value(up) - data.surface.value(down)) / (2 * step)
        # A row within a step of a kink has no slope to compare with.
        off = np.abs(slope - gradient[:, p]) > 1e-5
        assert off.sum() <= 1
    np.testing.assert_allclose(np.mean(gradient**2, axis=0), data.psi)
    np.testing.assert_allclose(data.surface.value(data.X), data.f)


def test_positions():
    first = simulate("linear", 50, 30, 1)
    moved = simulate("linear", 50, 30, 1, random_positions=True)
    assert set(np.flatnonzero(first.truth)) == set(range(5))
    assert set(np.flatnonzero(moved.truth)) != set(range(5))
    with pytest.raises(ValueError, match="5 true inputs do not fit into 4"):
        simulate("linear", 50, 4, 1)


def test_importance_over_the_law_of_the_inputs():
    line = simulate("linear", 100, 6, 2)
    psi, error = population_importance(line, 2, size=1000)
    np.testing.assert_allclose(psi, line.psi)
    np.testing.assert_allclose(error, 0.0, atol=1e-6)
    network = simulate("neural", 100_000, 6, 2)
    psi, error = population_importance(network, 2, size=20_000)
    both = np.hypot(error, error / np.sqrt(5))
    assert (np.abs(psi - network.psi) <= 4 * both + 1e-12).all()
    noise = pure_noise(50, 4, 1)
    assert not population_importance(noise, 1, size=100)[0].any()
    path = matern(50, 6, 1)
    assert np.isinf(population_importance(path, 1)[0][:5]).all()


def test_the_papers_formula_by_hand():
    x = np.array([[0.2, 0.6, 1.0, 0.5, 0.4]])
    by_hand = (
        (np.sin(0.6) + np.arctan(0.6)) / 1.6
        + np.sin(0.5) * (1 + np.exp(0.5 - 0.5))
        + 1.0
        + 2 * np.sin(0.5)
        + 1.6
    )
    assert formula_value(x)[0] == pytest.approx(by_hand)
    with pytest.raises(ValueError, match="has 5 inputs, not 3"):
        paper_formula(np.random.default_rng(1), np.ones((2, 3)))


@pytest.mark.parametrize("law", LAWS)
def test_laws_of_the_weights(law):
    draws = LAWS[law](np.random.default_rng(1), (100_000,))
    assert draws.mean() == pytest.approx(0.0, abs=0.02)
    assert draws.var() == pytest.approx(1.0, abs=0.03)
    data = simulate("neural", 100, 6, 1, law=law)
    assert data.truth[:5].any()


def test_unknown_law_and_design():
    with pytest.raises(ValueError, match="law"):
        random_line(np.random.default_rng(1), np.ones((2, 2)), law="cauchy")
    with pytest.raises(ValueError, match="design"):
        simulate("cubic", 10, 5, 1)
    with pytest.raises(ValueError, match="correlation=1"):
        inputs(10, 5, np.random.default_rng(1), correlation=1)


def test_correlated_inputs_stay_uniform():
    X = inputs(20_000, 4, np.random.default_rng(1), correlation=0.8)
    quantiles = np.quantile(X, [0.1, 0.5, 0.9], axis=0)
    np.testing.assert_allclose(quantiles, np.array([[0.1], [0.5], [0.9]]) * np.ones(4), atol=0.01)
    # Spearman's correlation of normals with correlation r is 6 / pi * arcsin(r / 2).
    found = np.corrcoef(X, rowvar=False)
    assert found[0, 1] == pytest.approx(6 / np.pi * np.arcsin(0.4), abs=0.01)
    assert found[0, 2] == pytest.approx(6 / np.pi * np.arcsin(0.32), abs=0.02)


def test_matern_paths_are_rough():
    """Squared increments of a Matern-1/2 path grow with the distance, not with its square."""
    paths = [matern(300, 1, seed, where=np.array([0])) for seed in range(40)]
    ratios = []
    for path in paths:
        order = np.argsort(path.X[:, 0])
        x, f = path.X[order, 0], path.f[order]
        near = np.mean((f[1:] - f[:-1]) ** 2) / np.mean(x[1:] - x[:-1])
        far = np.mean((f[10:] - f[:-10]) ** 2) / np.mean(x[10:] - x[:-10])
        ratios.append(near / far)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.15)


def test_neural_is_the_data_of_the_results_files():
    """The fits that stand in docs/results were made of these numbers."""
    reference = [2.9354370764, 38.2236779659, 15.6549225786, 3.5413264498, 45.7377153251]
    np.testing.assert_allclose(neural(250, 25, 1000).psi[:5], reference)

"""Simultaneous bands: joint coverage, invariances and exact zeros."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from pymc_bnnvs.intervals import BANDS, joint_nonzero_set, simultaneous_band


def chi_squares(n_draws=4000, n_features=12, seed=0):
    """Correlated scaled chi-squares with the skew of psi near 0."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n_draws, n_features)) + 0.5 * rng.normal(size=(n_draws, 1))
    return np.arange(1, n_features + 1) * z**2


def with_zeros(n_draws=4000, seed=0, inclusion=(1.0, 1.0, 0.99, 0.7, 0.1, 0.02, 0.0)):
    rng = np.random.default_rng(seed)
    included = rng.uniform(size=(n_draws, len(inclusion))) < np.array(inclusion)
    psi = rng.gamma(4.0, 0.5, size=included.shape)
    return np.where(included, psi, 0.0), included


def inside(draws, band, included=None):
    within = (draws >= band.lower) & (draws <= band.upper)
    return within.all(axis=1).mean()


@pytest.mark.parametrize("method", ["sup_t", "rank"])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_joint_coverage_of_the_draws(method, alpha):
    draws = chi_squares()
    band = simultaneous_band(draws, alpha, method)
    assert inside(draws, band) == pytest.approx(1 - alpha, abs=0.005)


@pytest.mark.parametrize("method", ["sup_t", "rank"])
def test_joint_coverage_of_new_draws(method):
    band = simultaneous_band(chi_squares(20_000, seed=1), 0.1, method)
    # Standard error of the share of 20,000 draws is .002, twice.
    assert inside(chi_squares(20_000, seed=2), band) == pytest.approx(0.9, abs=0.012)


def test_multivariate_normal_band_is_exact_for_independent_normals():
    rng = np.random.default_rng(0)
    n_features, alpha = 8, 0.05
    draws = rng.normal(2.0, 3.0, size=(20_000, n_features))
    band = simultaneous_band(draws, alpha, "mvn")
    exact = norm.ppf((1 + (1 - alpha) ** (1 / n_features)) / 2)
    assert band.critical == pytest.approx(exact, abs=0.04)
    np.testing.assert_allclose((band.upper - band.lower) / 2, exact * 3.0, rtol=0.03)


def test_cube_root_band_beats_the_symmetric_one_on_skewed_draws():
    draws = chi_squares()
    root, symmetric = (simultaneous_band(draws, 0.05, m) for m in ("sup_t", "mvn"))
    assert (symmetric.lower < 0).all()
    assert inside(draws, root) > inside(draws, symmetric)


@pytest.mark.parametrize("method", BANDS)
def test_scale_and_order_of_inputs(method):
    draws = chi_squares()
    factor = 10.0 ** np.arange(-3, 9)
    order = np.random.default_rng(1).permutation(12)
    band = simultaneous_band(draws, 0.1, method)
    scaled = simultaneous_band((draws * factor)[:, order], 0.1, method)
    # The normal quantile is simulated, and its stream follows the order of the inputs.
    rtol = 1e-9 if method != "mvn" else 0.02
    np.testing.assert_allclose(scaled.lower, (band.lower * factor)[order], rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(scaled.upper, (band.upper * factor)[order], rtol=rtol)


@pytest.mark.parametrize("method", ["sup_t", "rank"])
def test_exact_zeros(method):
    draws, included = with_zeros()
    band = simultaneous_band(draws, 0.05, method, included)
    assert list(band.lower > 0) == [True, True, True, False, False, False, False]
    np.testing.assert_array_equal(band.lower > 0, joint_nonzero_set(included, 0.05))
    assert (band.lower[3:] == 0).all()
    assert band.upper[-1] == 0
    assert inside(draws, band) >= 0.95 - 1e-9
    assert inside(draws, band) <= 0.965
    # An input that is hardly ever in has the lower upper end.
    assert band.upper[3] > band.upper[4] > band.upper[5]


def test_rare_inputs_do_not_widen_the_band_of_the_others():
    draws, included = with_zeros(inclusion=(1.0, 1.0))
    alone = simultaneous_band(draws, 0.05, "sup_t", included)
    rare, rare_in = with_zeros(inclusion=(0.01,) * 20, seed=3)
    both = simultaneous_band(
        np.hstack([draws, rare]), 0.05, "sup_t", np.hstack([included, rare_in])
    )
    width = (both.upper - both.lower)[:2] / (alone.upper - alone.lower)
    assert (width < 1.6).all()


@pytest.mark.parametrize("method", BANDS)
def test_never_in_and_one_draw_in(method):
    draws, included = with_zeros(inclusion=(1.0, 0.0))
    draws[7, 1], included[7, 1] = 0.3, True
    band = simultaneous_band(draws, 0.05, method, included)
    assert np.isfinite(band.lower).all()
    assert np.isfinite(band.upper).all()


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8),
    st.integers(0, 1000),
    st.floats(0.01, 0.5),
)
def test_band_holds_enough_draws_whatever_the_inclusion(inclusion, seed, alpha):
    draws, included = with_zeros(400, seed, tuple(inclusion))
    for method in ("sup_t", "rank"):
        band = simultaneous_band(draws, alpha, method, included)
        assert inside(draws, band) >= 1 - alpha - 1e-9
        assert (band.upper >= band.lower).all()
        np.testing.assert_array_equal(band.lower > 0, joint_nonzero_set(included, alpha))


@pytest.mark.parametrize("method", ["sup_t", "rank"])
def test_set_that_is_in_just_often_enough(method):
    """Out in exactly alpha of the draws: the band and the set still say the same."""
    draws, included = with_zeros(400, 3, (1.0, 1.0))
    included[:200, 0] = False
    draws[:200, 0] = 0.0
    assert joint_nonzero_set(included, 0.5).tolist() == [True, True]
    band = simultaneous_band(draws, 0.5, method, included)
    assert (band.lower > 0).tolist() == [True, True]
    assert inside(draws, band) >= 0.5


def test_joint_set_is_joint():
    # Two inputs, each in with probability .96, never out together: both are in with .92.
    included = np.ones((100, 2), dtype=bool)
    included[:4, 0] = False
    included[4:8, 1] = False
    assert joint_nonzero_set(included, 0.05).sum() == 1
    assert joint_nonzero_set(included, 0.08).sum() == 2
    assert joint_nonzero_set(included, 0.01).sum() == 0


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1])
def test_level_is_checked(alpha):
    with pytest.raises(ValueError, match="between 0 and 1"):
        simultaneous_band(chi_squares(100), alpha)


def test_unknown_band_names_the_close_one():
    with pytest.raises(ValueError, match="Did you mean 'sup_t'"):
        simultaneous_band(chi_squares(100), 0.05, "sup-t")

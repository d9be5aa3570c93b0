"""Decision rules and the convergence gate, on draws whose answer is known."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import xarray as xr

import pymc_bnnvs as bvs

INCLUSION = np.array([1.0, 1.0, 0.97, 0.8, 0.3, 0.02, 0.0])


def draws_of(inclusion, n_draws=4000, seed=0):
    """Draws whose inclusion frequencies are exact, up to one draw."""
    rng = np.random.default_rng(seed)
    included = np.arange(n_draws)[:, None] < np.round(n_draws * np.asarray(inclusion))
    for column in included.T:
        rng.shuffle(column)
    return np.where(included, rng.gamma(9.0, 0.2, size=included.shape), 0.0), included


@pytest.fixture
def tree(fake_draws):
    psi, included = draws_of(INCLUSION)
    X = np.random.default_rng(1).normal(size=(50, 7))
    return fake_draws(psi, included=included, X=X)


def test_interval_takes_the_largest_joint_set(tree):
    found = bvs.select(tree, rule="interval", alpha=0.05)
    assert list(found["selected"].values) == [True, True, True, False, False, False, False]
    np.testing.assert_array_equal(found["band_lower"] > 0, found["selected"])
    assert bvs.select(tree, alpha=0.02)["selected"].values.sum() == 2
    assert bvs.select(tree, alpha=0.3)["selected"].values.sum() == 4


def test_fdr_is_the_mean_exclusion_probability(tree):
    # Exclusion probabilities 0, 0, .03, .2, .7: running means 0, 0, .01, .0575, .186.
    for q, size in ((0.005, 2), (0.02, 3), (0.1, 4), (0.2, 5)):
        assert bvs.select(tree, rule="fdr", q=q)["selected"].values.sum() == size


def test_fdr_is_not_thinned_out_by_inputs_that_are_always_in(tree):
    data = tree["constant_data"].dataset.assign(always_in=("feature", [1, 1, 0, 0, 0, 0, 0]))
    fixed = xr.DataTree.from_dict({"posterior": tree["posterior"].dataset, "constant_data": data})
    found = bvs.select(fixed, rule="fdr", q=0.1)
    # Of the others .03 and .2 have the mean .115: the second is one too many.
    assert list(found["selected"].values) == [True, True, True, False, False, False, False]
    assert list(found["always_in"].values) == [True, True] + [False] * 5


def test_median_and_top_k(tree):
    assert bvs.select(tree, rule="median")["selected"].values.sum() == 4
    found = bvs.select(tree, rule="top_k", k=2)
    assert set(found["feature"].values[found["selected"].values]) == set(
        found["feature"].values[np.argsort(-found["share"].values)[:2]]
    )


def test_attributes_say_the_rule(tree):
    attrs = bvs.select(tree, rule="fdr", q=0.1).attrs
    assert attrs["rule"] == "fdr"
    assert attrs["q"] == 0.1
    assert attrs["n_selected"] == 4
    assert "false discovery rate" in attrs["reason"]


@pytest.mark.parametrize("rule", ["interval", "fdr", "median"])
def test_empty_selection_is_an_answer_with_a_reason(fake_draws, rule):
    psi, included = draws_of([0.3, 0.2, 0.05])
    found = bvs.select(fake_draws(psi, included=included), rule=rule)
    assert not found["selected"].any()
    assert found.attrs["n_selected"] == 0
    assert found.attrs["reason"].startswith("No input was selected")


def test_no_exact_zeros(fake_draws):
    rng = np.random.default_rng(0)
    psi = np.column_stack([rng.gamma(50, 0.1, 4000), rng.chisquare(1, 4000) - 1.0])
    tree = fake_draws(psi)
    assert list(bvs.select(tree)["selected"].values) == [True, False]
    for rule in ("fdr", "median"):
        with pytest.raises(ValueError, match="needs inclusion probabilities"):
            bvs.select(tree, rule=rule)
    with pytest.raises(ValueError, match="constant_data"):
        bvs.select(tree, rule="top_k", k=1)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"rule": "intervals"}, "Did you mean 'interval'"),
        ({"rule": "top_k"}, "give k"),
        ({"rule": "median", "k": 3}, "only there"),
        ({"rule": "top_k", "k": 9}, "from 1 to 7"),
        ({"rule": "fdr", "q": 0.0}, "q=0.0"),
        ({"alpha": 0.0}, "alpha=0.0"),
    ],
)
def test_bad_options_are_named(tree, kwargs, message):
    with pytest.raises(ValueError, match=message):
        bvs.select(tree, **kwargs)


def stuck_chains():
    """One chain keeps the second input in, the others never let it in."""
    psi, included = draws_of([1.0, 0.0, 0.01])
    included[:1000, 1] = True
    psi[:1000, 1] = 2.0 + 0.1 * np.random.default_rng(3).normal(size=1000)
    return psi, included


def test_unconverged_inputs_are_named_with_what_to_do(fake_draws):
    psi, included = stuck_chains()
    tree = fake_draws(psi, included=included, names=["age", "bmi", "sex"])
    with pytest.warns(bvs.ConvergenceWarning, match=r"for bmi \(R-hat.*pm.sample\(draws=") as seen:
        found = bvs.select(tree)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert list(found["converged"].values) == [True, False, True]


def test_converged_draws_are_quiet(tree):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bvs.select(tree)["converged"].all()


def test_one_chain_is_judged_by_its_sample_size(fake_draws):
    psi, included = draws_of([1.0, 0.5], n_draws=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bvs.select(fake_draws(psi, included=included, chains=1))
    assert np.isnan(found["r_hat"]).all()
    assert found["converged"].all()
    short, short_in = draws_of([1.0, 0.5], n_draws=100)
    with pytest.warns(bvs.ConvergenceWarning, match="effective sample size"):
        bvs.select(fake_draws(short, included=short_in, chains=1))


def test_f_is_judged_too(fake_draws):
    psi, included = draws_of([1.0, 0.0])
    rng = np.random.default_rng(0)
    f = rng.normal(size=(4000, 10)) + np.repeat(np.arange(4), 1000)[:, None]
    with pytest.warns(bvs.ConvergenceWarning, match="draws of f have not converged"):
        found = bvs.select(fake_draws(psi, included=included, f=f))
    assert found.attrs["f_r_hat"] > 1.1


def test_an_input_that_is_hardly_ever_in_needs_no_r_hat(fake_draws):
    psi, included = draws_of([1.0, 0.02, 0.0])
    # All of its rare draws in one chain: R-hat is large, and no rule would pick it.
    order = np.argsort(~included[:, 1], kind="stable")
    psi[:, 1], included[:, 1] = psi[order, 1], included[order, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bvs.select(fake_draws(psi, included=included))
    assert found["converged"].all()
    assert np.isnan(found["r_hat"].values[2])


def test_order_of_inputs_permutes_the_answer(tree):
    order = [3, 0, 6, 2, 5, 1, 4]
    permuted = xr.DataTree.from_dict(
        {name: node.dataset.isel(feature=order) for name, node in tree.children.items()}
    )
    for rule in ("interval", "fdr", "median"):
        left, right = bvs.select(tree, rule=rule), bvs.select(permuted, rule=rule)
        xr.testing.assert_allclose(left.isel(feature=order), right)

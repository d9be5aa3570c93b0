"""Outcomes: what is read, what is refused, and likelihoods that follow new inputs."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytensor
import pytest
import scipy.stats
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from pymc_bnnvs.outcome import LIKELIHOODS, add_likelihood, read_outcome

RNG = np.random.default_rng(20241)
Y = RNG.normal(2.0, 3.0, size=20)
BINARY = np.array([0, 1, 1, 0, 1] * 4)
COUNTS = np.array([0, 3, 1, 7, 2] * 4)
VALUES = {
    "normal": Y,
    "student_t": Y,
    "bernoulli": BINARY,
    "poisson": COUNTS,
    "negative_binomial": COUNTS,
}


def refuses(y, *parts, n_rows=None, error=ValueError, **options):
    """Check that reading ``y`` fails, with every part in the message."""
    with pytest.raises(error) as caught:
        read_outcome(y, len(y) if n_rows is None else n_rows, **options)
    message = str(caught.value)
    for part in parts:
        assert part in message, message


class TestRead:
    @pytest.mark.parametrize(
        "y",
        [
            Y,
            Y[:, None],
            Y.tolist(),
            Y.astype(object),
            pd.Series(Y, index=range(5, 25)),
            pd.DataFrame({"y": Y}),
            pd.Series(Y, dtype="Float64"),
            pl.Series(Y),
            pl.DataFrame({"y": Y}),
            xr.DataArray(Y, dims="obs_id"),
            np.ma.masked_array(Y),
        ],
    )
    def test_kinds_agree(self, y):
        outcome = read_outcome(y, 20)
        np.testing.assert_array_equal(outcome.values, Y)
        assert outcome.values.dtype == np.float64
        assert outcome.center == pytest.approx(Y.mean())
        assert outcome.scale == pytest.approx(Y.std())
        assert (outcome.likelihood, outcome.noise) == ("normal", None)

    def test_units_of_each_likelihood(self):
        t = read_outcome(Y, 20, likelihood="student_t")
        assert (t.center, t.scale) == pytest.approx((Y.mean(), Y.std()))
        yes = read_outcome(BINARY, 20, likelihood="bernoulli")
        p = 12.5 / 21
        assert (yes.center, yes.scale) == (pytest.approx(np.log(p / (1 - p))), 1.0)
        for likelihood in ("poisson", "negative_binomial"):
            counts = read_outcome(COUNTS.astype(float), 20, likelihood=likelihood)
            assert (counts.center, counts.scale) == (pytest.approx(np.log(COUNTS.mean())), 1.0)
            assert counts.values.dtype == yes.values.dtype == np.int64

    @pytest.mark.parametrize("likelihood", LIKELIHOODS)
    def test_without_standardizing(self, likelihood):
        outcome = read_outcome(VALUES[likelihood], 20, likelihood=likelihood, standardize=False)
        assert (outcome.center, outcome.scale) == (0.0, 1.0)

    @pytest.mark.parametrize("box", [np.array, list, pd.Series, pl.Series])
    def test_booleans_are_zero_and_one(self, box):
        outcome = read_outcome(box(BINARY.astype(bool)), 20, likelihood="bernoulli")
        np.testing.assert_array_equal(outcome.values, BINARY)

    def test_known_noise(self):
        assert read_outcome(Y, 20, noise=1).noise == 1.0
        assert read_outcome(Y, 20, likelihood="student_t", noise=np.float32(2)).noise == 2.0

    @settings(max_examples=30, deadline=None)
    @given(st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
    def test_affine_outcomes(self, slope, shift):
        outcome = read_outcome(shift + slope * Y, 20)
        assert outcome.center == pytest.approx(shift + slope * Y.mean(), abs=1e-9)
        assert outcome.scale == pytest.approx(slope * Y.std(), rel=1e-6)

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.booleans(), min_size=2, max_size=30).filter(lambda y: len(set(y)) == 2))
    def test_center_of_a_binary_outcome(self, y):
        outcome = read_outcome(y, len(y), likelihood="bernoulli")
        p = 1 / (1 + np.exp(-outcome.center))
        assert p == pytest.approx((sum(y) + 0.5) / (len(y) + 1))


class TestRefusals:
    def test_unknown_likelihood(self):
        refuses(Y, "likelihood='poison'", "mean 'poisson'", likelihood="poison")

    def test_length(self):
        refuses(Y, "20 values", "21 rows", n_rows=21)

    @pytest.mark.parametrize("n", [0, 1])
    def test_too_few_rows(self, n):
        refuses(Y[:n], f"{n} value", "two rows or more")

    def test_missing(self):
        y = Y.copy()
        y[[3, 7]] = np.nan
        for given_y in (y, pd.Series(y), pl.Series(y), pd.Series(y, dtype="Float64"), y.tolist()):
            refuses(given_y, "y has missing values", "rows 3, 7", "drop those rows")
        refuses(np.ma.masked_invalid(y), "rows 3, 7", "drop those rows")
        refuses([1.0, None, 2.0], "row 1,", "drop those rows")
        refuses(["u", None, "v"], "y has missing values")
        refuses(pd.Series(["u", None, "v"], dtype="category"), "y has missing values")
        refuses(np.full(20, np.nan), "and 15 more")

    def test_infinite(self):
        refuses([1.0, np.inf, 2.0], "infinite", "row 1,", "drop those rows")

    def test_constant(self):
        refuses([3.0, 3.0], "constant (3", "nothing to learn")
        refuses([0.1 + 0.2, 0.3], "constant", likelihood="student_t")
        assert read_outcome([3.0, 3.0], 2, standardize=False).scale == 1.0

    def test_unit(self):
        refuses(Y * 1e200, "change its unit")

    def test_two_levels_are_not_guessed(self):
        labels = ["no", "yes", "no"]
        cure = "(y == 'yes').astype(int)"
        for y in (
            labels,
            np.array(labels),
            pd.Series(labels),
            pl.Series(labels),
            pd.Series(labels, dtype="category"),
            pl.Series(labels, dtype=pl.Categorical),
        ):
            for likelihood in ("normal", "bernoulli"):
                refuses(y, "'no', 'yes'", cure, '"bernoulli"', likelihood=likelihood)
        refuses(pd.Series([0, 1, 0], dtype="category"), "'0', '1'", "code it 0/1")

    def test_text(self):
        refuses(["1.5", "2.5", "3.5"], "text", ".astype(float)")
        refuses([1.5, "two", 3.5], "'two' in row 1", "correct")

    def test_booleans_for_another_likelihood(self):
        for likelihood in ("normal", "poisson"):
            refuses(BINARY.astype(bool), "boolean", '"bernoulli"', likelihood=likelihood)

    def test_dates(self):
        refuses(pd.Series(pd.date_range("2020", periods=3)), "dates", "pandas.Timedelta")

    def test_complex(self):
        refuses([1j, 2.0], "complex", "real")

    def test_nested(self):
        refuses(pl.Series([[1], [2]]), "lists", "one number a row")
        refuses(pd.Series([[1], [2]]), "lists", "one number a row")
        refuses([[1], [2, 3]], "different lengths", "row")

    def test_no_number(self):
        refuses(pd.Series([b"a", b"b"], dtype=object), "no numbers", "convert")

    def test_several_columns(self):
        refuses(np.ones((20, 2)), "(20, 2)", "one outcome")
        refuses(pd.DataFrame({"a": Y, "b": Y}), "2 columns ('a', 'b')", "one outcome")
        refuses(Y[None], "(1, 20)", n_rows=20)

    def test_no_vector(self):
        refuses(3.0, "float", "array", n_rows=2, error=TypeError)
        refuses(None, "NoneType", "array", n_rows=2, error=TypeError)

    @pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial"])
    @pytest.mark.parametrize("odd", [-1, 1.5, 1e300])
    def test_no_counts(self, likelihood, odd):
        refuses([2, 0, odd], f"{odd:g} in row 2", "no count", '"normal"', likelihood=likelihood)

    def test_zeros_alone(self):
        refuses([0, 0, 0], "0 in every row", "nothing to learn", likelihood="poisson")

    def test_other_classes(self):
        refuses([1, 2, 1], "1, 2", "(y == 2).astype(int)", likelihood="bernoulli")
        refuses([0, 0.5, 1], "0, 0.5, 1", "takes 0 and 1", likelihood="bernoulli")

    @pytest.mark.parametrize("value", [0, 1])
    def test_one_class(self, value):
        refuses([value] * 3, f"y is {value}", "both classes", likelihood="bernoulli")

    @pytest.mark.parametrize("likelihood", ["bernoulli", "poisson", "negative_binomial"])
    def test_noise_without_sigma(self, likelihood):
        refuses(
            BINARY, "noise=1.0", likelihood, "leave noise out", likelihood=likelihood, noise=1.0
        )

    @pytest.mark.parametrize("noise", [0, -1.0, np.inf, np.nan, "loud", [1.0, 2.0], True])
    def test_bad_noise(self, noise):
        refuses(Y, f"noise={noise!r}", "positive, finite", noise=noise)


X = RNG.normal(size=(20, 2))
X_NEW = RNG.normal(size=(7, 2))


def linear_model(likelihood="normal", *, free=False, noise=None, **options):
    """A linear model, with the outcome's likelihood under test."""
    outcome = read_outcome(VALUES[likelihood], 20, likelihood=likelihood, noise=noise)
    with pm.Model(coords={"feature": ["a", "b"]}) as model:
        data = pm.Data("X", X, dims=("obs_id", "feature"))
        observed = None if free else pm.Data("y_observed", outcome.values, dims="obs_id")
        b = pm.Normal("b", dims="feature")
        f = pm.Deterministic("f", data @ b, dims="obs_id")
        add_likelihood("y", f, observed, outcome, dims="obs_id", **options)
    return model


def names(variables):
    """Names of a model's variables."""
    return {variable.name for variable in variables}


@pytest.fixture
def fast_compile():
    """Run small graphs in Python, which takes less time than to compile them."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


@pytest.mark.usefixtures("fast_compile")
class TestLikelihood:
    @pytest.mark.parametrize(
        ("likelihood", "free"),
        [
            ("normal", {"sigma"}),
            ("student_t", {"sigma", "nu"}),
            ("bernoulli", set()),
            ("poisson", set()),
            ("negative_binomial", {"inv_sqrt_alpha"}),
        ],
    )
    def test_variables_and_log_density(self, likelihood, free):
        model = linear_model(likelihood)
        assert names(model.free_RVs) == free | {"b"}
        assert names(model.observed_RVs) == {"y"}
        assert ("alpha" in model.named_vars) == (likelihood == "negative_binomial")
        assert model.named_vars_to_dims["y"] == ("obs_id",)
        # At b = 0: the outcome about the link's inverse at 0, by SciPy.
        y, scale = (
            VALUES[likelihood],
            read_outcome(VALUES[likelihood], 20, likelihood=likelihood).scale,
        )
        expected = {
            "normal": lambda: scipy.stats.norm.logpdf(y, 0.0, scale),
            "student_t": lambda: scipy.stats.t.logpdf(y, 20.0, 0.0, scale),
            "bernoulli": lambda: scipy.stats.bernoulli.logpmf(y, 0.5),
            "poisson": lambda: scipy.stats.poisson.logpmf(y, 1.0),
            "negative_binomial": lambda: scipy.stats.nbinom.logpmf(y, 1.0, 0.5),
        }[likelihood]()
        assert model.point_logps()["y"] == pytest.approx(expected.sum(), abs=0.01)

    def test_scale_of_sigma_is_the_outcomes(self):
        model = linear_model()
        assert model["sigma"].owner.inputs[-1].eval() == pytest.approx(Y.std())
        assert linear_model(scale=5.0)["sigma"].owner.inputs[-1].eval() == pytest.approx(5.0)

    def test_known_noise_is_data(self):
        model = linear_model(noise=0.5)
        assert names(model.free_RVs) == {"b"}
        assert model["sigma"].get_value() == 0.5
        assert "sigma" in names(model.data_vars)

    def test_dispersion(self):
        model = linear_model("negative_binomial")
        assert model["alpha"].eval({model["inv_sqrt_alpha"]: 0.5}) == pytest.approx(4.0)

    def test_follows_new_inputs_without_dims_too(self):
        outcome = read_outcome(Y, 20)
        with pm.Model() as model:
            f = pm.Data("X", X) @ pm.Normal("b", shape=2)
            add_likelihood("y", f, pm.Data("y_observed", Y), outcome)
            pm.set_data({"X": X_NEW})
        assert pm.draw(model["y"], random_seed=1).shape == (7,)

    def test_rates_stay_in_reach_of_a_draw(self):
        for likelihood in ("poisson", "negative_binomial"):
            model = linear_model(likelihood, free=True)
            y = pm.draw(pm.do(model, {"b": np.array([0.0, 1e4])})["y"], random_seed=1)
            assert (y >= 0).all()

    def test_prior_predictive_do_and_observe(self):
        model = linear_model(free=True)
        with pm.do(model, {"b": np.array([1.0, -1.0]), "sigma": 1e-3}):
            prior = pm.sample_prior_predictive(2, random_seed=1)
        y = prior["prior"]["y"]
        assert y.dims == ("chain", "draw", "obs_id")
        np.testing.assert_allclose(y[0], np.tile(X @ [1, -1], (2, 1)), atol=0.01)
        observed = pm.observe(model, {"y": Y})
        assert names(observed.observed_RVs) == {"y"}
        assert np.isfinite(observed.point_logps()["y"])

    def test_new_inputs_alone_predict_on_their_own_length(self):
        model = linear_model()
        with model:
            prior = pm.sample_prior_predictive(3, random_seed=1)
            assert prior["prior_predictive"]["y"].shape == (1, 3, 20)
            idata = pm.sample(
                draws=20,
                tune=20,
                chains=1,
                cores=1,
                nuts_sampler="pymc",
                progressbar=False,
                quiet=True,
                compute_convergence_checks=False,
                random_seed=1,
            )
            assert idata["observed_data"]["y"].shape == (20,)
            pm.set_data({"X": X_NEW})
            predictions = pm.sample_posterior_predictive(
                idata, var_names=["f", "y"], predictions=True, progressbar=False, random_seed=1
            )["predictions"]
        assert predictions["y"].sizes == {"chain": 1, "draw": 20, "obs_id": 7}
        np.testing.assert_allclose(predictions["f"], idata["posterior"]["b"].values @ X_NEW.T)


def test_every_likelihood_is_documented():
    assert all(f'"{name}"' in inspect.getdoc(read_outcome) for name in LIKELIHOODS)

"""The summary: centring in closed form, invariances, columns and errors."""

from __future__ import annotations

import warnings

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_bnnvs as bvs
from pymc_bnnvs.centering import gradient_variance, shift
from pymc_bnnvs.gradient_field import GradientMoments, Network
from pymc_bnnvs.priors import PRIORS, Gated, as_prior

pytestmark = pytest.mark.usefixtures("quiet_convergence")
FAST = {"mode": "FAST_COMPILE"}


def linear_moments(beta):
    """Moments of draws (S, P) of a linear function's coefficients; the field is constant."""
    field = np.broadcast_to(beta.mean(axis=0), (7, beta.shape[1]))
    return GradientMoments(field, beta, beta**2, None)


def test_bias_of_draws_and_plug_in_in_the_flat_linear_case():
    """Under a flat prior a draw's bias is 2 v and the plug-in's v, v the sampling variance."""
    rng = np.random.default_rng(0)
    n, truth, repeats = 60, np.array([0.0, 0.3, 1.5]), 4000
    X = rng.normal(size=(n, 3))
    covariance = np.linalg.inv(X.T @ X)
    root = np.linalg.cholesky(covariance)
    centred, plugged, variance = [], [], []
    for _ in range(repeats):
        estimate = truth + root @ rng.normal(size=3)
        beta = estimate + rng.normal(size=(200, 3)) @ root.T
        moments = linear_moments(beta)
        centred.append((beta**2 - shift("posterior", moments, factor=2.0)).mean(axis=0))
        plugged.append((beta**2 - shift("plugin", moments)).mean(axis=0))
        variance.append(gradient_variance(moments))
    v = np.diag(covariance)
    np.testing.assert_allclose(np.mean(variance, axis=0), v, rtol=0.02)
    error = np.std(centred, axis=0) / np.sqrt(repeats)
    assert (np.abs(np.mean(centred, axis=0) - truth**2) < 4 * error).all()
    np.testing.assert_allclose(centred, plugged)


def test_gradient_variance_given_that_the_input_is_in():
    rng = np.random.default_rng(0)
    beta = rng.normal(2.0, 0.5, size=(50_000, 2))
    included = rng.uniform(size=beta.shape) < np.array([1.0, 0.3])
    beta = np.where(included, beta, 0.0)
    moments = linear_moments(beta)
    np.testing.assert_allclose(gradient_variance(moments, included), 0.25, rtol=0.05)
    # Without the gate in mind, the coming and going counts as variance.
    assert gradient_variance(moments)[1] > 0.8
    moved = shift("posterior", moments, included=included, factor=1.0)
    assert (moved[~included] == 0).all()


@pytest.mark.parametrize("hidden", [(4,), (4, 3)])
@pytest.mark.parametrize("prior", [*PRIORS, Gated(reparametrize=False)], ids=str)
def test_moments_are_read_back_from_the_draws(prior_draws, prior, hidden):
    """The numpy pass finds the model's own psi; a difference would raise."""
    _, draws = prior_draws(prior, hidden)
    summary = bvs.importance(draws, group="prior", centering="none")
    psi = draws.prior["psi"].values[0]
    np.testing.assert_allclose(summary["psi"], psi.mean(axis=0), rtol=1e-6)
    assert ("inclusion" in summary) == as_prior(prior).exact_zeros
    assert "mean_gradient" in summary


def test_mean_gradient_by_finite_differences(prior_draws):
    _, draws = prior_draws("gaussian", (4,), activation="tanh")
    summary = bvs.importance(draws, group="prior")
    step = 1e-5
    X = draws.constant_data["X"].values
    network = Network.read(draws.prior.dataset, draws.constant_data.dataset)
    ends = []
    for sign in (1, -1):
        moved = X.copy()
        moved[:, 0] += sign * step
        moved = network._replace(X=moved - draws.constant_data["x_center"].values)
        ends.append(moved.values(slice(None)).mean())
    slope = (ends[0] - ends[1]) / (2 * step)
    assert float(summary["mean_gradient"][0]) == pytest.approx(slope, rel=1e-5)


def test_units(prior_draws, table, outcome):
    """psi in the user's units, and shares that do not depend on them."""
    _, draws = prior_draws("gaussian")
    raw = bvs.importance(draws, group="prior")
    by_sd = bvs.importance(draws, group="prior", scale="sd")
    variance = draws.constant_data["X"].values.var(axis=0)
    np.testing.assert_allclose(by_sd["psi"], raw["psi"] * variance, rtol=1e-9)
    np.testing.assert_allclose(by_sd["share"], raw["share"], rtol=1e-9)
    assert float(raw["share"].sum()) == pytest.approx(1.0)


def test_by_group(prior_draws):
    _, draws = prior_draws("gated")
    by_feature = bvs.importance(draws, group="prior")
    by_group = bvs.importance(draws, group="prior", by="group")
    assert list(by_group["group"].values) == ["a", "b", "c", "d", "kind"]
    assert by_group["psi"][4] == pytest.approx(float(by_feature["psi"][4:].sum()))
    assert by_group["share"][4] == pytest.approx(float(by_feature["share"][4:].sum()))
    np.testing.assert_allclose(by_group["inclusion"][:4], by_feature["inclusion"][:4])
    np.testing.assert_allclose(by_group["inclusion"][4], by_feature["inclusion"][4])
    np.testing.assert_allclose(
        by_group["psi"], draws.prior["psi_group"].mean(("chain", "draw")), rtol=1e-6
    )


def test_table_has_one_row_an_input(idata):
    frame = bvs.importance(idata).to_dataframe()
    assert list(frame.index) == ["a", "b", "c", "d", "kind[u]", "kind[v]", "kind[w]"]
    assert frame["converged"].dtype == bool
    assert (frame["ci_lower"] <= frame["ci_upper"]).all()
    assert (frame["band_lower"] <= frame["ci_lower"] + 1e-12).all()
    assert frame["share"].idxmax() == "a"
    assert frame.loc["a", "mean_gradient"] > 0


def test_pointwise_interval_follows_arviz(idata):
    import arviz as az

    default = bvs.importance(idata)
    assert default.attrs["ci_prob"] == az.rcParams["stats.ci_prob"]
    with az.rc_context({"stats.ci_prob": 0.5, "stats.ci_kind": "hdi"}):
        narrow = bvs.importance(idata)
    assert narrow.attrs["ci_kind"] == "hdi"
    width = lambda s: (s["ci_upper"] - s["ci_lower"]).values[0]  # noqa: E731
    assert width(narrow) < width(default)


def test_files_round_trip(idata, tmp_path):
    expected = bvs.select(idata)
    idata.to_netcdf(tmp_path / "draws.nc")
    with xr.open_datatree(tmp_path / "draws.nc") as opened:
        xr.testing.assert_identical(bvs.select(opened), expected)
    with warnings.catch_warnings():
        # zarr warns of its own format on writing.
        warnings.simplefilter("ignore")
        idata.to_zarr(tmp_path / "draws.zarr")
        with xr.open_datatree(tmp_path / "draws.zarr", engine="zarr") as opened:
            xr.testing.assert_identical(bvs.select(opened), expected)


def test_summary_is_a_group_of_the_tree(idata):
    import arviz as az

    tree = idata.copy()
    tree["importance"] = xr.DataTree(bvs.importance(idata))
    assert "importance" in tree.children
    assert len(az.summary(tree, var_names=["psi"])) == 7


@pytest.mark.parametrize("centering", ["posterior", "plugin", "trace", "none"])
def test_centerings(prior_draws, centering):
    _, draws = prior_draws("gaussian", (4,), noise=3.0)
    summary = bvs.importance(draws, group="prior", centering=centering)
    none = bvs.importance(draws, group="prior", centering="none")
    assert summary.attrs["centering"] == centering
    if centering == "none":
        assert (summary["psi"] >= 0).all()
    else:
        assert (summary["psi"] < none["psi"]).all()
        np.testing.assert_array_equal(summary["r_hat"], none["r_hat"])


def test_trace_needs_a_noise(table):
    y = np.random.default_rng(0).poisson(2.0, size=60)
    model = bvs.build_model(table, y, likelihood="poisson", prior="gaussian", hidden=3)
    with model:
        draws = pm.sample_prior_predictive(20, random_seed=1, compile_kwargs=FAST)
    with pytest.raises(ValueError, match="no sigma"):
        bvs.importance(draws, group="prior", centering="trace")


def test_function_of_the_users_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) * np.array([1.0, 5.0])
    with pm.Model(coords={"feature": ["u", "v"]}) as model:
        data = pm.Data("X", X, dims=("obs_id", "feature"))
        b = pm.Normal("b", 1.0, [0.5, 0.1], dims="feature")
        bvs.gradient_importance(data @ b, data)
        draws = pm.sample_prior_predictive(500, random_seed=1, compile_kwargs=FAST)
    tree = xr.DataTree.from_dict(
        {"posterior": draws.prior.dataset, "constant_data": draws.constant_data.dataset}
    )
    plain = bvs.importance(tree)
    assert plain.attrs["centering"] == "none"
    assert "pass model=" in plain.attrs["centering_note"]
    with pytest.raises(ValueError, match="pass model="):
        bvs.importance(tree, centering="posterior")
    centred = bvs.importance(tree, model=model)
    assert centred.attrs["centering"] == "posterior"
    variance = draws.prior["b"].values[0].var(axis=0)
    np.testing.assert_allclose(plain["psi"] - centred["psi"], 2 * variance, rtol=1e-6)
    np.testing.assert_allclose(
        centred["mean_gradient"], draws.prior["b"].values[0].mean(axis=0), rtol=1e-9
    )
    with model:
        xr.testing.assert_identical(bvs.importance(tree), centred)


def test_data_that_were_changed_after_sampling_are_noticed(idata):
    tree = idata.copy(deep=True)
    constant = tree["constant_data"].dataset.copy(deep=True)
    constant["X"].values[:] += 1.0 + np.arange(60)[:, None]
    tree["constant_data"] = xr.DataTree(constant)
    with pytest.raises(ValueError, match="does not follow from the weights"):
        bvs.importance(tree)


@pytest.mark.parametrize("lost", [["z"], ["scale"], ["beta"], ["line"]])
def test_without_the_weights_psi_is_still_summarised(idata, lost):
    tree = xr.DataTree.from_dict(
        {
            "posterior": idata["posterior"].dataset.drop_vars(lost),
            "constant_data": idata["constant_data"].dataset,
        }
    )
    summary = bvs.importance(tree)
    assert "mean_gradient" not in summary
    assert lost[0] in summary.attrs["mean_gradient_note"]
    np.testing.assert_array_equal(summary["psi"], bvs.importance(idata)["psi"])
    with pytest.raises(ValueError, match=f"do not hold.*{lost[0]}"):
        bvs.importance(tree, centering="posterior")


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"var_name": "psy"}, "no variable 'psy'.*Did you mean var_name='psi'"),
        ({"group": "prior"}, "no group 'prior'"),
        ({"by": "features"}, "Did you mean 'feature'"),
        ({"centering": "plug-in"}, "Did you mean 'plugin'"),
        ({"band": "sup-t"}, "Did you mean 'sup_t'"),
        ({"scale": "standard"}, "scale='standard'"),
        ({"alpha": 1.5}, "alpha=1.5"),
        ({"ci_kind": "hpd"}, "Did you mean 'hdi'"),
    ],
)
def test_bad_options_are_named(idata, kwargs, message):
    with pytest.raises(ValueError, match=message):
        bvs.importance(idata, **kwargs)


def test_what_is_not_a_tree():
    with pytest.raises(ValueError, match=r"Pass what pm\.sample returns"):
        bvs.importance({"psi": 1})


def test_a_summary_can_be_saved(idata, tmp_path):
    summary = bvs.importance(idata)
    summary.to_netcdf(tmp_path / "summary.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "summary.nc", engine="h5netcdf") as read:
        xr.testing.assert_equal(read.load(), summary)

"""Draws on disk: small, exact, and never half written."""

from __future__ import annotations

import json

import numpy as np
import nutpie
import pymc as pm
import pytest
import xarray as xr

import pymc_bnnvs as bvs
from pymc_bnnvs.storage import compact, open_draws, write_draws


def test_compact_draws_predict_the_same(prior_draws):
    model, draws = prior_draws()
    tree = xr.DataTree.from_dict(
        {"posterior": draws["prior"].dataset, "constant_data": draws["constant_data"].dataset}
    )
    small = compact(tree)
    closed = tree["posterior"]["scale"].values == 0
    assert closed.any()
    assert (small["posterior"]["z"].values[closed] == 0).all()
    assert (tree["posterior"]["z"].values[closed] != 0).all()
    kept = ~closed
    np.testing.assert_array_equal(
        small["posterior"]["z"].values[kept], tree["posterior"]["z"].values[kept]
    )
    with model:
        rows = model["X"].get_value()
        pm.set_data({"X": rows[:7] + 0.1})
        predicted = [
            pm.sample_posterior_predictive(
                each, var_names=["f"], predictions=True, progressbar=False, random_seed=1
            )["predictions"]["f"].values
            for each in (tree, small)
        ]
        pm.set_data({"X": rows})
    assert predicted[0].shape[-1] == 7
    np.testing.assert_array_equal(*predicted)


def test_compact_draws_give_the_same_importance(prior_draws, quiet_convergence):
    _, draws = prior_draws()
    tree = xr.DataTree.from_dict(
        {"posterior": draws["prior"].dataset, "constant_data": draws["constant_data"].dataset}
    )
    xr.testing.assert_identical(bvs.importance(tree), bvs.importance(compact(tree)))


@pytest.mark.parametrize("prior", ["gaussian", "ard", "spike_slab"])
def test_draws_without_gates_are_left_alone(prior_draws, prior):
    _, draws = prior_draws(prior)
    tree = xr.DataTree.from_dict({"posterior": draws["prior"].dataset})
    xr.testing.assert_identical(compact(tree)["posterior"].dataset, tree["posterior"].dataset)


def test_a_file_of_closed_gates_is_small(tmp_path):
    rng = np.random.default_rng(0)
    dims = ("chain", "draw", "feature")
    scale = np.where(rng.uniform(size=(2, 50, 100)) < 0.05, 1.0, 0.0)
    posterior = xr.Dataset(
        {
            "scale": (dims, scale),
            "z": ((*dims, "hidden_1"), rng.normal(size=(2, 50, 100, 20))),
            "g_scale": (dims, scale),
            "g_z": ((*dims, "hidden_1"), rng.normal(size=(2, 50, 100, 20))),
        }
    )
    path = write_draws(xr.DataTree.from_dict({"posterior": posterior}), tmp_path / "draws.nc")
    assert path.stat().st_size < 0.1 * posterior.nbytes
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        again = tree["posterior"].dataset.load()
    for prefix in ("", "g_"):
        expected = posterior[f"{prefix}z"].where(posterior[f"{prefix}scale"] > 0, 0.0)
        xr.testing.assert_equal(again[f"{prefix}z"], expected)
    assert [file.name for file in tmp_path.iterdir()] == ["draws.nc"]


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_convergence")
def test_draws_that_go_to_disk_as_they_are_drawn(model, tmp_path):
    """As docs/sampling.md advises for thousands of inputs: decided on, and predicted with."""
    path = tmp_path / "draws.zarr"
    nutpie.sample(
        nutpie.compile_pymc_model(model),
        draws=60,
        tune=100,
        chains=2,
        seed=1,
        progress_bar=False,
        zarr_store=nutpie.zarr_store.LocalStore(str(path), mkdir=True),
    )
    tree = open_draws(path, model)
    assert tree["sample_stats"]["n_steps"].shape == (2, 60)
    assert set(tree["posterior"].data_vars) == {
        variable.name for variable in (*model.free_RVs, *model.deterministics)
    }
    with xr.open_datatree(write_draws(tree, tmp_path / "draws.nc"), engine="h5netcdf") as small:
        small.load()
    assert (small["posterior"]["z"].values[small["posterior"]["scale"].values == 0] == 0).all()
    found = [bvs.select(each) for each in (tree, small)]
    xr.testing.assert_identical(*found)
    assert "mean_gradient" in found[0]
    posterior = tree["posterior"].dataset.load()
    in_memory = compact(xr.DataTree.from_dict({"posterior": posterior}))
    for name, values in in_memory["posterior"].items():
        np.testing.assert_array_equal(small["posterior"][name], values)
    with model:
        predicted = pm.sample_posterior_predictive(
            small, var_names=["f"], progressbar=False, random_seed=1
        )["posterior_predictive"]["f"]
    np.testing.assert_allclose(predicted, posterior["f"], rtol=1e-9)


def test_attributes_without_a_type_in_netcdf_are_written_as_json(tmp_path):
    settings = {"chains": 4, "store": None}
    root = xr.Dataset(attrs={"settings": settings, "tuned": True, "version": "1", "n": 3})
    tree = xr.DataTree.from_dict({"/": root, "posterior": xr.Dataset({"psi": ("draw", [1.0])})})
    with xr.open_datatree(write_draws(tree, tmp_path / "a.nc"), engine="h5netcdf") as again:
        attrs = dict(again.attrs)
    assert json.loads(attrs.pop("settings")) == settings
    assert attrs == {"tuned": "true", "version": "1", "n": 3}
    assert tree.attrs["settings"] is settings


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "draws.nc"
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"psi": ("draw", np.arange(3.0))})})
    write_draws(tree, path)
    before = path.read_bytes()

    def fail(self, target, **kwargs):
        target.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", fail)
    with pytest.raises(OSError, match="disk full"):
        write_draws(tree, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["draws.nc"]

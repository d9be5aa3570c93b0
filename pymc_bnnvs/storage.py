"""Draws without the prior noise of closed gates, which nobody needs and no file compresses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import arviz as az
import h5netcdf
import numpy as np
import pymc as pm
import xarray as xr
from pymc.backends.arviz import (
    coords_and_dims_for_inferencedata,
    find_constants,
    find_observations,
)
from pymc.util import is_transformed_name

from pymc_bnnvs.report import replacing

__all__ = ["compact", "open_draws", "write_draws"]

#: What a closed gate leaves without a use, by the end of its name.
UNUSED = ("z", "effect", "line")
#: Sizes of the weights that are compressed, and that are in memory, at a time.
CHUNK_BYTES, BLOCK_BYTES = 2**20, 2**26


def compact(idata: xr.DataTree) -> xr.DataTree:
    """Set the weights of closed gates to 0, so that a compressed file takes no space for them.

    The draws answer as before: psi, f, their summaries and predictions on new data are the
    same to the last digit, since a closed gate multiplies these weights by 0.

    Parameters
    ----------
    idata : DataTree
        Draws of a model with the ``gated`` prior, any number of networks; others are
        returned as they are.

    Returns
    -------
    DataTree
        The same groups; in ``posterior`` the variables ``z``, ``effect`` and ``line`` are 0
        where ``scale`` is.

    See Also
    --------
    write_draws : write them to a compressed file.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> from pymc_bnnvs.storage import compact
    >>> dims = ("chain", "draw", "feature")
    >>> posterior = xr.Dataset({
    ...     "scale": (dims, np.array([[[0.0, 0.5]]])),
    ...     "z": ((*dims, "hidden_1"), np.ones((1, 1, 2, 3))),
    ... })
    >>> compact(xr.DataTree.from_dict({"posterior": posterior}))["posterior"]["z"].values[0, 0]
    array([[0., 0., 0.],
           [1., 1., 1.]])
    """
    if "posterior" not in idata.children:
        return idata
    posterior = idata["posterior"].dataset
    kept = {
        name: posterior[name].where(posterior[scale] != 0, 0.0).transpose(*posterior[name].dims)
        for name, scale in idle_weights(posterior).items()
        if (posterior[scale] == 0).any()
    }
    tree = idata.copy()
    tree["posterior"] = xr.DataTree(posterior.assign(kept))
    return tree


def idle_weights(posterior: xr.Dataset) -> dict[str, str]:
    """Variables that have no use where a gate is closed, each with the variable that says so."""
    found: dict[str, str] = {}
    for scale in map(str, posterior.data_vars):
        prefix = scale.removesuffix("scale")
        if scale != prefix and (not prefix or prefix.endswith("_")):
            found |= {f"{prefix}{end}": scale for end in UNUSED if f"{prefix}{end}" in posterior}
    return found


def open_draws(path: str | os.PathLike[str], model: pm.Model) -> xr.DataTree:
    """Open draws that nutpie wrote to disk as it drew them, for models that memory can't hold.

    ``pm.sample`` keeps every weight of every draw in memory, with thousands of inputs several
    gigabytes. nutpie alone can send them to a zarr store.

    Parameters
    ----------
    path : path
        Folder of the store.
    model : pm.Model
        The model that was sampled, for the data that go with the draws.

    Returns
    -------
    DataTree
        Groups ``posterior``, ``sample_stats``, ``constant_data`` and ``observed_data``, as from
        ``pm.sample``; draws are read when they are asked for, and warm-up is left out.

    Examples
    --------
    Sampling takes its time, so this is no doctest::

        import nutpie, pymc_bnnvs as bvs
        from pymc_bnnvs.datasets import load_diabetes
        from pymc_bnnvs.storage import open_draws

        model = bvs.build_model(*load_diabetes(), check_memory=False)
        store = nutpie.zarr_store.LocalStore("draws.zarr", mkdir=True)
        nutpie.sample(nutpie.compile_pymc_model(model), chains=4, zarr_store=store)
        decision = bvs.select(open_draws("draws.zarr", model))
    """
    stored = xr.open_datatree(path, engine="zarr", consolidated=False)
    # As wide as the model, and empty.
    stats = stored["sample_stats"].dataset.drop_dims("unconstrained_parameter", errors="ignore")
    posterior = stored["posterior"].dataset
    transformed = [name for name in map(str, posterior.data_vars) if is_transformed_name(name)]
    groups = {"posterior": posterior.drop_vars(transformed), "sample_stats": stats}
    coords, dims = coords_and_dims_for_inferencedata(model)
    for name, find in (("constant_data", find_constants), ("observed_data", find_observations)):
        groups[name] = az.dict_to_dataset(find(model), coords=coords, dims=dims, sample_dims=[])
    return xr.DataTree.from_dict(groups)


def writable(value: Any) -> Any:
    """Attribute that netCDF has a type for: nutpie's settings become JSON."""
    known = isinstance(value, str | int | float | np.number | np.ndarray)
    return value if known and not isinstance(value, bool) else json.dumps(value, default=str)


def write_draws(idata: xr.DataTree, path: str | os.PathLike[str]) -> Path:
    """Write draws to a compressed netCDF file, through a temporary file and a rename.

    Draws that are on disk, see :func:`open_draws`, are never in memory as a whole.

    Parameters
    ----------
    idata : DataTree
        Draws; those of closed gates' weights are written as 0, see :func:`compact`.
    path : path
        File to write; what was there before stays until the new file is whole.

    Returns
    -------
    Path
        The file, for ``xarray.open_datatree`` or ``arviz.from_netcdf``.
    """
    path = Path(path)
    encoding = {"zlib": True, "complevel": 1, "shuffle": True}
    posterior = idata["posterior"].dataset if "posterior" in idata.children else xr.Dataset()
    later = idle_weights(posterior)
    with replacing(path) as temporary:
        # One group, and then one variable, at a time: draws may be on disk because memory is short.
        for number, group in enumerate(idata.subtree):
            dataset = group.to_dataset(inherit=False)
            dataset.attrs = {name: writable(value) for name, value in dataset.attrs.items()}
            if group.path == "/posterior":
                dataset = dataset.drop_vars(later)
            numeric = [
                str(name)
                for name, variable in dataset.data_vars.items()
                if np.issubdtype(variable.dtype, np.number) and variable.ndim
            ]
            dataset.to_netcdf(
                temporary,
                mode="a" if number else "w",
                group=group.path,
                engine="h5netcdf",
                encoding=dict.fromkeys(numeric, encoding),
            )
        with h5netcdf.File(temporary, "a") as file:
            for name, scale in later.items():
                write_open(file["posterior"], posterior[name], posterior[scale])
    return path


def write_open(group: h5netcdf.Group, weights: xr.DataArray, scale: xr.DataArray) -> None:
    """Write weights in blocks of draws, as 0 where the scale is."""
    for dim, size in weights.sizes.items():
        if dim not in group.dimensions:
            group.dimensions[dim] = size
    per_draw = weights[0, 0].nbytes
    chunk = int(np.clip(CHUNK_BYTES // per_draw, 1, weights.shape[1]))
    draws = chunk * max(1, BLOCK_BYTES // (chunk * per_draw))
    variable = group.create_variable(
        weights.name,
        weights.dims,
        weights.dtype,
        chunks=(1, chunk, *weights.shape[2:]),
        compression="gzip",
        compression_opts=1,
        shuffle=True,
    )
    variable.attrs.update({name: writable(value) for name, value in weights.attrs.items()})
    lead = weights.dims[:2]
    for i in range(weights.shape[0]):
        for first in range(0, weights.shape[1], draws):
            block = dict(zip(lead, (i, slice(first, first + draws)), strict=True))
            # Of the variables, not the arrays: xarray would keep what it has read.
            values, gate = (array.variable.isel(block) for array in (weights, scale))
            kept = values.where(gate != 0, 0.0).transpose(*values.dims)
            variable[i, first : first + draws] = kept.values

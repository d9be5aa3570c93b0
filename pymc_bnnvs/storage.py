"""Draws without the prior noise of closed gates, which nobody needs and no file compresses."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import xarray as xr

from pymc_bnnvs.report import replacing

__all__ = ["compact", "write_draws"]

#: What a closed gate leaves without a use, by the end of its name.
UNUSED = ("z", "effect", "line")


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
    kept = {}
    for name in map(str, posterior.data_vars):
        prefix = name.removesuffix("scale")
        if name == prefix or (prefix and not prefix.endswith("_")):
            continue
        closed = posterior[name] == 0
        if not closed.any():
            continue
        for unused in UNUSED:
            if f"{prefix}{unused}" in posterior:
                weights = posterior[f"{prefix}{unused}"]
                kept[weights.name] = weights.where(~closed, 0.0).transpose(*weights.dims)
    tree = idata.copy()
    tree["posterior"] = xr.DataTree(posterior.assign(kept))
    return tree


def write_draws(idata: xr.DataTree, path: str | os.PathLike[str]) -> Path:
    """Write draws to a compressed netCDF file, through a temporary file and a rename.

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
    tree = compact(idata)
    encoding = {
        group.path: {
            str(name): {"zlib": True, "complevel": 1, "shuffle": True}
            for name, variable in group.dataset.data_vars.items()
            if np.issubdtype(variable.dtype, np.number) and variable.ndim
        }
        for group in tree.subtree
    }
    with replacing(path) as temporary:
        tree.to_netcdf(temporary, engine="h5netcdf", encoding=encoding)
    return path

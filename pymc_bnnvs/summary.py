"""The posterior of psi in numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import arviz as az
import numpy as np
import pymc as pm
import xarray as xr

from pymc_bnnvs.centering import CENTERINGS, shift
from pymc_bnnvs.diagnostics import (
    constants_are_quiet,
    convergence,
    function_convergence,
    warn_unconverged,
)
from pymc_bnnvs.errors import check_option
from pymc_bnnvs.gradient_field import (
    MAX_BYTES,
    GradientMoments,
    Network,
    gradient_moments,
    gradient_moments_from_model,
)
from pymc_bnnvs.intervals import BANDS, joint_nonzero_set, simultaneous_band
from pymc_bnnvs.priors import PRIORS

__all__ = ["importance"]

USER_FACTOR = 2.0


class Draws(NamedTuple):
    """What is read from the tree: draws ``(chain, draw, feature)`` and the data beside them."""

    posterior: xr.Dataset
    constant: xr.Dataset
    prefix: str
    psi: xr.DataArray
    included: xr.DataArray | None
    dim: str
    gates_moved: bool

    @property
    def kind(self) -> str | None:
        """Name of the network's prior; None for a function of the user's own."""
        label = f"{self.prefix}layer"
        if label not in self.constant.coords:
            return None
        return str(self.constant[label].values[0]).split()[0]


def importance(
    idata: xr.DataTree,
    *,
    var_name: str = "psi",
    by: str = "feature",
    scale: str = "raw",
    centering: str = "auto",
    centering_factor: float | None = None,
    band: str = "sup_t",
    alpha: float = 0.05,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    group: str = "posterior",
    model: pm.Model | None = None,
    max_bytes: int = MAX_BYTES,
) -> xr.Dataset:
    """Summarise the posterior of the importance of each input.

    Parameters
    ----------
    idata : DataTree
        Draws from ``pm.sample``, or read from a file; anything with the group.
    var_name : str
        ``"psi"``, or ``"{name}_psi"`` of a network in a model of your own.
    by : {"feature", "group"}
        One row a column, or one a group of columns (a category, a group of yours). The ``psi``
        of a group is the sum over its columns; with ``scale="sd"`` their units don't matter.
    scale : {"raw", "sd"}
        ``raw``: psi on the user's scale. ``sd``: ``psi_p Var(x_p)``, which is psi with every
        input in units of its standard deviation, so that inputs can be compared.
    centering : {"auto", "posterior", "plugin", "trace", "none"}
        What is taken off the draws for the noise that they carry; see :func:`centering.shift`.
        ``auto`` is ``none`` for priors with exact zeros, whose draws need no centring to
        reach 0, and for ``group="prior"``, and ``posterior`` otherwise; the attributes say what
        was done, and why.
    centering_factor : float, optional
        Multiple of the posterior variance of the gradient for ``posterior``. If not given, 1 for
        the priors here, as measured, and 2 for a function of your own, which is right under a
        flat prior and too much under a shrinking one.
    band : {"sup_t", "rank", "mvn"}
        Simultaneous band; see :func:`intervals.simultaneous_band`.
    alpha : float
        The band holds all inputs at once with posterior probability ``1 - alpha``.
    ci_prob, ci_kind : optional
        Probability and kind (``"eti"``, ``"hdi"``) of the pointwise interval; ArviZ's
        ``rcParams`` if not given.
    group : str
        Group of ``idata``: ``"posterior"`` or ``"prior"``.
    model : pm.Model, optional
        The model of the draws. Needed to centre a function of your own (registered with
        ``gradient_importance``); a network of ours is read from its draws.
    max_bytes : int
        Bound on the temporaries of the pass over the draws, in bytes. On top come
        ``8 * (n * P + 2 * S * P)`` bytes of results, for ``S`` draws in all.

    Returns
    -------
    Dataset
        On dim ``feature`` (``group`` for ``by="group"``), in the units of ``psi``, (unit of f /
        unit of the input) squared, or (unit of f) squared for ``scale="sd"``, where not said
        otherwise:

        * ``psi``, ``median``, ``sd``: mean, median and standard deviation of the centred draws;
        * ``ci_lower``, ``ci_upper``: pointwise interval;
        * ``band_lower``, ``band_upper``, ``band_excludes_zero``: simultaneous band;
        * ``inclusion``: posterior probability that the input is in (exact zeros only);
        * ``inclusion_mcse``: its Monte Carlo standard error;
        * ``always_in``: whether its gate was fixed open, so that its inclusion is 1 by
          construction and no finding (only if any is);
        * ``share``: share of ``psi_p Var(x_p)`` in its sum, free of units;
        * ``mean_gradient``, ``mean_gradient_sd``: signed gradient, averaged over the rows,
          (unit of f / unit of the input): the direction (not by group; where the draws can't
          tell, the attribute ``mean_gradient_note`` says why);
        * ``r_hat``, ``ess_bulk``, ``converged``: convergence of the draws of psi.

        ``.to_dataframe()`` is a table with one row an input.

    Raises
    ------
    ValueError
        If the draws hold no such variable, or an option is not known or can't be had here.

    Warns
    -----
    ConvergenceWarning
        If the draws of an input have not converged; the warning names it.

    Examples
    --------
    >>> import pymc as pm, pymc_bnnvs as bvs
    >>> from pymc_bnnvs.datasets import load_diabetes
    >>> with bvs.build_model(*load_diabetes()) as model:
    ...     idata = pm.sample_prior_predictive(100, random_seed=1)
    >>> prior = bvs.importance(idata, group="prior")
    >>> prior["feature"].values[:3].tolist()
    ['age', 'sex', 'bmi']
    """
    check_option("by", by, ("feature", "group"))
    check_option("scale", scale, ("raw", "sd"))
    check_option("centering", centering, ("auto", *CENTERINGS, "none"))
    check_option("band", band, BANDS)
    if not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha!r}: give a probability between 0 and 1.")
    draws = _read(idata, group, var_name)
    noise = _noise(draws)
    moments, no_moments = _moments(draws, centering, model, var_name, max_bytes)
    factor = centering_factor
    if factor is None:
        factor = PRIORS[draws.kind].centering_factor if draws.kind in PRIORS else USER_FACTOR
    why_none = no_moments
    if centering == "auto":
        if group == "prior":
            why_none = "draws of a prior carry no noise of the data"
        elif draws.included is not None:
            why_none = "the prior has exact zeros"
        centering = "none" if why_none else "posterior"

    psi = _flat(draws.psi)
    included = None if draws.included is None else _flat(draws.included) > 0
    shifted = psi
    if centering != "none":
        if moments is None:
            raise ValueError(f"centering={centering!r} can't be had: {why_none}.")
        shifted = psi - shift(centering, moments, included=included, noise=noise, factor=factor)

    variance = _variance(draws)
    if scale == "sd":
        if variance is None:
            raise ValueError("scale='sd' needs the inputs in constant_data. Use scale='raw'.")
        psi, shifted = psi * variance, shifted * variance
    weighted = None
    if variance is not None:
        mean = shifted.mean(axis=0)
        weighted = np.maximum(mean if scale == "sd" else mean * variance, 0.0)
    columns: dict[str, np.ndarray] = {}
    if f"{draws.prefix}always_in" in draws.constant:
        columns["always_in"] = draws.constant[f"{draws.prefix}always_in"].values > 0
    if moments is not None and by == "feature":
        columns["mean_gradient"] = moments.average.mean(axis=0)
        columns["mean_gradient_sd"] = moments.average.std(axis=0)
    names, dim = draws.psi[draws.dim].values, draws.dim
    if by == "group":
        membership, names, dim = _groups(draws)
        shifted, psi = shifted @ membership, psi @ membership
        if weighted is not None:
            weighted = weighted @ membership
        if included is not None:
            included = (included @ membership) > 0
        if "always_in" in columns:
            columns["always_in"] = (columns["always_in"] @ membership) > 0
    return _summarise(
        draws,
        RowDraws(names, dim, psi, shifted, included, weighted, columns),
        band=band,
        alpha=alpha,
        ci_prob=ci_prob,
        ci_kind=ci_kind,
        attrs={
            "var_name": var_name,
            "group": group,
            "scale": scale,
            "centering": centering,
            "centering_factor": factor if centering == "posterior" else np.nan,
            "centering_note": why_none if centering == "none" and why_none else "",
            "mean_gradient_note": no_moments,
        },
    )


class RowDraws(NamedTuple):
    """Draws ``(S, rows)`` by feature or by group, on their way to the summary."""

    names: np.ndarray
    dim: str
    psi: np.ndarray
    centred: np.ndarray
    included: np.ndarray | None
    weighted: np.ndarray | None
    columns: dict[str, np.ndarray]


def _summarise(
    draws: Draws,
    table: RowDraws,
    *,
    band: str,
    alpha: float,
    ci_prob: float | None,
    ci_kind: str | None,
    attrs: dict[str, Any],
) -> xr.Dataset:
    """Put the summary together, and warn of draws that have not converged."""
    n_chains, n_draws = draws.psi.sizes["chain"], draws.psi.sizes["draw"]

    def labelled(values: np.ndarray) -> xr.DataArray:
        return xr.DataArray(
            values.reshape(n_chains, n_draws, -1),
            dims=("chain", "draw", table.dim),
            coords={table.dim: table.names},
        )

    centred = labelled(table.centred)
    ci_prob = az.rcParams["stats.ci_prob"] if ci_prob is None else ci_prob
    ci_kind = az.rcParams["stats.ci_kind"] if ci_kind is None else ci_kind
    check_option("ci_kind", ci_kind, ("eti", "hdi"))
    interval = (az.eti if ci_kind == "eti" else az.hdi)(centred, prob=ci_prob)
    simultaneous = simultaneous_band(table.centred, alpha, band, table.included)
    away = simultaneous.lower > 0
    if table.included is not None:
        away = joint_nonzero_set(table.included, alpha)
        attrs["joint_inclusion"] = float(table.included[:, away].all(axis=1).mean())
    columns = {
        "psi": table.centred.mean(axis=0),
        "median": np.median(table.centred, axis=0),
        "sd": table.centred.std(axis=0),
        "ci_lower": interval.sel(ci_bound="lower").values,
        "ci_upper": interval.sel(ci_bound="upper").values,
        "band_lower": simultaneous.lower,
        "band_upper": simultaneous.upper,
        "band_excludes_zero": away,
    }
    if table.included is not None:
        columns["inclusion"] = table.included.mean(axis=0)
        with constants_are_quiet():
            error = az.mcse(labelled(table.included.astype(float)), method="mean").values
        columns["inclusion_mcse"] = np.nan_to_num(error)
    if table.weighted is not None:
        total = table.weighted.sum()
        columns["share"] = table.weighted / (total if total > 0 else 1.0)
    columns.update(table.columns)
    summary = xr.Dataset(
        {name: (table.dim, values) for name, values in columns.items()},
        coords={table.dim: table.names},
    )
    included = None if table.included is None else labelled(table.included)
    summary = summary.merge(convergence(labelled(table.psi), included, table.dim))
    summary.attrs = {
        **attrs,
        "band": band,
        "alpha": alpha,
        "ci_prob": float(ci_prob),
        "ci_kind": ci_kind,
        "n_chains": n_chains,
        "n_draws": n_draws,
    }
    f_name = draws.prefix.removesuffix("_") or "f"
    if f_name in draws.posterior:
        summary.attrs.update(function_convergence(draws.posterior[f_name]))
    if attrs["group"] == "posterior":
        could_move = draws.kind == "gated" and not draws.gates_moved
        warn_unconverged(summary, table.dim, gates_could_move=could_move)
    return summary


def _read(idata: xr.DataTree, group: str, var_name: str) -> Draws:
    """Find psi, its inclusion and the data beside the draws."""
    groups = list(getattr(idata, "children", {}))
    if group not in groups:
        raise ValueError(
            f"idata has no group {group!r} (it has: {', '.join(groups) or 'none'}). "
            f"Pass what pm.sample returns."
        )
    posterior = idata[group].dataset
    if var_name not in posterior:
        names = map(str, posterior.data_vars)
        others = [name for name in names if name == "psi" or name.endswith("_psi")]
        hint = f" Did you mean var_name={others[0]!r}?" if others else ""
        raise ValueError(f"the {group} has no variable {var_name!r}.{hint}")
    psi = posterior[var_name]
    other = [dim for dim in psi.dims if dim not in ("chain", "draw")]
    if len(other) != 1:
        raise ValueError(f"{var_name!r} has dims {psi.dims}; wanted: chain, draw and one more.")
    psi = psi.transpose("chain", "draw", *other)
    prefix = var_name[: -len("psi")] if var_name.endswith("psi") else f"{var_name}_"
    included = posterior.get(f"{prefix}inclusion")
    constant = idata["constant_data"].dataset if "constant_data" in groups else xr.Dataset()
    stats = idata["sample_stats"].dataset if "sample_stats" in groups else xr.Dataset()
    return Draws(posterior, constant, prefix, psi, included, str(other[0]), "gates_moved" in stats)


def _flat(array: xr.DataArray) -> np.ndarray:
    """Return draws as ``(S, P)``."""
    values = array.transpose("chain", "draw", ...).values
    return values.reshape(-1, values.shape[-1])


def _noise(draws: Draws) -> np.ndarray | None:
    """Noise standard deviation of each draw, if the model has one."""
    n = draws.psi.sizes["chain"] * draws.psi.sizes["draw"]
    if "sigma" in draws.posterior:
        return draws.posterior["sigma"].transpose("chain", "draw").values.reshape(n)
    if "sigma" in draws.constant:
        return np.full(n, float(draws.constant["sigma"]))
    return None


def _moments(
    draws: Draws, centering: str, model: pm.Model | None, var_name: str, max_bytes: int
) -> tuple[GradientMoments | None, str]:
    """Stream over the draws; if that can't be done, say why."""
    if draws.kind is None:
        model = model or pm.Model.get_context(error_if_none=False)
        if model is None:
            return None, (
                "the gradient of a function of your own is computed from its model: "
                "pass model=, or call importance inside `with model:`"
            )
        return gradient_moments_from_model(model, draws.posterior, var_name), ""
    try:
        network = Network.read(draws.posterior, draws.constant, draws.prefix)
    except KeyError as missing:
        return None, f"the draws do not hold {missing}: keep the weights and the constant data"
    moments = gradient_moments(network, trace=centering == "trace", max_bytes=max_bytes)
    stored = _flat(draws.psi)
    if not np.allclose(moments.psi, stored, rtol=1e-3, atol=1e-6 * max(stored.max(), 1e-300)):
        raise ValueError(
            f"{var_name!r} does not follow from the weights and the inputs in constant_data: the "
            f"data were changed after sampling, or the groups come from two runs."
        )
    return moments, ""


def _variance(draws: Draws) -> np.ndarray | None:
    """Variance of each input, from the data beside the draws."""
    for data in draws.constant.data_vars.values():
        if data.ndim == 2 and data.dims[1] == draws.dim:
            return data.values.var(axis=0)
    return None


def _groups(draws: Draws) -> tuple[np.ndarray, np.ndarray, str]:
    """Membership ``(P, G)``, names and dim of the groups."""
    name = f"{draws.prefix}group_of"
    features = draws.psi[draws.dim].values
    if name not in draws.constant:
        return np.eye(len(features)), features, "group"
    group_of = draws.constant[name].values.astype(int)
    names = draws.posterior[f"{draws.prefix}psi_group"][f"{draws.prefix}group"].values
    membership = np.zeros((len(features), len(names)))
    membership[np.arange(len(features)), group_of] = 1.0
    return membership, names, "group"

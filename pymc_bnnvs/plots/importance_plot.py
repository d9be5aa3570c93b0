"""Forest of the importance of each input, with the decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pymc as pm
import xarray as xr
from arviz_base import extract, rcParams
from arviz_base.labels import BaseLabeller, Labeller
from arviz_plots import PlotCollection, plot_forest

from pymc_bnnvs.errors import check_option
from pymc_bnnvs.plots.annotations import STYLE, annotate, options_of, title_of, xlabel_of
from pymc_bnnvs.plots.rows import Labels, choose_rows, grid_options, widths_in_dots
from pymc_bnnvs.selection import select

__all__ = ["plot_importance"]

POINTS = {"mean": "psi", "median": "median"}
SCALES = ("sd", "raw")
FOREST_VISUALS = ("trunk", "twig", "point_estimate", "labels")
OWN_VISUALS = ("ref_line", "inclusion", "title", "xlabel")


def plot_importance(
    dt: xr.DataTree,
    *,
    var_names: str | Sequence[str] | None = None,
    filter_vars: Literal["like", "regex"] | None = None,
    group: str = "posterior",
    coords: Mapping[str, Any] | None = None,
    sample_dims: str | Sequence[str] | None = None,
    rule: str = "interval",
    alpha: float = 0.05,
    q: float = 0.1,
    k: int | None = None,
    by: str = "feature",
    centering: str = "auto",
    band: str = "sup_t",
    model: pm.Model | None = None,
    scale: str | None = None,
    top_k: int | None = None,
    sort: bool = True,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    point_estimate: str | None = None,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    labeller: Labeller | None = None,
    aes_by_visuals: Mapping[str, Any] | None = None,
    visuals: Mapping[str, Any] | None = None,
    stats: Mapping[str, Any] | None = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot the importance of each input with its intervals and the decision.

    One row an input, the largest share of importance on top: the point estimate of the centred
    psi (filled if the input is selected, hollow if not), its pointwise interval (thick) and its
    part of the band that holds all inputs at once (thin). Inputs whose draws have not converged
    carry an asterisk. With exact zeros, a column has the inclusion probabilities.

    Parameters
    ----------
    dt : DataTree
        Draws from ``pm.sample``, or read from a file.
    var_names : str or sequence of one str, optional
        ``"psi"`` if not given, or ``"{name}_psi"`` of a network in a model of your own.
    filter_vars : {None, "like", "regex"}, optional
        How ``var_names`` is read: as a name, a part of it or a regular expression. It must
        leave one variable.
    group : str
        Group of ``dt``: ``"posterior"`` or ``"prior"``.
    coords : mapping of {str : label or sequence of labels}, optional
        Inputs to show, as in ``{"feature": ["bmi", "bp"]}``. The band and the decision are
        still those of all inputs.
    sample_dims : sequence of str, optional
        Only ``("chain", "draw")``, which the convergence needs.
    rule, alpha, q, k
        The decision; see :func:`select`. ``alpha`` is also the band's level.
    by, centering, band, model
        See :func:`importance`.
    scale : {"sd", "raw"}, optional
        ``sd``: ``psi_p Var(x_p)``, which is psi with every input in units of its standard
        deviation, in (unit of f) squared: inputs can be compared. ``raw``: psi itself, in (unit
        of f / unit of the input) squared. ``sd`` if not given, where the inputs are in
        ``constant_data``.
    top_k : int, optional
        Rows to show, those with the largest share of importance. All if not given and there
        are at most 30, else 30; the title says how many there are.
    sort : bool
        Largest share of importance on top; else in the order of the data.
    ci_prob, ci_kind : optional
        Probability and kind (``"eti"``, ``"hdi"``) of the pointwise interval; ArviZ's
        ``rcParams`` if not given.
    point_estimate : {"mean", "median"}, optional
        ArviZ's ``rcParams`` if not given, where :func:`importance` has it.
    plot_collection : PlotCollection, optional
        To draw on, with a dim ``column`` that holds ``"labels"`` and ``"forest"``.
    backend : {"matplotlib", "bokeh", "plotly", "none"}, optional
        ArviZ's ``rcParams`` if not given.
    labeller : Labeller, optional
        Makes the names of the inputs.
    aes_by_visuals : mapping of {str : sequence of str}, optional
        As in :func:`arviz_plots.plot_forest`. By default color says which inputs are selected
        in the intervals, and color and facecolor in the point estimate.
    visuals : mapping of {str : mapping or bool}, optional
        Valid keys are:

        * trunk (pointwise interval), twig (band), point_estimate, labels -> as in
          :func:`arviz_plots.plot_forest`
        * ref_line -> passed to :func:`arviz_plots.visuals.vline`
        * inclusion -> passed to :func:`arviz_plots.visuals.annotate_xy`
        * title -> passed to :func:`arviz_plots.visuals.labelled_title`
        * xlabel -> passed to :func:`arviz_plots.visuals.labelled_x`
    stats : mapping of {str : mapping}, optional
        Valid keys are:

        * select -> passed to :func:`select`, as ``{"centering_factor": 1.5}``
    **pc_kwargs
        Passed to :meth:`arviz_plots.PlotCollection.grid`.

    Returns
    -------
    PlotCollection
        Its ``viz`` holds the visuals by name and input; ``savefig`` writes a file.

    Raises
    ------
    ValueError
        If an option or a name is not known, or can't be had here.

    Warns
    -----
    ConvergenceWarning
        If the draws of an input have not converged; the warning names it.

    See Also
    --------
    select : the same in numbers.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> from pymc_bnnvs.plots import plot_importance
    >>> rng = np.random.default_rng(1)
    >>> psi = rng.gamma(20.0, [1.0, 0.1, 0.5], size=(4, 500, 3))
    >>> idata = xr.DataTree.from_dict({
    ...     "posterior": xr.Dataset(
    ...         {"psi": (("chain", "draw", "feature"), psi)},
    ...         coords={"feature": ["age", "sex", "bmi"]},
    ...     )
    ... })
    >>> pc = plot_importance(idata, scale="raw", backend="none")
    >>> [label.item()["string"] for label in pc.viz["feature_label"]["psi"]]
    ['age', 'bmi', 'sex']
    """
    if sample_dims is not None and set(np.atleast_1d(sample_dims)) != {"chain", "draw"}:
        raise ValueError(f"sample_dims={sample_dims!r}: only ('chain', 'draw') can be used here.")
    if top_k is not None and (top_k != int(top_k) or top_k < 1):
        raise ValueError(f"top_k={top_k!r}: give a positive number of rows.")
    visuals, aes_by_visuals = dict(visuals or {}), dict(aes_by_visuals or {})
    for key in visuals:
        check_option("visuals key", key, (*FOREST_VISUALS, *OWN_VISUALS))
    for key in stats or {}:
        check_option("stats key", key, ("select",))
    var_name = _one_variable(dt, var_names, filter_vars, group)
    if scale is None:
        scale = "sd" if _has_inputs(dt, var_name, group) else "raw"
    check_option("scale", scale, SCALES)
    summary = select(
        dt,
        rule=rule,
        alpha=alpha,
        q=q,
        k=k,
        var_name=var_name,
        by=by,
        scale=scale,
        centering=centering,
        band=band,
        model=model,
        ci_prob=ci_prob,
        ci_kind=ci_kind,
        group=group,
        **(stats or {}).get("select", {}),
    )
    dim = str(summary["psi"].dims[0])
    point = _point(summary, point_estimate)
    rows = choose_rows(summary, coords, top_k=top_k, sort=sort)
    shown = rows.summary
    forest = Labels(labeller or BaseLabeller(), dim, shown[dim].values[~shown["converged"].values])

    backend = backend or getattr(plot_collection, "backend", None) or rcParams["plot.backend"]
    check_option("backend", backend, STYLE)
    columns = ["labels", "forest", *(["inclusion"] if "inclusion" in shown else [])]
    if plot_collection is None:
        pc_kwargs = grid_options(pc_kwargs, shown, forest, columns, backend)
    else:
        columns = list(plot_collection.viz["plot"]["column"].values)

    def column(*names: str) -> xr.Dataset:
        ends = xr.concat([shown[name] for name in names], "ci_bound")
        return xr.Dataset({var_name: ends.assign_coords(ci_bound=["lower", "upper"][: len(names)])})

    center = column(point).isel(ci_bound=0, drop=True)
    interval = column("ci_lower", "ci_upper")
    simultaneous = column("band_lower", "band_upper")
    style = STYLE[backend]
    defaults = {
        "ticklabels": False,
        "labels": {"horizontal_align": "right", **style.get("text", {})},
        "point_estimate": style.get("point", {}),
    }
    aes_by_visuals.setdefault("credible_interval", ("y", "overlay", "color"))
    aes_by_visuals.setdefault("point_estimate", ("y", "overlay", "color", "facecolor"))
    pc = plot_forest(
        center.expand_dims(chain=1, draw=1, column=columns),
        sample_dims=["chain", "draw"],
        combined=True,
        labels=[dim],
        plot_collection=plot_collection,
        backend=backend,
        labeller=forest,
        aes_by_visuals=aes_by_visuals,
        visuals=defaults | {key: options_of(visuals, key, defaults) for key in FOREST_VISUALS},
        stats={"point_estimate": center, "trunk": interval, "twig": simultaneous},
        **pc_kwargs,
    )
    if plot_collection is None and backend == "bokeh":
        # ArviZ's bokeh grid (1.3) gives each column the width of the one before.
        for heading, width in zip(columns, widths_in_dots(pc_kwargs["figure_kwargs"]), strict=True):
            pc.get_target(var_name, {"column": heading}).width = width
    if plot_collection is None and backend == "matplotlib":
        # Room for six digits a tick.
        pc.get_target(var_name, {"column": "forest"}).locator_params(axis="x", nbins=6)
    drawn = [ds[var_name].values.ravel() for ds in (center, interval, simultaneous)]
    ends = np.concatenate([[0.0], *drawn])
    annotate(
        pc,
        columns,
        shown,
        var_name,
        visuals,
        limits=(ends.min(), ends.max()),
        title=title_of(rows),
        xlabel=xlabel_of(shown, scale),
    )
    return pc


def _one_variable(
    dt: xr.DataTree, var_names: Any, filter_vars: Literal["like", "regex"] | None, group: str
) -> str:
    """Name of the one variable to plot."""
    if var_names is None or group not in getattr(dt, "children", {}):
        return "psi"
    if filter_vars is None and isinstance(var_names, str) and not var_names.startswith("~"):
        return var_names
    if filter_vars is not None:
        check_option("filter_vars", filter_vars, ("like", "regex"))
    names = [var_names] if isinstance(var_names, str) else list(var_names)
    try:
        draws = extract(
            dt,
            group,
            combined=False,
            var_names=names,
            filter_vars=filter_vars,
            keep_dataset=True,
        )
    except KeyError as missing:
        raise ValueError(f"var_names={var_names!r}: {missing.args[0]}") from None
    found = [str(name) for name in draws.data_vars]
    if len(found) != 1:
        raise ValueError(
            f"var_names={var_names!r} stands for {len(found)} variables ({', '.join(found)}): "
            f"give one, such as 'psi'."
        )
    return found[0]


def _point(summary: xr.Dataset, point_estimate: str | None) -> str:
    """Column of the point estimate."""
    known = [name for name, column in POINTS.items() if column in summary]
    if point_estimate is None:
        wanted = rcParams["stats.point_estimate"]
        return POINTS[wanted if wanted in known else "mean"]
    return POINTS[check_option("point_estimate", point_estimate, known)]


def _has_inputs(dt: xr.DataTree, var_name: str, group: str) -> bool:
    """Say if the inputs, and so their variances, came with the draws."""
    children = getattr(dt, "children", {})
    if "constant_data" not in children or var_name not in dt.children.get(group, {}):
        return False
    dim = dt[group][var_name].dims[-1]
    return any(data.dims[1:] == (dim,) for data in dt["constant_data"].dataset.data_vars.values())

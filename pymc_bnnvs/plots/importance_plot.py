"""Forest of the importance of each input, with the decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pymc as pm
import xarray as xr
from arviz_base import extract, rcParams
from arviz_base.labels import BaseLabeller, Labeller
from arviz_plots import PlotCollection, plot_forest
from arviz_plots.visuals import (
    annotate_xy,
    labelled_title,
    labelled_x,
    remove_axis,
    set_xlim,
    vline,
)

from pymc_bnnvs.errors import check_option
from pymc_bnnvs.selection import select

__all__ = ["plot_importance"]

MAX_ROWS = 30
POINTS = {"mean": "psi", "median": "median"}
SCALES = ("sd", "raw")
FOREST_VISUALS = ("trunk", "twig", "point_estimate", "labels")
OWN_VISUALS = ("ref_line", "inclusion", "title", "xlabel")
IN, OUT = "C0", "B2"
# Text that fits the widths below, points large enough to see which are filled, the line below them.
STYLE: dict[str, dict[str, dict[str, Any]]] = {
    "matplotlib": {"text": {"size": 10}, "title": {"size": 11, "fontweight": "normal"}},
    "bokeh": {"text": {"size": 13}, "point": {"size": 8}, "line": {"level": "underlay"}},
    "plotly": {"text": {"size": 12}, "line": {"layer": "between"}},
    "none": {},
}

ROW_INCHES, FRAME_INCHES = 0.25, 1.8
FOREST_INCHES, INCLUSION_INCHES, LETTER_INCHES = 5.0, 0.9, 0.085


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
    rows = _rows(summary, coords, top_k=top_k, sort=sort)
    shown = rows.summary
    forest = _Labels(labeller or BaseLabeller(), dim, shown[dim].values[~shown["converged"].values])

    backend = backend or getattr(plot_collection, "backend", None) or rcParams["plot.backend"]
    check_option("backend", backend, STYLE)
    columns = ["labels", "forest", *(["inclusion"] if "inclusion" in shown else [])]
    if plot_collection is None:
        pc_kwargs = _grid(pc_kwargs, shown, forest, columns, backend)
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
        visuals=defaults | {key: _options(visuals, key, defaults) for key in FOREST_VISUALS},
        stats={"point_estimate": center, "trunk": interval, "twig": simultaneous},
        **pc_kwargs,
    )
    if plot_collection is None and backend == "bokeh":
        # ArviZ's bokeh grid (1.3) gives each column the width of the one before.
        for heading, width in zip(columns, _widths(pc_kwargs["figure_kwargs"]), strict=True):
            pc.get_target(var_name, {"column": heading}).width = width
    if plot_collection is None and backend == "matplotlib":
        # Room for six digits a tick.
        pc.get_target(var_name, {"column": "forest"}).locator_params(axis="x", nbins=6)
    drawn = [ds[var_name].values.ravel() for ds in (center, interval, simultaneous)]
    ends = np.concatenate([[0.0], *drawn])
    _annotate(
        pc,
        columns,
        shown,
        var_name,
        visuals,
        limits=(ends.min(), ends.max()),
        title=_title(rows),
        xlabel=_xlabel(shown, scale),
    )
    return pc


class _Rows(NamedTuple):
    """The rows to show, the top one first, and what is said of them."""

    summary: xr.Dataset
    n_all: int
    n_selected: int
    n_selected_left_out: int


class _Labels(BaseLabeller):
    """A labeller's names, with an asterisk where the draws have not converged."""

    def __init__(self, labeller: Any, dim: str, marked: np.ndarray) -> None:
        self.labeller, self.dim, self.marked = labeller, dim, set(marked.tolist())

    def sel_to_str(self, sel: Mapping[Any, Any], isel: Mapping[Any, Any]) -> str:
        """Format a selection, an input's name, as a string."""
        text = self.labeller.sel_to_str(sel, isel)
        return f"{text} *" if sel.get(self.dim) in self.marked else text


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


def _rows(
    summary: xr.Dataset, coords: Mapping[str, Any] | None, *, top_k: int | None, sort: bool
) -> _Rows:
    """Choose the rows and put them in order."""
    dim = str(summary["psi"].dims[0])
    n_all, n_selected = summary.sizes[dim], int(summary["selected"].sum())
    for name, labels in (coords or {}).items():
        check_option("coords key", name, (dim,))
        for label in np.atleast_1d(labels).tolist():
            check_option(f"coords[{dim!r}]", label, summary[dim].values.tolist())
        summary = summary.sel({dim: np.atleast_1d(labels)})
    psi = summary["psi"].values
    share = summary["share"].values if "share" in summary else psi
    order = np.lexsort((-psi, -share))[: MAX_ROWS if top_k is None else int(top_k)]
    shown = summary.isel({dim: order if sort else np.sort(order)})
    left_out = n_selected - int(shown["selected"].sum())
    return _Rows(shown, n_all, n_selected, left_out)


def _grid(
    pc_kwargs: dict[str, Any], shown: xr.Dataset, labels: _Labels, columns: list[str], backend: str
) -> dict[str, Any]:
    """Add the size of the figure and the aesthetics of the decision to the user's choices."""
    dim = labels.dim
    names = [labels.sel_to_str({dim: name}, {dim: i}) for i, name in enumerate(shown[dim].values)]
    widths = {
        "labels": LETTER_INCHES * max(map(len, names)) + 0.3,
        "forest": FOREST_INCHES,
        "inclusion": INCLUSION_INCHES,
    }
    width_ratios = [widths[column] for column in columns]
    size = (sum(width_ratios), FRAME_INCHES + ROW_INCHES * len(names))
    figure_kwargs: dict[str, Any] = {"width_ratios": width_ratios}
    if backend == "matplotlib":
        figure_kwargs |= {"figsize": size, "figsize_units": "inches", "layout": "constrained"}
    else:
        dots = tuple(100 * inches for inches in size)
        figure_kwargs |= {"figsize": dots, "figsize_units": "dots"}
    selected = shown["selected"].values
    color = [IN if inside else OUT for inside in selected]
    facecolor = [IN if inside else "B0" for inside in selected]
    merged = {"color": color, "facecolor": facecolor} | pc_kwargs
    merged["aes"] = {"color": [dim], "facecolor": [dim]} | dict(pc_kwargs.get("aes", {}))
    merged["figure_kwargs"] = figure_kwargs | dict(pc_kwargs.get("figure_kwargs", {}))
    return merged


def _widths(figure_kwargs: Mapping[str, Any]) -> list[int]:
    """Widths of the columns in dots."""
    ratios = np.array(figure_kwargs["width_ratios"], dtype=float)
    dots = 1 if figure_kwargs["figsize_units"] == "dots" else 100
    widths = dots * figure_kwargs["figsize"][0] * ratios / ratios.sum()
    return [int(width) for width in np.round(widths)]


def _options(
    visuals: Mapping[str, Any], key: str, defaults: Mapping[str, Any] | None = None
) -> Any:
    """Keyword arguments of a visual; False to leave it out."""
    options = visuals.get(key, {})
    if options is False:
        return False
    return dict((defaults or {}).get(key, {})) | ({} if options is True else dict(options))


def _annotate(
    pc: PlotCollection,
    columns: Sequence[str],
    shown: xr.Dataset,
    var_name: str,
    visuals: Mapping[str, Any],
    *,
    limits: tuple[float, float],
    title: str,
    xlabel: str,
) -> None:
    """Add the line at 0, the column of inclusion probabilities and the words."""
    one = xr.Dataset({var_name: 0.0})

    def add(visual: Any, key: str, column: str, **kwargs: Any) -> None:
        options = _options(visuals, key)
        if options is not False:
            kwargs = {"data": one, "ignore_aes": "all", **kwargs, **options}
            pc.map(visual, key, coords={"column": column}, **kwargs)

    def spread(column: str, low: float, high: float, *, bare: bool) -> None:
        at = {"data": one, "coords": {"column": column}, "ignore_aes": "all"}
        pc.map(set_xlim, limits=(low, high), store_artist=False, **at)
        if bare:
            pc.map(remove_axis, axis="both", store_artist=False, **at)

    margin = 0.05 * (limits[1] - limits[0]) or 1.0
    spread("forest", limits[0] - margin, limits[1] + margin, bare=False)
    spread("labels", -1.0, 0.02, bare=True)
    style = STYLE[pc.backend]
    text_style, title_style = style.get("text", {}), style.get("title", {})
    add(vline, "ref_line", "forest", color="B3", linestyle="C1", **style.get("line", {}))
    add(labelled_title, "title", "forest", text=title, **title_style)
    add(labelled_x, "xlabel", "forest", text=xlabel, **text_style)
    if "inclusion" in shown and "inclusion" in columns:
        add(
            annotate_xy,
            "inclusion",
            "inclusion",
            data=shown[["inclusion"]].rename(inclusion=var_name),
            ignore_aes=pc.aes_set - {"y", "overlay"},
            x=0.0,
            text="{:.2f}".format,
            color="B1",
            **text_style,
        )
        if _options(visuals, "inclusion") is not False:
            add(labelled_title, "inclusion_title", "inclusion", text="P(\u03c8 > 0)", **title_style)
        spread("inclusion", -1.0, 1.0, bare=True)


def _title(rows: _Rows) -> str:
    """Say the decision, what is left out, and what the marks mean."""
    shown, about = rows.summary, rows.summary.attrs
    dim = str(shown["psi"].dims[0])
    noun = "groups" if dim == "group" else "inputs"
    level = {
        "interval": f", alpha = {about['alpha']:g}",
        "fdr": f", q = {about.get('q', 0):g}",
    }.get(about["rule"], "")
    lines = [f"{rows.n_selected} of {rows.n_all} {noun} selected (rule {about['rule']}{level})"]
    if shown.sizes[dim] < rows.n_all:
        missing = f"; {rows.n_selected_left_out} selected left out"
        lines.append(
            f"{shown.sizes[dim]} of {rows.n_all} {noun} shown"
            + (missing if rows.n_selected_left_out else "")
        )
    not_converged = "" if shown["converged"].all() else "   * not converged"
    lines.append(f"\u25cf selected   \u25cb not selected{not_converged}")
    lines.append(
        f"\u2501 {100 * about['ci_prob']:.3g}% interval   "
        f"\u2500 {100 * (1 - about['alpha']):.3g}% band for all at once"
    )
    return "\n".join(lines)


def _xlabel(shown: xr.Dataset, scale: str) -> str:
    """Say exactly what is plotted, and in which unit."""
    about = shown.attrs
    centred = "" if about["centering"] == "none" else "centred "
    summed = ", summed over a group's columns" if shown["psi"].dims[0] == "group" else ""
    if scale == "sd":
        return (
            f"{centred}\u03c8 \u00b7 Var(x){summed}, (unit of f)\u00b2\n"
            f"mean squared slope of f per SD of the input"
        )
    return (
        f"{centred}\u03c8{summed}, (unit of f / unit of x)\u00b2\n"
        f"mean squared slope of f: units differ between inputs"
    )

"""What stands around the forest: the line at 0, inclusion probabilities, and the words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr
from arviz_plots import PlotCollection
from arviz_plots.visuals import (
    annotate_xy,
    labelled_title,
    labelled_x,
    remove_axis,
    set_xlim,
    vline,
)

from pymc_bnnvs.plots.rows import Rows

__all__ = ["STYLE", "annotate", "options_of", "title_of", "xlabel_of"]

# Text that fits the widths below, points large enough to see which are filled, the line below them.
STYLE: dict[str, dict[str, dict[str, Any]]] = {
    "matplotlib": {"text": {"size": 10}, "title": {"size": 11, "fontweight": "normal"}},
    "bokeh": {"text": {"size": 13}, "point": {"size": 8}, "line": {"level": "underlay"}},
    "plotly": {"text": {"size": 12}, "line": {"layer": "between"}},
    "none": {},
}


def options_of(
    visuals: Mapping[str, Any], key: str, defaults: Mapping[str, Any] | None = None
) -> Any:
    """Keyword arguments of a visual; False to leave it out."""
    options = visuals.get(key, {})
    if options is False:
        return False
    return dict((defaults or {}).get(key, {})) | ({} if options is True else dict(options))


def annotate(
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
        options = options_of(visuals, key)
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
        if options_of(visuals, "inclusion") is not False:
            add(labelled_title, "inclusion_title", "inclusion", text="P(\u03c8 > 0)", **title_style)
        spread("inclusion", -1.0, 1.0, bare=True)


def title_of(rows: Rows) -> str:
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


def xlabel_of(shown: xr.Dataset, scale: str) -> str:
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

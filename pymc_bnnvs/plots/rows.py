"""Rows of the forest: which inputs, in what order, under what names, and how large it gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from arviz_base.labels import BaseLabeller

from pymc_bnnvs.errors import check_option

__all__ = ["Labels", "Rows", "choose_rows", "grid_options", "widths_in_dots"]

MAX_ROWS = 30
IN, OUT = "C0", "B2"
ROW_INCHES, FRAME_INCHES = 0.25, 1.8
FOREST_INCHES, INCLUSION_INCHES, LETTER_INCHES = 5.0, 0.9, 0.085


class Rows(NamedTuple):
    """The rows to show, the top one first, and what is said of them."""

    summary: xr.Dataset
    n_all: int
    n_selected: int
    n_selected_left_out: int


class Labels(BaseLabeller):
    """A labeller's names, with an asterisk where the draws have not converged."""

    def __init__(self, labeller: Any, dim: str, marked: np.ndarray) -> None:
        self.labeller, self.dim, self.marked = labeller, dim, set(marked.tolist())

    def sel_to_str(self, sel: Mapping[Any, Any], isel: Mapping[Any, Any]) -> str:
        """Format a selection, an input's name, as a string."""
        text = self.labeller.sel_to_str(sel, isel)
        return f"{text} *" if sel.get(self.dim) in self.marked else text


def choose_rows(
    summary: xr.Dataset, coords: Mapping[str, Any] | None, *, top_k: int | None, sort: bool
) -> Rows:
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
    return Rows(shown, n_all, n_selected, left_out)


def grid_options(
    pc_kwargs: dict[str, Any], shown: xr.Dataset, labels: Labels, columns: list[str], backend: str
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


def widths_in_dots(figure_kwargs: Mapping[str, Any]) -> list[int]:
    """Widths of the columns in dots."""
    ratios = np.array(figure_kwargs["width_ratios"], dtype=float)
    dots = 1 if figure_kwargs["figsize_units"] == "dots" else 100
    widths = dots * figure_kwargs["figsize"][0] * ratios / ratios.sum()
    return [int(width) for width in np.round(widths)]

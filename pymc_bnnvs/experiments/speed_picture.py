"""The speed benchmark as a picture."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pymc_bnnvs.experiments.pictures import plain_scales
from pymc_bnnvs.experiments.speed_table import METHODS

__all__ = ["draw"]

# Okabe and Ito's colours, which all can tell apart.
COLOURS = {"default": "#0072B2", "gaussian": "#56B4E9", "pymc": "#D55E00", "numpyro": "#E69F00"}
#: Marker of a status; those without a result are hollow and not joined by a line.
MARKERS = {"reached": "o", "limit": "^", "not reached": "s"}
MEANING = {
    "limit": "stopped at its limit: more than this",
    "not reached": "out of draws: not reached",
}


def draw(rows: pd.DataFrame) -> Figure:
    """Draw time to the target and time a gradient against n, a column for each P.

    Parameters
    ----------
    rows : DataFrame
        From :func:`pymc_bnnvs.experiments.speed.run`.

    Returns
    -------
    Figure
        The lines join medians over the data sets; each limit is a hollow triangle.
    """
    widths = sorted(set(rows["n_features"]))
    figure = Figure(figsize=(max(3.2 * len(widths) + 0.6, 6.4), 6.4), layout="constrained")
    axes = figure.subplots(2, len(widths), sharex=True, sharey="row", squeeze=False)
    for column, width in enumerate(widths):
        of_width = rows[rows["n_features"] == width]
        for place, (method, colour) in enumerate(COLOURS.items()):
            of_method = of_width[of_width["method"] == method]
            _times(axes[0, column], of_method, colour)
            # Limits are alike: side by side, each can be seen.
            _without_result(axes[0, column], of_method, colour, 1.09 ** (place - 1.5))
            _gradients(axes[1, column], of_method, colour)
        axes[0, column].set_title(f"{width} inputs")
        axes[1, column].set_xlabel("rows")
    for axis in axes.flat:
        plain_scales(axis, rows["n"])
    axes[0, 0].set_ylabel("seconds to the target")
    axes[1, 0].set_ylabel("microseconds a gradient")
    figure.legend(handles=_legend(rows), loc="outside lower center", ncols=3, frameon=False)
    return figure


def _times(axis: Axes, rows: pd.DataFrame, colour: str) -> None:
    """Draw median times to the target; where most fits have none, the line has a gap."""
    seconds = rows["seconds_to_target"].where(rows["status"] == "reached", np.inf)
    median = seconds.groupby(rows["n"]).median().replace(np.inf, np.nan)
    axis.plot(median.index, median, marker=MARKERS["reached"], color=colour, label="reached")


def _without_result(axis: Axes, rows: pd.DataFrame, colour: str, shift: float) -> None:
    """Draw what was stopped at its limit or out of draws, a little beside its n."""
    for status in MEANING:
        others = rows[rows["status"] == status]
        if not others.empty:
            axis.plot(
                shift * others["n"],
                others["seconds"],
                linestyle="none",
                marker=MARKERS[status],
                markersize=8,
                color=colour,
                markerfacecolor="none",
                label=status,
            )


def _gradients(axis: Axes, rows: pd.DataFrame, colour: str) -> None:
    """Draw times of one gradient, which there are whatever the status."""
    median = rows.dropna(subset=["gradient_us"]).groupby("n")["gradient_us"].median()
    axis.plot(median.index, median, marker="o", color=colour, label="gradient")


def _legend(rows: pd.DataFrame) -> list[Line2D]:
    """One entry a method, and one a kind of marker that is there."""
    methods = [
        Line2D([], [], color=COLOURS[method], marker="o", label=label)
        for method, label in METHODS.items()
        if method in set(rows["method"])
    ]
    statuses = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker=MARKERS[status],
            color="black",
            markerfacecolor="none",
            label=meaning,
        )
        for status, meaning in MEANING.items()
        if status in set(rows["status"])
    ]
    return methods + statuses

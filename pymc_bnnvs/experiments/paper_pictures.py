"""The paper's two figures, redrawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pymc_bnnvs.experiments.bvm import null_quantiles
from pymc_bnnvs.experiments.pictures import plain_scales

__all__ = ["draw_learning", "draw_uncertainty"]

# Okabe and Ito's colours, which all can tell apart.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"]
LINES = ["-", "--", ":"]


def draw_learning(table: pd.DataFrame) -> Figure:
    """Draw the errors of f and of psi against n: a column a design, a line a number of inputs.

    Parameters
    ----------
    table : DataFrame
        From :func:`pymc_bnnvs.experiments.learning.summarise`.

    Returns
    -------
    Figure
        Bars are two standard errors over data sets either way.
    """
    designs = list(dict.fromkeys(table["design"]))
    networks = list(dict.fromkeys(table["network"]))
    widths = sorted(set(table["n_features"]))
    figure = Figure(figsize=(3.4 * len(designs) + 0.6, 6.4), layout="constrained")
    axes = figure.subplots(2, len(designs), sharex=True, sharey="row", squeeze=False)
    for column, design in enumerate(designs):
        for row, (name, label) in enumerate({"mse_f": "f", "mse_psi": "psi"}.items()):
            axis = axes[row, column]
            for width, colour in zip(widths, COLOURS, strict=False):
                for network, line in zip(networks, LINES, strict=False):
                    own = table[
                        (table["design"] == design)
                        & (table["network"] == network)
                        & (table["n_features"] == width)
                    ].sort_values("n")
                    _line(axis, own, name, colour, line, f"{width} inputs, {network}")
            plain_scales(axis, table["n"])
            if column == 0:
                axis.set_ylabel(f"squared error of {label}\nin units of its variance")
        axes[0, column].set_title(design)
        axes[1, column].set_xlabel("rows")
    _legend(figure, axes[0, 0])
    return figure


def draw_uncertainty(table: pd.DataFrame) -> Figure:
    """Draw spread, shape and coverage of the posterior of psi against n.

    Parameters
    ----------
    table : DataFrame
        From :func:`pymc_bnnvs.experiments.bvm.summarise`.

    Returns
    -------
    Figure
        Dashed: the paper's centring. Shaded: 5 to 95, 10 to 90 and 25 to 75 % of the distances of
        normal draws.
    """
    figure = Figure(figsize=(10.8, 6.8), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    true, null = table[table["inputs"] == "true"], table[table["inputs"] == "null"]
    keys = ["network", "centering", "n_features"]
    colours: dict[tuple[str, int], str] = {}
    for key, own in true.groupby(keys, sort=False):
        network, centering, width = key
        # One fit, one colour: where its centrings agree, both lines show.
        colour = colours.setdefault((network, width), COLOURS[len(colours) % len(COLOURS)])
        line = "--" if centering == "trace" else "-"
        label = f"{width} inputs, {network}, {centering}"
        own = own.sort_values("n")
        _line(axes[0, 0], own, "mse_sd_oracle", colour, line, label)
        _line(axes[0, 1], own, "cvm", colour, line, label)
        _line(axes[1, 0], own, "covered", colour, line, label)
        other = null[(null[keys] == list(key)).all(axis=1)].sort_values("n")
        _line(axes[1, 1], other, "in_band", colour, line, label)
    values = null_quantiles((0.05, 0.10, 0.25, 0.75, 0.90, 0.95))
    for low, high in ((0, 5), (1, 4), (2, 3)):
        axes[0, 1].axhspan(values[low], values[high], color="0.5", alpha=0.2, lw=0)
    for axis in axes.flat:
        plain_scales(axis, table["n"], log_y=axis in axes[0])
    axes[0, 0].set(title="spread: error of sd(psi), true inputs")
    axes[0, 0].set_ylabel("in units of the limit's variance")
    axes[0, 1].set(title="shape: distance from a normal, true inputs")
    axes[0, 1].set_ylabel("Cramer-von Mises x effective draws")
    axes[1, 0].set(ylim=(0, 1.02), title="pointwise 95 % intervals, true inputs", xlabel="rows")
    axes[1, 1].set(ylim=(0, 1.02), title="95 % band, null inputs", xlabel="rows")
    for axis in axes[1]:
        axis.axhline(0.95, color="0.5", lw=0.8)
        axis.set_ylabel("share that holds the truth")
    _legend(figure, axes[0, 0])
    return figure


def _line(axis: Axes, own: pd.DataFrame, name: str, colour: str, line: str, label: str) -> None:
    if own.empty:
        return
    error = 2 * own[f"{name}_se"] if f"{name}_se" in own else None
    # On a logarithmic scale a bar that reaches 0 would leave the picture.
    if error is not None:
        error = np.stack([np.minimum(error, 0.9 * own[name]), error])
    axis.errorbar(
        own["n"], own[name], error, color=colour, ls=line, marker="o", ms=3, lw=1.2, label=label
    )


def _legend(figure: Figure, axis: Axes) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=8)

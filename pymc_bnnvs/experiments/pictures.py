"""What the pictures of the experiments share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from pymc_bnnvs.report import replacing

__all__ = ["plain_scales", "write_picture"]


def plain_scales(axis: Axes, sizes: Iterable[float], *, log_y: bool = True) -> None:
    """Logarithmic scales in plain numbers, with a tick at each size."""
    plain = FuncFormatter(lambda value, _: f"{value:,.9g}")
    axis.set_xscale("log")
    axis.set_xticks(sorted(set(sizes)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(plain)
    if log_y:
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axis.yaxis.set_major_formatter(plain)
        axis.yaxis.set_minor_formatter(NullFormatter())
    axis.grid(alpha=0.3, which="major")
    axis.spines[["top", "right"]].set_visible(False)


def write_picture(figure: Figure, path: Path) -> None:
    """Write a PNG file, or leave the old one as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=150)

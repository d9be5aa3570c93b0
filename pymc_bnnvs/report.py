"""A selection on paper: the table that fits a terminal, the decision in words, the files."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from rich.cells import cell_len, set_cell_size

__all__ = [
    "convergence_line",
    "decision_line",
    "legend",
    "replacing",
    "summary_table",
    "tidy",
    "wrap",
]

WIDTH = 80
TOP = 30
NAMED = 12  # names that a decision lists before it counts the rest
NARROWEST = 6  # a column of names is never narrower
TEXT = ("sel.", "sign", "")  # columns that are no numbers
SURE = 2.0  # standard deviations from 0 at which the sign of a mean gradient is told


def tidy(summary: xr.Dataset) -> pd.DataFrame:
    """Return a selection as a table with one row an input, the selected ones first.

    Parameters
    ----------
    summary : Dataset
        What :func:`select` returns.

    Returns
    -------
    DataFrame
        The inputs as the first column, then the variables, all digits kept; sorted by
        ``selected``, then by ``share`` (by ``psi`` where there is no share).
    """
    dim = _dim(summary)
    size = summary["share" if "share" in summary else "psi"].values
    order = np.lexsort((-size, ~summary["selected"].values))
    return summary.isel({dim: order}).to_dataframe().reset_index()


def summary_table(
    summary: xr.Dataset, *, width: int = WIDTH, top: int = TOP, rest: str = "in importance.csv"
) -> str:
    """Lay a selection out as plain text.

    Parameters
    ----------
    summary : Dataset
        What :func:`select` returns, dim ``feature`` or ``group``.
    width : int
        Cells that a line may take; names are shortened in the middle to fit. The numbers
        alone take up to 74.
    top : int
        Number of rows; the last line counts the others.
    rest : str
        Where the other rows are, for that line.

    Returns
    -------
    str
        Lines without trailing newline: name, whether it is selected, inclusion probability
        (exact zeros only; ``fixed`` where the user keeps the input in), psi, its simultaneous
        band, share in percent, sign of the mean gradient (not by group) and R-hat, with a ``!``
        where the draws have not converged.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> columns = {
    ...     "psi": [3.14159, 0.0],
    ...     "band_lower": [2.0, 0.0],
    ...     "band_upper": [4.0, 0.1],
    ...     "share": [1.0, 0.0],
    ...     "r_hat": [1.001, np.nan],
    ...     "converged": [True, True],
    ...     "selected": [True, False],
    ... }
    >>> summary = xr.Dataset(
    ...     {name: ("feature", values) for name, values in columns.items()},
    ...     coords={"feature": ["bmi", "age"]},
    ...     attrs={"alpha": 0.05},
    ... )
    >>> print(summary_table(summary))
    input  sel.   psi  low 95%  high 95%  share %  R-hat
    ----------------------------------------------------
    bmi    yes   3.14     2.00      4.00    100.0  1.001
    age             0        0     0.100      0.0      -
    """
    rows = tidy(summary)
    shown = rows.head(max(top, 0))
    level = f"{100 * (1 - summary.attrs['alpha']):.4g}%"
    columns = {"sel.": ["yes" if chosen else "" for chosen in shown["selected"]]}
    if "inclusion" in rows:
        columns["P(in)"] = [_fixed(value, 3) for value in shown["inclusion"]]
        if "always_in" in rows:
            # The user's choice, not the data's finding.
            kept = zip(columns["P(in)"], shown["always_in"], strict=True)
            columns["P(in)"] = ["fixed" if fixed else value for value, fixed in kept]
    columns["psi"] = [three_digits(value) for value in shown["psi"]]
    columns[f"low {level}"] = [three_digits(value) for value in shown["band_lower"]]
    columns[f"high {level}"] = [three_digits(value) for value in shown["band_upper"]]
    if "share" in rows:
        columns["share %"] = [_fixed(100 * value, 1) for value in shown["share"]]
    if "mean_gradient" in rows:
        columns["sign"] = [
            direction(mean, sd, chosen)
            for mean, sd, chosen in zip(
                shown["mean_gradient"], shown["mean_gradient_sd"], shown["selected"], strict=True
            )
        ]
    columns["R-hat"] = [_fixed(value, 3) for value in shown["r_hat"]]
    if not shown["converged"].all():
        columns[""] = ["" if fine else "!" for fine in shown["converged"]]
    lines = _lay_out([_printable(name) for name in shown.iloc[:, 0]], columns, width)
    if len(rows) > len(shown):
        lines.append(f"... and {len(rows) - len(shown)} more {rest}".rstrip())
    return "\n".join(lines)


def decision_line(summary: xr.Dataset) -> str:
    """Say a decision in words.

    Parameters
    ----------
    summary : Dataset
        What :func:`select` returns.

    Returns
    -------
    str
        One line: how many inputs were selected, their names, the largest share first, the rule
        and its reason; if there are none, why.
    """
    rows = tidy(summary)
    chosen = [_printable(name) for name in rows.loc[rows["selected"], _dim(summary)]]
    inputs = f"{len(rows)} input{'s' * (len(rows) != 1)}"
    rule = summary.attrs["rule"]
    reason = summary.attrs["reason"].removeprefix("No input was selected: ")
    if not chosen:
        return f"None of {inputs} selected. Rule {rule!r}: {reason}"
    more = f" and {len(chosen) - NAMED} more" if len(chosen) > NAMED else ""
    named = ", ".join(chosen[:NAMED])
    return f"{len(chosen)} of {inputs} selected: {named}{more}. Rule {rule!r}: {reason}"


def convergence_line(summary: xr.Dataset) -> str:
    """Say how well the draws of psi have converged, given that they have.

    Parameters
    ----------
    summary : Dataset
        What :func:`importance` or :func:`select` returns.

    Returns
    -------
    str
        One line.
    """
    n_chains, n_draws = summary.attrs["n_chains"], summary.attrs["n_draws"]
    length = f"{n_chains} chain{'s' * (n_chains != 1)} of {n_draws} draws"
    if n_chains == 1:
        return f"One chain of {n_draws} draws: R-hat, which compares chains, can't be had."
    # An input that is hardly ever in has converged whatever its R-hat: it is not counted here.
    judged = summary["ess_bulk"].notnull()
    if "inclusion" in summary:
        judged = judged & (summary["inclusion"] > 0.1)
    if not judged.any():
        return f"Converged, with no input in often enough to have an R-hat ({length})."
    worst = float(summary["r_hat"].where(judged).max())
    least = float(summary["ess_bulk"].where(judged).min())
    return (
        f"Converged: R-hat of psi at most {worst:.3f}, effective sample size at least {least:.0f} "
        f"({length})."
    )


def legend(summary: xr.Dataset) -> str:
    """Explain the columns of :func:`summary_table`.

    Parameters
    ----------
    summary : Dataset
        What :func:`select` returns.

    Returns
    -------
    str
        One line.
    """
    level = f"{100 * (1 - summary.attrs['alpha']):.4g}"
    parts = [f"psi: mean squared slope, low and high: a {level} % band for all inputs at once"]
    if "inclusion" in summary:
        parts.insert(0, "P(in): posterior probability that the input is in")
    if "share" in summary:
        parts.append("share: of all importance, free of units")
    if "mean_gradient" in summary:
        parts.append("sign: of the average slope")
    if not summary["converged"].all():
        parts.append("!: not converged")
    return "; ".join(parts) + "."


def wrap(text: str, width: int = WIDTH) -> str:
    """Wrap a paragraph, without breaking a name or an option."""
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write a file so that it is whole or not there.

    Parameters
    ----------
    path : Path
        The file to write or to replace.

    Yields
    ------
    Path
        A temporary file in the same folder, with the same suffix. It takes the place of
        ``path`` when the block ends, and is removed if the block raises.
    """
    temporary = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def three_digits(value: float) -> str:
    """Write a number with three significant digits, plainly if it is of a common size."""
    if np.isnan(value):
        return "-"
    if value == 0:
        return "0"
    text = f"{value:#.3g}"
    if "e" in text and 1 <= abs(float(text)) < 1e6:
        text = f"{float(text):.0f}"
    return text.removesuffix(".")


def direction(mean: float, sd: float, selected: bool) -> str:
    """Sign of a mean gradient where it is sure; ``mixed`` if an input matters without one."""
    if abs(mean) > SURE * sd:
        return "+" if mean > 0 else "-"
    return "mixed" if selected else ""


def shorten(name: str, width: int) -> str:
    """Cut a name in the middle to ``width`` cells."""
    if cell_len(name) <= width:
        return name
    tail = (width - 1) // 2
    end = set_cell_size(name[::-1], tail)[::-1]
    return f"{set_cell_size(name, width - 1 - tail)}\N{HORIZONTAL ELLIPSIS}{end}"


def _lay_out(names: list[str], columns: dict[str, list[str]], width: int) -> list[str]:
    """Align the columns and give the names what is left of the line."""
    widths = {head: max(map(len, [head, *cells])) for head, cells in columns.items()}
    numbers = sum(size + 2 for size in widths.values())
    longest = max(map(cell_len, ["input", *names]))
    room = min(longest, max(width - numbers, NARROWEST))

    def line(name: str, cells: Iterable[str]) -> str:
        text = set_cell_size(shorten(name, room), room)
        for cell, (head, size) in zip(cells, widths.items(), strict=True):
            text += "  " + (cell.ljust(size) if head in TEXT else cell.rjust(size))
        return text.rstrip()

    body = [line(name, cells) for name, *cells in zip(names, *columns.values(), strict=True)]
    return [line("input", columns), "-" * (room + numbers), *body]


def _dim(summary: xr.Dataset) -> str:
    """Dim of the inputs: ``feature`` or ``group``, with any prefix."""
    return str(summary["psi"].dims[0])


def _fixed(value: float, digits: int) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}f}"


def _printable(name: object) -> str:
    """Name on one line."""
    return re.sub(r"[\x00-\x1f\x7f]+", " ", str(name))

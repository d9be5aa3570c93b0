"""The speed benchmark's results in words: tables of 80 columns, with what it takes to read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from pymc_bnnvs.report import wrap

__all__ = ["KEYS", "METHODS", "gate_table", "is_at", "page", "seconds_of", "table", "time_of"]

#: In the order in which they run: the limit of the others can be a multiple of our time.
METHODS = {
    "default": "ours",
    "gaussian": "ours, gaussian",
    "pymc": "PyMC script",
    "numpyro": "numpyro",
}
KEYS = ["method", "n", "n_features", "seed"]


def is_at(row: dict[str, Any], key: dict[str, Any]) -> bool:
    """Whether a row is that of this fit."""
    return all(row[name] == value for name, value in key.items())


def seconds_of(rows: Iterable[dict[str, Any]], key: dict[str, Any]) -> float:
    """Seconds to the target of a fit; 0 if it has not reached it, or is not there."""
    reached = [row for row in rows if is_at(row, key) and row["status"] == "reached"]
    return float(reached[0]["seconds_to_target"]) if reached else 0.0


def time_of(row: dict[str, Any]) -> str:
    """Time to the target in words; a limit is no time to the target."""
    if row["status"] == "reached":
        return f"{row['seconds_to_target']:.0f} s"
    if row["status"] == "limit":
        return f"> {row['limit_s']:.0f} s"
    return str(row["status"])


def against_ours(row: dict[str, Any], ours: float) -> str:
    """Time to the target as a multiple of ours, or that it is more than one."""
    if not ours or row["status"] not in ("reached", "limit"):
        return ""
    multiple = row["seconds"] / ours
    text = f"{multiple:.1f}" if multiple < 100 else f"{multiple:.0f}"
    return text if row["status"] == "reached" else f"> {text}"


def table(rows: pd.DataFrame) -> str:
    """Table of the fits in 80 columns, with what it takes to read it and where it is from.

    Parameters
    ----------
    rows : DataFrame
        From :func:`run`.

    Returns
    -------
    str
    """
    layout = "{:>5} {:>4} {:>4} {:<14} {:>11} {:>5} {:>5} {:>6} {:>7} {:>5} {:>4}"
    titles = ("method", "to target", "comp.", "again", "x ours", "us/grad", "R-hat", "ESS")
    lines = [layout.format("n", "P", "seed", *titles)]
    records = rows.to_dict("records")
    order = {method: place for place, method in enumerate(METHODS)}
    records.sort(key=lambda row: (row["n_features"], row["n"], row["seed"], order[row["method"]]))
    before = None
    for row in records:
        cell = (row["n"], row["n_features"], row["seed"])
        ours = seconds_of(records, dict(zip(KEYS, ("default", *cell), strict=True)))
        lines.append(
            layout.format(
                *(cell if cell != before else ("", "", "")),
                METHODS[row["method"]],
                time_of(row),
                number(row["seconds_compile"], ".0f"),
                number(row["seconds_compile_again"], ".0f"),
                against_ours(row, ours),
                number(row["gradient_us"], ".0f"),
                number(row["r_hat"], ".3f"),
                number(row["ess_bulk"], ".0f"),
            ).rstrip()
        )
        before = cell
    draws = number(rows["max_draws"].max(), ",.0f") or "all"
    lines += ["", *notes(draws)]
    for row in records:
        if row["status"] == "failed":
            where = f"n = {row['n']}, P = {row['n_features']}, seed {row['seed']}"
            lines.append(wrap(f"Failed: {METHODS[row['method']]} at {where}: {row['error']}"))
    lines += ["", *origin(rows)]
    return "\n".join(lines)


def page(rows: pd.DataFrame, command: str) -> str:
    """Write the table as a page, in markdown; ``command`` is what makes it."""
    head = "# Time until the importance of the true inputs has converged"
    return f"{head}\n\nMade by `{command}`.\n\n```text\n{table(rows)}\n```\n"


def notes(draws: str) -> list[str]:
    """Explain the columns of the table."""
    return [
        wrap(
            "to target: wall time until R-hat <= 1.01 and bulk ESS >= 400 for the psi of every "
            "true input, with the compilation (comp., seconds; nothing is compiled before) and "
            "the warm-up. '> 300 s' is no result: the fit was stopped at that limit and had not "
            f"reached it. 'not reached': not with {draws} draws a chain either. again: the "
            "compilation for other data of the same size, with what PyTensor has kept. x ours: in "
            "multiples of the time of our default."
        ),
        wrap(
            "us/grad: one log density with its gradient, alone, in microseconds; for ours with as "
            "many open gates as its draws have, or all of them where it was stopped before the "
            "first draws. R-hat, ESS: the worst of the true inputs at the last check."
        ),
    ]


def origin(rows: pd.DataFrame) -> list[str]:
    """Machine, threads, versions, seeds and runs that the rows are from."""
    seeds = ", ".join(str(seed) for seed in sorted(set(rows["seed"])))
    lines = []
    for (cpu, cores, chains), _ in rows.groupby(["cpu", "cores", "chains"]):
        lines.append(f"Machine: {cpu}, {cores} cores; {chains} chains at once.")
    lines += [f"Threads: {threads}." for threads in sorted(set(rows["threads"]))]
    lines += [f"Versions: {versions}." for versions in sorted(set(rows["versions"]))]
    lines.append(f"Seeds: {seeds}. Started: {', '.join(sorted(set(rows['run'])))}.")
    return [wrap(line) for line in lines]


def gate_table(rows: pd.DataFrame) -> str:
    """Table of the gradient with the gated and the whole product, in 80 columns.

    Parameters
    ----------
    rows : DataFrame
        From :func:`run_gates`.

    Returns
    -------
    str
    """
    layout = "{:>6} {:>5} {:>6} {:>11} {:>11} {:>12}   {}"
    lines = [layout.format("n", "P", "open", "gated us", "dense us", "dense/gated", "quartiles")]
    for row in rows.to_dict("records"):
        lines.append(
            layout.format(
                row["n"],
                row["n_features"],
                f"{row['share']:.0%}",
                f"{row['gated_us']:.0f}",
                f"{row['dense_us']:.0f}",
                f"{row['dense_by_gated']:.2f}",
                f"{row['ratio_lower']:.2f} to {row['ratio_upper']:.2f}",
            )
        )
    return "\n".join(lines)


def number(value: float, spec: str) -> str:
    """Format a number, and leave out one that is not there."""
    return "" if pd.isna(value) else format(value, spec)

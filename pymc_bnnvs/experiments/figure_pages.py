"""The numbers behind the paper's two figures as pages."""

from __future__ import annotations

import pandas as pd

from pymc_bnnvs.experiments import bvm, learning
from pymc_bnnvs.experiments.markdown import convergence, figure, origin, span, table

__all__ = ["bvm_page", "learning_page"]


def learning_page(rows: pd.DataFrame, command: str) -> str:
    """Write the errors of f and of psi, the powers of n at which they fall, and the convergence.

    Parameters
    ----------
    rows : DataFrame
        From :func:`learning.run`.
    command : str
        What makes the page, to be told on it.

    Returns
    -------
    str
        Markdown.
    """
    errors = learning.summarise(rows).sort_values(["n_features", "n"], kind="stable")
    parts = [
        "# How fast f and psi are learned",
        origin(rows, command),
        "Squared errors in units of the variance: of f at fresh rows, of psi over the inputs.",
    ]
    for design, of_design in errors.groupby("design", sort=False):
        sizes = sorted(of_design["n"].unique())
        lines = []
        for (inputs, network), own in of_design.groupby(["n_features", "network"], sort=False):
            sets, by_n = span(own["repetitions"]), own.set_index("n")
            for name, label in (("mse_f", "f"), ("mse_psi", "psi")):
                cells = [figure(by_n.loc[n], name, ".2g") if n in by_n.index else "" for n in sizes]
                lines.append([str(inputs), network, sets, label, *cells])
        heads = ["inputs", "network", "data sets", "", *(f"n = {n}" for n in sizes)]
        parts += [f"## {design}", table(heads, lines)]
    powers = learning.rates(rows)
    if len(powers):
        parts += [
            "## Powers of n",
            "Slope of the logarithm of the error on that of n, within each seed. A negative "
            "difference: psi is learned faster than f.",
            table(
                ["design", "network", "inputs", "seeds", "f", "psi", "psi less f"],
                [
                    [row["design"], row["network"], str(row["n_features"]), str(row["seeds"])]
                    + [figure(row, name) for name in ("rate_f", "rate_psi", "difference")]
                    for _, row in powers.iterrows()
                ],
            ),
        ]
    parts += ["## Convergence", convergence(rows)]
    return "\n\n".join(parts) + "\n"


def bvm_page(rows: pd.DataFrame, command: str) -> str:
    """Write spread, shape and coverage of the posterior of psi.

    Parameters
    ----------
    rows : DataFrame
        From :func:`bvm.run`.
    command : str
        What makes the page, to be told on it.

    Returns
    -------
    str
        Markdown.
    """
    found = bvm.summarise(rows).sort_values(
        ["inputs", "network", "centering", "n_features", "n"],
        kind="stable",
        ascending=[False, True, True, True, True],
    )
    low, high = bvm.null_quantiles((0.05, 0.95))
    parts = [
        "# Spread, shape and coverage of the posterior of psi",
        origin(rows, command),
        "sd, oracle and sd, all: squared error of the posterior's standard deviation of psi as "
        "one of the limit's, in units of the limit's variance over the inputs, for a network that "
        "knows the true inputs and for one that learns the weights of all. Shape: the median "
        "Cramer-von Mises distance from a normal times the effective number of draws; normal "
        f"draws lie between {low:.3f} and {high:.3f} nine times in ten. Covered: share of inputs "
        "whose pointwise 95 % interval, and whose place in the 95 % band, holds the truth.",
    ]
    for kind, part in found.groupby("inputs", sort=False):
        own = kind == "true"
        figures = [*(["mse_sd_oracle", "mse_sd"] if own else []), "covered", "in_band"]
        heads = ["network", "centring", "inputs", "n", "data sets"]
        heads += [*(["sd, oracle", "sd, all", "shape"] if own else []), "interval", "band"]
        lines = []
        for _, row in part.iterrows():
            cells = [figure(row, name, ".2g" if "mse" in name else ".2f") for name in figures]
            if own:
                cells.insert(2, figure(row, "cvm"))
            keys = ("network", "centering", "n_features", "n", "repetitions")
            lines.append([*(str(row[key]) for key in keys), *cells])
        parts += [f"## {kind.capitalize()} inputs", table(heads, lines)]
    parts += [
        "## True inputs by their psi",
        "Share of the true inputs whose pointwise 95 % interval holds the truth, at all sizes "
        "together, and their number.",
        by_strength(bvm.coverage_by_strength(rows)),
    ]
    of_fits = rows.drop_duplicates(["network", "n", "n_features", "seed"])
    parts += ["## Convergence", convergence(of_fits)]
    return "\n\n".join(parts) + "\n"


def by_strength(found: pd.DataFrame) -> str:
    """Coverage of the true inputs, a row a network and centring and a column a range of psi."""
    ranges = found["psi"].unique()
    lines = []
    for (network, centering), own in found.groupby(["network", "centering"], sort=False):
        by_range = own.set_index("psi")
        there = [by_range.loc[at] for at in ranges if at in by_range.index]
        cells = {row.name: f"{figure(row, 'covered')} of {row['inputs']}" for row in there}
        lines.append([network, centering, *(cells.get(at, "") for at in ranges)])
    return table(["network", "centring", *(f"psi {at}" for at in ranges)], lines)

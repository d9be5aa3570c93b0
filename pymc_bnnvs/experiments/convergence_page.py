"""Which fits have converged, as a page."""

from __future__ import annotations

import pandas as pd

from pymc_bnnvs.diagnostics import ESS_MIN, R_HAT_MAX, RARE
from pymc_bnnvs.experiments.convergence_check import by_cell, by_fit
from pymc_bnnvs.experiments.markdown import table, versions

__all__ = ["convergence_page"]


def convergence_page(rows: pd.DataFrame, command: str) -> str:
    """Write how many fits of each size have converged after how many draws, and every fit.

    Parameters
    ----------
    rows : DataFrame
        From :func:`convergence_check.run`, any variants and numbers of draws.
    command : str
        What makes the page, to be told on it.

    Returns
    -------
    str
        Markdown.
    """
    parts = [
        "# Convergence of the fits",
        f"Made by `{command}`. {versions(rows)} The target is an R-hat of at most {R_HAT_MAX} and "
        f"an effective sample size of at least {ESS_MIN} for the psi of every input with "
        f"inclusion above {RARE}; both are given for the worst of these. The chains agree if each "
        "input is in, at one half, by all of them or by none. True and false inputs are those "
        "that `interval` keeps; left out is the largest inclusion of a true one that it does not. "
        "Seconds are of sampling, and medians.",
    ]
    fits = by_fit(rows)
    for (variant, draws, chains), own in fits.groupby(["variant", "draws", "chains"], sort=False):
        found = int(own["converged"].sum())
        parts += [
            f"## {variant.capitalize()}, {chains} chains of {draws:,} draws",
            f"{found} of {len(own)} fits hold the target.",
            sizes(own),
            each(own),
        ]
    return "\n\n".join(parts) + "\n"


def sizes(fits: pd.DataFrame) -> str:
    """Fits of each design and size; of one number of draws."""
    keys = ["design", "variant", "n", "n_features"]
    cells = by_cell(fits).join(
        fits.groupby(keys, sort=False).agg(
            least=("ess_bulk", "min"), middle=("seconds_sampling", "median")
        )
    )
    reached = [name for name in cells if name.startswith("by ")]
    lines = [
        [
            design,
            *(str(value) for value in (n, n_features, int(row["fits"]))),
            *(str(int(row[name])) for name in reached),
            str(int(row["agree"])),
            f"{row['r_hat']:.3f}",
            f"{row['least']:,.0f}",
            f"{row['f1']:.2f}",
            f"{row['steps']:.0f}",
            f"{row['divergences']:.1f}",
            f"{row['middle']:.0f}",
        ]
        for (design, _, n, n_features), row in cells.iterrows()
    ]
    heads = ["", "rows", "inputs", "fits", *(f"by {int(name[3:]):,}" for name in reached)]
    heads += ["chains agree", "R-hat", "effective", "F1", "steps a draw", "divergences", "seconds"]
    return table(heads, lines)


def each(fits: pd.DataFrame) -> str:
    """Every fit, a row."""
    lines = [
        [
            str(fit["design"]),
            *(str(fit[name]) for name in ("n", "n_features", "seed")),
            f"{fit['kept']} of {fit['true']}",
            "" if pd.isna(fit["left_out"]) else f"{fit['left_out']:.2f}",
            str(fit["false"]),
            f"{fit['r_hat']:.3f}",
            f"{fit['ess_bulk']:,.0f}",
            f"{fit['missed']} of {fit['likely']}",
            "yes" if fit["agree"] else "no",
        ]
        for _, fit in fits.sort_values(["design", "n_features", "n", "seed"]).iterrows()
    ]
    heads = ["", "rows", "inputs", "seed", "true", "left out", "false", "R-hat", "effective"]
    return table([*heads, "inputs that miss", "chains agree"], lines)

"""The table of selections as a page, in the paper's layout and beside the paper's numbers."""

from __future__ import annotations

from importlib.resources import files

import pandas as pd

from pymc_bnnvs.experiments.markdown import convergence, figure, origin, span
from pymc_bnnvs.experiments.markdown import table as table_of
from pymc_bnnvs.experiments.table2 import CELL, FIGURES, differences, paired, summarise

__all__ = ["page", "printed"]

#: Method, rule and how the page calls them, in the paper's order; then what it did not have.
ROWS = {
    ("lasso", "threshold"): "LASSO, threshold",
    ("lasso-knockoffs", "q=0.1, offset 0"): "LASSO, knockoffs, q = 0.1, offset 0",
    ("lasso-knockoffs", "q=0.2, offset 1"): "LASSO, knockoffs, q = 0.2, offset 1",
    ("lasso-knockoffs", "q=0.5, offset 1"): "LASSO, knockoffs, q = 0.5, offset 1",
    ("lasso-test", "test"): "LASSO, covariance test",
    ("forest", "threshold"): "Forest, 1 % of impurity",
    ("forest-knockoffs", "q=0.1, offset 0"): "Forest, knockoffs, q = 0.1, offset 0",
    ("forest-knockoffs", "q=0.2, offset 1"): "Forest, knockoffs, q = 0.2, offset 1",
    ("forest-knockoffs", "q=0.5, offset 1"): "Forest, knockoffs, q = 0.5, offset 1",
    ("forest-test", "test"): "Forest, permutation test",
    ("group-lasso-network", "group lasso"): "Network, group lasso",
    ("spike-slab-network", "median"): "Network, spike and slab",
    ("paper-network", "trace, marginal"): "Network, the paper's intervals",
    ("paper-network", "trace, mvn band"): "Network, the paper's band",
    ("paper-network", "ours, band"): "The paper's network, our centring and band",
    ("gated-network", "interval"): "**Ours, interval**",
    ("gated-network", "median"): "Ours, median",
    ("gated-network", "fdr"): "Ours, fdr",
    ("t-tests", "test"): "Least squares, t-tests",
    ("conditional-importance", "test"): "Conditional feature importance",
    ("bart", "R squared"): "BART",
}
OURS = ("gated-network", "interval")
PAPERS = ("paper-network", "trace, marginal")


def printed() -> pd.DataFrame:
    """F1 that the paper prints: ``n``, ``n_features``, ``method``, ``rule``, ``f1``, ``spread``."""
    source = files("pymc_bnnvs.experiments") / "table2-printed.csv"
    with source.open() as file:
        return pd.read_csv(file)


def page(rows: pd.DataFrame, command: str) -> str:
    """Write the page.

    Parameters
    ----------
    rows : DataFrame
        From :func:`table2.run`, one design.
    command : str
        What makes the page, to be told on it.

    Returns
    -------
    str
        Markdown.
    """
    table = summarise(rows)
    print_of = printed().set_index(["n", "n_features", "method", "rule"])["f1"]
    if set(rows["design"]) != {"neural"}:
        print_of = print_of.iloc[:0]
    parts = [
        "# F1 of every method, by size of the data",
        f"{origin(rows, command)} In brackets is what the paper prints.",
    ]
    for n_features, part in table.groupby("n_features"):
        parts += [f"## {n_features} inputs", block(part, print_of)]
    parts += [
        "## All sizes together",
        "Means over the sizes that a method has been run at, every size counted alike. FDP: share "
        "of false ones among the selected (0 if there are none); exact: share of data sets whose "
        "true inputs are selected and nothing else; AUC: chance that a true input scores above a "
        "null one; printed: the paper's F1. The errors are from those of the sizes or, where a "
        "size has one data set only, from the spread over the sizes, which is the larger.",
        overall(table, print_of),
    ]
    against = differences(rows, *OURS)
    each = paired(rows, *OURS)
    if len(each):
        parts += [
            "## Ours, interval, less each other method",
            "Over the data sets that both have, whatever their size.",
            table_of(
                ["less", "difference in F1", "pairs"],
                [
                    [label(key), figure(own.iloc[0], "difference"), str(own["pairs"].iloc[0])]
                    for key, own in in_order(each)
                ],
            ),
        ]
    if len(against):
        parts += [
            "## Ours, interval, less the best other method",
            "The other method with the least difference on the data sets that both have; one with "
            "fewer than half as many of them as another is left out.",
            gaps(against, table, print_of),
        ]
    sampled = rows[rows["r_hat"].notna()].drop_duplicates([*CELL, "method", "seed"])
    if len(sampled):
        parts += [
            "## Convergence",
            "R-hat of psi, of the worst input of a fit; with exact zeros, of those with inclusion "
            "above 0.1.",
            convergence(sampled, "method"),
        ]
    return "\n\n".join(parts) + "\n"


def block(part: pd.DataFrame, print_of: pd.Series) -> str:
    """F1 of the methods, a row each, by number of rows."""
    sizes = sorted(part["n"].unique())
    lines = []
    for key, own in in_order(part):
        by_n = own.set_index("n")
        cells = []
        for n in sizes:
            if n not in by_n.index:
                cells.append("")
                continue
            there = by_n.loc[n]
            at = (n, there["n_features"], *key)
            cells.append(
                figure(there, "f1") + (f" ({print_of[at]:.2f})" if at in print_of.index else "")
            )
        lines.append([label(key), span(own["repetitions"]), *cells])
    return table_of(["", "data sets", *(f"n = {n}" for n in sizes)], lines)


def overall(table: pd.DataFrame, print_of: pd.Series) -> str:
    """Every figure of the methods, a row each, over all sizes."""
    lines = []
    for key, own in in_order(table):
        mean = own[FIGURES].mean()
        for name in FIGURES:
            mean[f"{name}_se"] = error_of_mean(own[name], own[f"{name}_se"])
        figures = [figure(mean, name) for name in FIGURES[:-1]]
        cells = zip(own["n"], own["n_features"], strict=True)
        there = print_of.reindex([(*cell, *key) for cell in cells]).mean()
        figures.insert(1, "" if pd.isna(there) else f"{there:.2f}")
        lines.append([label(key), str(len(own)), *figures, f"{mean['seconds']:.3g}"])
    heads = ["F1", "printed", "precision", "recall", "FDP", "exact", "AUC", "seconds"]
    return table_of(["", "sizes", *heads], lines)


def error_of_mean(means: pd.Series, errors: pd.Series) -> float:
    """Error of the mean of independent means, from their errors or else from their spread."""
    if errors.notna().all():
        return float((errors**2).sum() ** 0.5 / len(errors))
    return float(means.sem())


def gaps(against: pd.DataFrame, table: pd.DataFrame, print_of: pd.Series) -> str:
    """Ours beside what the paper prints for its intervals and the best other method, by size."""
    keys = ["n", "n_features"]
    ours = table[(table["method"] == OURS[0]) & (table["rule"] == OURS[1])].set_index(keys)
    lines = []
    for _, row in against.sort_values(["n_features", "n"]).iterrows():
        own = ours.loc[(row["n"], row["n_features"])]
        there = print_of.get((row["n"], row["n_features"], *PAPERS))
        lines.append(
            [
                str(row["n"]),
                str(row["n_features"]),
                figure(own, "f1"),
                figure(own, "fdp"),
                "" if there is None else f"{there:.2f}",
                label((row["method"], row["rule"])),
                figure(row, "difference"),
                str(row["pairs"]),
            ]
        )
    heads = ["n", "inputs", "F1", "FDP", "the paper's intervals, printed"]
    return table_of([*heads, "best other", "difference in F1", "pairs"], lines)


def in_order(table: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """Rows of each method and rule that there are, in the page's order."""
    groups = dict(list(table.groupby(["method", "rule"], sort=False)))
    return [(key, groups[key]) for key in dict.fromkeys([*ROWS, *groups]) if key in groups]


def label(key: tuple[str, str]) -> str:
    """Return what the page calls a method and rule."""
    return ROWS.get(key, ", ".join(key))

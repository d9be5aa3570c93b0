"""Decision rules: from a summary of the posterior to a set of inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from pymc_bnnvs.errors import check_option
from pymc_bnnvs.summary import importance

__all__ = ["RULES", "select"]

RULES = ("interval", "fdr", "median", "top_k")


def select(
    idata: xr.DataTree,
    *,
    rule: str = "interval",
    alpha: float = 0.05,
    q: float = 0.1,
    k: int | None = None,
    **importance_kwargs: Any,
) -> xr.Dataset:
    """Decide which inputs matter, by one rule.

    Parameters
    ----------
    idata : DataTree
        Draws of a model with an importance, from ``pm.sample``.
    rule : {"interval", "fdr", "median", "top_k"}
        * ``interval``: the simultaneous ``1 - alpha`` credible band leaves out 0. With exact
          zeros: the largest set, taken by inclusion probability, of which all members are in
          with posterior probability at least ``1 - alpha``.
        * ``fdr``: the largest set whose mean posterior probability of being out is at most
          ``q``, the Bayesian false discovery rate (Newton et al. 2004). Needs exact zeros. Inputs
          that are always in are selected, and don't count in the rate.
        * ``median``: inclusion probability above 1/2, the median probability model (Barbieri and
          Berger 2004). Needs exact zeros.
        * ``top_k``: the ``k`` inputs with the largest share of importance. A ranking, no test.
    alpha : float
        Level of ``interval``, and of the band in the output.
    q : float
        Level of ``fdr``.
    k : int, optional
        Number of inputs for ``top_k``.
    **importance_kwargs
        Passed to :func:`importance`: ``var_name``, ``by``, ``centering``, ``band``, ``model`` ...

    Returns
    -------
    Dataset
        What :func:`importance` returns, with ``selected`` (bool) beside ``converged``. The
        attributes say the rule, its level and the reason; no input is a valid answer.

    Raises
    ------
    ValueError
        If the rule is not known, lacks its argument, or needs exact zeros that the prior does
        not have.

    Warns
    -----
    ConvergenceWarning
        If the draws of an input have not converged; the warning names it.

    References
    ----------
    Newton, M. A., Noueiry, A., Sarkar, D. and Ahlquist, P. (2004). Detecting differential gene
    expression with a semiparametric hierarchical mixture method. Biostatistics 5.

    Barbieri, M. M. and Berger, J. O. (2004). Optimal predictive model selection. Annals of
    Statistics 32.

    Examples
    --------
    >>> import pymc as pm, pymc_bnnvs as bvs
    >>> from pymc_bnnvs.datasets import load_diabetes
    >>> with bvs.build_model(*load_diabetes()):  # doctest: +SKIP
    ...     idata = pm.sample(random_seed=1)
    >>> bvs.select(idata, rule="median").to_dataframe()  # doctest: +SKIP
    """
    check_option("rule", rule, RULES)
    if not 0 < q < 1:
        raise ValueError(f"q={q!r}: give a rate between 0 and 1.")
    if (rule == "top_k") != (k is not None):
        raise ValueError(
            f"rule={rule!r} with k={k!r}: give k, the number of inputs, with rule='top_k', "
            f"and only there."
        )
    summary = importance(idata, alpha=alpha, **importance_kwargs)
    dim = summary["psi"].dims[0]
    if rule in ("fdr", "median") and "inclusion" not in summary:
        raise ValueError(
            f"rule={rule!r} needs inclusion probabilities, which only a prior with exact zeros "
            f"has (gated, spike_slab). Use rule='interval' or 'top_k', or another prior."
        )
    if rule == "top_k" and "share" not in summary:
        raise ValueError(
            "rule='top_k' ranks by the share of importance, which needs the inputs in "
            "constant_data, and these draws came without."
        )
    if k is not None and not 0 < k <= summary.sizes[dim]:
        raise ValueError(f"k={k!r}: give a number from 1 to {summary.sizes[dim]}.")

    selected, reason = _DECIDE[rule](summary, alpha=alpha, q=q, k=k)
    summary["selected"] = (dim, selected)
    levels: dict[str, dict[str, Any]]
    levels = {"interval": {"alpha": alpha}, "fdr": {"q": q}, "top_k": {"k": k}}
    n_selected = int(selected.sum())
    summary.attrs.update(
        rule=rule,
        **levels.get(rule, {}),
        n_selected=n_selected,
        reason=reason if n_selected else f"No input was selected: {reason}",
    )
    return summary


def _interval(
    summary: xr.Dataset, *, alpha: float, q: float, k: int | None
) -> tuple[np.ndarray, str]:
    selected = summary["band_excludes_zero"].values
    if "inclusion" in summary:
        if selected.any():
            joint = summary.attrs["joint_inclusion"]
            found = f"here {joint:.3f}."
        else:
            found = f"the best single input reaches {float(summary['inclusion'].max()):.3f}."
        reason = (
            f"the largest set that is all in with posterior probability at least {1 - alpha:.4g}; "
            f"{found}"
        )
    else:
        reason = f"the simultaneous {1 - alpha:.4g} credible band of the centred psi leaves out 0."
    return selected, reason


def _fdr(summary: xr.Dataset, *, alpha: float, q: float, k: int | None) -> tuple[np.ndarray, str]:
    out = 1 - summary["inclusion"].values
    # Inputs that the user keeps in are no discoveries, and must not thin out the others' rate.
    kept = np.zeros(out.size, dtype=bool)
    if "always_in" in summary:
        kept = summary["always_in"].values
    free = np.flatnonzero(~kept)
    order = free[np.argsort(out[free], kind="stable")]
    rate = np.cumsum(out[order]) / np.arange(1, order.size + 1)
    selected = kept.copy()
    selected[order[rate <= q]] = True
    reached = rate[rate <= q]
    found = "."
    if reached.size:
        found = f"; here {reached[-1]:.3f}."
    elif rate.size:
        found = f"; the best input has {rate[0]:.3f}."
    return selected, f"Bayesian false discovery rate at most {q:.4g}{found}"


def _median(
    summary: xr.Dataset, *, alpha: float, q: float, k: int | None
) -> tuple[np.ndarray, str]:
    inclusion = summary["inclusion"].values
    reason = f"inclusion probability above 1/2; the largest is {inclusion.max():.3f}."
    return inclusion > 0.5, reason


def _top_k(summary: xr.Dataset, *, alpha: float, q: float, k: int | None) -> tuple[np.ndarray, str]:
    share = summary["share"].values
    selected = np.zeros(share.size, dtype=bool)
    selected[np.argsort(-share, kind="stable")[:k]] = True
    return selected, f"the {k} largest shares of importance: a ranking, no test."


_DECIDE: dict[str, Callable[..., tuple[np.ndarray, str]]] = {
    "interval": _interval,
    "fdr": _fdr,
    "median": _median,
    "top_k": _top_k,
}

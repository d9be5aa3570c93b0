"""Convergence of psi and f, and the gate in front of a decision."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import arviz as az
import numpy as np
import xarray as xr

__all__ = ["ConvergenceWarning", "convergence", "function_convergence", "warn_unconverged"]

PACKAGE = str(Path(__file__).parent)
R_HAT_MAX = 1.01
ESS_MIN = 400
RARE = 0.1


class ConvergenceWarning(UserWarning):
    """Draws behind a decision have not converged."""


@contextmanager
def constants_are_quiet() -> Iterator[None]:
    """Let ArviZ judge draws that never change: no variance is no news to the user."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def convergence(psi: xr.DataArray, included: xr.DataArray | None, dim: str) -> xr.Dataset:
    """R-hat, effective sample size and a verdict on the draws of psi.

    Weights do not identify, so they are not judged. An input that is in during at most a
    tenth of the draws of every chain is out by every rule, whatever its R-hat.

    Parameters
    ----------
    psi : DataArray
        Draws of psi, dims ``chain``, ``draw`` and ``dim``; not centred.
    included : DataArray, optional
        Draws of the inclusion, where the prior has exact zeros.
    dim : str
        ``feature`` or ``group``.

    Returns
    -------
    Dataset
        ``r_hat`` (NaN for one chain, or a psi that is always 0), ``ess_bulk`` and
        ``converged``: R-hat at most 1.01 and bulk effective sample size at least 400
        (Vehtari et al. 2021), or hardly ever in.

    References
    ----------
    Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Burkner, P.-C. (2021).
    Rank-normalization, folding, and localization: an improved R-hat. Bayesian Analysis 16.
    """
    one_chain = psi.sizes["chain"] == 1
    with constants_are_quiet():
        r_hat = xr.full_like(psi.isel(chain=0, draw=0, drop=True), np.nan)
        if not one_chain:
            r_hat = az.rhat(psi)
        ess = az.ess(psi, method="bulk")
    constant = psi.max(("chain", "draw")) == psi.min(("chain", "draw"))
    enough = (ess >= ESS_MIN) & ((r_hat <= R_HAT_MAX) | one_chain)
    hardly_in = constant & (psi.max(("chain", "draw")) == 0)
    if included is not None:
        hardly_in = hardly_in | (included.mean("draw").max("chain") <= RARE)
    ess = ess.where(~constant)
    r_hat = r_hat.where(~constant)
    verdict = (enough & ~constant) | hardly_in
    return xr.Dataset(
        {
            name: value.reset_coords(drop=True).transpose(dim)
            for name, value in {"r_hat": r_hat, "ess_bulk": ess, "converged": verdict}.items()
        }
    )


def function_convergence(f: xr.DataArray) -> dict[str, float]:
    """Convergence of the regression function, over the rows.

    Parameters
    ----------
    f : DataArray
        Draws of f, dims ``chain``, ``draw`` and the rows.

    Returns
    -------
    dict
        ``f_r_hat``: the R-hat that 95 % of the rows stay below (NaN for one chain);
        ``f_ess_bulk``: the effective sample size that 95 % of the rows exceed.
    """
    with constants_are_quiet():
        r_hat = np.nan
        if f.sizes["chain"] > 1:
            r_hat = float(az.rhat(f).quantile(0.95))
        ess = float(az.ess(f, method="bulk").quantile(0.05))
    return {"f_r_hat": r_hat, "f_ess_bulk": ess}


def warn_unconverged(summary: xr.Dataset, dim: str, *, gates_could_move: bool) -> None:
    """Warn of the inputs whose draws have not converged, by name, with what to do."""
    bad = summary[dim].values[~summary["converged"].values]
    f_bad = summary.attrs.get("f_r_hat", np.nan) > R_HAT_MAX
    if not bad.size and not f_bad:
        return
    n_chains, n_draws = summary.attrs["n_chains"], summary.attrs["n_draws"]
    parts = []
    if bad.size:
        named = ", ".join(map(str, bad[:8])) + (f" and {bad.size - 8} more" if bad.size > 8 else "")
        chosen = summary.sel({dim: bad})
        worst, least = float(chosen["r_hat"].max()), float(chosen["ess_bulk"].min())
        r_hat = "" if np.isnan(worst) else f"R-hat up to {worst:.3f}, "
        parts.append(
            f"The draws of psi have not converged for {named} ({r_hat}effective sample size "
            f"down to {least:.0f}; wanted: R-hat <= {R_HAT_MAX}, >= {ESS_MIN})."
        )
    if f_bad:
        parts.append(
            f"The draws of f have not converged (R-hat {summary.attrs['f_r_hat']:.3f} or more in "
            f"5 % of the rows)."
        )
    more = _more_draws(summary, bad, dim, n_draws)
    chains = " and at least 4 chains" if n_chains < 4 else ""
    gates = "Let the gates move, pm.sample(2000, step=bvs.gate_step()), or sample"
    start = gates if gates_could_move else "Sample"
    parts.append(
        f"{start} longer, pm.sample(draws={more}, tune={max(more // 2, 1000)}){chains}, before you "
        f"decide on them."
    )
    # The user's own line is what the warning should point at.
    warnings.warn(" ".join(parts), ConvergenceWarning, skip_file_prefixes=(PACKAGE,))


def _more_draws(summary: xr.Dataset, bad: np.ndarray, dim: str, n_draws: int) -> int:
    """Draws that should do, by the effective sample size: two to ten times as many as now."""
    least = float(summary.sel({dim: bad})["ess_bulk"].min()) if bad.size else np.nan
    needed = ESS_MIN / least if least > 0 else 2.0
    return int(np.ceil(n_draws * np.clip(1.25 * needed, 2.0, 10.0) / 500) * 500)

"""Which inputs of your data matter, with uncertainty you can defend."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pymc_bnnvs import bernstein_von_mises as bernstein_von_mises
    from pymc_bnnvs import datasets as datasets
    from pymc_bnnvs import priors as priors
    from pymc_bnnvs import storage as storage
    from pymc_bnnvs.diagnostics import ConvergenceWarning as ConvergenceWarning
    from pymc_bnnvs.gradient import gradient_importance as gradient_importance
    from pymc_bnnvs.model import build_model as build_model
    from pymc_bnnvs.network import relu_network as relu_network
    from pymc_bnnvs.plots import plot_importance as plot_importance
    from pymc_bnnvs.selection import select as select
    from pymc_bnnvs.steps import gate_step as gate_step
    from pymc_bnnvs.summary import importance as importance

__version__ = "0.1.0"

# Loaded when asked for: PyMC and ArviZ take seconds, and `bnnvs --help` needs neither.
_HOME = {
    "ConvergenceWarning": "diagnostics",
    "build_model": "model",
    "gate_step": "steps",
    "gradient_importance": "gradient",
    "importance": "summary",
    "plot_importance": "plots",
    "relu_network": "network",
    "select": "selection",
}
_MODULES = ("bernstein_von_mises", "datasets", "priors", "storage")

__all__ = [*_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"pymc_bnnvs.{name}")
    if name in _HOME:
        value = getattr(importlib.import_module(f"pymc_bnnvs.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

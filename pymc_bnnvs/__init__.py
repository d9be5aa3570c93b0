"""Which inputs of your data matter, with uncertainty you can defend."""

from pymc_bnnvs import datasets, priors
from pymc_bnnvs.diagnostics import ConvergenceWarning
from pymc_bnnvs.gradient import gradient_importance
from pymc_bnnvs.importance import importance
from pymc_bnnvs.model import build_model
from pymc_bnnvs.network import relu_network
from pymc_bnnvs.plots import plot_importance
from pymc_bnnvs.selection import select

__version__ = "0.1.0"

__all__ = [
    "ConvergenceWarning",
    "build_model",
    "datasets",
    "gradient_importance",
    "importance",
    "plot_importance",
    "priors",
    "relu_network",
    "select",
]

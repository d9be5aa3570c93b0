"""Plots of the importance of the inputs, in ArviZ's grammar."""

from pymc_bnnvs.plots.importance_plot import plot_importance

__all__ = ["plot_importance"]

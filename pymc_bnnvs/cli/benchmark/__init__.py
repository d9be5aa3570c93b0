"""Checks on simulated data, whose results stand in the docs."""

from __future__ import annotations

from cyclopts import App

from pymc_bnnvs.cli.benchmark.convergence_commands import convergence, feynman, geometry
from pymc_bnnvs.cli.benchmark.memory_command import memory
from pymc_bnnvs.cli.benchmark.selection_commands import centering, selection
from pymc_bnnvs.cli.benchmark.speed_command import speed
from pymc_bnnvs.cli.benchmark.width_command import widths

__all__ = ["benchmark"]

benchmark = App(name="benchmark", help="Check the methods on simulated data.")
for command in (selection, centering, convergence, feynman, geometry, widths, speed, memory):
    benchmark.command(command)

"""The paper's table and figures on fresh data."""

from __future__ import annotations

from cyclopts import App

from pymc_bnnvs.cli.reproduce.all_command import everything
from pymc_bnnvs.cli.reproduce.figure_commands import bvm, learning
from pymc_bnnvs.cli.reproduce.table_command import table2

__all__ = ["reproduce"]

reproduce = App(name="reproduce", help="Redo the paper's experiments on fresh data.")
for command in (table2, learning, bvm):
    reproduce.command(command)
reproduce.command(everything, name="all")

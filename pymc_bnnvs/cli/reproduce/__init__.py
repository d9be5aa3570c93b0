"""The paper's table and figures on fresh data."""

from __future__ import annotations

from cyclopts import App

from pymc_bnnvs.cli.reproduce.table_command import table2

__all__ = ["reproduce"]

reproduce = App(name="reproduce", help="Redo the paper's experiments on fresh data.")
for command in (table2,):
    reproduce.command(command)

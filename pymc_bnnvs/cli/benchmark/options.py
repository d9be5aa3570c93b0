"""What the benchmarks' options share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

__all__ = ["RESULTS", "Positive"]

Positive = Annotated[int, Parameter(validator=Number(gte=1))]
RESULTS = Path("docs/results")

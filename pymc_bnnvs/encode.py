"""One column of a user's table as numbers, or the reason why it cannot be."""

from __future__ import annotations

import datetime
import decimal
import numbers
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from narwhals import Series

__all__ = [
    "Column",
    "Unusable",
    "as_array",
    "encode_array",
    "encode_series",
    "listed",
    "numbers_or_text",
]

# What is wrong with a column, in the order in which problems are reported, and the cure.
PROBLEMS = {
    "nested": (
        "X holds lists or structs in {columns}: give each of their elements a column of its own."
    ),
    "complex": (
        "X holds complex numbers in {columns}: give real columns, for example the real and the "
        "imaginary part as two columns."
    ),
    "dates": (
        "X holds dates or durations in {columns}: convert them to numbers, for example days since "
        "the first one, (d - d.min()) / pandas.Timedelta('1D'), or to the parts that matter, such "
        "as the month."
    ),
    "unsupported": (
        "X holds values that are neither numbers nor labels in {columns}: convert the column to "
        "numbers, or to a category with .astype('category')."
    ),
    "array_text": (
        "X is an array that holds text in {columns}: encode it as numbers, or give a DataFrame, "
        "whose text columns are read as categories."
    ),
    "mixed": (
        "X mixes text and numbers in {columns}: correct the odd values so that all are numbers "
        "(drop the row or impute it), or convert the column to a category with "
        ".astype(str).astype('category')."
    ),
    "part_text": (
        "X holds text of which only a part is numbers in {columns}: correct the odd values and "
        "convert with .astype(float), or, if the column holds labels, make it a category with "
        ".astype('category')."
    ),
    "number_text": (
        "X holds numbers as text in {columns}: convert with .astype(float), or, if they are "
        "labels, make the column a category with .astype('category')."
    ),
    "missing": (
        "X has missing values in {columns}: drop those rows, impute them (for example with the "
        "column's median or most frequent level), or impute and add a column that says which "
        "were missing."
    ),
    "infinite": (
        "X has infinite values in {columns}: correct them or drop those rows; if they stand for "
        "missing values, impute them."
    ),
    "unit": (
        "X has values too large or too small for double precision in {columns}: change the unit "
        "of the column."
    ),
    "identifier": (
        "X has columns that look like identifiers, with too many levels: {columns}. Drop the "
        "column, or merge its rare levels."
    ),
    "constant": ("X has columns that are constant, which cannot matter: {columns}. Drop them."),
}

NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")

# Far outside any sensible unit; their squares, and the inverse of them, are still finite.
LARGEST, SMALLEST = 1e100, 1e-100

# A spread of some hundred units in the last place is what rounding leaves of a constant.
RESOLUTION = 1e-13


class Unusable(ValueError):
    """A column that cannot be used: which of ``PROBLEMS`` it has, and details."""

    def __init__(self, problem: str, detail: str = ""):
        super().__init__(problem, detail)
        self.problem = problem
        self.detail = detail


class Column(NamedTuple):
    """An encoded column.

    ``values`` are the numbers ``(n,)`` or, with ``levels``, each row's index into them.
    """

    values: np.ndarray
    levels: tuple[str, ...] | None = None

    @property
    def shown(self) -> tuple[str, ...]:
        """Levels that get an indicator: all of three or more, the second of two."""
        levels = self.levels or ()
        return levels[1:] if len(levels) == 2 else levels

    @property
    def width(self) -> int:
        """Number of columns in the encoded table."""
        return 1 if self.levels is None else len(self.shown)


def listed(items: Iterable[str], most: int = 5) -> str:
    """Join at most ``most`` items, then say how many more there are."""
    items = list(items)
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def as_array(given: Any, argument: str) -> np.ndarray:
    """Read an array or nested lists; gaps of a masked array become None."""
    if isinstance(given, np.ma.MaskedArray):
        gaps, given = np.ma.getmaskarray(given), given.data
        if gaps.any():
            given = given.astype(object)
            given[gaps] = None
    try:
        array = np.asarray(given)
        if array.dtype.kind in "US" and not isinstance(given, np.ndarray):
            array = np.asarray(given, dtype=object)  # numbers beside text stay numbers
    except ValueError as error:
        raise ValueError(
            f"{argument} has rows of different lengths: give as many values in each."
        ) from error
    return array


def encode_series(series: Series[Any]) -> Column:
    """Encode one column of a DataFrame; raise `Unusable` if it cannot be."""
    dtype = series.dtype
    if isinstance(dtype, nw.Categorical | nw.Enum):
        # Sorting a category follows the order of its levels where it has one.
        levels = series.drop_nulls().unique().sort().to_list()
        return encode_levels(series.to_list(), levels)
    if dtype.is_nested():
        raise Unusable("nested", str(dtype))
    if dtype.is_temporal():
        raise Unusable("dates", str(dtype))
    if dtype.is_numeric():
        values = series.to_numpy()
        if values.dtype.kind not in "iuf":  # decimals, and what has its own missing value
            values = series.cast(nw.Float64).to_numpy()
        return Column(check_numbers(values))
    return encode_array(series.to_numpy(), text_is_levels=True)


def encode_array(values: np.ndarray, *, text_is_levels: bool = False) -> Column:
    """Encode one column given as an array ``(n,)``; raise `Unusable` if it cannot be."""
    content = numbers_or_text(values)
    if isinstance(content, np.ndarray):
        return Column(check_numbers(content))
    levels = sorted(set(content))
    check_text(content, levels)
    if not text_is_levels:
        raise Unusable("array_text", f"{content[0]!r} in row 0, counting from 0")
    return encode_levels(content, levels)


def numbers_or_text(values: np.ndarray) -> np.ndarray | list[str]:
    """Sort out what an array ``(n,)`` holds: floats, or text without gaps.

    Missing numbers are NaN in what is returned. Missing text, and anything that is neither
    numbers nor text, raises `Unusable`.
    """
    kind = values.dtype.kind
    if kind in "buif":
        return np.asarray(values, dtype=np.float64)
    if kind == "c":
        raise Unusable("complex")
    if kind in "mM":
        raise Unusable("dates", str(values.dtype))
    items = values.tolist()
    kinds = np.array([kind_of(item) for item in items])
    missing = kinds == "missing"
    found = set(kinds[~missing].tolist())
    for problem in ("nested", "complex", "dates"):
        if problem in found:
            raise Unusable(problem, where(items, kinds, problem))
    if strange := found - {"number", "text"}:
        raise Unusable("unsupported", where(items, kinds, min(strange)))
    if len(found) == 2:
        n_text = (kinds == "text").sum()
        odd = "text" if 2 * n_text <= (~missing).sum() else "number"
        raise Unusable("mixed", where(items, kinds, odd))
    if found == {"text"}:
        if missing.any():
            raise Unusable("missing", rows(missing))
        return items
    return np.array([np.nan if gap else float(x) for x, gap in zip(items, missing, strict=True)])


def kind_of(item: object) -> str:
    """Name what one entry of an object column is."""
    if isinstance(item, str):
        return "text" if item.strip() else "missing"
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return "missing"
    if isinstance(item, numbers.Real | decimal.Decimal | np.bool_):
        return "missing" if item != item else "number"
    if isinstance(item, numbers.Complex):
        return "complex"
    if isinstance(item, datetime.date | datetime.time | datetime.timedelta | np.datetime64):
        return "dates"
    if hasattr(item, "to_timestamp"):
        return "dates"
    if isinstance(item, list | tuple | dict | set | np.ndarray):
        return "nested"
    return type(item).__name__


def where(items: list, kinds: np.ndarray, kind: str) -> str:
    """Show the first entry of a kind, and its row."""
    row = int(np.argmax(kinds == kind))
    return f"{items[row]!r} in row {row}, counting from 0"


def rows(mask: np.ndarray) -> str:
    """Say how many rows are marked."""
    count = int(mask.sum())
    return f"{count} row{'s' if count > 1 else ''}"


def check_numbers(values: np.ndarray) -> np.ndarray:
    """Return the numbers ``(n,)`` if a model can learn from them, else raise `Unusable`."""
    values = np.asarray(values, dtype=np.float64)
    if (missing := np.isnan(values)).any():
        raise Unusable("missing", rows(missing))
    if (infinite := np.isinf(values)).any():
        raise Unusable("infinite", rows(infinite))
    low, high = float(values.min()), float(values.max())
    largest = max(abs(low), abs(high))
    if largest > LARGEST:
        raise Unusable("unit", f"up to {largest:.3g}")
    spread = high - low
    if spread <= RESOLUTION * largest:
        raise Unusable("constant", f"always {low:.6g}" if low == high else f"{low:.6g} to rounding")
    if spread < SMALLEST:
        raise Unusable("unit", f"spread {spread:.3g}")
    return values


def check_text(values: list[str], levels: list[str]) -> None:
    """Refuse text that looks like numbers, as a whole or in part."""
    numeric = [level for level in levels if NUMBER.fullmatch(level)]
    if not numeric:
        return
    if len(numeric) == len(levels):
        raise Unusable("number_text", f"{values[0]!r} in row 0, counting from 0")
    labels = [level for level in levels if not NUMBER.fullmatch(level)]
    odd = labels if len(labels) <= len(numeric) else numeric
    row = min(values.index(level) for level in odd)
    raise Unusable("part_text", f"{values[row]!r} in row {row}, counting from 0")


def encode_levels(values: list, levels: list) -> Column:
    """Encode labels by their index into ``levels``."""
    blank = [isinstance(level, str) and not level.strip() for level in levels]
    index = {level: k for k, level in enumerate(levels) if not blank[k]}
    codes = np.array([index.get(value, -1) for value in values], dtype=np.intp)
    if (missing := codes < 0).any():
        raise Unusable("missing", rows(missing))
    n, n_levels = len(values), len(levels)
    if n_levels > max(20, n / 2) or (n_levels == n and n > 10):
        raise Unusable("identifier", f"{n_levels} levels in {n} rows")
    if n_levels == 1:
        raise Unusable("constant", f"one level, {str(levels[0])!r}")
    return Column(codes, tuple(str(level) for level in levels))

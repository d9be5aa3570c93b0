"""A user's table of inputs as numbers, with names, groups and scales."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import xarray as xr
from narwhals import Series
from narwhals.exceptions import DuplicateError

from pymc_bnnvs.encode import (
    PROBLEMS,
    Column,
    Unusable,
    as_array,
    encode_array,
    encode_series,
    listed,
)
from pymc_bnnvs.groups import Naming, assign_groups, fixed_open

__all__ = ["Table", "check_memory", "read_table"]

type Raw = Series[Any] | np.ndarray  # a column as it comes

BLOCK = 256  # columns that are worked on at a time, so that no second copy of X is made


@dataclass(frozen=True, eq=False)
class Table:
    """Inputs as numbers.

    Attributes
    ----------
    values : (n, P) ndarray
        The inputs on the user's own scale, float64 and C-contiguous.
    features : tuple of str
        Names of the ``P`` columns.
    groups : tuple of str
        Names of the ``G`` groups, in the order of their first columns. A column that is in no
        group is a group of its own, with the column's name.
    group_of : (P,) ndarray of int
        Each feature's index into ``groups``.
    always_in : (G,) ndarray of bool
        Groups whose gates are fixed open.
    center, scale : (P,) ndarray
        Mean and standard deviation of each column, in the column's unit. The columns of one
        category share a scale, the root of their mean variance, so that no rare level is
        blown up.
    category_of : (P,) ndarray of int
        Each feature's category of three levels or more, counted from 0; -1 for other columns.
    """

    values: np.ndarray
    features: tuple[str, ...]
    groups: tuple[str, ...]
    group_of: np.ndarray
    always_in: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    category_of: np.ndarray

    @property
    def has_groups(self) -> bool:
        """Whether any group has more than one column."""
        return len(self.groups) < len(self.features)


def read_table(
    X: Any,
    *,
    feature_names: Sequence[str] | None = None,
    groups: Mapping[str, Sequence[Hashable]] | None = None,
    always_in: Hashable | Sequence[Hashable] | None = None,
) -> Table:
    """Read a table of inputs, or say what is wrong with it.

    Numbers are taken as they are and booleans as 0 and 1. Text and categories become one 0/1
    column for each level that occurs, named like ``island[Biscoe]``, in one group named like
    the column.

    Parameters
    ----------
    X : DataFrame, xarray.DataArray or array_like, shape (n, columns)
        Any eager DataFrame that narwhals knows (pandas, polars, pyarrow, ...), a 2-d DataArray,
        whose second dim's coordinate names the columns, or a 2-d array.
    feature_names : sequence of str, optional
        Names of the columns, instead of those in ``X``; ``x0``, ``x1``, ... if ``X`` has none.
    groups : dict of str to sequence of str, optional
        Columns that enter or leave together. The name of a category stands for all its columns.
    always_in : str or sequence of str, optional
        Columns or groups that stay in the model.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        If a column cannot be used, or names do not fit; the message names the columns and
        the cure.
    TypeError
        If ``X`` is no table.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({"mass": [3.7, 3.8, 5.0], "island": ["Dream", "Biscoe", "Biscoe"]})
    >>> table = read_table(df)
    >>> table.features
    ('mass', 'island[Dream]')
    >>> table.groups
    ('mass', 'island')
    """
    labels, raw, n = open_table(X)
    if not raw:
        raise ValueError("X has no columns: give at least one input.")
    names = column_names(labels, feature_names, len(raw))
    check_unique(names)
    if n < 2:
        raise ValueError(f"X has {n} row{'s' * (n != 1)}: give two rows or more, one a case.")
    columns = encode_columns(names, raw)
    origin = np.repeat(np.arange(len(names)), [column.width for column in columns])
    features = tuple(
        feature
        for name, column in zip(names, columns, strict=True)
        for feature in feature_labels(name, column)
    )
    check_unique(features)

    # Integer labels of a DataFrame are names too; an integer is never a position.
    aliases = labels if feature_names is None and labels is not None else names
    naming = Naming(names, aliases, features, origin)
    group_names, group_of = assign_groups(naming, groups)
    kept = fixed_open(naming, group_names, group_of, always_in)

    if len(features) > len(names):
        # A category with many levels can be far larger than the table it comes from.
        check_memory(n, len(features), 0, draws=0)
    values = assemble(columns, n, len(features))
    check_distinct(values, features)
    center, scale = moments(values)
    category_of = np.full(len(features), -1)
    categories = [j for j, column in enumerate(columns) if column.width > 1]
    for k, j in enumerate(categories):
        own = origin == j
        category_of[own] = k
        scale[own] = np.sqrt(np.mean(scale[own] ** 2))
    return Table(values, features, group_names, group_of, kept, center, scale, category_of)


def open_table(X: Any) -> tuple[list[Hashable] | None, list[Raw], int]:
    """Find the columns of whatever the user gave, their labels if any, and the rows."""
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            return list(frame.columns), list(frame.iter_columns()), len(frame)
    except DuplicateError:
        check_unique([str(name) for name in (X.columns if hasattr(X, "iloc") else X.column_names)])
        raise
    if isinstance(X, xr.DataArray):
        check_two_dims(X.shape)
        dim = X.dims[1]
        labels = X.indexes[dim].tolist() if dim in X.indexes else None
        return labels, list(X.values.T), len(X)
    for method, cure in (
        ("collect", "X.collect()"),
        ("toarray", "X.toarray()"),
        ("to_dataframe", "X.to_dataframe()"),
        ("to_frame", "X.to_frame(), a table of one column"),
        ("compute", "X.compute()"),
    ):
        if hasattr(X, method):
            raise TypeError(f"X is a {type(X).__name__}, which is not read as it is: give {cure}.")
    array = as_array(X, "X")
    if array.ndim == 0 or array.dtype.names:
        raise TypeError(
            f"X is a {type(X).__name__}: give a DataFrame, a 2-d DataArray or a 2-d array; "
            "pandas.DataFrame(X) makes a table of a dict or of records."
        )
    check_two_dims(array.shape)
    return None, list(array.T), len(array)


def check_two_dims(shape: tuple[int, ...]) -> None:
    """Refuse what is not rows by columns."""
    if len(shape) == 1:
        raise ValueError(
            f"X has one dimension, {shape[0]} values: give a table of rows by columns; "
            "for a single input X[:, None]."
        )
    if len(shape) != 2:
        raise ValueError(f"X has {len(shape)} dimensions: give rows by columns.")


def column_names(
    labels: list[Hashable] | None, given: Sequence[Hashable] | None, count: int
) -> list[str]:
    """Names as text: the given ones, else the table's own, else x0, x1, ..."""
    if given is None:
        return [f"x{j}" for j in range(count)] if labels is None else [str(x) for x in labels]
    if isinstance(given, str):
        raise TypeError(f"feature_names={given!r} is text: give a list with a name a column.")
    given = list(given)
    if odd := [name for name in given if not isinstance(name, str)]:
        raise TypeError(
            f"feature_names holds {listed(map(repr, odd))}: every name must be text (str)."
        )
    if len(given) != count:
        raise ValueError(
            f"feature_names has {len(given)} names and X has {count} columns: give a name a "
            "column, before any category is split into its levels."
        )
    return [str(name) for name in given]


def check_unique(names: Sequence[str]) -> None:
    """Refuse names that occur twice."""
    if len(set(names)) < len(names):
        twice = [repr(name) for name, count in Counter(names).items() if count > 1]
        raise ValueError(
            f"X has more than one column named {listed(twice)}: rename them so that every name "
            "is unique."
        )


def encode_columns(names: list[str], raw: list[Raw]) -> list[Column]:
    """Encode every column, or raise for all columns that share the gravest problem."""
    columns: list[Column] = []
    problems: dict[str, list[str]] = {problem: [] for problem in PROBLEMS}
    for name, values in zip(names, raw, strict=True):
        try:
            if isinstance(values, np.ndarray):
                columns.append(encode_array(values))
            else:
                columns.append(encode_series(values))
        except Unusable as bad:
            detail = f" ({bad.detail})" if bad.detail else ""
            problems[bad.problem].append(f"{name!r}{detail}")
    for problem, culprits in problems.items():
        if culprits:
            raise ValueError(PROBLEMS[problem].format(columns=listed(culprits)))
    return columns


def feature_labels(name: str, column: Column) -> list[str]:
    """Names of the columns that one column of the user's table becomes."""
    if column.levels is None:
        return [name]
    return [f"{name}[{level}]" for level in column.shown]


def assemble(columns: list[Column], n: int, n_features: int) -> np.ndarray:
    """Lay the encoded columns side by side."""
    values = np.zeros((n, n_features))
    start = 0
    for column in columns:
        if column.width == 1:
            values[:, start] = column.values
        else:
            values[np.arange(n), start + column.values] = 1.0
        start += column.width
    return values


def check_distinct(values: np.ndarray, features: tuple[str, ...]) -> None:
    """Refuse columns that are identical, value for value."""
    first: dict[bytes, int] = {}
    pairs = []
    for start in range(0, len(features), BLOCK):
        # Adding zero makes -0.0 and 0.0 the same bytes.
        block = np.ascontiguousarray(values[:, start : start + BLOCK].T) + 0.0
        for p, column in enumerate(block, start):
            twin = first.setdefault(hashlib.blake2b(column.data, digest_size=16).digest(), p)
            if twin != p:
                pairs.append(f"{features[twin]!r} and {features[p]!r}")
    if pairs:
        raise ValueError(
            f"X has identical columns, which no data can tell apart: {listed(pairs)}. Drop one "
            "of each pair (or merge the levels, if they come from categories)."
        )


def moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column, exact also far from zero."""
    center, scale = np.empty((2, values.shape[1]))
    for start in range(0, values.shape[1], BLOCK):
        block = values[:, start : start + BLOCK]
        mean = block.mean(axis=0)
        mean += (block - mean).mean(axis=0)  # what rounding took from a large mean
        spread = np.ptp(block, axis=0)
        center[start : start + BLOCK] = mean
        # In units of the spread no square over- or underflows.
        scale[start : start + BLOCK] = spread * ((block - mean) / spread).std(axis=0)
    return center, scale


#: Warm-up draws of PyMC's four chains, by default.
WARM_UP = 1600


def check_memory(
    n: int, n_features: int, n_units: int, *, draws: int = 4000, memory: int | None = None
) -> None:
    """Refuse a run that this machine cannot hold.

    Parameters
    ----------
    n, n_features, n_units : int
        Rows, encoded columns and units of the first hidden layer.
    draws : int, default 4000
        Kept draws, over all chains.
    memory : int, optional
        Bytes that may be used; the machine's physical memory by default. Nothing is checked
        where that is not known.

    Raises
    ------
    ValueError
        If three copies of ``X`` and two of the draws, warm-up included, of what has a value for
        each feature (weights, gate, effect, scale, psi and inclusion) take more.
    """
    memory = physical_memory() if memory is None else memory
    # The sampler holds the warm-up too, and its draws are there twice while they are handed over.
    stored = 2 * (draws + WARM_UP) if draws else 0
    needed = 8 * n_features * (3 * n + stored * (n_units + 6))
    if memory is None or needed <= memory:
        return
    size = f"{n:,} rows and {n_features:,} inputs"
    if draws:
        size += f" with {n_units} hidden units and {draws:,} draws"
    raise ValueError(
        f"{size} take about {needed / 1e9:,.1f} GB; this machine has {memory / 1e9:,.1f} GB. "
        "Screen the columns first (or merge rare levels) or use fewer hidden units; or pass "
        "check_memory=False and take fewer draws, or let them go to disk (bvs.storage.open_draws)."
    )


def physical_memory() -> int | None:
    """Bytes of memory in this machine; None where the system does not say."""
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    return pages * size if pages > 0 and size > 0 else None

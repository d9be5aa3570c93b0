"""A file on disk as inputs and an outcome."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

__all__ = ["parse_groups", "parse_hidden", "read_data"]

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip")


def read_data(path: Path, target: str, drop: Sequence[str] = ()) -> tuple[pd.DataFrame, pd.Series]:
    """Read inputs and outcome, or say what is wrong with the file.

    Parameters
    ----------
    path : Path
        A csv file (perhaps compressed) or a parquet file.
    target : str
        Column of the outcome.
    drop : sequence of str
        Columns to leave out.

    Returns
    -------
    X : DataFrame, shape (n, columns)
    y : Series, shape (n,)

    Raises
    ------
    ValueError
        If the file can't be read, a column is not there, has no name, or the outcome has gaps.
    OSError
        If there is no such file, or it may not be read.
    """
    table = read_table_file(path)
    columns = list(table.columns)
    if target not in columns and len(columns) == 1 and any(mark in columns[0] for mark in ";\t|"):
        raise ValueError(
            f"{path} has one column, named {columns[0]!r}: write the file with commas between "
            "the columns."
        )
    check_columns("--target", [target], columns, path)
    check_columns("--drop", drop, columns, path)
    if target in drop:
        raise ValueError(f"{target!r} is both --target and --drop: drop another column.")
    table = table.drop(columns=list(drop))
    unnamed = [name for name in table.columns if name.startswith("Unnamed: ") or not name.strip()]
    if unnamed:
        cure = " ".join(f"--drop {name!r}" for name in unnamed)
        raise ValueError(
            f"{path} has a column without a name, often the index that pandas wrote: "
            f"leave it out with {cure}, or give it a name."
        )
    y = table.pop(target)
    if gaps := int(y.isna().sum()):
        raise ValueError(
            f"the target {target!r} is missing in {gaps} of {len(y)} rows: drop those rows, an "
            "outcome is not imputed."
        )
    return table, y


def read_table_file(path: Path) -> pd.DataFrame:
    """Read a csv or parquet file with names of columns as text."""
    name = path.name.lower()
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give a csv or parquet file.")
    if not path.exists():
        raise ValueError(f"there is no file {path}.{nearest_file(path)}")
    if not name.endswith(PARQUET + CSV):
        raise ValueError(f"{path} is not a csv or parquet file: convert it to one of them.")
    try:
        if name.endswith(PARQUET):
            table = pd.read_parquet(path)
        else:
            table = pd.read_csv(path, low_memory=False)
    except ValueError as error:  # what pandas and pyarrow raise for a file they can't parse
        kind = "parquet" if name.endswith(PARQUET) else "csv"
        raise ValueError(f"{path} can't be read as {kind}: {error}") from error
    table.columns = [str(column) for column in table.columns]
    return table


def nearest_file(path: Path) -> str:
    """Hint at a file beside the one that is not there."""
    if not path.parent.is_dir():
        return f" There is no folder {path.parent} either."
    names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    return hint(path.name, names)


def check_columns(option: str, wanted: Iterable[str], columns: list[str], path: Path) -> None:
    """Refuse names that are no columns of the file."""
    for name in wanted:
        if name not in columns:
            raise ValueError(
                f"{option} {name!r} is not a column of {path}.{hint(name, columns)}"
                + ("" if len(columns) > 12 else f" It has: {', '.join(columns)}.")
            )


def hint(name: str, options: Sequence[str]) -> str:
    """Name the closest option, if one is close."""
    lower = {option.lower(): option for option in reversed(options)}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return f" Did you mean {lower[close[0]]!r}?" if close else ""


def parse_hidden(values: Sequence[str]) -> tuple[int, ...]:
    """Read the hidden layers' widths from ``["20"]``, ``["50,50"]`` or ``["50", "50"]``."""
    parts = [part.strip() for value in values for part in value.strip("()[] ").split(",")]
    try:
        return tuple(int(part) for part in parts if part)
    except ValueError:
        raise ValueError(
            f"--hidden {' '.join(values)!r}: give the widths of the hidden layers as whole "
            "numbers, such as 20 for one layer or 50,50 for two."
        ) from None


def parse_groups(values: Sequence[str]) -> dict[str, list[str]]:
    """Read groups from ``["name=a,b"]``; a name with a comma goes in double quotes, as in csv."""
    groups: dict[str, list[str]] = {}
    for value in values:
        name, equals, columns = value.partition("=")
        name = name.strip()
        members = [member.strip() for member in next(csv.reader([columns]), []) if member.strip()]
        if not equals or not name or not members:
            raise ValueError(f"--group {value!r}: write it as name=column,column.")
        if name in groups:
            raise ValueError(f"--group {name!r} is given twice: list all its columns in one.")
        groups[name] = members
    return groups

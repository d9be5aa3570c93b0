"""Which columns enter and leave the model together, and which always stay."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from pymc_bnnvs.encode import listed

__all__ = ["Naming", "assign_groups", "fixed_open"]


class Naming:
    """How a user may name columns.

    Parameters
    ----------
    names : sequence of str
        Names of the ``C`` columns of the user's table.
    aliases : sequence
        Their labels in that table, which may be other than text.
    features : sequence of str
        Names of the ``P`` encoded columns.
    origin : (P,) ndarray of int
        The user's column that each encoded column comes from.
    """

    def __init__(
        self,
        names: Sequence[str],
        aliases: Sequence[Hashable],
        features: Sequence[str],
        origin: np.ndarray,
    ):
        self.names = list(names)
        self.features = list(features)
        self.origin = origin
        self.column = dict(zip(aliases, range(len(names)), strict=True))
        self.column.update(zip(names, range(len(names)), strict=True))
        self.feature = dict(zip(features, range(len(features)), strict=True))

    def find(self, argument: str, name: Hashable) -> int:
        """Index of the user's column of that name."""
        if name in self.column:
            return self.column[name]
        if name in self.feature:
            whole = self.names[self.origin[self.feature[name]]]
            raise ValueError(
                f"{argument} names {name!r}, one level of {whole!r}: name {whole!r}, whose "
                "columns stay together."
            )
        raise unknown_name(argument, name, self.names)

    def has_column(self, name: str) -> bool:
        """Whether a column has that name, before or after encoding."""
        return name in self.column or name in self.feature


def unknown_name(argument: str, name: Hashable, known: Sequence[str]) -> ValueError:
    """Error for a name that nothing has, with the closest one that something has."""
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return ValueError(
        f"{argument} names {name!r}, which is not known: use the names {listed(map(repr, known))}."
        f"{hint}"
    )


def assign_groups(
    naming: Naming, groups: Mapping[str, Sequence[Hashable]] | None
) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the groups, in the order of their first columns, and each feature's group."""
    groups = {} if groups is None else groups
    if not isinstance(groups, Mapping):
        raise TypeError(
            f"groups is a {type(groups).__name__}: give a dict of names to lists of columns, "
            'for example {"place": ["lat", "lon"]}.'
        )
    owner: dict[int, str] = {}
    for group, members in groups.items():
        if not isinstance(group, str):
            raise TypeError(f"groups has the name {group!r}: the name of a group must be text.")
        members = as_names(members)
        if not members:
            raise ValueError(f"groups[{group!r}] is empty: name its columns or leave it out.")
        for member in members:
            column = naming.find(f"groups[{group!r}]", member)
            if owner.setdefault(column, group) != group:
                raise ValueError(
                    f"{naming.names[column]!r} is in the groups {owner[column]!r} and {group!r}: "
                    "a column can be in one group; merge the groups or take it out of one."
                )
    for group in groups:
        own = group in naming.column and owner.get(naming.column[group]) == group
        if naming.has_column(group) and not own:
            raise ValueError(
                f"groups has the name {group!r}, which is also a column that is not in that "
                "group: rename the group or add the column to it."
            )
    owners = [owner.get(column, name) for column, name in enumerate(naming.names)]
    names = tuple(dict.fromkeys(owners))
    index = {group: g for g, group in enumerate(names)}
    return names, np.array([index[owners[column]] for column in naming.origin], dtype=np.intp)


def fixed_open(
    naming: Naming,
    groups: tuple[str, ...],
    group_of: np.ndarray,
    always_in: Hashable | Sequence[Hashable] | None,
) -> np.ndarray:
    """Mark the groups that always stay in: named as such, or by all of their columns."""
    named = np.zeros(len(naming.features), dtype=bool)
    for name in () if always_in is None else as_names(always_in):
        if isinstance(name, str) and name in groups:
            named |= group_of == groups.index(name)
        elif name in naming.column:
            named |= naming.origin == naming.column[name]
        elif name in naming.feature:
            named[naming.feature[name]] = True
        else:
            known = [*dict.fromkeys([*naming.names, *groups])]
            raise unknown_name("always_in", name, known)
    kept = np.zeros(len(groups), dtype=bool)
    for g in np.unique(group_of[named]):
        members = group_of == g
        if not named[members].all():
            inside = [naming.features[p] for p in np.flatnonzero(members & named)]
            left = [naming.features[p] for p in np.flatnonzero(members & ~named)]
            raise ValueError(
                f"always_in names {listed(map(repr, inside))} of the group {groups[g]!r}, but not "
                f"{listed(map(repr, left))}: a group stays in as a whole, so name the group "
                f"{groups[g]!r}, or take the column out of it."
            )
        kept[g] = True
    return kept


def as_names(names: Hashable | Sequence[Hashable]) -> list[Hashable]:
    """Read one name as a list of it; anything else as the names that it holds."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        return [names]
    found = list(names)
    if odd := [name for name in found if not isinstance(name, Hashable)]:
        raise TypeError(f"{listed(map(repr, odd))} is no name: give the names of columns.")
    return found

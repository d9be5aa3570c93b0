"""One wording for an option that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["check_option", "unknown_option"]


def unknown_option(argument: str, value: object, options: Iterable[str]) -> ValueError:
    """Error that names the argument, the options and the closest of them."""
    options = list(options)
    close = difflib.get_close_matches(str(value), options, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    listed = ", ".join(map(repr, options))
    return ValueError(f"{argument}={value!r} is not known: choose one of {listed}.{hint}")


def check_option(argument: str, value: str, options: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``options``, else raise."""
    options = list(options)
    if value not in options:
        raise unknown_option(argument, value, options)
    return value

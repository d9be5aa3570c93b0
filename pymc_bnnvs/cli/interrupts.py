"""Ctrl-C where it costs no draw."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["between_draws"]


@contextmanager
def between_draws() -> Iterator[Callable[..., None]]:
    """Hold back a Ctrl-C until a draw is done; the next one is not held back.

    Compiled code that is interrupted turns it into another error, and PyMC then drops its draws.
    Yields a callback for ``pm.sample``.
    """
    stopped = False

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        if stopped:
            signal.default_int_handler(number, frame)
        stopped = True

    def callback(**_: Any) -> None:
        if stopped:
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, remember)
    try:
        yield callback
    finally:
        signal.signal(signal.SIGINT, previous)

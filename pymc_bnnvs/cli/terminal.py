"""What the command says, on which stream, and its exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = [
    "ANSWER",
    "BAD_INPUT",
    "INTERRUPTED",
    "UNCONVERGED",
    "BadInput",
    "complain",
    "echo",
    "input_errors",
]

ANSWER = 0  # also that no input was selected
BAD_INPUT = 2
UNCONVERGED = 3  # an answer, from draws that have not converged
INTERRUPTED = 130


class BadInput(Exception):
    """What the user gave can't be used; the message is one line that says why."""


@contextmanager
def input_errors() -> Iterator[None]:
    """Turn what reading data and options raises into `BadInput`.

    Only around code that runs before the sampling: an error after it is a bug, and shows where.
    """
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        raise BadInput(str(error) or type(error).__name__) from error


def echo(text: str = "") -> None:
    """Write a line to the standard output."""
    write(sys.stdout, text)


def complain(text: str) -> None:
    """Write one line to the standard error."""
    write(sys.stderr, f"bnnvs: {' '.join(text.split())}")


def write(stream: TextIO, line: str) -> None:
    """Write a line, if there is still someone to read it."""
    try:
        stream.write(f"{line}\n")
        stream.flush()
    except BrokenPipeError:
        # Whoever read has gone, as head does. The run goes on: its files are still to be written.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)

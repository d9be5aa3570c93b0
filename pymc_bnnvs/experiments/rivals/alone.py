"""Call a function in an interpreter of its own."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

__all__ = ["alone"]

CALL = """
import pickle, sys
from pathlib import Path
call, answer = map(Path, sys.argv[1:])
function, given = pickle.loads(call.read_bytes())
answer.write_bytes(pickle.dumps(function(*given)))
"""


def alone(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function of a module in an interpreter that ends with it.

    For libraries that hold on to memory and processes for as long as the interpreter lives. Unlike
    those of multiprocessing, such a process may be started from a worker of a cluster, and may
    start its own.

    Raises
    ------
    RuntimeError
        If the function fails or its process dies, with the end of what it wrote to its standard
        error.
    """
    with TemporaryDirectory() as folder:
        call, answer = Path(folder, "call"), Path(folder, "answer")
        call.write_bytes(pickle.dumps((function, given)))
        ended = subprocess.run(
            [sys.executable, "-c", CALL, call, answer], capture_output=True, text=True, check=False
        )
        if ended.returncode:
            told = ended.stderr.strip()[-2000:]
            raise RuntimeError(f"{function.__name__} ended with code {ended.returncode}: {told}")
        return pickle.loads(answer.read_bytes())

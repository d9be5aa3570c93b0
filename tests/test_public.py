"""The public names: there, documented, and cheap to reach."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import pymc_bnnvs as bvs

CALLABLES = [
    "build_model",
    "gradient_importance",
    "importance",
    "plot_importance",
    "relu_network",
    "select",
]


@pytest.mark.parametrize("name", CALLABLES)
def test_public_functions_are_documented(name):
    function = getattr(bvs, name)
    assert callable(function)
    for section in ("Parameters", "Returns", "Raises", "Examples"):
        assert f"{section}\n---" in inspect.getdoc(function)


def test_dir_lists_what_is_public():
    assert set(bvs.__all__) <= set(dir(bvs))
    with pytest.raises(AttributeError, match="no attribute 'imporance'"):
        _ = bvs.imporance


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_importing_the_package_and_the_command_loads_nothing_heavy():
    code = "import sys, pymc_bnnvs.cli; print({'pymc', 'arviz', 'pandas'} & set(sys.modules))"
    assert run(code) == "set()"


def test_a_submodule_does_not_hide_a_function():
    code = "import pymc_bnnvs as b, pymc_bnnvs.plots; print(all(map(callable, [{}])))"
    names = ", ".join(f"b.{name}" for name in CALLABLES)
    assert run(code.replace("{}", names)) == "True"

"""Every notebook runs from top to bottom, and is stored as such a run left it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TIMEOUT = 1200  # seconds a cell
MAX_BYTES = 500_000
ANSI = re.compile(r"\x1b\[[0-9;]*m")

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(notebook: nbformat.NotebookNode) -> list[tuple[int, nbformat.NotebookNode]]:
    """Code cells with their numbers in the notebook, counting from 1."""
    return [
        (number, cell)
        for number, cell in enumerate(notebook.cells, start=1)
        if cell.cell_type == "code" and cell.source.strip()
    ]


def printed(cell: nbformat.NotebookNode) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


def check_no_warning(path: Path, notebook: nbformat.NotebookNode) -> None:
    for number, cell in code_cells(notebook):
        assert "Warning" not in printed(cell), f"{path.name}, cell {number}:\n{printed(cell)}"


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a copy of a notebook in a folder; a failure names the cell."""
    notebook = read(path)
    for _, cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    started = [0]
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        on_cell_execute=lambda cell, cell_index: started.append(cell_index + 1),
    )
    # This checkout, and nothing of the user's own: no start-up files, no backend for figures.
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "IPYTHONDIR": str(folder)}
    env.pop("MPLBACKEND", None)
    try:
        client.execute(env=env)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        source = notebook.cells[started[-1] - 1].source
        pytest.fail(
            f"{path.name}, cell {started[-1]} of {len(notebook.cells)}:\n\n{source}\n\n"
            f"{type(error).__name__}: {ANSI.sub('', str(error))}",
            pytrace=False,
        )
    return notebook


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.slow
@every_notebook
def test_runs_from_top_to_bottom(path, tmp_path):
    notebook = run(path, tmp_path)
    assert [cell.execution_count for _, cell in code_cells(notebook)] == list(
        range(1, len(code_cells(notebook)) + 1)
    )
    check_no_warning(path, notebook)


@every_notebook
def test_is_stored_as_one_run_left_it(path):
    notebook = read(path)
    nbformat.validate(notebook)
    cells = code_cells(notebook)
    counts = [cell.execution_count for _, cell in cells]
    assert counts == list(range(1, len(cells) + 1)), "run it: make notebook SAVE=1"
    for number, cell in cells:
        kinds = [output.output_type for output in cell.outputs]
        assert "error" not in kinds, f"{path.name}, cell {number} holds an error"
    check_no_warning(path, notebook)
    assert path.stat().st_size < MAX_BYTES


@every_notebook
def test_follows_the_conventions(path):
    notebook = read(path)
    source = "\n".join(cell.source for _, cell in code_cells(notebook))
    assert re.search(r"^RANDOM_SEED = \d+$", source, flags=re.MULTILINE)
    assert '["converged"].all()' in source
    assert "%watermark" in notebook.cells[-1].source
    assert 20 <= len(notebook.cells) <= 30
    samplers = r"pm\.sample(?:_prior_predictive|_posterior_predictive)?\((.*?)\n(?=\S|    \S|\Z)"
    for call in re.findall(samplers, source, flags=re.DOTALL):
        assert "random_seed=RANDOM_SEED" in call, call


def test_a_failure_names_the_cell(tmp_path):
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("# Words"),
            nbformat.v4.new_code_cell("x = 1"),
            nbformat.v4.new_code_cell("raise ValueError('no penguins')"),
            nbformat.v4.new_code_cell("x"),
        ]
    )
    path = tmp_path / "broken.ipynb"
    nbformat.write(notebook, path)
    with pytest.raises(pytest.fail.Exception, match=r"broken\.ipynb, cell 3 of 4") as failure:
        run(path, tmp_path)
    assert "ValueError: no penguins" in failure.value.msg
    assert "\x1b" not in failure.value.msg

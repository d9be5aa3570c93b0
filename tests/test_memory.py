"""The measurement of memory: one tiny fit, and none where the file has it."""

from __future__ import annotations

import pandas as pd
import pytest

from pymc_bnnvs.cli import main
from pymc_bnnvs.experiments import memory


@pytest.mark.slow
def test_a_fit_is_measured_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tokens = "benchmark memory --n 30 --features 5 --draws 20 --chains 2 --results memory.csv"
    assert main(tokens.split()) == 0
    row = pd.read_csv("memory.csv").iloc[0]
    assert 0 < row["gb_sampled"] <= row["gb_selected"] <= row["gb_written"] < 10
    assert row["mb_file"] > 0
    assert row["true_selected"] + row["false_selected"] <= 5
    # The draws of the measurement are gone.
    assert [file.name for file in tmp_path.iterdir()] == ["memory.csv"]
    monkeypatch.setattr(memory, "fit", None)
    assert main(tokens.split()) == 0
    assert "gb_written" in capsys.readouterr().out

"""The comparison of widths: paired differences by hand, and one tiny run."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pymc_bnnvs.cli.benchmark.width_command import widths as command
from pymc_bnnvs.cli.terminal import BadInput
from pymc_bnnvs.experiments import widths


def test_differences_are_paired():
    rows = pd.DataFrame(
        [
            dict(design="neural", n=250, n_features=25, units=units, seed=seed)
            | dict(mse_f=seed * units, mse_psi=0.1, f1=0.5 + units / 100, false=0)
            | dict(steps=8.0 * units, ess_bulk=400.0, seconds=1.0)
            for units in (10, 20)
            for seed in (1, 2, 3)
        ]
    )
    paired = widths.compare(rows.sample(frac=1, random_state=1), 20).iloc[0]
    assert paired["units"] == 10
    assert paired["data_sets"] == 3
    # The data sets differ, their ratios do not.
    assert paired["log_mse_f"] == pytest.approx(-np.log(2))
    assert paired["log_mse_f_se"] == pytest.approx(0, abs=1e-12)
    assert paired["f1"] == pytest.approx(-0.1)
    assert widths.summarise(rows)["mse_f"].tolist() == [20.0, 40.0]


def test_an_equation_brings_its_inputs():
    assert widths.n_inputs("neural", 25) == 25
    assert widths.n_inputs("I.15.3x, SNR 5", 25) == 204


def test_a_function_without_slopes_has_no_error_of_psi(tmp_path):
    rows = widths.run(
        tmp_path / "widths.csv",
        designs=("matern", "linear"),
        units=(2,),
        sizes=((40, 6),),
        repetitions=1,
        draws=50,
        chains=2,
    ).set_index("design")
    assert np.isfinite(rows["mse_f"]).all()
    assert rows["mse_psi"].isna().tolist() == [True, False]
    assert (rows["steps"] > 0).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"design": ("cubic",)}, ["design", "cubic"]),
        ({"design": ("I.1.1, SNR 5",)}, ["design", "I.1.1"]),
        ({"n": (250, 500, 1000)}, ["--n", "3", "2"]),
    ],
)
def test_command_line_that_makes_no_sense(options, words, tmp_path):
    with pytest.raises(BadInput) as told:
        command(results=tmp_path / "widths.csv", **options)
    assert all(word in str(told.value) for word in words)

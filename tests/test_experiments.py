"""The experiments: designs whose truth is right, and a grid that loses nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pymc_bnnvs.experiments import selection_check
from pymc_bnnvs.experiments.designs import neural, pure_noise


def test_true_psi_is_that_of_the_function():
    """f is piecewise linear: psi by least squares of f on the inputs of one region."""
    data = neural(20_000, 2, 5, n_true=1, units=1)
    x, f = data.X[:, 0], data.f
    order = np.argsort(x)
    slope = np.diff(f[order]) / np.diff(x[order])
    assert data.psi[0] == pytest.approx(np.mean(slope**2), rel=0.01)


def test_pure_noise_has_no_truth():
    data = pure_noise(50, 4, 1)
    assert not data.truth.any()
    assert data.f.std() == 0


def fake_fit(settings, seed):
    """Rows of a fit whose answer is known: the first input in, the rest out."""
    p = settings["n_features"]
    truth = np.array([1.0] + [0.0] * (p - 1))
    return pd.DataFrame(
        {
            **settings,
            "seed": seed,
            "feature": [f"x{i}" for i in range(p)],
            "truth": truth,
            "psi": truth + 0.5,
            "sd": 0.1,
            "lower": truth - (0.1 if seed % 2 else -0.1),
            "upper": truth + 1.0,
            "band_lower": 0.0,
            "band_upper": 2.0,
            "away": truth > 0,
            "gradient_variance": 0.25,
            "inclusion": np.where(truth > 0, 1.0, 0.01),
            "r_hat": 1.0,
            "ess_bulk": 1000.0,
            "converged": True,
            "mse_f": 0.1,
            "steps": 100.0,
            "divergences": 0,
            "seconds": 1.0,
            "machine": "m",
            "versions": "v",
        }
    )


@pytest.fixture
def fits(monkeypatch):
    done = []

    def fit(settings, seed):
        done.append(seed)
        return fake_fit(settings, seed)

    monkeypatch.setattr(selection_check, "fit", fit)
    return done


def test_a_second_start_does_only_what_is_missing(fits, tmp_path):
    path = tmp_path / "deep" / "results.csv"
    selection_check.run(path, n_features=3, seeds=(1, 2))
    rows = selection_check.run(path, n_features=3, seeds=(1, 2, 3))
    assert fits == [1, 2, 3]
    assert len(rows) == 9
    other = selection_check.run(path, n_features=3, seeds=(1,), prior="ard")
    assert fits == [1, 2, 3, 1]
    assert len(other) == 3
    assert len(pd.read_csv(path)) == 12
    assert [file.name for file in path.parent.iterdir()] == ["results.csv"]


def test_a_crash_keeps_what_is_done(fits, tmp_path, monkeypatch):
    path = tmp_path / "results.csv"

    def crash(settings, seed):
        if seed == 2:
            raise KeyboardInterrupt
        return fake_fit(settings, seed)

    monkeypatch.setattr(selection_check, "fit", crash)
    with pytest.raises(KeyboardInterrupt):
        selection_check.run(path, n_features=3, seeds=(1, 2, 3))
    assert set(pd.read_csv(path)["seed"]) == {1}


def test_summary_and_its_errors(fits, tmp_path):
    rows = selection_check.run(tmp_path / "r.csv", n_features=3, seeds=(1, 2, 3, 4))
    table = selection_check.summarise(rows)
    assert table.loc["interval: F1", "value"] == 1.0
    assert table.loc["median: false selections", "value"] == 0.0
    covered = table.loc["coverage of true inputs, pointwise 95 %"]
    assert covered["value"] == 0.5
    assert covered["se"] == pytest.approx(np.sqrt(1 / 3) / 2)


def test_differences_to_another_version_are_paired(fits, tmp_path):
    rows = selection_check.run(tmp_path / "r.csv", n_features=3, seeds=(1, 2, 3))
    others = rows[rows["seed"] < 3].assign(steps=lambda own: 10.0 * own["seed"])
    unlike = others.assign(draws=1, steps=0.0)
    table = selection_check.compare(rows, pd.concat([others, unlike]))
    assert table.loc["leapfrog steps a draw", "value"] == pytest.approx(85.0)
    assert table.loc["leapfrog steps a draw", "se"] == pytest.approx(5.0)
    assert table.loc["interval: F1", "value"] == 0.0


def test_shortfalls_are_listed(fits, tmp_path):
    rows = selection_check.run(tmp_path / "r.csv", n_features=3, seeds=(1, 2))
    rows.loc[0, "away"] = False
    rows.loc[1, ["inclusion", "converged"]] = [0.3, False]
    rows.loc[2, "converged"] = False  # hardly ever in: no matter
    found = selection_check.shortfalls(rows).set_index(["seed", "feature"])
    assert list(found.index) == [(1, "x0"), (1, "x1"), (2, "x0")]
    assert list(found["missed"]) == [True, False, False]
    assert list(found["unconverged"]) == [False, True, False]
    assert list(found["uncovered"]) == [False, False, True]
    assert found.loc[(1, "x0"), "share"] == 1.0


def test_centring_table(fits, tmp_path):
    rows = selection_check.run(tmp_path / "r.csv", n_features=3, seeds=(1, 2))
    rows["inclusion"] = np.nan
    table = selection_check.centering_table(rows, factors=(0.0, 2.0))
    # Every mean is 0.5 too high, twice v: nothing is left at two.
    assert table.loc[("gated", 0.0), "bias"] == pytest.approx(2.0)
    assert table.loc[("gated", 2.0), "bias"] == pytest.approx(0.0)


def test_unknown_design_is_named(tmp_path):
    with pytest.raises(ValueError, match="Did you mean 'neural'"):
        selection_check.run(tmp_path / "r.csv", design="neurl")

"""The convergence benchmarks: their data, their verdicts and their resume; nothing samples."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pymc_bnnvs.experiments import convergence_check
from pymc_bnnvs.experiments.convergence_page import convergence_page
from pymc_bnnvs.experiments.equations import COPIES, EQUATIONS, feynman


def test_an_equation_has_its_inputs_first_and_its_gradient():
    data = feynman("II.27.18", 300, 5.0, 1)
    assert data.X.shape == (300, 2 * (COPIES + 1))
    epsilon, field = data.X[:, 0], data.X[:, 1]
    np.testing.assert_allclose(data.f, epsilon * field**2)
    expected = [np.mean(field**4), np.mean((2 * epsilon * field) ** 2)]
    np.testing.assert_allclose(data.psi[:2], expected, rtol=1e-6)
    assert (data.psi[2:] == 0).all()


@pytest.mark.parametrize("equation", EQUATIONS)
def test_equations_are_finite_and_keep_to_their_ranges(equation):
    data = feynman(equation, 2000, 1.0, 2)
    ranges = np.array(list(EQUATIONS[equation].ranges.values()), dtype=float)
    inputs = len(ranges)
    own = np.concatenate([np.arange(inputs), np.repeat(np.arange(inputs), COPIES)])
    assert (data.X >= ranges[own, 0]).all() and (data.X <= ranges[own, 1]).all()
    assert np.isfinite(data.y).all()
    assert (data.psi[:inputs] > 0).all()
    assert not (data.psi[inputs:] > 0).any()


def test_the_noise_has_the_stated_ratio():
    data = feynman("I.24.6", 20_000, 4.0, 3)
    ratio = np.var(data.f) / np.var(data.y - data.f)
    # Both variances are of 20,000 rows.
    assert ratio == pytest.approx(4.0, rel=0.1)


def rows_of(r_hat, ess_bulk, *, inclusion=(1.0, 0.05), early=(2.0, 10.0), seed=1, **changes):
    """Two inputs of one fit: the first matters, the second hardly ever comes in."""
    rows = {
        "design": "neural",
        "variant": "default",
        "n": 250,
        "n_features": 2,
        "draws": 1000,
        "chains": 4,
        "seed": seed,
        "feature": ["a", "b"],
        "truth": [1.0, 0.0],
        "inclusion": inclusion,
        "inclusion_low": inclusion,
        "inclusion_high": inclusion,
        "away": [True, False],
        "psi": [2.0, 0.1],
        "r_hat": r_hat,
        "ess_bulk": ess_bulk,
        "r_hat_500": early[0],
        "ess_bulk_500": early[1],
        "steps": 100.0,
        "divergences": 0,
        "seconds_sampling": 1.0,
    }
    return pd.DataFrame(rows | changes)


def test_only_inputs_that_may_be_in_are_judged():
    verdict = convergence_check.by_fit(rows_of([1.0, 1.5], [800.0, 5.0])).iloc[0]
    assert verdict["converged"] and verdict["converged_at"] == 1000
    assert verdict["ess_bulk"] == 800
    assert verdict["per_gradient"] == pytest.approx(800 / 400_000)
    verdict = convergence_check.by_fit(rows_of([1.0, 1.5], [800.0, 5.0], inclusion=[1.0, 0.2]))
    assert not verdict["converged"].iloc[0]
    assert np.isnan(verdict["converged_at"].iloc[0])


def test_the_smallest_number_of_draws_is_reported():
    fits = convergence_check.by_fit(
        pd.concat(
            [
                rows_of([1.0, 1.0], [800.0, 800.0], early=(1.005, 450.0)),
                rows_of([1.0, 1.0], [800.0, 800.0], early=(1.02, 450.0), seed=2),
                rows_of([1.0, 1.0], [300.0, 800.0], seed=3),
            ]
        )
    )
    assert list(fits["converged_at"].fillna(-1)) == [500, 1000, -1]
    cell = convergence_check.by_cell(fits).iloc[0]
    assert (cell["fits"], cell["by 500"], cell["by 1000"]) == (3, 1, 2)


def test_chains_disagree_when_one_of_them_never_finds_an_input():
    rows = rows_of(
        [1.3, 1.0],
        [9.0, 800.0],
        inclusion=[0.5, 0.05],
        inclusion_low=[0.0, 0.0],
        inclusion_high=[1.0, 0.1],
    )
    assert not convergence_check.by_fit(rows)["agree"].iloc[0]


def test_variants_are_compared_by_what_a_step_buys():
    fits = convergence_check.by_fit(
        pd.concat(
            [
                rows_of([1.0, 1.0], [400.0, 400.0]),
                rows_of([1.0, 1.0], [800.0, 400.0], seed=2),
                rows_of([1.0, 1.0], [400.0, 400.0], variant="10 units", steps=50.0, psi=[3.0, 0.0]),
            ]
        )
    )
    table = convergence_check.by_variant(fits).loc["neural"]
    assert table.loc["default", "least"] == pytest.approx(1500)
    assert table.loc["default", "least_se"] == pytest.approx(500)
    assert table.loc["10 units", "least"] == pytest.approx(2000)
    assert table.loc["default", "least_a_minute"] == pytest.approx(60 * 600)
    assert list(table["psi_ratio"]) == [1.0, 1.5]


def test_a_second_start_does_only_what_is_missing(tmp_path, monkeypatch):
    done = []

    def fit(settings, seed):
        done.append(seed)
        return rows_of([1.0, 1.0], [800.0, 800.0], seed=seed, **settings)

    monkeypatch.setattr(convergence_check, "fit", fit)
    path = tmp_path / "results.csv"
    options = dict(n=250, n_features=2, draws=1000)
    convergence_check.run(path, seeds=(1, 2), **options)
    rows = convergence_check.run(path, seeds=(1, 2, 3), **options)
    assert done == [1, 2, 3]
    assert sorted(rows["seed"].unique()) == [1, 2, 3]
    assert not list(tmp_path.glob("*.tmp"))


def test_bad_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match="Did you mean 'default'"):
        convergence_check.run(tmp_path / "r.csv", variant="defualt")
    with pytest.raises(ValueError, match=r"equation='I\.99' is not known"):
        convergence_check.data_set("I.99, SNR 5", 100, 5, 1)
    with pytest.raises(ValueError, match="design='neurl' is not known"):
        convergence_check.data_set("neurl", 100, 5, 1)


def test_page_has_every_size_and_every_fit():
    rows = pd.concat(
        [
            rows_of([1.0, 1.5], [800.0, 5.0]),
            rows_of([1.0, 1.02], [300.0, 800.0], inclusion=(1.0, 0.2), seed=2),
            rows_of([1.0, 1.0], [9999.0, 800.0], variant="gate moves", away=[False, True]),
        ]
    ).assign(versions="pymc 6", machine="2 cores")
    text = convergence_page(rows, "some command")
    assert "`some command`" in text and "pymc 6; 2 cores." in text
    assert "## Default, 4 chains of 1,000 draws\n\n1 of 2 fits hold the target." in text
    assert "| neural | 250 | 2 | 2 | 0 | 1 | 2 | 1.020 | 300 | 1.00 | 100 | 0.0 | 1 |" in text
    assert "| neural | 250 | 2 | 1 | 1 of 1 |  | 0 | 1.000 | 800 | 0 of 1 | yes |" in text
    assert "| neural | 250 | 2 | 2 | 1 of 1 |  | 0 | 1.020 | 300 | 2 of 2 | yes |" in text
    # A true input that is left out, and a null one that is kept.
    assert "| neural | 250 | 2 | 1 | 0 of 1 | 1.00 | 1 | 1.000 | 9,999 | 0 of 1 | yes |" in text
    for block in text.split("\n\n"):
        assert len({line.count("|") for line in block.splitlines()}) == 1

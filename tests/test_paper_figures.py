"""The paper's figures: errors, limits and coverage by hand, and the pictures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from pymc_bnnvs.cli import main
from pymc_bnnvs.experiments import bvm, learning, networks
from pymc_bnnvs.experiments.designs import simulate
from pymc_bnnvs.experiments.figure_pages import bvm_page, learning_page
from pymc_bnnvs.experiments.fits import standardised_error
from pymc_bnnvs.experiments.networks import Recipe, function_at, sample_network
from pymc_bnnvs.experiments.paper_pictures import draw_learning, draw_uncertainty


@pytest.fixture
def tiny(monkeypatch):
    """Networks that take a second."""
    few = {"draws": 60, "tune": 60, "chains": 2}
    monkeypatch.setitem(networks.NETWORKS, "default", Recipe({"hidden": (3,)}, few))
    paper = Recipe({**networks.PAPER, "hidden": (3,)}, few)
    monkeypatch.setitem(networks.NETWORKS, "paper", paper)


def test_standardised_error():
    truth = np.array([1.0, 3.0])
    assert standardised_error(truth, truth) == 0
    # The mean alone has an R squared of 0.
    assert standardised_error(np.full(2, 2.0), truth) == 1


def test_rates_of_errors_that_fall_by_a_power():
    rows = pd.DataFrame(
        [
            dict(design="neural", network="default", n_features=25, n=n, seed=seed)
            | dict(mse_f=3.0 / n, mse_psi=(1 + seed) / n**1.5)
            for n in (100, 200, 400)
            for seed in range(3)
        ]
    )
    powers = learning.rates(rows).iloc[0]
    assert powers["rate_f"] == pytest.approx(-1.0)
    assert powers["rate_psi"] == pytest.approx(-1.5)
    assert powers["difference_se"] == pytest.approx(0.0, abs=1e-9)
    assert learning.rates(rows[rows["n"] == 100]).empty


def test_limit_of_a_network_that_knows_its_inputs():
    """More to learn, more spread; nothing is known of the spread where all is 0."""
    data = simulate("neural", 400, 8, 3)
    sigma = bvm.limits(data)
    assert (sigma["sigma_oracle"][:5] > 0).all()
    assert (sigma["sigma_oracle"][5:] == 0).all()
    assert (sigma["sigma_bvm"][:5] >= sigma["sigma_oracle"][:5] * (1 - 1e-9)).all()
    np.testing.assert_allclose(sigma["sigma_bvm"][5:], 0.0, atol=1e-8)
    assert np.isnan(bvm.limits(simulate("neural", 60, 8, 3))["sigma_bvm"]).all()


def test_layers_are_the_surface():
    for positions in (False, True):
        data = simulate("neural", 50, 9, 4, random_positions=positions)
        (W, b), (beta, level) = data.surface.layers
        np.testing.assert_allclose(np.maximum(data.X @ W + b, 0) @ beta + level, data.f)


def fake_bvm_rows():
    return pd.DataFrame(
        [
            dict(network="paper", centering="trace", n=n, n_features=3, seed=seed)
            | dict(truth=float(p > 0) * p, sigma_bvm=float(p), sigma_oracle=float(p), sd=p + 0.5)
            | dict(cvm=0.001, ess_shape=50.0, covered=p != 2, in_band=True)
            | dict(r_hat=1.0 + 0.02 * (seed == 0), steps=63, seconds=2.0)
            | dict(versions="pymc 6", machine="2 cores")
            for n in (100, 1000)
            for seed in range(3)
            for p in range(3)
        ]
    )


def test_spread_and_coverage_by_hand():
    table = bvm.summarise(fake_bvm_rows()).set_index(["n", "inputs"])
    true = table.loc[(100, "true")]
    assert true["repetitions"] == 3
    assert true["mse_sd"] == pytest.approx(0.25 / np.var([1.0, 2.0]))
    assert true["covered"] == 0.5
    assert true["cvm"] == pytest.approx(0.05)
    assert table.loc[(100, "null"), "covered"] == 1
    assert np.isnan(table.loc[(100, "null"), "mse_sd"])


def test_coverage_by_strength_by_hand():
    """Of four data sets with one, one, one and three inputs all but the last's are covered."""
    rows = pd.DataFrame(
        [
            dict(network="paper", centering="trace", n=100, n_features=5, seed=seed, truth=truth)
            | dict(covered=seed < 3)
            for seed, inputs in enumerate((1, 1, 1, 3))
            for truth in [*[0.0] * 3, *[4.0] * inputs, *[1.0] * (seed == 0)]
        ]
    )
    found = bvm.coverage_by_strength(rows).set_index("psi")
    assert list(found.index) == ["1 to 4", "4 to 16"]
    assert found.loc["1 to 4", "inputs"] == 1
    assert np.isnan(found.loc["1 to 4", "covered_se"])
    assert found.loc["4 to 16", "covered"] == 0.5
    # A ratio's error: deviations 1 - 0.5, three times, and 0 - 1.5, over six inputs.
    expected = np.sqrt(4 / 3 * (3 * 0.5**2 + 1.5**2)) / 6
    assert found.loc["4 to 16", "covered_se"] == pytest.approx(expected)
    # The ranges stay in order where the network that comes first lacks the lowest.
    other = rows[rows["truth"] == 4].assign(network="default")
    ranges = bvm.coverage_by_strength(pd.concat([rows, other]))["psi"].unique()
    assert list(ranges) == ["1 to 4", "4 to 16"]


def fake_learning_rows():
    return pd.DataFrame(
        [
            dict(design=design, network="default", n=n, n_features=25, seed=seed, r_hat=1.0)
            | dict(seconds=1.0, steps=63, mse_f=1 / n, mse_psi=2 / n, mse_psi_law=3 / n)
            | dict(versions="pymc 6", machine="2 cores")
            for design in ("linear", "neural")
            for n in (100, 200)
            for seed in range(2)
        ]
    )


def test_pages():
    page = learning_page(fake_learning_rows(), "some command")
    assert "Made by `some command`" in page
    assert "## neural" in page
    assert "| 25 | default | 2 | psi | 0.02 ± 0 | 0.01 ± 0 |" in page
    assert "| linear | default | 25 | 2 | -1.00 ± 0.00 | -1.00 ± 0.00 | 0.00 ± 0.00 |" in page
    assert "| default | 25 | 8 of 8 | 1.000 | 63 | 1 |" in page
    page = bvm_page(fake_bvm_rows(), "some command")
    true, null = page.split("## Null inputs")
    assert "| paper | trace | 3 | 100 | 3 | 1 ± 0 | 1 ± 0 | 0.05 | 0.50 ± 0.00 |" in true
    assert "| paper | trace | 3 | 1000 | 3 | 1.00 ± 0.00 | 1.00 ± 0.00 |" in null
    assert "| network | centring | psi 1 to 4 |" in null
    assert "| paper | trace | 0.50 ± 0.00 of 12 |" in null
    assert "| paper | 3 | 4 of 6 | 1.000 | 63 | 2 |" in null


def test_distance_from_normal_counts_the_draws_that_it_is_worth():
    rng = np.random.default_rng(1)
    free = rng.normal(size=(4, 1000, 20))
    # Runs of ten equal draws: a tenth of the number.
    runs = np.repeat(rng.normal(size=(4, 100, 20)), 10, axis=1)
    levels = bvm.null_quantiles((0.05, 0.95))
    for draws, worth in ((free, 4000), (runs, 400)):
        found = bvm.distance_from_normal(xr.DataArray(draws, dims=("chain", "draw", "feature")))
        assert np.median(found["ess_shape"]) == pytest.approx(worth, rel=0.2)
        scaled = found["cvm"] * found["ess_shape"]
        assert ((levels[0] < scaled) & (scaled < levels[1])).mean() >= 0.75
    constant = bvm.distance_from_normal(
        xr.DataArray(np.zeros((2, 50, 1)), dims=("chain", "draw", "feature"))
    )
    assert np.isnan([*constant["cvm"], *constant["ess_shape"]]).all()


def test_pictures():
    figure = draw_uncertainty(bvm.summarise(fake_bvm_rows()))
    assert [axis.get_xscale() for axis in figure.axes] == ["log"] * 4
    figure = draw_learning(learning.summarise(fake_learning_rows()))
    assert len(figure.axes) == 4
    assert figure.axes[0].get_title() == "linear"


@pytest.mark.slow
@pytest.mark.parametrize("network", ["default", "paper"])
def test_function_at_new_rows(tiny, network):
    data = simulate("linear", 40, 6, 1)
    idata = sample_network(network, data.X, data.y, np.random.default_rng(1))
    at_the_rows = idata["posterior"]["f"].mean(("chain", "draw")).values
    np.testing.assert_allclose(function_at(idata, data.X), at_the_rows, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_fits(tiny, tmp_path):
    sizes = [(60, 6)]
    rows = learning.run(
        tmp_path / "l.csv", designs=("linear",), networks=("default",), sizes=sizes, repetitions=1
    )
    assert len(rows) == 1
    assert (rows[["mse_f", "mse_psi", "mse_psi_law"]] > 0).all(axis=None)
    rows = bvm.run(tmp_path / "b.csv", sizes=sizes, repetitions=1)
    assert sorted(rows.groupby(["network", "centering"]).size().items()) == [
        (("default", "none"), 6),
        (("paper", "posterior"), 6),
        (("paper", "trace"), 6),
    ]
    assert set(rows["covered"].unique()) <= {True, False}


def test_a_part_of_the_grid_redraws_all_of_it(tmp_path, monkeypatch):
    drawn = []

    def draw(table):
        drawn.append(table)
        return draw_learning(table)

    monkeypatch.setattr("pymc_bnnvs.experiments.paper_pictures.draw_learning", draw)
    results, picture = tmp_path / "l.csv", tmp_path / "l.png"
    fake_learning_rows().to_csv(results, index=False)
    part = ["--n", "100", "--features", "25", "--designs", "linear", "--networks", "default"]
    part += ["--first-seed", "0", "--repetitions", "2"]
    files = ["--results", str(results), "--picture", str(picture)]
    assert main(["reproduce", "learning", *part, *files]) == 0
    assert len(drawn[0]) == 4
    assert picture.exists()

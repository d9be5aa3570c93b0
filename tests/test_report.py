"""The table, the decision in words and the files, from made-up summaries: nothing is sampled."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from rich.cells import cell_len

from pymc_bnnvs.report import (
    convergence_line,
    decision_line,
    direction,
    legend,
    replacing,
    shorten,
    summary_table,
    three_digits,
    tidy,
    wrap,
)

REASON = "the largest set that is all in with posterior probability at least 0.95."


def make_summary(names, *, selected=(), dim="feature", exact_zeros=True, unconverged=(), **attrs):
    """Build a summary like that of `select`, with hostile sizes of numbers."""
    n = len(names)
    rng = np.random.default_rng(3)
    psi = 10.0 ** rng.uniform(-9, 9, n)
    chosen = np.isin(names, list(selected))
    columns = {
        "psi": psi,
        "sd": psi / 3,
        "band_lower": -psi / 7,
        "band_upper": psi * 3,
        "share": np.full(n, 1 / n) if n else np.zeros(0),
        "r_hat": np.full(n, 1.0021),
        "ess_bulk": np.full(n, 812.4),
        "converged": ~np.isin(names, list(unconverged)),
        "selected": chosen,
    }
    if exact_zeros:
        columns["inclusion"] = np.where(chosen, 0.9996, 0.12345)
    if dim == "feature":
        columns["mean_gradient"] = np.full(n, -2.0)
        columns["mean_gradient_sd"] = np.full(n, 0.5)
    reason = REASON if chosen.any() else f"No input was selected: {REASON}"
    base = {"alpha": 0.05, "rule": "interval", "reason": reason, "n_chains": 4, "n_draws": 1000}
    return xr.Dataset(
        {name: (dim, values) for name, values in columns.items()},
        coords={dim: list(names)},
        attrs={**base, **attrs},
    )


HOSTILE = [
    "a",
    "expression of the gene ENSG00000141510 in peripheral blood, baseline visit",
    "expression of the gene ENSG00000141510 in peripheral blood, second visit",
    "Körpergröße[größer als der Median der Stichprobe]",
    "収縮期血圧の二十四時間平均値収縮期血圧の二十四時間平均値",
    "line\nbreak\tand tab",
    "[bold]markup[/bold]",
]


@pytest.mark.parametrize("exact_zeros", [True, False])
@pytest.mark.parametrize("dim", ["feature", "group"])
@pytest.mark.parametrize("unconverged", [(), ("a",)])
def test_table_fits_80_columns(exact_zeros, dim, unconverged):
    summary = make_summary(
        HOSTILE, selected=["a"], dim=dim, exact_zeros=exact_zeros, unconverged=unconverged
    )
    lines = summary_table(summary).split("\n")
    assert len(lines) == 2 + len(HOSTILE)
    assert max(map(cell_len, lines)) <= 80
    assert "\x1b" not in "".join(lines)
    assert ("P(in)" in lines[0]) == exact_zeros
    assert ("sign" in lines[0]) == (dim == "feature")
    assert any(line.endswith("!") for line in lines) == bool(unconverged)


def test_all_columns_line_up():
    lines = summary_table(make_summary([*HOSTILE[:2], "b"], unconverged=["b"])).split("\n")
    end = lines[0].index("R-hat") + len("R-hat")
    assert [line[end - 5 : end] for line in lines[2:]] == ["1.002"] * 3


def test_long_names_keep_both_ends():
    first, second = HOSTILE[1:3]
    table = summary_table(make_summary([first, second]), width=100)
    starts = [line.split("  ")[0] for line in table.split("\n")[2:]]
    assert all(name.startswith("expression") and "…" in name for name in starts)
    assert starts[0].endswith("visit") and starts[0] != starts[1]


def test_short_names_are_not_padded_to_the_width():
    assert max(map(len, summary_table(make_summary(["a", "b"])).split("\n"))) < 75


def test_selected_first_then_by_share():
    summary = make_summary(list("abcd"), selected=["b", "d"])
    summary["share"] = ("feature", [0.6, 0.1, 0.1, 0.2])
    assert list(tidy(summary)["feature"]) == ["d", "b", "a", "c"]
    rows = summary_table(summary).split("\n")[2:]
    assert [row.split()[0] for row in rows] == ["d", "b", "a", "c"]
    assert [row.split()[1] == "yes" for row in rows] == [True, True, False, False]


def test_tidy_keeps_all_digits_and_the_order_without_share():
    summary = make_summary(list("abc")).drop_vars("share")
    rows = tidy(summary)
    assert (np.diff(rows["psi"]) <= 0).all()
    assert set(rows["psi"]) == set(summary["psi"].values)
    assert "share %" not in summary_table(summary)


def test_more_than_top_rows_are_counted():
    summary = make_summary([f"x{j}" for j in range(42)], selected=["x41"])
    lines = summary_table(summary).split("\n")
    assert len(lines) == 2 + 30 + 1
    assert lines[2].startswith("x41")
    assert lines[-1] == "... and 12 more in importance.csv"
    assert summary_table(summary, top=1, rest="").split("\n")[-1] == "... and 41 more"
    assert "more" not in summary_table(summary, top=42)
    assert summary_table(summary, top=0).split("\n")[-1] == "... and 42 more in importance.csv"


def test_level_of_the_band_is_in_the_header():
    assert "low 90%" in summary_table(make_summary(["a"], alpha=0.1)).split("\n")[0]
    assert "a 90 % band" in legend(make_summary(["a"], alpha=0.1))


def test_legend_explains_only_what_is_there():
    full = legend(make_summary(["a"], unconverged=["a"]))
    assert "P(in)" in full and "sign" in full and "not converged" in full
    bare = legend(make_summary(["a"], dim="group", exact_zeros=False).drop_vars("share"))
    assert not any(word in bare for word in ("P(in)", "sign", "share", "!"))


def test_decision_in_words():
    summary = make_summary(["age", "bmi", "bp"], selected=["bmi", "bp"])
    summary["share"] = ("feature", [0.0, 0.3, 0.7])
    assert decision_line(summary) == (f"2 of 3 inputs selected: bp, bmi. Rule 'interval': {REASON}")


def test_empty_decision_says_why():
    assert decision_line(make_summary(["age"])) == (
        f"None of 1 input selected. Rule 'interval': {REASON}"
    )


def test_long_decision_counts_the_rest():
    names = [f"x{j}" for j in range(20)]
    line = decision_line(make_summary(names, selected=names))
    assert line.startswith("20 of 20 inputs selected: x0, ")
    assert "x11 and 8 more." in line


def test_convergence_in_words():
    summary = make_summary(list("abc"), selected=["a"])
    assert convergence_line(summary) == (
        "Converged: R-hat of psi at most 1.002, effective sample size at least 812 "
        "(4 chains of 1000 draws)."
    )
    # An input that is out has converged whatever its R-hat.
    summary["r_hat"] = ("feature", [1.0, 2.0, np.nan])
    summary["inclusion"] = ("feature", [1.0, 0.01, 0.0])
    assert "at most 1.000" in convergence_line(summary)
    summary["inclusion"] = ("feature", [0.0, 0.01, 0.0])
    assert "no input in often enough" in convergence_line(summary)
    assert "can't be had" in convergence_line(make_summary(["a"], n_chains=1))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (np.nan, "-"),
        (1.0, "1.00"),
        (123.4, "123"),
        (1234.0, "1230"),
        (999999.0, "1.00e+06"),
        (-0.00012345, "-0.000123"),
        (1.2345e-7, "1.23e-07"),
        (np.inf, "inf"),
    ],
)
def test_three_digits(value, text):
    assert three_digits(value) == text


@pytest.mark.parametrize(
    ("mean", "sd", "selected", "sign"),
    [
        (3.0, 1.0, True, "+"),
        (-3.0, 1.0, False, "-"),
        (1.0, 1.0, True, "mixed"),
        (1.0, 1.0, False, ""),
        (0.0, 0.0, False, ""),
    ],
)
def test_direction(mean, sd, selected, sign):
    assert direction(mean, sd, selected) == sign


@pytest.mark.parametrize("width", [3, 6, 7, 20])
@pytest.mark.parametrize("name", HOSTILE)
def test_shorten(name, width):
    short = shorten(name, width)
    assert cell_len(short) <= width or short == name
    assert short == name or "…" in short


def test_wrap_breaks_no_option():
    text = wrap("Sample longer, --draws 2000 --tune 1000, " * 5)
    assert max(map(len, text.split("\n"))) <= 80
    assert " --draws 2000" in text.replace("\n", " ")


def test_a_file_is_whole_or_not_there(tmp_path):
    path = tmp_path / "table.csv"
    with replacing(path) as temporary:
        assert temporary.suffix == ".csv" and temporary.parent == tmp_path
        temporary.write_text("first")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]

"""The command: its answers, its files, its exit codes.

Only the fixture ``sampled`` samples; the other tests put made-up draws in the sampler's place.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import get_args

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pymc_bnnvs as bvs
from pymc_bnnvs import cli
from pymc_bnnvs.cli import main, run
from pymc_bnnvs.cli.data import parse_groups, parse_hidden, read_data
from pymc_bnnvs.cli.interrupts import between_draws
from pymc_bnnvs.cli.terminal import complain

TINY = ["--hidden", "3", "--draws", "40", "--tune", "60", "--chains", "2", "--seed", "1"]


@pytest.fixture(scope="session")
def table():
    """60 rows: two inputs that matter, one that does not, a category, an outcome."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["dose", "weight", "noise"])
    X["colour"] = rng.choice(["blue", "green", "red"], size=60)
    return X.assign(y=2 * X["dose"] - X["weight"] + rng.normal(scale=0.3, size=60))


@pytest.fixture
def data(table, tmp_path, monkeypatch):
    """The table as a file in the current folder."""
    monkeypatch.chdir(tmp_path)
    table.to_csv("data.csv", index=False)
    return tmp_path / "data.csv"


@pytest.fixture(scope="session")
def sampled(table, tmp_path_factory):
    """Run select for real, once; return the folder."""
    folder = tmp_path_factory.mktemp("sampled")
    table.to_csv(folder / "data.csv", index=False)
    out = folder / "out"
    code = main(
        ["select", str(folder / "data.csv"), "--target", "y", "--out", str(out), "--quiet", *TINY]
    )
    assert code == 3
    return out


def made_up(features, *, n_chains=4, n_draws=500, included=(1.0, 1.0)):
    """Draws that have converged: the first inputs in with the given probabilities, then 0.01."""
    rng = np.random.default_rng(0)
    shape = (n_chains, n_draws, len(features))
    probability = np.full(len(features), 0.01)
    probability[: len(included)] = included
    inclusion = rng.random(shape) < probability
    psi = np.where(inclusion, rng.gamma(20.0, 1.0, size=shape), 0.0)
    dims = ("chain", "draw", "feature")
    posterior = xr.Dataset(
        {"psi": (dims, psi), "inclusion": (dims, inclusion.astype("int8"))},
        coords={"feature": list(features), "chain": range(n_chains), "draw": range(n_draws)},
    )
    values = rng.normal(size=(60, len(features)))
    X = xr.Dataset({"X": (("obs_id", "feature"), values)}, {"feature": list(features)})
    return xr.DataTree.from_dict({"posterior": posterior, "constant_data": X})


@pytest.fixture
def no_sampling(monkeypatch):
    """Put made-up draws in the sampler's place."""
    monkeypatch.setattr(run, "sample", lambda model, fit, quiet: made_up(model.coords["feature"]))


def one_line(capsys):
    """Return what was complained of: one line, and nothing else anywhere."""
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1 and captured.err.endswith("\n")
    assert captured.err.startswith("bnnvs: ") and "Traceback" not in captured.err
    return captured.err


# --- the command line -----------------------------------------------------------------------


def test_help_and_exit_codes_of_the_process(tmp_path):
    command = [sys.executable, "-m", "pymc_bnnvs.cli"]
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in ("select", "show", "demo", "Exit codes"))
    bad = subprocess.run(
        [*command, "select", "no.csv", "--target", "y"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "bnnvs: there is no file no.csv.\n"


def test_the_command_itself_imports_nothing_heavy():
    code = (
        "import sys, types\n"
        "package = types.ModuleType('pymc_bnnvs')\n"
        f"package.__path__ = {list(bvs.__path__)!r}\n"
        "sys.modules['pymc_bnnvs'] = package\n"
        "import pymc_bnnvs.cli\n"
        "assert pymc_bnnvs.cli.main(['select', '--help']) == 0\n"
        "print(sorted({'pymc', 'numpy', 'pandas', 'xarray'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")


@pytest.mark.parametrize("command", ["select", "show", "demo"])
def test_every_option_is_explained(command, capsys):
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.split("\n"))) <= 80
    assert "Returns" not in text and "Parameters\n---" not in text


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == bvs.__version__


def test_choices_are_those_of_the_library():
    from pymc_bnnvs.outcome import LIKELIHOODS
    from pymc_bnnvs.priors import PRIORS
    from pymc_bnnvs.selection import RULES

    assert set(get_args(cli.Rule)) == set(RULES)
    assert set(get_args(cli.Prior)) == set(PRIORS)
    assert set(get_args(cli.Likelihood)) == set(LIKELIHOODS)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["selct"], ["selct", "select"]),
        (["select", "data.csv"], ["--target"]),
        (["select", "data.csv", "--target", "y", "--drws", "3"], ["--drws", "--draws"]),
        (["select", "data.csv", "--target", "y", "--draws", "0"], ["--draws", ">= 1"]),
        (["select", "data.csv", "--target", "y", "--draws", "many"], ["--draws", "many"]),
        (["select", "data.csv", "--target", "y", "--seed", "-1"], ["--seed"]),
        (["select", "data.csv", "--target", "y", "--rule", "medain"], ["medain", "median"]),
        (["select", "data.csv", "--target", "y", "--prior", "lasso"], ["lasso", "gated"]),
    ],
)
def test_a_command_line_that_does_not_parse(tokens, words, data, capsys):
    assert main(tokens) == 2
    message = one_line(capsys)
    assert all(word in message for word in words)


# --- the data -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["data.cvs", "--target", "y"], ["no file data.cvs", "'data.csv'"]),
        (["nowhere/data.csv", "--target", "y"], ["no file", "no folder nowhere"]),
        ([".", "--target", "y"], ["folder"]),
        (["notes.txt", "--target", "y"], ["notes.txt", "csv or parquet"]),
        (["empty.csv", "--target", "y"], ["empty.csv", "csv"]),
        (["broken.parquet", "--target", "y"], ["broken.parquet", "can't be read as parquet"]),
        (["semicolon.csv", "--target", "y"], ["commas"]),
        (["indexed.csv", "--target", "y"], ["without a name", "--drop 'Unnamed: 0'"]),
        (["data.csv", "--target", "Y"], ["--target 'Y'", "Did you mean 'y'?"]),
        (["data.csv", "--target", "nothing like it"], ["It has: dose, weight"]),
        (["data.csv", "--target", "y", "--drop", "doze"], ["--drop 'doze'", "'dose'"]),
        (["data.csv", "--target", "y", "--drop", "y"], ["'y'", "both"]),
        (["data.csv", "--target", "y", "--hidden", "many"], ["--hidden", "50,50"]),
        (["data.csv", "--target", "y", "--hidden", "0"], ["hidden", "positive"]),
        (["data.csv", "--target", "y", "--group", "size"], ["--group 'size'", "name=column"]),
        (["data.csv", "--target", "y", "--group", "g=dose,height"], ["height"]),
        (["data.csv", "--target", "y", "--always-in", "height"], ["height"]),
        (["gaps.csv", "--target", "y"], ["dose", "missing"]),
        (["gaps.csv", "--target", "dose"], ["'dose'", "2 of 60 rows", "drop"]),
        (["constant.csv", "--target", "y"], ["noise", "constant"]),
        (["data.csv", "--target", "colour"], ["'blue'", "bernoulli"]),
        (["data.csv", "--target", "y", "--likelihood", "poisson"], ["count"]),
        (["data.csv", "--target", "y", "--rule", "top_k"], ["k"]),
        (["data.csv", "--target", "y", "--rule", "top_k", "--k", "5"], ["k=5", "1 to 4"]),
        (["data.csv", "--target", "y", "--k", "2"], ["k=2", "top_k"]),
        (["data.csv", "--target", "y", "--alpha", "1.5"], ["alpha=1.5"]),
        (["data.csv", "--target", "y", "--q", "0"], ["q=0"]),
        (
            ["data.csv", "--target", "y", "--prior", "ard", "--rule", "fdr"],
            ["fdr", "exact zeros", "gated"],
        ),
        (
            ["data.csv", "--target", "y", "--prior", "ard", "--sampler", "gates"],
            ["--sampler gates", "--prior gated"],
        ),
        (["data.csv", "--target", "y", "--out", "notes.txt"], ["notes.txt", "folder"]),
        (["data.csv", "--target", "y", "--out", "taken"], ["taken", "draws.nc", "--overwrite"]),
    ],
)
def test_input_that_cannot_be_used(tokens, words, table, data, monkeypatch, capsys):
    folder = data.parent
    (folder / "notes.txt").write_text("a b c")
    (folder / "empty.csv").write_text("")
    (folder / "broken.parquet").write_text("PAR?")
    table.to_csv("semicolon.csv", sep=";", index=False)
    table.to_csv("indexed.csv")
    table.assign(dose=table["dose"].where(table.index > 1)).to_csv("gaps.csv", index=False)
    table.assign(noise=1.0).to_csv("constant.csv", index=False)
    (folder / "taken").mkdir()
    (folder / "taken" / "draws.nc").touch()
    before = set(folder.rglob("*"))
    monkeypatch.setattr(run, "sample", lambda *_: pytest.fail("sampled with bad input"))
    assert main(["select", *tokens]) == 2
    message = one_line(capsys)
    assert all(word in message for word in words), message
    assert set(folder.rglob("*")) == before


def test_read_csv_and_parquet(table, tmp_path):
    table.to_parquet(tmp_path / "data.parquet")
    table.to_csv(tmp_path / "data.csv.gz", index=False)
    for name in ("data.parquet", "data.csv.gz"):
        X, y = read_data(tmp_path / name, "y", ["noise"])
        assert list(X.columns) == ["dose", "weight", "colour"]
        np.testing.assert_allclose(y, table["y"])


def test_an_unnamed_column_can_be_dropped(table, tmp_path):
    table.to_csv(tmp_path / "data.csv")
    X, _ = read_data(tmp_path / "data.csv", "y", ["Unnamed: 0"])
    assert list(X.columns) == ["dose", "weight", "noise", "colour"]


@pytest.mark.parametrize(
    ("values", "widths"),
    [(["20"], (20,)), (["50,50"], (50, 50)), (["50", "20"], (50, 20)), (["(50, 20)"], (50, 20))],
)
def test_parse_hidden(values, widths):
    assert parse_hidden(values) == widths


def test_parse_groups():
    assert parse_groups(["size=height,weight", 'odd="a,b", c']) == {
        "size": ["height", "weight"],
        "odd": ["a,b", "c"],
    }
    with pytest.raises(ValueError, match="twice"):
        parse_groups(["size=a", "size=b"])
    for value in ("size=", "=a", "size=,"):
        with pytest.raises(ValueError, match="name=column,column"):
            parse_groups([value])


# --- select ---------------------------------------------------------------------------------


def test_select_for_real(sampled, capsys):
    assert sorted(path.name for path in sampled.iterdir()) == [
        "draws.nc",
        "importance.csv",
        "importance.png",
    ]
    assert (sampled / "importance.png").read_bytes().startswith(b"\x89PNG")
    assert main(["show", str(sampled)]) == 3
    text = capsys.readouterr().out
    assert max(map(len, text.split("\n"))) <= 80
    assert "\x1b" not in text
    # Too few draws: told once, as options, and without Python's decoration.
    flat = " ".join(text.split())
    assert flat.count("have not converged for") == 1 and "--draws" in flat
    assert "ConvergenceWarning" not in flat and ".py" not in flat
    # The category is one input, since groups are the default where there are any.
    rows = text.split("\n")[2:6]
    assert {row.split()[0] for row in rows} == {"dose", "weight", "noise", "colour"}
    assert "of 4 inputs selected" in flat


def test_the_table_on_disk_has_all_digits(sampled):
    on_disk = pd.read_csv(sampled / "importance.csv")
    idata, decision = run.load(sampled)
    summary, _ = run.decide(idata, decision)
    wanted = summary.to_dataframe().loc[on_disk["group"]]
    np.testing.assert_array_equal(on_disk["psi"], wanted["psi"])
    assert len(on_disk) == 4
    assert on_disk["selected"].dtype == bool
    assert (np.diff(on_disk["selected"].astype(int)) <= 0).all()


def test_the_draws_say_how_they_were_made(sampled):
    idata, decision = run.load(sampled)
    settings = json.loads(idata.attrs["bnnvs"])
    assert settings["target"] == "y" and settings["seed"] == 1 and settings["hidden"] == [3]
    assert settings["versions"]["pymc-bnnvs"] == bvs.__version__
    assert decision == run.Decision(rule="interval", alpha=0.05, q=0.1, k=None, by="group")
    assert "X" in idata["constant_data"].data_vars


def test_show_repeats_select(data, no_sampling, capsys):
    assert main(["select", "data.csv", "--target", "y", "--drop", "colour"]) == 0
    first = capsys.readouterr().out
    assert main(["show", "data-bnnvs"]) == 0
    again = capsys.readouterr().out
    assert first.startswith(again)
    assert "2 of 3 inputs selected: dose, weight" in again or "weight, dose" in again
    assert "Converged: R-hat of psi at most 1.0" in again
    assert "bnnvs show data-bnnvs" in first and "draws.nc, importance.csv" in first


def test_an_empty_selection_is_an_answer(data, monkeypatch, capsys):
    monkeypatch.setattr(
        run, "sample", lambda model, fit, quiet: made_up(model.coords["feature"], included=())
    )
    assert main(["select", "data.csv", "--target", "y", "--drop", "colour", "--by", "feature"]) == 0
    flat = " ".join(capsys.readouterr().out.split())
    assert "None of 3 inputs selected. Rule 'interval':" in flat
    assert "the best single input reaches 0.0" in flat


def test_draws_that_have_not_converged_are_exit_code_3(data, monkeypatch, capsys):
    monkeypatch.setattr(
        run, "sample", lambda model, fit, quiet: made_up(model.coords["feature"], n_draws=30)
    )
    assert main(["select", "data.csv", "--target", "y", "--drop", "colour"]) == 3
    captured = capsys.readouterr()
    assert "Warning: The draws of psi have not converged for dose" in captured.out
    assert "Warning" not in captured.err


def test_results_are_replaced_only_when_told(data, no_sampling, monkeypatch, capsys):
    tokens = ["select", "data.csv", "--target", "y", "--drop", "colour", "--out", "a folder"]
    assert main(tokens) == 0
    assert "bnnvs show 'a folder'" in capsys.readouterr().out
    assert main(tokens) == 2
    assert "--overwrite" in one_line(capsys)
    # New draws do not stand beside an old table, whatever happens after they are saved.
    monkeypatch.setattr(run, "decide", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main([*tokens, "--overwrite"])
    assert [path.name for path in (data.parent / "a folder").iterdir()] == ["draws.nc"]


def test_a_plot_that_fails_costs_nothing_else(data, no_sampling, monkeypatch, capsys):
    monkeypatch.setattr(bvs, "plot_importance", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["select", "data.csv", "--target", "y", "--drop", "colour", "--out", "out"])
    assert {path.name for path in (data.parent / "out").iterdir()} == {"draws.nc", "importance.csv"}
    text = capsys.readouterr().out
    assert "of 3 inputs selected" in text
    assert "Written to out: draws.nc, importance.csv." in text


def test_a_bug_shows_its_traceback(data, monkeypatch):
    def broken(model, fit, quiet):
        raise ValueError("a bug in the sampler")

    monkeypatch.setattr(run, "sample", broken)
    with pytest.raises(ValueError, match="a bug"):
        main(["select", "data.csv", "--target", "y"])


def test_the_same_options_reach_the_model(data, monkeypatch):
    seen = {}

    def spy(model, fit, quiet):
        seen.update(model=model, fit=fit, quiet=quiet)
        return made_up(model.coords["feature"])

    monkeypatch.setattr(run, "sample", spy)
    options = ["--prior", "ard", "--hidden", "4,3", "--group", "body=dose,weight", "--seed", "7"]
    options += ["--draws", "11", "--tune", "12", "--chains", "3", "--cores", "2", "--quiet"]
    assert main(["select", "data.csv", "--target", "y", "--always-in", "noise", *options]) == 0
    fit, model = seen["fit"], seen["model"]
    assert (fit.draws, fit.tune, fit.chains, fit.cores, fit.seed) == (11, 12, 3, 2, 7)
    assert seen["quiet"]
    assert model.coords["group"] == ("body", "noise", "colour")
    assert {name: len(model.coords[name]) for name in ("hidden_1", "hidden_2")} == {
        "hidden_1": 4,
        "hidden_2": 3,
    }


def test_a_seed_is_drawn_and_saved(data, no_sampling, capsys):
    seeds = []
    for out in ("first", "second"):
        assert main(["select", "data.csv", "--target", "y", "--drop", "colour", "--out", out]) == 0
        idata, _ = run.load(data.parent / out)
        seeds.append(json.loads(idata.attrs["bnnvs"])["seed"])
        assert f"seed {seeds[-1]}" in capsys.readouterr().err
    assert seeds[0] != seeds[1]


@pytest.mark.parametrize(
    ("options", "moves"),
    [
        ([], True),
        (["--sampler", "nuts"], False),
        (["--prior", "ard"], False),
    ],
)
def test_gates_move_where_there_are_any(options, moves, data, monkeypatch):
    seen = {}

    def spy(**kwargs):
        seen.update(kwargs)
        return made_up(["dose", "weight", "noise"])

    monkeypatch.setattr(run.pm, "sample", spy)
    tokens = ["select", "data.csv", "--target", "y", "--drop", "colour", "--hidden", "3"]
    main([*tokens, "--quiet", *options])
    assert ("step" in seen) == ("callback" in seen) == moves


def test_advice_is_in_options():
    text = "Let the gates move, pm.sample(2000, step=bvs.gate_step()), or sample longer, "
    text += "pm.sample(draws=3000, tune=1500), before"
    advice = run.for_the_command_line(text)
    assert "move, --sampler gates --draws 2000, or sample" in advice
    assert "longer, --draws 3000 --tune 1500, before" in advice


# --- stopped by the user --------------------------------------------------------------------


def test_the_first_interrupt_waits_for_the_draw():
    before = signal.getsignal(signal.SIGINT)
    with between_draws() as callback:
        callback(trace=None, draw=None)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            callback(trace=None, draw=None)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_most_draws_are_kept_of_a_stopped_run():
    idata = made_up(["a", "b"], n_chains=4, n_draws=100)
    psi = idata["posterior"]["psi"]
    for chain, length in enumerate([100, 80, 3, 0]):
        psi[chain, length:] = np.nan
    lengths = run.chain_lengths(idata)
    assert list(lengths) == [100, 80, 3, 0]
    kept = run.keep_most(idata, lengths)
    assert dict(kept["posterior"].sizes) == {"chain": 2, "draw": 80, "feature": 2}
    assert kept["posterior"]["psi"].notnull().all()
    assert kept["constant_data"].sizes["obs_id"] == 60


def test_stopped_while_sampling(data, monkeypatch, capsys):
    def stopped(**kwargs):
        idata = made_up(["dose", "weight", "noise"], n_chains=2, n_draws=600)
        idata["posterior"]["psi"][:, 500:] = np.nan
        return idata

    monkeypatch.setattr(run.pm, "sample", stopped)
    tokens = ["select", "data.csv", "--target", "y", "--drop", "colour", "--chains", "2"]
    assert main(tokens) == 0
    assert "interrupted; kept 2 chains of 500 draws" in capsys.readouterr().err
    idata, _ = run.load(data.parent / "data-bnnvs")
    assert idata["posterior"].sizes["draw"] == 500


@pytest.mark.parametrize("tree", [xr.DataTree(), made_up(["a"], n_draws=0, included=())])
def test_stopped_while_tuning(tree, data, monkeypatch, capsys):
    monkeypatch.setattr(run.pm, "sample", lambda **_: tree)
    assert main(["select", "data.csv", "--target", "y", "--quiet"]) == 130
    assert "no draws" in one_line(capsys)


def test_stopped_after_sampling_says_where_the_draws_are(data, no_sampling, monkeypatch, capsys):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "decide", stop)
    assert main(["select", "data.csv", "--target", "y"]) == 130
    assert "Written to data-bnnvs: draws.nc." in capsys.readouterr().out
    assert (data.parent / "data-bnnvs" / "draws.nc").exists()


# --- show -----------------------------------------------------------------------------------


@pytest.fixture
def folder(data, no_sampling, capsys):
    """A folder of select, made for the two largest."""
    tokens = ["--target", "y", "--drop", "colour", "--rule", "top_k", "--k", "2", "--out", "out"]
    assert main(["select", "data.csv", *tokens]) == 0
    capsys.readouterr()
    return "out"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ([], "2 of 3 inputs selected"),
        (["--k", "1"], "1 of 3 inputs selected"),
        (["--rule", "median"], "Rule 'median'"),
        (["--rule", "fdr", "--q", "0.2"], "false discovery rate at most 0.2"),
        (["--rule", "interval", "--alpha", "0.2"], "low 80%"),
        (["--by", "group"], "of 3 inputs selected"),
        (["--top", "1"], "... and 2 more (--top 3 shows all)"),
    ],
)
def test_show_decides_again(folder, options, text, capsys):
    before = {path: path.stat().st_mtime_ns for path in run.Path(folder).iterdir()}
    assert main(["show", folder, *options]) == 0
    assert text in " ".join(capsys.readouterr().out.split())
    assert {path: path.stat().st_mtime_ns for path in run.Path(folder).iterdir()} == before


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["out", "--rule", "top_k", "--k", "9"], ["k=9"]),
        (["out", "--rule", "interval", "--k", "1"], ["k=1"]),
        (["out", "--alpha", "2"], ["alpha"]),
        (["nowhere"], ["no draws at nowhere"]),
        (["."], ["no draws at draws.nc"]),
        (["data.csv"], ["data.csv", "netCDF"]),
        (["other.nc"], ["posterior"]),
    ],
)
def test_show_of_what_cannot_be_shown(folder, tokens, words, capsys):
    xr.DataTree.from_dict({"other": xr.Dataset({"a": 1.0})}).to_netcdf(
        "other.nc", engine="h5netcdf"
    )
    assert main(["show", *tokens]) == 2
    message = one_line(capsys)
    assert all(word in message for word in words), message


def test_show_takes_draws_of_a_model_of_your_own(data, capsys):
    made_up(["dose", "weight", "noise"]).to_netcdf("mine.nc", engine="h5netcdf")
    assert main(["show", "mine.nc"]) == 0
    assert "2 of 3 inputs selected" in capsys.readouterr().out


# --- demo -----------------------------------------------------------------------------------


def test_demo(tmp_path, no_sampling, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # its folder is replaced
        assert main(["demo"]) == 0
        text = capsys.readouterr().out
        assert max(map(len, text.split("\n"))) <= 80
        flat = " ".join(text.split())
        assert "2 of 30 inputs selected" in flat
        assert "of the 10 real inputs 2 are kept (age, sex)" in flat
        assert "of the 20 permuted copies, which can't matter, none were selected" in flat
        assert "The picture is bnnvs-demo/importance.png" in flat
    assert {path.name for path in (tmp_path / "bnnvs-demo").iterdir()} == {
        "draws.nc",
        "importance.csv",
        "importance.png",
    }


def test_demo_counts_a_copy_that_was_selected(tmp_path, monkeypatch, capsys):
    def with_a_copy(model, fit, quiet):
        probability = np.full(30, 0.01)
        probability[[2, 29]] = 1.0
        return made_up(model.coords["feature"], included=probability)

    monkeypatch.setattr(run, "sample", with_a_copy)
    assert main(["demo", "--out", str(tmp_path / "demo"), "--seed", "3"]) == 0
    flat = " ".join(capsys.readouterr().out.split())
    assert "(bmi)" in flat and "1 was selected" in flat


def test_complaints_are_one_line(capsys):
    complain("two\nlines")
    assert capsys.readouterr().err == "bnnvs: two lines\n"


@pytest.mark.slow
def test_same_seed_same_answer_from_a_cold_and_a_warm_cache(tmp_path):
    """The first run compiles, the second one loads: not a digit may differ."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=X[:, 0] + 0.5 * rng.normal(size=40))
    frame.to_csv(tmp_path / "data.csv", index=False)
    found = []
    for out in ("cold", "warm"):
        command = "select data.csv --target y --hidden 3 --draws 100 --tune 200 --chains 2 --seed 3"
        subprocess.run(
            [sys.executable, "-m", "pymc_bnnvs.cli", *command.split(), "--quiet", "--out", out],
            cwd=tmp_path,
            env=os.environ | {"PYTENSOR_FLAGS": f"base_compiledir={tmp_path / 'compiled'}"},
            check=False,
            capture_output=True,
        )
        found.append((tmp_path / out / "importance.csv").read_bytes())
    assert found[0] == found[1]


def test_a_reader_that_goes_away_ends_nothing(tmp_path):
    """As in ``bnnvs select ... | head``: what comes after is still done."""
    script = (
        "import pathlib, sys\n"
        "from pymc_bnnvs.cli.terminal import echo\n"
        "echo('first')\n"
        "sys.stdin.read()\n"
        "echo('second')\n"
        "echo('third')\n"
        f"pathlib.Path({str(tmp_path / 'done')!r}).touch()\n"
    )
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", script], text=True, **pipes) as process:
        assert process.stdout.readline() == "first\n"
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == ""
        assert process.wait() == 0
    assert (tmp_path / "done").exists()

"""The speed benchmark: limits are limits, times are those of the target, rivals are the same model.

Two tests sample, a few draws each; elsewhere a made-up fit or worker takes the sampler's place.
"""

from __future__ import annotations

import inspect
import sys
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_bnnvs as bvs
from pymc_bnnvs.cli import main
from pymc_bnnvs.cli.pages import write_picture_of
from pymc_bnnvs.experiments import (
    speed,
    speed_fit,
    speed_gradient,
    speed_picture,
    speed_rivals,
    speed_table,
    speed_watch,
)
from pymc_bnnvs.experiments.speed_watch import Check, Watch, time_to_target

FAST = {"mode": "FAST_COMPILE"}

# --- the time to the target -----------------------------------------------------------------


def checks(*reached):
    """Checks at 100, 110, ... draws."""
    return [
        Check(float(i), 100 + 10 * i, 1.0 if good else 1.02, 500.0)
        for i, good in enumerate(reached)
    ]


@pytest.mark.parametrize(
    ("reached", "ended", "seconds"),
    [
        ([], False, None),
        ([0, 0, 0], True, None),
        ([0, 1, 1], False, None),  # too early to say
        ([0, 1, 1], True, 1.0),
        ([0, 1, 1, 1, 1], False, 1.0),  # 110 to 140 draws
        ([1, 0, 1, 1, 1, 1], False, 2.0),  # the first one was lucky
        ([1, 1, 1, 1, 0], True, None),
    ],
)
def test_the_target_must_hold(reached, ended, seconds):
    found = time_to_target(checks(*reached), ended=ended)
    assert (found and found.seconds) == seconds


def test_both_criteria_count():
    assert Check(1.0, 100, 1.01, 400.0).reached
    assert not Check(1.0, 100, 1.011, 400.0).reached
    assert not Check(1.0, 100, 1.01, 399.0).reached
    assert not Check(1.0, 100, np.nan, 1000.0).reached


def feed(psi, *, limit_s=1e3):
    """Watch draws that come at ten a second, until it is over."""
    watch = Watch(limit_s, psi.shape[1])
    for draws in range(1, psi.shape[1] + 1):
        watch.rest_until = 0.0
        if watch.due(draws):
            watch.judge(psi[:, :draws], draws / 10)
        if watch.over:
            break
    return watch.row(), watch.checks


@pytest.fixture
def white_noise():
    return np.random.default_rng(1).normal(size=(4, 2000, 3))


def test_white_noise_is_there_when_it_has_400_draws_and_r_hat_says_so(white_noise):
    row, made = feed(white_noise)
    assert row["status"] == "reached"
    # Four chains of white noise have 400 effective draws at about 100 draws each; the R-hat of
    # the worst of three takes a few times as many.
    assert 100 <= row["draws_to_target"] <= 800
    assert row["seconds"] == row["seconds_to_target"] == row["draws_to_target"] / 10
    assert made[-1].draws >= 1.25 * row["draws_to_target"]
    draws = [check.draws for check in made]
    assert draws[0] == 100 and max(np.diff(draws) / draws[:-1]) < 0.06


def test_correlated_draws_take_longer(white_noise):
    slow = np.repeat(white_noise[:, :400], 5, axis=1)
    assert feed(slow)[0]["draws_to_target"] > 3 * feed(white_noise)[0]["draws_to_target"]


def test_chains_apart_never_get_there(white_noise):
    row, made = feed(white_noise + np.array([0, 0, 0, 3.0])[:, None, None])
    assert row["status"] == "not reached" and made[-1].draws == 2000
    assert "seconds_to_target" not in row
    assert row["r_hat"] > 1.3


def test_one_input_that_never_changes_is_one_too_many(white_noise):
    white_noise[..., 2] = 0.0
    row, _ = feed(white_noise[:, :600])
    assert row["status"] == "not reached" and np.isnan(row["r_hat"])


@pytest.fixture
def clock(monkeypatch):
    """A clock of the watch that the test sets."""
    clock = SimpleNamespace(now=100.0, perf_counter=lambda: clock.now)
    monkeypatch.setattr(speed_watch, "time", clock)
    return clock


def test_a_limit_is_no_time(clock):
    watch = Watch(5.0, 1000)
    assert watch.row()["status"] == "running"
    clock.now += 5.1
    row = watch.row()
    assert watch.over
    assert (row["status"], row["seconds"]) == ("limit", 5.0)
    assert "seconds_to_target" not in row


def test_what_holds_at_the_limit_may_be_confirmed(white_noise, clock):
    watch = Watch(5.0, 10_000)
    watch.judge(white_noise[:, :1500], 4.0)
    clock.now += 5.1
    assert watch.row()["holds"] and not watch.over
    watch.judge(white_noise[:, :1900], 6.0)
    assert watch.row()["seconds_to_target"] == 4.0
    slower = Watch(5.0, 10_000)
    slower.judge(white_noise[:, :1500], 4.0)
    clock.now += 8.0
    assert slower.row()["status"] == "limit"


def test_checks_take_at_most_a_twentieth_of_the_time(white_noise, clock):
    watch = Watch(100.0, 10_000)
    clock.now += 3.0
    watch.judge(white_noise[:, :200], watch.seconds - 1.0)
    assert watch.rest_until - watch.seconds == 20.0
    clock.now += 19.9
    assert not watch.due(2000)
    clock.now += 0.2
    assert watch.due(2000)


# --- the grid -------------------------------------------------------------------------------

SECONDS = {"default": 10.0, "gaussian": 40.0, "pymc": np.inf, "numpyro": 250.0}


def made_up(job):
    """Row of a fit whose time is known."""
    seconds, limit = SECONDS[job["method"]], job["limit_s"]
    reached = seconds <= limit
    return {
        **{name: job[name] for name in (*speed.KEYS, "limit_s", "chains")},
        "status": "reached" if reached else "limit",
        "seconds": min(seconds, limit),
        "seconds_to_target": seconds if reached else None,
        "seconds_compile": 5.0,
        "seconds_compile_again": 2.0,
        "gradient_us": 0.1 * job["n"] * job["n_features"],
        "r_hat": 1.0042 if reached else 1.8,
        "ess_bulk": 432.1,
        "max_draws": 16_000,
    }


@pytest.fixture
def fits(monkeypatch):
    done = []

    def fit(job):
        done.append((job["method"], job["limit_s"]))
        return made_up(job)

    monkeypatch.setattr(speed, "fit", fit)
    return done


SMALL = {"n": (100,), "features": (5,)}


def test_a_second_start_does_only_what_is_missing(fits, tmp_path):
    path = tmp_path / "deep" / "speed.csv"
    speed.run(path, **SMALL, methods=("gaussian", "default"), limit_s=300)
    assert [name for name, _ in fits] == ["default", "gaussian"]  # ours first
    rows = speed.run(path, n=(100, 200), features=(5,), limit_s=300)
    assert [name for name, _ in fits[2:]] == ["pymc", "numpyro", *speed.METHODS]
    assert len(rows) == 8
    again = speed.run(path, n=(100, 200), features=(5,), limit_s=300)
    assert len(fits) == 8
    pd.testing.assert_frame_equal(again, pd.read_csv(path), check_dtype=False)
    assert [file.name for file in path.parent.iterdir()] == ["speed.csv"]
    assert len(speed.run(path, **SMALL, methods=("pymc",), limit_s=300)) == 1


def test_only_a_longer_limit_is_tried_again(fits, tmp_path):
    path = tmp_path / "speed.csv"
    speed.run(path, **SMALL, limit_s=100)
    del fits[:]
    speed.run(path, **SMALL, limit_s=50)
    assert fits == []
    rows = speed.run(path, **SMALL, limit_s=300).set_index("method")
    assert fits == [("pymc", 300), ("numpyro", 300)]
    assert rows.loc["numpyro", "seconds_to_target"] == 250
    assert len(pd.read_csv(path)) == 4


@pytest.mark.parametrize(("longest", "limit"), [(3600.0, 300.0), (200.0, 200.0), (10.0, 50.0)])
def test_a_limit_can_be_a_multiple_of_ours(fits, tmp_path, longest, limit):
    speed.run(tmp_path / "s.csv", **SMALL, limit_s=50, times_ours=30, max_limit_s=longest)
    assert dict(fits) == {"default": 50, "gaussian": limit, "pymc": limit, "numpyro": limit}


def test_where_ours_is_not_there_the_limit_is_the_limit(fits, tmp_path):
    speed.run(tmp_path / "s.csv", **SMALL, limit_s=5, times_ours=30)
    assert {limit for _, limit in fits} == {5}


def test_data_sets_have_their_own_seeds(fits, tmp_path):
    rows = speed.run(tmp_path / "s.csv", **SMALL, methods=("default",), data_sets=3)
    assert list(rows["seed"]) == [1000, 1001, 1002]
    assert rows["run"].nunique() == 1


def test_unknown_and_missing_methods_are_named(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="Did you mean 'numpyro'"):
        speed.run(tmp_path / "s.csv", methods=("numpyr",))
    monkeypatch.setattr(speed.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="numpyro is not installed"):
        speed.run(tmp_path / "s.csv")


# --- the process ----------------------------------------------------------------------------

JOB = {"method": "pymc", "n": 100, "n_features": 5, "seed": 1, "chains": 4, "max_draws": 200}
WRITE = """
import json, os, pathlib, sys, time
job = json.loads(pathlib.Path(sys.argv[1]).read_text())
def write(**row):
    path = pathlib.Path(sys.argv[2] + ".new")
    path.write_text(json.dumps({"started": time.time(), "row": row}))
    path.replace(sys.argv[2])
"""


@pytest.fixture
def worker(monkeypatch, tmp_path):
    """Put a script in the worker's place."""
    monkeypatch.setattr(speed, "GRACE_S", 0.3)
    monkeypatch.setattr(speed, "POLL_S", 0.02)

    def use(code):
        script = tmp_path / "worker.py"
        script.write_text(WRITE + inspect.cleandoc(code))
        monkeypatch.setattr(speed, "WORKER", [sys.executable, str(script)])

    return use


def test_a_fit_that_does_not_end_is_killed_and_is_a_limit(worker, tmp_path):
    worker(f"""
    if job["fit"]:
        write(status="running", holds=False, seconds=0.1, r_hat=1.7, draws=120)
        time.sleep(60)
    else:
        pathlib.Path({str(tmp_path / "again")!r}).touch()
        write(gradient_us=12.5, gradient_open_gates=None)
    """)
    began = time.perf_counter()
    row = speed.fit(JOB | {"limit_s": 0.4})
    assert time.perf_counter() - began < 10
    assert (row["status"], row["seconds"], row["error"]) == ("limit", 0.4, None)
    assert row.get("seconds_to_target") is None
    assert (row["r_hat"], row["draws"]) == (1.7, 120)  # how far it was
    assert row["gradient_us"] == 12.5 and (tmp_path / "again").exists()


def test_the_result_of_a_worker_is_a_row(worker, monkeypatch):
    """A second worker has other data and finds what the first has compiled."""
    worker("""
    kept = pathlib.Path(os.environ["PYTENSOR_FLAGS"].partition("base_compiledir=")[2]) / "kept"
    if job["seed"] == 1:
        assert not kept.exists()
        kept.touch()
        write(status="reached", holds=True, seconds=7.0, seconds_to_target=7.0,
              gradients=2_000_000, seconds_compile=2.0, seconds_sampling=5.0, gradient_us=4.0)
    else:
        write(status="limit", seconds_compile=0.5 if kept.exists() else 2.0)
    """)
    monkeypatch.setattr(speed, "available_cores", lambda: 2)
    row = speed.fit(JOB | {"limit_s": 10.0})
    assert (row["status"], row["error"]) == ("reached", None)
    assert row["microseconds_per_gradient"] == pytest.approx(5.0)
    assert (row["seconds"], row["seconds_compile"], row["seconds_compile_again"]) == (7.0, 2.0, 0.5)
    assert set(row) <= set(speed.COLUMNS)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("raise MemoryError('Unable to allocate 3.2 GB')", "MemoryError: Unable to allocate"),
        ("os.kill(os.getpid(), 9)", "killed by the system"),
        ("sys.exit(7)", "exit code 7"),
    ],
)
def test_a_failure_says_why(worker, code, error):
    worker(f"write(status='running', holds=False)\n{code}")
    row = speed.fit(JOB | {"limit_s": 10.0})
    assert row["status"] == "failed" and row["seconds"] is None
    assert error in row["error"] and "\n" not in row["error"]


def test_a_worker_has_its_own_threads(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTENSOR_FLAGS", "optimizer_verbose=False")
    seen = speed.environment(4, tmp_path)
    assert {seen[name] for name in speed.THREADS} == {"1"}
    assert "device_count=4" in seen["XLA_FLAGS"]
    assert seen["PYTENSOR_FLAGS"].startswith("optimizer_verbose=False,base_compiledir=")
    facts = speed.machine()
    assert facts["cores"] >= 1 and f"pymc {pm.__version__}" in facts["versions"]


def test_the_processor_is_named(tmp_path):
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: A chip\n")
    assert speed.cpu_name(str(tmp_path / "cpuinfo")) == "A chip"
    assert speed.cpu_name(str(tmp_path / "none"))


# --- the fits -------------------------------------------------------------------------------


def last_report(job):
    reports = []
    speed_fit.fit(job | {"fit": True, "n": 100, "n_features": 5, "seed": 1}, reports.append)
    return reports[-1]


def test_pm_sample_under_watch(monkeypatch):
    monkeypatch.setattr(speed_gradient, "BATCHES", 2)
    row = last_report({"method": "pymc", "limit_s": 900.0, "chains": 4, "max_draws": 50})
    assert row["status"] in ("reached", "not reached")
    assert row["tune"] > 0 and row["max_draws"] == 50
    assert 4 <= row["draws"] <= 50
    # One leapfrog step a draw at least, in every chain and in warm-up too.
    assert row["gradients"] > 4 * (row["tune"] + row["draws"])
    assert row["steps"] >= 1 and row["divergences"] >= 0
    assert 0 < row["seconds_compile"] < row["seconds_in_all"]
    assert 0.1 < row["gradient_us"] < 1e5
    assert row["rss_mb"] > 50


def test_numpyro_under_watch(monkeypatch):
    pytest.importorskip("numpyro")
    monkeypatch.setattr(speed_gradient, "BATCHES", 2)
    monkeypatch.setattr(speed_fit, "NUMPYRO_TUNE", 40)
    # One chain: the tests have one device. It has no R-hat, so it takes all of its draws.
    row = last_report({"method": "numpyro", "limit_s": 900.0, "chains": 1, "max_draws": 30})
    assert row["status"] == "not reached" and np.isnan(row["r_hat"])
    assert (row["tune"], row["draws"]) == (40, 30)
    assert row["gradients"] > 70 and row["steps"] >= 1
    assert 0.1 < row["gradient_us"] < 1e5


# --- the rivals -----------------------------------------------------------------------------


@pytest.fixture
def weights():
    rng = np.random.default_rng(3)
    shapes = {"W_1": (5, 7), "b_1": (7,), "beta": (7,), "b_0": ()}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


@pytest.fixture
def inputs():
    return np.random.default_rng(4).uniform(size=(30, 5))


@pytest.fixture
def psi(weights, inputs):
    """By numpy: the mean over the rows of the squared gradient."""
    active = inputs @ weights["W_1"] + weights["b_1"] > 0
    gradient = (active * weights["beta"]) @ weights["W_1"].T
    return np.mean(gradient**2, axis=0)


def test_psi_of_the_pymc_script(weights, inputs, psi):
    model = speed_rivals.pymc_script(inputs, np.zeros(30), hidden=7)
    found = pm.do(model, weights)["psi"].eval(**FAST)
    np.testing.assert_allclose(found, psi)
    ours = bvs.build_model(inputs, np.arange(30.0), prior="gaussian", hidden=7, standardize=False)
    bias = weights["b_1"] + inputs.mean(axis=0) @ weights["W_1"]
    found = (
        pm.do(ours, weights | {"b_1": bias})["psi"].eval(**FAST)
        / float(ours["f_scale"].eval(**FAST)) ** 2
    )
    np.testing.assert_allclose(found, psi)


def test_psi_and_density_of_numpyro(weights, inputs, psi):
    pytest.importorskip("numpyro")
    from numpyro.infer.util import log_density

    np.testing.assert_allclose(speed_rivals.numpyro_psi(weights, inputs), psi, rtol=1e-4)
    y = np.random.default_rng(5).normal(size=30)
    model = speed_rivals.pymc_script(inputs, y, hidden=7)
    theirs, _ = log_density(
        speed_rivals.numpyro_model(hidden=7), (inputs, y), {}, weights | {"sigma": 0.7}
    )
    point = weights | {"sigma_log__": np.log(0.7)}
    assert float(theirs) == pytest.approx(
        model.compile_logp(jacobian=False, **FAST)(point), rel=1e-4
    )


# --- the gradient alone ---------------------------------------------------------------------


def test_the_median_of_the_batches_counts():
    calls = []

    def timer(repeats):
        calls.append(repeats)
        return 1e-3 * (1 + (len(calls) == 5))

    assert speed_gradient.seconds_a_call(timer) == 1e-3
    assert calls == [1, 3, *[50] * speed_gradient.BATCHES]


def test_a_density_that_is_not_finite_is_not_timed():
    class Compiled:
        n_dim, user_data = 2, np.zeros(1)

        class compiled_logp_func:
            @staticmethod
            def ctypes(*arguments):
                return 3

    with pytest.raises(FloatingPointError, match="code 3"):
        speed_gradient.pymc_timer(Compiled())(1)


def test_gates_are_opened_one_by_one():
    seen = {}

    class Compiled:
        n_dim, user_data = 9, np.zeros(1)
        shape_info = (["gate", "threshold", "z"], [slice(0, 6), slice(6, 7), slice(7, 9)], None)

        class compiled_logp_func:
            @staticmethod
            def ctypes(size, point, *others):
                seen["point"] = np.ctypeslib.as_array(point, (size,)).copy()
                return 0

    speed_gradient.pymc_timer(Compiled(), n_open=2)(1)
    assert (seen["point"][:6] > seen["point"][6]).sum() == 2


@pytest.fixture
def gated():
    """A model with a gated product, by hand."""
    gated_dot = pytest.importorskip("pymc_bnnvs.gated_dot").gated_dot
    rng = np.random.default_rng(6)
    with pm.Model() as model:
        X = pm.Data("X", rng.normal(size=(20, 4)))
        scale = pm.Normal("gate", shape=4) - pm.Normal("threshold", 1.0, 0.5)
        rows = pm.Normal("z", shape=(4, 3))
        f = gated_dot(X, pm.math.maximum(scale, 0.0), rows).sum(axis=1)
        pm.Normal("y", f, 1.0, observed=rng.normal(size=20))
    return model


def test_the_dense_model_is_the_same_model(gated):
    whole = speed_gradient.dense(gated)
    point = {
        "gate": np.array([2.0, 0.0, 3.0, -1.0]),
        "threshold": np.array(1.0),
        "z": np.random.default_rng(7).normal(size=(4, 3)),
    }
    found = []
    for model in (gated, whole):
        variables = [model[name] for name in ("gate", "threshold", "z")]
        found.append(
            np.append(
                model.compile_dlogp(variables, **FAST)(point), model.compile_logp(**FAST)(point)
            )
        )
    np.testing.assert_allclose(found[0], found[1])
    with pytest.raises(ValueError, match="no gated product"):
        speed_gradient.dense(whole)


def test_gradient_times(monkeypatch):
    data = speed_gradient.neural(60, 20, 1)
    try:
        speed_gradient.dense(bvs.build_model(data.X, data.y))
    except (ImportError, ValueError):
        pytest.skip("build_model has no gated product yet")
    rows = speed_gradient.gradient_times(60, 20, 1, pairs=3)
    assert list(rows["n_open"]) == [2, 20]
    assert (rows[["gated_us", "dense_us"]] > 0).all(axis=None)
    assert (rows["ratio_lower"] <= rows["ratio_upper"]).all()


GATES = {
    "share": 0.1,
    "n_open": 20,
    "gated_us": 100.0,
    "dense_us": 512.0,
    "dense_by_gated": 5.12,
    "ratio_lower": 5.0,
    "ratio_upper": 5.3,
}


def test_gates_are_timed_once(monkeypatch, tmp_path):
    jobs = []

    def work(job, *limits):
        jobs.append(job["n"])
        key = {name: job[name] for name in ("n", "n_features", "seed")}
        state = {"rows": [key | GATES, key | GATES | {"share": 1.0}]} if job["n"] < 300 else {}
        return state, "no room" if job["n"] == 300 else None

    monkeypatch.setattr(speed, "work", work)
    said = []
    for n in ((100,), (100, 200, 300, 400)):
        rows = speed.run_gates(tmp_path / "g.csv", n=n, features=(200,), progress=said.append)
    assert jobs == [100, 200, 300, 400]
    assert len(rows) == 4 and rows["cores"].notna().all()
    assert "no room" in said[-2] and "stopped after" in said[-1]
    lines = speed_table.gate_table(rows).split("\n")
    assert max(map(len, lines)) <= 80 and len(lines) == 5
    assert lines[1].split() == "100 200 10% 100 512 5.12 5.00 to 5.30".split()


# --- what is shown --------------------------------------------------------------------------


@pytest.fixture
def rows(fits, tmp_path):
    return speed.run(tmp_path / "rows.csv", n=(250, 10_000), features=(25, 2000), limit_s=100)


def test_a_limit_is_shown_as_a_limit(rows):
    text = speed_table.table(rows)
    lines = text.split("\n")
    assert max(map(len, lines)) <= 80
    first = lines[1:5]
    assert first[0].split() == "250 25 1000 ours 10 s 5 2 1.0 625 1.004 432".split()
    assert first[1].split()[:7] == ["ours,", "gaussian", "40", "s", "5", "2", "4.0"]
    assert first[2].split() == "PyMC script > 100 s 5 2 > 10.0 625 1.800 432".split()
    assert "numpyro            > 100 s" in first[3]
    flat = " ".join(lines)
    assert "is no result" in flat
    assert f"{rows['cores'][0]} cores; 4 chains at once" in flat
    assert all(word in flat for word in ("pymc 6", "numpy 2", "Seeds: 1000.", "UTC", "1 thread"))


def test_what_failed_or_ran_out_of_draws_is_no_time(rows):
    rows["error"] = rows["error"].astype(object)
    rows.loc[2, ["status", "error"]] = ["failed", "MemoryError: too large"]
    rows.loc[3, "status"] = "not reached"
    lines = speed_table.table(rows).split("\n")
    assert lines[3].split()[:3] == ["PyMC", "script", "failed"]
    assert lines[4].split()[:4] == ["numpyro", "not", "reached", "5"]
    assert ">" not in lines[4]
    assert "Failed: PyMC script at n = 250, P = 25, seed 1000: MemoryError: too large" in lines


def test_the_picture(rows, tmp_path):
    figure = speed_picture.draw(rows)
    times, gradients = figure.axes[:2], figure.axes[2:]
    assert [axis.get_title() for axis in times] == ["25 inputs", "2000 inputs"]
    for axis in figure.axes:
        assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert times[0].get_ylabel() == "seconds to the target"
    assert gradients[0].get_ylabel() == "microseconds a gradient"
    drawn = {(line.get_label(), line.get_color()): line for line in times[0].lines}
    limit = drawn["limit", speed_picture.COLOURS["pymc"]]
    assert (limit.get_marker(), limit.get_linestyle()) == ("^", "None")
    assert limit.get_markerfacecolor() == "none"
    np.testing.assert_allclose(limit.get_ydata(), 100.0)
    # A method without a result has no line, and one with results no limit.
    assert np.isnan(drawn["reached", speed_picture.COLOURS["pymc"]].get_ydata()).all()
    ours = drawn["reached", speed_picture.COLOURS["default"]]
    np.testing.assert_allclose(ours.get_ydata(), 10.0)
    assert ("limit", speed_picture.COLOURS["default"]) not in drawn
    rows.to_csv(tmp_path / "s.csv", index=False)
    write_picture_of(tmp_path / "s.csv", speed_picture.draw, tmp_path / "docs" / "speed.png")
    assert (tmp_path / "docs" / "speed.png").read_bytes().startswith(b"\x89PNG")


def test_a_median_that_a_limit_hides_is_not_drawn(rows):
    one = rows[rows["method"] == "default"]
    three = pd.concat([one.assign(seed=seed) for seed in (1, 2, 3)])
    stopped = {"status": "limit", "seconds": 100.0, "seconds_to_target": np.nan}
    at = (three["n"] == 250) & (three["seed"] > 1)
    line = (
        speed_picture.draw(
            three.assign(**{name: three[name].mask(at, value) for name, value in stopped.items()})
        )
        .axes[0]
        .lines[0]
    )
    np.testing.assert_allclose(line.get_ydata(), [np.nan, 10.0])


# --- the command ----------------------------------------------------------------------------


def test_the_command(fits, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(speed, "work", lambda job, *limits: ({}, "not today"))
    tokens = ["--n", "250", "--n", "500", "--features", "25", "--limit-s", "60"]
    tokens += ["--times-ours", "30", "--max-limit", "200"]
    tokens += ["--results", str(tmp_path / "s.csv"), "--picture", str(tmp_path / "s.png")]
    assert main(["benchmark", "speed", *tokens, "--skip-gates"]) == 0
    text = capsys.readouterr().out
    assert "PyMC script: > 200 s" in text and "  > 200 s" in text
    assert {limit for _, limit in fits} == {60, 200}
    assert (tmp_path / "s.png").exists() and len(pd.read_csv(tmp_path / "s.csv")) == 8
    page = (tmp_path / "s.md").read_text()
    assert page.count("```") == 2 and "  > 200 s" in page
    assert main(["benchmark", "speed", "--help"]) == 0
    assert max(map(len, capsys.readouterr().out.split("\n"))) <= 80


@pytest.mark.parametrize(
    ("tokens", "word"),
    [
        (["--methods", "numpyr"], "numpyro"),
        (["--features", "4"], ">= 5"),
        (["--limit-s", "0"], "0"),
    ],
)
def test_options_that_cannot_be_used(tokens, word, capsys):
    assert main(["benchmark", "speed", *tokens]) == 2
    assert word in capsys.readouterr().err

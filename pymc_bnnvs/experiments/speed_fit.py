"""One fit of the speed benchmark, which stops when its draws of psi reach the target.

The draws are judged as they come, so the time to the target is read off a clock: nothing is
sampled twice, and no time is shared out afterwards. ``python -m pymc_bnnvs.experiments.speed_fit
job.json state.json`` is what :mod:`pymc_bnnvs.experiments.speed` starts, in a process of its own.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import nutpie
import pyarrow
import pymc as pm

from pymc_bnnvs.experiments.designs import Simulated, neural
from pymc_bnnvs.experiments.speed_gradient import (
    compile_gradient,
    gradient_times,
    numpyro_timer,
    pymc_timer,
    seconds_a_call,
)
from pymc_bnnvs.experiments.speed_rivals import numpyro_model, numpyro_psi, pymc_script
from pymc_bnnvs.experiments.speed_watch import Watch
from pymc_bnnvs.model import build_model
from pymc_bnnvs.report import replacing
from pymc_bnnvs.table import physical_memory

__all__ = ["fit"]

LEAST = 4  # draws a chain that R-hat needs
POLL_S = 0.05
BLOCK = 25  # transitions of numpyro between two looks at the clock, at most
BLOCK_S = 2.0  # and about how long they may take
NUMPYRO_TUNE = 1000  # it has no default; this is what its examples take


class Enough(Exception):
    """Leave ``pm.sample``: its draws are at the target, or out of time."""


def sample_pymc(model: pm.Model, watch: Watch, true: np.ndarray, seed: int, chains: int) -> Any:
    """Run ``pm.sample`` under watch; return what nutpie compiled.

    It is PyMC's own call; only where it starts nutpie and waits, this looks at the draws instead.
    All chains run at once, whatever the number of cores: else the last ones would start when the
    first ones have all their draws.

    Parameters
    ----------
    model : pm.Model
        With ``psi`` of all inputs.
    watch : Watch
    true : array of bool, shape (P,)
        Inputs that are judged.
    seed, chains : int
        As in ``pm.sample``.
    """
    compiled = None
    start = nutpie.sample

    def watched(model: Any, **kwargs: Any) -> None:
        nonlocal compiled
        compiled = model
        compiled_s = watch.seconds
        watch.facts["seconds_compile"] = compiled_s
        # A look at the draws copies them: both together get half of the memory.
        memory = physical_memory()
        if memory is not None:
            most = int(memory / 4 / (8 * chains * model.n_expanded))
            watch.max_draws = kwargs["draws"] = min(watch.max_draws, most)
        watch.facts["max_draws"] = watch.max_draws
        kept = [0]

        def count(progress: list[Any]) -> None:
            kept[0] = min(c.finished_draws - (c.total_draws - watch.max_draws) for c in progress)

        kwargs |= {"blocking": False, "return_raw_trace": True, "progress_callback": count}
        sampler = start(model, **kwargs)

        def look(*, judge: bool) -> None:
            psi, facts = read_draws(sampler.inspect(), true)
            seconds = watch.seconds
            watch.facts |= facts | {"seconds_sampling": seconds - compiled_s}
            if judge and psi.shape[1] >= LEAST:
                watch.judge(psi, seconds)

        try:
            while not watch.over:
                time.sleep(POLL_S)
                finished = has_finished(sampler)
                if finished or watch.due(kept[0]):
                    # Chains in the middle of a long trajectory may not answer in time.
                    with suppress(TimeoutError):
                        look(judge=True)
                if finished and not watch.ended:
                    sampler.wait()  # raises what ended it
                    raise RuntimeError("nutpie has ended before all draws were there")
            with suppress(TimeoutError):
                look(judge=False)
        finally:
            # A sampler that goes on while the process ends brings it down.
            sampler.cancel()
        raise Enough

    with patch.object(nutpie, "sample", watched), model:
        try:
            pm.sample(
                draws=watch.max_draws,
                chains=chains,
                cores=chains,
                random_seed=seed,
                quiet=True,
                progressbar=False,
            )
        except Enough:
            return compiled
    raise RuntimeError("pm.sample did not use nutpie, its default, and went unwatched")


def has_finished(sampler: Any) -> bool:
    """Whether nutpie's sampler has all draws, or has failed."""
    try:
        return bool(sampler.is_finished)
    except TimeoutError:  # how it says that it has not
        return False


def read_draws(trace: Any, true: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
    """Draws of the true inputs' psi (chains, draws, inputs) and facts, from nutpie's raw trace."""
    draws, stats = trace.get_arrow_trace()
    tuned = [int(column(batch, "tuning").sum()) for batch in stats]
    # The chains are not at the same draw.
    kept = min(batch.num_rows - tune for batch, tune in zip(stats, tuned, strict=True))
    kept = max(kept, 0)

    def after_tuning(batches: Sequence[Any], name: str) -> np.ndarray:
        return np.stack(
            [
                column(batch, name)[tune : tune + kept]
                for batch, tune in zip(batches, tuned, strict=True)
            ]
        )

    steps = after_tuning(stats, "n_steps")
    facts = {
        "draws": kept,
        "gradients": sum(int(column(batch, "n_steps").sum()) for batch in stats),
        "divergences": int(after_tuning(stats, "diverging").sum()),
    }
    if kept:  # before, the warm-up is not all there
        facts |= {"tune": max(tuned), "steps": float(steps.mean())}
        if "inclusion" in draws[0].schema.names:
            inclusion = after_tuning(draws, "inclusion")
            facts["open_gates"] = float(inclusion.sum(axis=-1).mean())
    return after_tuning(draws, "psi")[..., true], facts


def column(batch: Any, name: str) -> np.ndarray:
    """Column of an arrow table, with the variable's shape after the rows."""
    values = batch.column(name)
    shape = [int(size) for size in values.field.metadata.get(b"shape", b"").split(b",") if size]
    array = pyarrow.array(values)
    if pyarrow.types.is_large_list(array.type):
        array = array.flatten()
    return array.to_numpy(zero_copy_only=False).reshape(len(values), *shape)


def sample_numpyro(data: Simulated, watch: Watch, seed: int, chains: int) -> None:
    """Run numpyro's NUTS under watch, with as many devices as chains.

    ``numpyro.infer.MCMC.run`` takes the same transitions in one loop that can't be looked into, and
    stores every weight of every draw. Here a block of at most 25 transitions is one compiled call
    on all devices, which returns the psi of its draws; in the warm-up too, as nutpie does.

    Parameters
    ----------
    data : Simulated
    watch : Watch
    seed, chains : int
    """
    import jax
    import jax.numpy as jnp
    from numpyro.infer import NUTS

    kernel, tune = NUTS(numpyro_model()), NUMPYRO_TUNE
    X, y = jnp.asarray(data.X), jnp.asarray(data.y)
    start = jax.pmap(
        lambda key, X, y: kernel.init(key, tune, None, (X, y), {}), in_axes=(0, None, None)
    )
    state = start(jax.random.split(jax.random.key(seed), chains), X, y)

    def block(state: Any, transitions: int, X: Any, y: Any) -> Any:
        def step(i: int, carry: Any) -> Any:
            state, psi, steps, diverging = carry
            state = kernel.sample(state, (X, y), {})
            psi = psi.at[i].set(numpyro_psi(state.z, X))
            return state, psi, steps + state.num_steps, diverging + state.diverging

        empty = (jnp.zeros((BLOCK, X.shape[1])), jnp.zeros((), int), jnp.zeros((), int))
        return jax.lax.fori_loop(0, transitions, step, (state, *empty))

    mapped = jax.pmap(block, in_axes=(0, None, None, None))
    run = mapped.lower(state, jnp.asarray(1), X, y).compile()
    compiled_s = watch.seconds
    psi = np.empty((chains, watch.max_draws, int(data.truth.sum())))
    done, size, kept_steps = 0, 1, 0
    facts = watch.facts
    facts |= {"seconds_compile": compiled_s, "tune": tune, "max_draws": watch.max_draws}
    facts |= {"draws": 0, "gradients": 0, "divergences": 0}
    while not watch.over:
        before, kept = watch.seconds, facts["draws"]
        size = min(size, tune - done if done < tune else watch.max_draws - kept)
        state, found, steps, diverging = run(state, jnp.asarray(size), X, y)
        facts["gradients"] += int(steps.sum())
        if done >= tune:
            psi[:, kept : kept + size] = np.asarray(found)[:, :size, data.truth]
            kept_steps += int(steps.sum())
            facts["draws"] = kept + size
            facts["divergences"] += int(diverging.sum())
            facts["steps"] = kept_steps / (chains * facts["draws"])
        done += size
        seconds = watch.seconds
        facts["seconds_sampling"] = seconds - compiled_s
        size = int(np.clip(BLOCK_S * size / (seconds - before), 1, BLOCK))
        if watch.due(facts["draws"]):
            watch.judge(psi[:, : facts["draws"]], seconds)
        else:
            watch.report(watch.row())


def build(method: str, data: Simulated) -> pm.Model:
    """Build the PyMC model of a method; memory is looked after here, by the number of draws."""
    if method == "pymc":
        return pymc_script(data.X, data.y)
    if method == "gaussian":
        return build_model(data.X, data.y, prior="gaussian", hidden=50, check_memory=False)
    return build_model(data.X, data.y, check_memory=False)


def fit(job: dict[str, Any], report: Callable[[dict[str, Any]], None]) -> None:
    """Fit one data set by one method, and time the gradient alone.

    Parameters
    ----------
    job : dict
        ``method``, ``n``, ``n_features``, ``seed``, ``limit_s``, ``chains``, ``max_draws`` and
        ``fit``: False leaves the fit out and times the gradient only.
    report : callable
        Told what is known: columns of the results, and ``holds``.
    """
    data = neural(job["n"], job["n_features"], job["seed"])
    row: dict[str, Any] = {}
    compiled, n_open = None, None
    if job["fit"]:
        watch = Watch(job["limit_s"], job["max_draws"], report)
        if job["method"] == "numpyro":
            sample_numpyro(data, watch, job["seed"], job["chains"])
        else:
            model = build(job["method"], data)
            compiled = sample_pymc(model, watch, data.truth, job["seed"], job["chains"])
        row = watch.row()
        if "open_gates" in row:
            n_open = round(row["open_gates"])
        report(row)
    if job["method"] == "numpyro":
        timer = numpyro_timer(numpyro_model(), data.X, data.y)
    else:
        compiled = compiled or compile_gradient(build(job["method"], data))
        if job["method"] == "default" and n_open is None:
            n_open = job["n_features"]
        timer = pymc_timer(compiled, n_open=n_open, random_seed=job["seed"])
    report(row | {"gradient_us": 1e6 * seconds_a_call(timer), "gradient_open_gates": n_open})


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Write through a temporary file: the parent may read at any time."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(state, default=float))


def main(job_path: str, state_path: str) -> None:
    """Do the job in one file and keep what is known of it in the other."""
    job, path = json.loads(Path(job_path).read_text()), Path(state_path)
    # Should the memory run out, this is the process to kill.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    if job["method"] == "numpyro":
        import jax

        jax.config.update("jax_enable_x64", True)
    started = time.time()
    write_state(path, {"started": started})
    if job["method"] == "gates":
        rows = gradient_times(job["n"], job["n_features"], job["seed"])
        write_state(path, {"started": started, "rows": rows.to_dict("records")})
        return
    fit(job, lambda row: write_state(path, {"started": started, "row": row}))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A step that opens and closes gates, beside NUTS."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pymc as pm
from pymc.step_methods.compound import (
    BlockedStep,
    CompoundStep,
    StepMethodState,
)
from pymc.step_methods.hmc.quadpotential import (
    QuadPotentialDiagAdaptExp,
    QuadPotentialDiagAdaptState,
)
from pymc.step_methods.state import dataclass_state
from pytensor.graph.basic import Variable

from pymc_bnnvs.gate_moves import find_networks

__all__ = ["GateMoves", "gate_step"]

#: Part of the proposals to open a gate that goes to all of them alike.
EVEN_SHARE = 0.25
#: Part of the tuning that the mass matrix learns in.
METRIC_SHARE = 0.8
#: Draws that the share of a gate remembers, about.
MEMORY = 200
#: Proposals a draw for a gate that is in half of the time, and the least and the most in all.
MOVES_EACH, FEWEST_MOVES, MOST_MOVES = 8, 30, 100


def gate_step(
    model: pm.Model | None = None, *, target_accept: float = 0.9, moves: int | None = None
) -> CompoundStep:
    """Return NUTS with moves that open and close gates, to pass to ``pm.sample`` as ``step``.

    NUTS opens a gate where the weights behind it happen to fit, and closes it where they happen
    not to: an input that the data can't decide on may stay in, or out, for hundreds of draws.
    These moves propose a gate together with weights drawn from about their posterior given
    everything else, and accept by Metropolis and Hastings. The posterior is the same, a draw
    takes longer, and far fewer are needed (``docs/sampling.md``).

    Parameters
    ----------
    model : pm.Model, optional
        The model on the context stack if not given.
    target_accept : float
        Mean acceptance that NUTS adapts its step size to.
    moves : int, optional
        Proposals a draw and network. If not given, 30 to 100, the more the more gates are in
        at times and out at times while the chain tunes.

    Returns
    -------
    CompoundStep
        For ``pm.sample(step=...)``, which then uses PyMC's own NUTS.

    Raises
    ------
    ValueError
        If the model has no gates, or no likelihood yet.

    References
    ----------
    Carlin, B. P. and Chib, S. (1995). Bayesian model choice via Markov chain Monte Carlo
    methods. JRSS B 57. Green, P. J. (1995). Reversible jump Markov chain Monte Carlo computation
    and Bayesian model determination. Biometrika 82.

    Examples
    --------
    >>> import pymc as pm, pymc_bnnvs as bvs
    >>> from pymc_bnnvs.datasets import load_diabetes
    >>> with bvs.build_model(*load_diabetes(), hidden=3):
    ...     step = bvs.gate_step(moves=10)
    >>> [method.name for method in step.methods]
    ['nuts', 'gate_moves']
    """
    model = pm.modelcontext(model)
    moving = GateMoves(model=model, moves=moves)
    start = model.initial_point()
    size = sum(start[value.name].size for value in model.continuous_value_vars)
    # Gradients and draws tell the scales of thousands of variables in a few hundred draws.
    metric = SettlingMetric(size, np.zeros(size), alpha=0.02, use_grads=True)
    nuts = SettlingNUTS(potential=metric, target_accept=target_accept, model=model)
    return CompoundStep([nuts, moving])


@dataclass_state
class SettlingMetricState(QuadPotentialDiagAdaptState):
    """What a chain has learnt of the scales.

    Without the running averages: PyMC fails to read theirs, so a step could be used only once.
    They are made anew in every chain.
    """

    left: float


class SettlingMetric(QuadPotentialDiagAdaptExp):
    """Mass matrix that is left alone after a number of updates."""

    left: float = np.inf
    _state_class = SettlingMetricState

    def start(self, updates: int) -> None:
        """Start a chain."""
        self.left = updates

    def update(self, sample: np.ndarray, grad: np.ndarray, tune: bool) -> None:
        """Learn from a draw."""
        self.left -= 1
        super().update(sample, grad, tune and self.left >= 0)


class SettlingNUTS(pm.NUTS):
    """NUTS whose step size settles, in the last part of the tuning, on a mass matrix that stays."""

    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        """Start a chain."""
        super().setup_chain(rng, tune, draws)
        self.potential.start(int(METRIC_SHARE * tune))


@dataclass_state
class GateMovesState(StepMethodState):
    """What a chain has learnt of its gates."""

    tune: bool
    seen: int
    shares: list[np.ndarray]


class GateMoves(BlockedStep):
    """Metropolis-Hastings moves that open, close and redraw the gates of a model's networks.

    Parameters
    ----------
    vars : list of variables, optional
        The networks' gates, rows and what stands for them; found in the model if not given.
    model : pm.Model, optional
    moves : int, optional
        Proposals a draw and network; see :func:`how_many` if not given.
    rng : Generator, optional

    See Also
    --------
    gate_step : these moves beside NUTS.
    """

    name = "gate_moves"
    default_blocked = True
    stats_dtypes_shapes: ClassVar[dict] = {
        "gates_moved": (np.int64, []),
        "gates_tried": (np.int64, []),
    }
    _state_class = GateMovesState

    def __init__(
        self,
        vars: list[Variable] | None = None,
        *,
        model: pm.Model | None = None,
        moves: int | None = None,
        rng: Any = None,
        blocked: bool = True,
    ) -> None:
        if moves is not None and (not isinstance(moves, int | np.integer) or moves < 1):
            raise ValueError(f"moves={moves!r}: give the number of proposals a draw, 1 or more.")
        model = pm.modelcontext(model)
        self.networks = find_networks(model)
        names = [name for network in self.networks for name in network.names.values()]
        self.vars = [model.rvs_to_values[model[name]] for name in names]
        self.moves = moves
        self.rng = np.random.default_rng(rng)
        self.reset_tuning()

    def reset_tuning(self) -> None:
        """Forget what was learnt of the gates."""
        self.tune = True
        self.seen = 0
        self.shares = [np.full(len(network.columns), 0.5) for network in self.networks]

    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        """Start a chain."""
        super().setup_chain(rng, tune, draws)
        self.reset_tuning()

    def step(self, point: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[dict]]:
        """Try the moves of a draw."""
        moved = tried = 0
        for network, share in zip(self.networks, self.shares, strict=True):
            moves = how_many(share) if self.moves is None else self.moves
            point, accepted = network.sweep(point, chances(share), moves, self.rng)
            moved += accepted
            tried += moves
            if self.tune:
                names = network.names
                inside = point[names["gate"]] > point[names["threshold"]]
                share += (inside - share) / min(self.seen + 10, MEMORY)
        self.seen += self.tune
        return point, [{"gates_moved": moved, "gates_tried": tried}]


def how_many(share: np.ndarray) -> int:
    """Proposals a draw, given the share of the draws that each gate is in.

    It stands still after the tuning, as the shares do. Each unsure gate wants its proposals;
    where none is unsure, they only take time.
    """
    unsure = 4 * float((share * (1 - share)).sum())
    return int(np.clip(MOVES_EACH * unsure, FEWEST_MOVES, MOST_MOVES))


def chances(share: np.ndarray) -> np.ndarray:
    """Chances of each gate to be proposed to open, given its share of the draws when in.

    Proposals are for gates that are in sometimes; but any gate gets some.
    """
    unsure = np.minimum(share * (1 - share), 0.1)
    return (1 - EVEN_SHARE) * unsure / max(unsure.sum(), 1e-12) + EVEN_SHARE / share.size

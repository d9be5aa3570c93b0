"""Moves that open, close and redraw the gates of a network, by proposals that see the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.pytensorf import compile as compile_function
from pytensor.gradient import disconnected_grad
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs
from scipy.special import log_ndtr, ndtr, ndtri

from pymc_bnnvs.gated_dot import GatedDot
from pymc_bnnvs.gradient_field import without_level_mean
from pymc_bnnvs.started_normal import StartedNormalRV

__all__ = ["GatedNetwork", "find_networks"]

#: Rate of the exponential from which the distance of an opened gate to the threshold is drawn.
DISTANCE_RATE = 5.0
MOVES = ("open", "close", "redraw")


def find_networks(model: pm.Model) -> list[GatedNetwork]:
    """Find the networks with gates in a model, and compile what their moves need."""
    gates = [
        rv.name.removesuffix("gate")
        for rv in model.free_RVs
        if rv.name.endswith("gate") and isinstance(rv.owner.op, StartedNormalRV)
    ]
    if not gates:
        raise ValueError("the model has no gates to move: gate_step is for prior='gated'.")
    return [GatedNetwork(model, prefix) for prefix in gates]


class Closed(NamedTuple):
    """The posterior where a gate is closed, and how it bends with what the gate would let in.

    ``product`` (n, K) is the first layer's, ``logp`` the likelihood's, ``slope`` (n, K) its
    gradient along the product; its curvature is about ``-curve_i curve_i'`` in each row.
    """

    product: np.ndarray
    logp: float
    slope: np.ndarray
    curve: np.ndarray


class Open(NamedTuple):
    """An open gate: distance to the threshold, scale, rows, product and likelihood with it.

    ``proposal`` is the log density at which these rows are drawn, less a constant.
    """

    distance: float
    scale: float
    rows: np.ndarray
    product: np.ndarray
    logp: float
    proposal: float


class Gates:
    """A network's state while its gates move.

    Written for independent ``u ~ N(0, 1)`` and rows ``N(0, I)``, whatever the model samples.
    ``closed`` holds for any gate that is closed now; ``changed`` are the groups that moved.
    """

    def __init__(self, u: np.ndarray, threshold: float, scale: np.ndarray, rows: np.ndarray):
        self.u, self.threshold, self.scale, self.rows = u, threshold, scale, rows
        self.inside = u > threshold
        self.changed: set[int] = set()
        self.closed: Closed | None = None
        self.product = np.empty(0)
        self.logp = np.nan


class GatedNetwork:
    """A network of a model, seen by what its gates let through.

    Parameters
    ----------
    model : pm.Model
    prefix : str
        That of the network's variables.
    """

    def __init__(self, model: pm.Model, prefix: str) -> None:
        own = ("gate", "threshold", "z", "line", "effect", "level")
        free = {rv.name for rv in model.free_RVs}
        self.names = {name: f"{prefix}{name}" for name in own if f"{prefix}{name}" in free}
        data = {
            name: model[f"{prefix}{name}"].get_value()
            for name in ("x_center", "x_scale", "group_of", "always_in", "category_of")
            if f"{prefix}{name}" in model.named_vars
        }
        n_features = data["x_center"].size
        group_of = data.get("group_of", np.arange(n_features)).astype(int)
        self.columns = [np.flatnonzero(group_of == group) for group in range(group_of.max() + 1)]
        self.movable = np.ones(len(self.columns), dtype=bool)
        self.movable[group_of[data.get("always_in", np.zeros(n_features)) > 0]] = False
        X, standardized = self._compile(model, prefix)
        table = X - data["x_center"]
        if not standardized:
            # The prior mean of the biases, at the centre of the inputs, is one more row.
            table = np.vstack([data["x_center"], table])
        table = table / data["x_scale"]
        if "category_of" in data:
            # Contrasts of the weights are contrasts of the columns.
            table = without_level_mean(table[:, :, None], data["category_of"].astype(int))[:, :, 0]
        self.table = np.asfortranarray(table.astype(X.dtype))

    def _compile(self, model: pm.Model, prefix: str) -> tuple[np.ndarray, bool]:
        """Compile the likelihood as a function of the first layer's product, and its expansion.

        Return the inputs, and whether the prior is that of a bias at their centre. If it is not,
        the product has a first row, that at the centre, and the density of the biases is a part of
        the likelihood.
        """
        function = model[prefix.removesuffix("_") or "f"]
        z = model.rvs_to_values[model[self.names["z"]]]
        terms = model.logp(sum=False)
        values = model.replace_rvs_by_values([function])
        X = _inputs(_products(values, z)[0])
        products = _products([*terms, *values], z)
        product = pt.matrix("product", dtype=products[0].dtype)
        of_data = [node for node in products if _inputs(node) is X]
        at_center = [node for node in products if _inputs(node) is not X]
        start = model.initial_point()
        units = start[z.name].shape[1]
        replaced = dict.fromkeys(of_data, product[1:] if at_center else product)
        replaced |= dict.fromkeys(at_center, product[:1, :units])
        *terms, value = clone_replace([*terms, *values], replaced)
        direction = pt.grad(pt.sum(value), product)
        terms = [term for term in terms if product in set(ancestors([term]))]
        if not terms:
            raise ValueError(
                f"the data do not depend on {function.name!r}: give the model its likelihood "
                f"before gate_step()."
            )
        logp = sum(term.sum() for term in terms)
        slope = pt.grad(logp, product)
        # A row of the product acts through f at that row, so the likelihood bends along the
        # gradient of f alone, by as much as the slope changes along it.
        along = disconnected_grad(direction)
        bend = pt.grad(pt.sum(slope * along), product)
        size = pt.maximum(pt.sum(along**2, axis=1), 1e-30)
        weight = pt.maximum(-pt.sum(along * bend, axis=1), 0.0) / size**2
        curve = along * pt.sqrt(weight)[:, None]

        wanted = {"scale": model[f"{prefix}scale"]}
        if f"{prefix}line" in model.named_vars:
            wanted["line"] = model[f"{prefix}line"]
        for name, parts in (("effect", ("mean", "sd")), ("level", ("mean",))):
            if name in self.names:
                node = model[self.names[name]].owner
                params = node.op.dist_params(node)
                wanted |= {f"{name}_{part}": p for part, p in zip(parts, params, strict=False)}
        read = model.replace_rvs_by_values(list(wanted.values()))
        own = set(model.value_vars)
        inputs = [variable for variable in ancestors([logp, *read]) if variable in own]
        self.shared = {v.name: pytensor.shared(start[v.name], name=v.name) for v in inputs}
        given = {v: self.shared[v.name] for v in inputs}
        distance = pt.dscalar("distance")
        gate, threshold = (
            model.rvs_to_values[model[self.names[name]]] for name in ("gate", "threshold")
        )
        opened = (pt.zeros_like(gate) + threshold + distance).astype(gate.dtype)
        (scale,) = clone_replace(read[:1], {gate: opened})

        def compiled(arguments: list[Variable], outputs: list[Variable]) -> Callable[..., Any]:
            function = compile_function(arguments, clone_replace(outputs, given))
            function.trust_input = True
            return function

        self.likelihood = compiled([product], [logp])
        self.expansion = compiled([product], [logp, slope, curve])
        self._wanted, self._read = tuple(wanted), compiled([], read)
        self.scale_at = compiled([distance], [scale])
        return X.eval().astype(product.dtype), not at_center

    def read(self) -> dict[str, np.ndarray]:
        """Scales, lines, and where the prior puts effects and level, at the shared values."""
        return dict(zip(self._wanted, self._read(), strict=True))

    def sweep(
        self,
        point: dict[str, np.ndarray],
        chances: np.ndarray,
        moves: int,
        rng: np.random.Generator,
    ) -> tuple[dict[str, np.ndarray], int]:
        """Try a number of moves.

        Parameters
        ----------
        point : dict
            Values of the model's variables.
        chances : array, shape (G,)
            Chances of the closed gates to be the one that is to open.
        moves : int
        rng : Generator

        Returns
        -------
        dict, int
            The point after the moves, and the number of those accepted.
        """
        for name, shared in self.shared.items():
            shared.set_value(np.asarray(point[name], dtype=shared.dtype), borrow=True)
        before = self.read()
        rows = point[self.names["z"]].copy()
        if "line" in before:
            rows = np.column_stack([rows, before["line"]])
        gates = Gates(
            point[self.names["gate"]].copy(),
            float(point[self.names["threshold"]]),
            before["scale"],
            rows,
        )
        inside = np.flatnonzero(gates.scale > 0)
        gates.product = self.table[:, inside] @ (gates.scale[inside, None] * rows[inside])
        gates.logp = float(self.likelihood(gates.product)[0])
        accepted = sum(self.move(gates, chances, rng) for _ in range(moves))
        if gates.changed:
            point = self._write(point, gates, before)
        return point, accepted

    def move(self, gates: Gates, chances: np.ndarray, rng: np.random.Generator) -> bool:
        """Try to open, to close or to redraw a gate."""
        is_open = np.flatnonzero(gates.inside & self.movable)
        kind = MOVES[rng.integers(len(MOVES))]
        shut = np.where(gates.inside | ~self.movable, 0.0, chances)
        if kind == "open":
            if not shut.any():
                return False
            ladder = np.cumsum(shut)
            group = int(np.searchsorted(ladder, rng.uniform() * ladder[-1], side="right"))
            # Of all ways to open, this one; of all ways back, this one.
            way = np.log(1 / (is_open.size + 1)) - np.log(chances[group] / ladder[-1])
        else:
            if not is_open.size:
                return False
            group = int(is_open[rng.integers(is_open.size)])
            way = 0.0
            if kind == "close":
                total = shut.sum() + chances[group]
                way = np.log(chances[group] / total) - np.log(1 / is_open.size)
        closed = self._closed(gates, group)
        slope, bend = self._expansion(closed, group)
        ratio, proposed = way, None
        if kind != "close":
            proposed = self._draw(closed, slope, bend, group, rng)
            ratio += self._weight(gates, closed, proposed)
        if kind != "open":
            ratio -= self._weight(gates, closed, self._present(gates, slope, bend, group))
        # Not accepted either where it is not a number.
        if not np.log(rng.uniform()) < ratio:
            return False
        own = self.columns[group]
        gates.inside[group] = proposed is not None
        if proposed is None:
            gates.u[group] = ndtri(rng.uniform() * ndtr(gates.threshold))
            gates.scale[own], gates.product, gates.logp = 0.0, closed.product, closed.logp
            gates.rows[own] = rng.normal(size=gates.rows[own].shape)
            gates.closed = closed
        else:
            gates.u[group] = gates.threshold + proposed.distance
            gates.scale[own], gates.rows[own] = proposed.scale, proposed.rows
            gates.product, gates.logp = proposed.product, proposed.logp
            gates.closed = None
        gates.changed.add(group)
        return True

    def _closed(self, gates: Gates, group: int) -> Closed:
        """Return the posterior with this gate closed."""
        if gates.inside[group]:
            own = self.columns[group]
            let_in = self.table[:, own] @ (gates.scale[own, None] * gates.rows[own])
            return self._expanded(gates.product - let_in)
        if gates.closed is None:
            gates.closed = self._expanded(gates.product)
        return gates.closed

    def _expanded(self, product: np.ndarray) -> Closed:
        logp, slope, curve = self.expansion(product)
        return Closed(product, float(logp), slope, curve)

    def _expansion(self, closed: Closed, group: int) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and minus the curvature of the likelihood along the group's weights."""
        table = self.table[:, self.columns[group]]
        slope = (table.T @ closed.slope).ravel()
        lines = (table[:, :, None] * closed.curve[:, None, :]).reshape(len(table), -1)
        return slope, lines.T @ lines

    def _draw(
        self,
        closed: Closed,
        slope: np.ndarray,
        bend: np.ndarray,
        group: int,
        rng: np.random.Generator,
    ) -> Open:
        """Draw a distance, and rows from about their posterior given it."""
        distance = rng.exponential(1 / DISTANCE_RATE)
        own = self.columns[group]
        scale = float(self.scale_at(np.asarray(distance))[0][own[0]])
        mean, root = _normal(slope, bend, scale)
        noise, _ = dtrtrs(root, rng.normal(size=mean.size), lower=1, trans=1)
        rows = (mean + noise).reshape(own.size, -1).astype(self.table.dtype)
        product = closed.product + self.table[:, own] @ (scale * rows)
        logp = float(self.likelihood(product)[0])
        return Open(distance, scale, rows, product, logp, _log_density(rows, mean, root))

    def _present(self, gates: Gates, slope: np.ndarray, bend: np.ndarray, group: int) -> Open:
        """Return an open gate as it is."""
        own = self.columns[group]
        distance, scale = gates.u[group] - gates.threshold, gates.scale[own[0]]
        rows = gates.rows[own]
        proposal = _log_density(rows, *_normal(slope, bend, scale))
        return Open(distance, scale, rows, gates.product, gates.logp, proposal)

    def _weight(self, gates: Gates, closed: Closed, state: Open) -> float:
        """Log of posterior over proposal of an open gate, in units of that of the closed one."""
        rows = state.rows.ravel()
        u = gates.threshold + state.distance
        distance = np.log(DISTANCE_RATE) - DISTANCE_RATE * state.distance
        of_gate = -0.5 * (u**2 + np.log(2 * np.pi)) - log_ndtr(gates.threshold) - distance
        return state.logp - closed.logp - 0.5 * rows @ rows - state.proposal + of_gate

    def _write(
        self, point: dict[str, np.ndarray], gates: Gates, before: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Put what has changed into the variables that the model samples."""
        names, point = self.names, dict(point)
        units = point[names["z"]].shape[1]
        moved = np.concatenate([self.columns[group] for group in sorted(gates.changed)])
        point[names["gate"]] = gates.u
        for name, part in (("z", np.s_[:, :units]), ("line", np.s_[:, -1])):
            if name in names:
                values = point[names[name]].copy()
                values[moved] = gates.rows[part][moved]
                point[names[name]] = values
        for name in ("gate", "z"):
            if names[name] in self.shared:
                self.shared[names[name]].set_value(point[names[name]], borrow=True)
        now = self.read()
        if "effect" in names:
            # The effects are about what the units do, all of which may have moved.
            effect = now["effect_mean"] + now["effect_sd"] * gates.rows[:, -1]
            point[names["effect"]] = effect.astype(point[names["effect"]].dtype)
        if "level" in names:
            # The bias stays, so the level goes with the units.
            level = point[names["level"]]
            level = level + now["level_mean"] - before["level_mean"]
            point[names["level"]] = np.asarray(level, dtype=point[names["level"]].dtype)
        return point


def _products(graphs: Sequence[Variable], z: Variable) -> list[Variable]:
    """Gated products in graphs that depend on these rows."""
    products = [v for v in ancestors(graphs) if v.owner and isinstance(v.owner.op, GatedDot)]
    return [product for product in products if z in set(ancestors([product]))]


def _inputs(product: Variable) -> Variable:
    """Return the inputs in a product, before a cast."""
    X = product.owner.inputs[0]
    return X if X.owner is None else X.owner.inputs[0]


def _normal(slope: np.ndarray, bend: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean of rows given their scale, and the root of their precision, for this expansion."""
    # LAPACK itself: the checks of scipy.linalg take longer than a few units do.
    precision = scale**2 * bend
    precision.flat[:: len(precision) + 1] += 1.0
    root, _ = dpotrf(precision, lower=1)
    mean, _ = dpotrs(root, scale * slope, lower=1)
    return mean, root


def _log_density(rows: np.ndarray, mean: np.ndarray, root: np.ndarray) -> float:
    """Log density of a normal with the root of its precision, less a constant."""
    away = root.T @ (rows.ravel() - mean)
    return np.log(root.diagonal()).sum() - 0.5 * away @ away

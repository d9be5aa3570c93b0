"""Moments of the gradient field over the draws, in one streaming pass and bounded memory.

The gradient ``g_ip = d f(x_i) / d x_p`` of every draw would be ``draws x n x P`` numbers. What
the centring and the signs need is its mean over the draws (``n x P``) and its mean over the rows
(``draws x P``): both are matrix products of the draws' slopes and weights, taken in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import xarray as xr
from pymc.pytensorf import compile as compile_function
from pytensor.graph.traversal import ancestors

from pymc_bnnvs.activations import as_activation

__all__ = ["GradientMoments", "Network", "gradient_moments", "gradient_moments_from_model"]

MAX_BYTES = 2**27
#: Cut-off of the paper's pseudo-inverse, for each unit: that of the author's code, which leaves it
#: to TensorFlow in single precision. The trace depends on it by orders of magnitude.
TRACE_RCOND = 10 * float(np.finfo(np.float32).eps)


class GradientMoments(NamedTuple):
    """Moments of the gradient field of ``S`` draws at ``n`` rows of ``P`` inputs.

    ``field`` ``(n, P)`` is the mean over the draws, ``average`` ``(S, P)`` the mean over the rows,
    ``psi`` ``(S, P)`` the mean square over the rows, ``trace`` ``(S, P)`` the paper's bias of a
    draw (without the noise variance), if it was asked for.
    """

    field: np.ndarray
    average: np.ndarray
    psi: np.ndarray
    trace: np.ndarray | None


@dataclass(frozen=True)
class InputWeights:
    """Draws of the first layer's weights ``(S, P, K)``, written down for the draws asked for.

    For thousands of inputs a copy of all of them would take gigabytes.
    """

    rows: np.ndarray
    x_scale: np.ndarray
    scale: np.ndarray | None = None
    line: np.ndarray | None = None
    category_of: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of draws, inputs and units, the line among them."""
        *lead, width = self.rows.shape
        return (*lead, width + (self.line is not None))

    def __getitem__(self, block: Any) -> np.ndarray:
        """Weights of these draws, on the raw scale of the inputs."""
        weights = self.rows[block]
        if self.line is not None:
            weights = np.concatenate([weights, self.line[block][..., None]], axis=-1)
        if self.scale is not None:
            weights = self.scale[block][..., None] * weights
        if self.category_of is not None:
            weights = without_level_mean(weights, self.category_of)
        return weights / self.x_scale[:, None]


class Network(NamedTuple):
    """Draws of a network's weights, read back from a posterior.

    Shapes, for ``S`` draws: ``X`` ``(n, P)`` centred; ``inputs`` ``(S, P, K)`` on the raw scale of
    the inputs; ``bias`` ``(S, K)``; ``hidden`` pairs of ``(S, K, K')`` and ``(S, K')``; ``beta``
    ``(S, K)`` on the scale of the outcome. With a ``line``, its output weight, the inputs have
    the weights of one more unit, the last, whose value goes to the output as it is.
    """

    X: np.ndarray
    inputs: np.ndarray | InputWeights
    bias: np.ndarray
    hidden: tuple[tuple[np.ndarray, np.ndarray], ...]
    beta: np.ndarray
    activation: str
    line: float | None = None

    @classmethod
    def read(cls, posterior: xr.Dataset, constant: xr.Dataset, prefix: str = "") -> Network:
        """Read the network whose variables start with ``prefix``.

        Raises
        ------
        KeyError
            If the draws do not hold the weights, or no constant data came with them.
        """
        depth = constant[f"{prefix}width"].size - 1
        activation = str(constant[f"{prefix}layer"].values[-1]).split()[0]

        def draws(name: str) -> np.ndarray:
            array = posterior[f"{prefix}{name}"]
            other = [dim for dim in array.dims if dim not in ("chain", "draw")]
            values = array.transpose("chain", "draw", *other).values
            return values.reshape(-1, *values.shape[2:])

        parts: dict[str, np.ndarray] = {}
        if f"{prefix}W_1" in posterior:
            rows = draws("W_1")
        else:
            rows, parts["scale"] = draws("z"), draws("scale")
            if f"{prefix}line_sd" in constant:
                parts["line"] = draws("line")
        if f"{prefix}category_of" in constant:
            parts["category_of"] = constant[f"{prefix}category_of"].values.astype(int)
        X = constant["X" if not prefix else _inputs_of(posterior, constant, prefix)]
        return cls(
            X=X.values - constant[f"{prefix}x_center"].values,
            inputs=InputWeights(rows, constant[f"{prefix}x_scale"].values, **parts),
            bias=draws("b_1"),
            hidden=tuple((draws(f"W_{i}"), draws(f"b_{i}")) for i in range(2, depth + 1)),
            beta=draws("beta") * float(constant[f"{prefix}f_scale"]),
            activation=activation,
            line=_line_weight(constant, prefix),
        )

    @property
    def n_draws(self) -> int:
        """Number of draws, over all chains."""
        return self.inputs.shape[0]

    def block_size(self, max_bytes: int) -> int:
        """Draws a block may hold, so that its temporaries stay below ``max_bytes``."""
        n, n_features = self.X.shape
        widths = [self.inputs.shape[2], *(W.shape[2] for W, _ in self.hidden)]
        per_draw = 8 * (7 * n * sum(widths) + 6 * n_features * widths[0])
        return max(1, max_bytes // per_draw)

    def blocks(self, max_bytes: int) -> Iterator[slice]:
        """Slices over the draws."""
        size = self.block_size(max_bytes)
        for start in range(0, self.n_draws, size):
            yield slice(start, min(start + size, self.n_draws))

    def values(self, block: slice) -> np.ndarray:
        """Return f less its level, ``(B, n)``."""
        _, unit, line = self.forward(block)
        return np.einsum("snk,sk->sn", unit, self.beta[block]) + line

    def forward(self, block: slice) -> tuple[list[np.ndarray], np.ndarray, np.ndarray | float]:
        """Pre-activations of each layer, the last layer's units, and what the line adds to f."""
        act = as_activation(self.activation)
        z = np.matmul(self.X, self.inputs[block])
        line: np.ndarray | float = 0.0
        if self.line is not None:
            z, line = z[..., :-1], self.line * z[..., -1]
        z = z + self.bias[block][:, None, :]
        preactivations, unit = [z], act.value(z)
        for W, b in self.hidden:
            z = np.matmul(unit, W[block]) + b[block][:, None, :]
            preactivations.append(z)
            unit = act.value(z)
        return preactivations, unit, line

    def slopes(self, block: slice) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
        """Gradient of f at the first layer's units ``(B, n, K)``, derivatives, last units."""
        derivative = as_activation(self.activation).derivative
        preactivations, unit, _ = self.forward(block)
        derivatives = [derivative(z) for z in preactivations]
        slope = derivatives[-1] * self.beta[block][:, None, :]
        for (W, _), below in zip(self.hidden[::-1], derivatives[-2::-1], strict=True):
            slope = np.matmul(slope, W[block].transpose(0, 2, 1)) * below
        if self.line is not None:
            slope = np.concatenate([slope, np.full((*slope.shape[:2], 1), self.line)], axis=2)
        return slope, derivatives, unit


def without_level_mean(inputs: np.ndarray, category_of: np.ndarray) -> np.ndarray:
    """Take the mean over a category's levels off their weights, as the model does."""
    inputs = inputs.copy()
    for category in range(category_of.max() + 1):
        own = category_of == category
        inputs[..., own, :] -= inputs[..., own, :].mean(axis=-2, keepdims=True)
    return inputs


def _line_weight(constant: xr.Dataset, prefix: str) -> float | None:
    """Output weight of the line, on the scale of the outcome."""
    if f"{prefix}line_sd" not in constant:
        return None
    return float(constant[f"{prefix}line_sd"] * constant[f"{prefix}f_scale"])


def _inputs_of(posterior: xr.Dataset, constant: xr.Dataset, prefix: str) -> str:
    """Name of the data that a network of the user's own model was built on."""
    own = f"{prefix}X"
    if own in constant:
        return own
    dims = (*posterior[prefix.removesuffix("_")].dims[2:], *posterior[f"{prefix}psi"].dims[2:])
    fits = [str(name) for name, data in constant.data_vars.items() if data.dims == dims]
    if len(fits) != 1:
        raise KeyError(f"the constant data with dims {dims}")
    return fits[0]


def gradient_moments(
    network: Network, *, trace: bool = False, max_bytes: int = MAX_BYTES
) -> GradientMoments:
    """Stream over the draws of a network.

    Parameters
    ----------
    network : Network
        Draws of the weights.
    trace : bool
        Also the paper's ``tr(H_p) / n`` of each draw, on the last hidden layer's units.
    max_bytes : int
        Bound on a block's temporaries. What is returned comes on top:
        ``8 * (n * P + 2 * S * P)`` bytes, and ``8 * S * P`` more with ``trace``.

    Returns
    -------
    GradientMoments
    """
    n, n_features = network.X.shape
    total = np.zeros((n, n_features))
    average = np.empty((network.n_draws, n_features))
    psi = np.empty_like(average)
    bias = np.empty_like(average) if trace else None
    for block in network.blocks(max_bytes):
        W = network.inputs[block]
        slope, derivatives, unit = network.slopes(block)
        size, _, width = slope.shape
        # The sum over draws of slope @ W' is one product of the draws laid side by side.
        beside = slope.transpose(1, 0, 2).reshape(n, size * width)
        total += beside @ W.transpose(0, 2, 1).reshape(size * width, n_features)
        average[block] = np.matmul(W, slope.mean(axis=1)[:, :, None])[:, :, 0]
        psi[block] = _quadratic(W, np.matmul(slope.transpose(0, 2, 1), slope) / n)
        if bias is not None:
            bias[block] = _quadratic(W, _trace_form(network, block, derivatives, unit)) / n
    return GradientMoments(total / network.n_draws, average, psi, bias)


def _quadratic(W: np.ndarray, form: np.ndarray) -> np.ndarray:
    """Return the diagonal of ``W form W'`` of each draw."""
    return np.sum(np.matmul(W, form) * W, axis=2)


def _trace_form(
    network: Network, block: slice, derivatives: list[np.ndarray], unit: np.ndarray
) -> np.ndarray:
    """Return ``sum_i J_i' (Phi'Phi)^+ J_i`` of each draw; J: last units by first pre-activation.

    ``||dPhi_p Phi^+||_F^2`` is then ``W_p' form W_p``; a line, whose output weight is known, adds
    nothing.
    """
    gram = np.matmul(unit.transpose(0, 2, 1), unit)
    inverse = np.linalg.pinv(gram, rcond=TRACE_RCOND * unit.shape[2], hermitian=True)
    width = network.bias.shape[1]
    forms = np.zeros((unit.shape[0], *2 * (network.inputs.shape[2],)))
    for draw in range(unit.shape[0]):
        # jacobian[i] is (last units, first pre-activations)
        jacobian = derivatives[0][draw][:, None, :] * np.eye(width)
        for (W, _), above in zip(network.hidden, derivatives[1:], strict=True):
            jacobian = above[draw][:, :, None] * np.matmul(W[block][draw].T, jacobian)
        forms[draw, :width, :width] = np.einsum(
            "ilk,lm,imj->kj", jacobian, inverse[draw], jacobian, optimize="optimal"
        )
    return forms


def gradient_moments_from_model(
    model: pm.Model, posterior: xr.Dataset, name: str = "psi"
) -> GradientMoments:
    """Stream over the draws of any function registered with ``gradient_importance``.

    Parameters
    ----------
    model : pm.Model
        The model that the draws came from.
    posterior : xr.Dataset
        Draws of every free variable of the model.
    name : str
        Name of the importance in the model.

    Returns
    -------
    GradientMoments
        Holds ``8 * (n * P + 2 * S * P)`` bytes; one draw's gradient is in memory at a time.
    """
    tagged = [v for v in ancestors([model[name]]) if v.name == f"{name}::gradient"]
    if not tagged:
        raise ValueError(f"{name!r} was not registered with gradient_importance in this model.")
    free = [rv for rv in model.free_RVs if rv in set(ancestors([tagged[0]]))]
    missing = [rv.name for rv in free if rv.name not in posterior]
    if missing:
        raise ValueError(
            f"the draws of {', '.join(missing)} are needed to compute the gradient again, "
            f"but were not kept: sample without var_names."
        )
    function = compile_function(free, tagged[0], on_unused_input="ignore")
    draws = posterior[[rv.name for rv in free]].stack(sample=("chain", "draw"))
    arrays = [draws[rv.name].transpose("sample", ...).values for rv in free]
    n_draws = draws.sizes["sample"]
    field: np.ndarray | float = 0.0
    average, psi = [], []
    for index in range(n_draws):
        gradient = np.asarray(
            function(*(a[index].astype(rv.dtype) for a, rv in zip(arrays, free, strict=True)))
        )
        field = field + gradient / n_draws
        average.append(gradient.mean(axis=0))
        psi.append(np.mean(gradient**2, axis=0))
    return GradientMoments(np.asarray(field), np.array(average), np.array(psi), None)

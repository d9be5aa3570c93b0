"""Priors of the first layer: how an input's row of weights is scaled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable
from scipy.stats import norm

from pymc_bnnvs.errors import unknown_option
from pymc_bnnvs.first_layer import FirstLayer
from pymc_bnnvs.started_normal import StartedNormal

__all__ = ["ARD", "Gated", "Gaussian", "Horseshoe", "Prior", "SpikeSlab", "as_prior"]


class Slot(NamedTuple):
    """Where a first layer sits in its model: names, dims and the sharing of gates.

    ``name`` adds the network's prefix to a variable's name. ``feature``, ``group`` and
    ``hidden`` are dims; ``group`` is the dim of whatever the columns of a group share.
    """

    name: Callable[[str], str]
    feature: str
    group: str
    hidden: str
    units: int
    n_obs: int
    group_of: np.ndarray
    always_in: np.ndarray
    starts_open: np.ndarray


@dataclass(frozen=True)
class Prior:
    """Base of the priors: what every layer after the first one has in common.

    Parameters
    ----------
    bias_sd : float
        Standard deviation of the first layer's biases, at the centre of the inputs.
    output_sd : float
        Scale of the half-normal prior of the output scale ``tau``, where
        ``beta_k ~ N(0, tau**2 / K)``, in units of the (standardised) outcome.
    """

    bias_sd: float = 1.0
    output_sd: float = 1.0

    kind: ClassVar[str] = ""
    exact_zeros: ClassVar[bool] = False
    #: Activation that goes with the prior if none is asked for.
    activation: ClassVar[str] = "relu"
    #: Parameters for which 0 has a meaning.
    may_be_zero: ClassVar[tuple[str, ...]] = ()
    #: Multiple of the variance of the gradient taken off a draw of psi: 2 under a flat prior, 1
    #: under those here, where it leaves null inputs at 0 (docs/selection.md).
    centering_factor: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        """Refuse a parameter that is not positive and finite."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_mean") or isinstance(value, bool):
                continue
            if value == 0 and field.name in self.may_be_zero:
                continue
            if not np.isfinite(value) or value <= 0:
                raise ValueError(
                    f"{type(self).__name__}({field.name}={value!r}): "
                    f"give a positive, finite number."
                )

    @property
    def samples_level(self) -> bool:
        """Whether the level of f is sampled, in the place of its value where all units are 0."""
        return False

    def first_layer(self, slot: Slot) -> FirstLayer:
        """Register the first layer's variables in the current model."""
        raise NotImplementedError

    def line(self, slot: Slot, first: FirstLayer, slope: TensorVariable) -> FirstLayer:
        """Register a unit without a kink, for priors that have one.

        ``slope`` (units,) is about the mean gradient of the function along the other units.
        """
        return first

    def hidden_layer(self, name: str, fan_in: int, dims: tuple[str, str]) -> TensorVariable:
        """Weights of a later layer; variance ``2 / fan_in`` (He et al. 2015)."""
        return pm.Normal(name, 0.0, np.sqrt(2.0 / fan_in), dims=dims)

    def hidden_bias(
        self, name: str, dims: str, mean: float | TensorVariable = 0.0
    ) -> TensorVariable:
        """Biases of a hidden layer."""
        return pm.Normal(name, mean, self.bias_sd, dims=dims)

    def output(self, name: Callable[[str], str], fan_in: int, dims: str) -> TensorVariable:
        """Output weights with a learned common scale, non-centred."""
        tau = pm.HalfNormal(name("tau"), self.output_sd)
        raw = pm.Normal(name("beta_raw"), dims=dims)
        return pm.Deterministic(name("beta"), raw * tau / np.sqrt(fan_in), dims=dims)

    def intercept(self, name: str, mean: float | TensorVariable = 0.0) -> TensorVariable:
        """Output bias."""
        return pm.Normal(name, mean, 1.0)


#: Spread of the linear effect that a closed gate holds ready, in units of the outcome.
CLOSED_SPREAD = 0.1
#: Distance from the threshold at which an open gate starts; PyMC's jitter moves both by up to 1.
OPEN_START = 1.5
CLOSED_START = -1.0


def by_feature(slot: Slot, scale: TensorVariable) -> TensorVariable:
    """Register the scale of each input, given that of each group."""
    return pm.Deterministic(slot.name("scale"), scale[slot.group_of], dims=slot.feature)


def normal_rows(slot: Slot) -> TensorVariable:
    """Rows ``z_p ~ N(0, I)``."""
    return pm.Normal(slot.name("z"), dims=(slot.feature, slot.hidden))


@dataclass(frozen=True)
class Gated(Prior):
    """Gate on the scale of an input, which gives exact zeros.

    Input ``p`` enters with the scale ``s_p = t**2 / (t + softness)``, ``t = max(u_p - c, 0)``,
    where ``u_p ~ N(0, 1)`` and the threshold ``c ~ N(threshold_mean, threshold_sd)`` is shared.
    Columns of one group share one gate. The latents are continuous, so NUTS samples the model,
    and a closed gate makes the input's weights, and so its ``psi``, exactly zero.

    Parameters
    ----------
    threshold_mean, threshold_sd : float
        Prior of the threshold ``c``. The default puts the prior inclusion probability of an
        input at about 0.19, spread widely over the inputs' common sparsity.
    softness : float
        How gently a gate opens; 0 is a plain relu, whose kink shortens the steps of NUTS.
    linear_sd : float
        Beside the units an input has a line behind its gate, with the slope
        ``s_p * linear_sd * g_p``, ``g_p ~ N(0, 1)``; 0 for a network without lines.
    reparametrize : bool
        Sample the linear effect of an input and the level of the function themselves, instead
        of through the weights. The same model, in coordinates that NUTS walks faster.
    bias_sd, output_sd : float
        See :class:`Prior`.

    Notes
    -----
    What the data see first of an input is its linear effect: the slope of its line, and the mean
    slope ``m_p`` of what the units do, about ``s_p sum_k z_pk beta_k Phi(b_k / sd)`` for units
    that lie about ``N(b_k, sd**2)``, ``sd**2 = sum_p s_p**2``. With the slope of the line as a
    coordinate, every other weight would be tied to it by what the data know best. So what is
    sampled is ``effect_p = g_p sqrt(x**2 + 1) + m_p / 0.1``, ``x = s_p linear_sd / 0.1``: the whole
    effect of an open gate, in tenths of the outcome's unit, and free noise for a closed one.
    """

    threshold_mean: float = 1.0
    threshold_sd: float = 0.5
    softness: float = 0.5
    linear_sd: float = 0.5
    reparametrize: bool = True

    kind: ClassVar[str] = "gated"
    exact_zeros: ClassVar[bool] = True
    activation: ClassVar[str] = "rounded_relu"
    may_be_zero: ClassVar[tuple[str, ...]] = ("softness", "linear_sd")

    @property
    def samples_level(self) -> bool:
        """Whether the level of f is sampled, in the place of its value where all units are 0."""
        return self.reparametrize

    def first_layer(self, slot: Slot) -> FirstLayer:
        """Register gates and rows."""
        # A chain that starts with the gates open finds the inputs; a closed gate has no gradient.
        # Where few of many are, the threshold starts high: else the jitter opens hundreds.
        at = max(self.threshold_mean, float(norm.isf(slot.starts_open.mean())))
        start = np.where(slot.starts_open, at + OPEN_START, CLOSED_START)
        u = StartedNormal(slot.name("gate"), start=start, dims=slot.group)
        c = StartedNormal(slot.name("threshold"), self.threshold_mean, self.threshold_sd, start=at)
        t = pt.maximum(u - c, 0.0)
        scale = t**2 / (t + self.softness) if self.softness else t
        if slot.always_in.any():
            scale = pt.switch(slot.always_in, abs(u), scale)
        scale = by_feature(slot, scale)
        return FirstLayer(normal_rows(slot), scale, pt.gt(scale, 0.0))

    def line(self, slot: Slot, first: FirstLayer, slope: TensorVariable) -> FirstLayer:
        """Register the lines, by the linear effects that they make up for."""
        if not self.linear_sd:
            return first
        # For those who read the draws; in the graph a number compiles sooner than a variable.
        pm.Data(slot.name("line_sd"), self.linear_sd)
        line_sd = self.linear_sd
        if not self.reparametrize:
            line = pm.Normal(slot.name("line"), dims=slot.feature)
            return first._replace(line=line, line_sd=line_sd)
        assert first.scale is not None
        # In units of what a closed gate holds ready: PyMC's jitter at the start is 1.
        units = first.scale * pt.dot(first.rows, slope) / CLOSED_SPREAD
        sd = pt.sqrt((first.scale * line_sd / CLOSED_SPREAD) ** 2 + 1.0)
        effect = pm.Normal(slot.name("effect"), units, sd, dims=slot.feature)
        line = pm.Deterministic(slot.name("line"), (effect - units) / sd, dims=slot.feature)
        return first._replace(line=line, line_sd=line_sd)


@dataclass(frozen=True)
class Gaussian(Prior):
    """The paper's prior: every weight and bias is independent ``N(0, variance)``.

    Parameters
    ----------
    variance : float
        Variance of each weight and bias; 0.1 in the paper.

    References
    ----------
    Liu, J. Z. (2021). Variable selection with rigorous uncertainty quantification using deep
    Bayesian neural networks. AISTATS.
    """

    variance: float = 0.1

    kind: ClassVar[str] = "gaussian"

    def first_layer(self, slot: Slot) -> FirstLayer:
        """Register the rows."""
        dims = (slot.feature, slot.hidden)
        return FirstLayer(pm.Normal(slot.name("W_1"), 0.0, self.sd, dims=dims))

    @property
    def sd(self) -> float:
        """Standard deviation of each weight."""
        return float(np.sqrt(self.variance))

    def hidden_layer(self, name: str, fan_in: int, dims: tuple[str, str]) -> TensorVariable:
        """Weights of a later layer."""
        return pm.Normal(name, 0.0, self.sd, dims=dims)

    def hidden_bias(
        self, name: str, dims: str, mean: float | TensorVariable = 0.0
    ) -> TensorVariable:
        """Biases of a hidden layer."""
        return pm.Normal(name, mean, self.sd, dims=dims)

    def output(self, name: Callable[[str], str], fan_in: int, dims: str) -> TensorVariable:
        """Output weights with the fixed variance."""
        return pm.Normal(name("beta"), 0.0, self.sd, dims=dims)

    def intercept(self, name: str, mean: float | TensorVariable = 0.0) -> TensorVariable:
        """Output bias."""
        return pm.Normal(name, mean, self.sd)


@dataclass(frozen=True)
class ARD(Prior):
    """Automatic relevance determination: ``s_p ~ HalfNormal(scale_sd)``.

    Parameters
    ----------
    scale_sd : float
        Scale of the half-normal prior of an input's scale.
    bias_sd, output_sd : float
        See :class:`Prior`.
    """

    scale_sd: float = 1.0

    kind: ClassVar[str] = "ard"

    def first_layer(self, slot: Slot) -> FirstLayer:
        """Register scales and rows."""
        s = pm.HalfNormal(slot.name("input_scale"), self.scale_sd, dims=slot.group)
        return FirstLayer(normal_rows(slot), by_feature(slot, s))


@dataclass(frozen=True)
class Horseshoe(Prior):
    """Regularised horseshoe on the scale of an input.

    ``s_p = tau * lam_p * slab / sqrt(slab**2 + tau**2 * lam_p**2)`` with half-Cauchy ``lam_p``
    and ``tau``, and ``slab**2 ~ InverseGamma(slab_df / 2, slab_df * slab_scale**2 / 2)``.

    Parameters
    ----------
    expected : float
        Expected number of inputs that matter; sets the scale of ``tau``. At most half of the
        inputs are expected, whatever is given.
    slab_scale, slab_df : float
        Scale and degrees of freedom of the slab.
    bias_sd, output_sd : float
        See :class:`Prior`.

    References
    ----------
    Piironen, J. and Vehtari, A. (2017). Sparsity information and regularization in the
    horseshoe and other shrinkage priors. Electronic Journal of Statistics 11.
    """

    expected: float = 5.0
    slab_scale: float = 1.0
    slab_df: float = 4.0

    kind: ClassVar[str] = "horseshoe"

    def first_layer(self, slot: Slot) -> FirstLayer:
        """Register scales and rows."""
        n_groups = slot.always_in.size
        expected = min(self.expected, n_groups / 2)
        tau0 = expected / max(n_groups - expected, 1.0) / np.sqrt(slot.n_obs)
        tau = pm.HalfCauchy(slot.name("global_scale"), tau0)
        lam = pm.HalfCauchy(slot.name("local_scale"), 1.0, dims=slot.group)
        slab2 = pm.InverseGamma(
            slot.name("slab"), self.slab_df / 2, self.slab_df * self.slab_scale**2 / 2
        )
        s = tau * lam * pt.sqrt(slab2 / (slab2 + (tau * lam) ** 2))
        if slot.always_in.any():
            s = pt.switch(slot.always_in, pt.sqrt(slab2), s)
        return FirstLayer(normal_rows(slot), by_feature(slot, s))


@dataclass(frozen=True)
class SpikeSlab(Prior):
    """Entry-wise spike and slab: each first-layer weight is 0 or ``N(0, slab_sd**2)``.

    The latent is one standard normal a weight, mapped by the monotone transport that sends
    its centre to 0 and its tails to the slab. The prior of a weight is exactly the mixture, and
    NUTS needs no discrete variable. An input is in if any of its weights is not 0.

    Parameters
    ----------
    inclusion : float
        Prior probability, in (0, 1), that an input is in.
    slab_sd : float
        Standard deviation of a weight that is not 0.
    bias_sd, output_sd : float
        See :class:`Prior`.

    References
    ----------
    Liang, F., Li, Q. and Zhou, L. (2018). Bayesian neural networks for selection of drug
    sensitive genes. JASA 113.
    """

    inclusion: float = 0.2
    slab_sd: float = 1.0

    kind: ClassVar[str] = "spike_slab"
    exact_zeros: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse an inclusion probability of 1 or more, too."""
        super().__post_init__()
        if self.inclusion >= 1:
            raise ValueError(f"SpikeSlab(inclusion={self.inclusion!r}): give a number in (0, 1).")

    def first_layer(self, slot: Slot) -> FirstLayer:
        """Register latents and rows."""
        n_features = slot.group_of.size
        start = np.where(slot.starts_open[slot.group_of], 2.5, 0.0)
        u = StartedNormal(slot.name("latent"), start=start, dims=(slot.feature, slot.hidden))
        # A group is in if any weight of any of its columns is.
        sizes = np.bincount(slot.group_of, minlength=slot.always_in.size)[slot.group_of]
        rate = -np.expm1(np.log1p(-self.inclusion) / (slot.units * sizes))
        rate = np.where(slot.always_in[slot.group_of], 1.0, rate)[:, None]
        # The prior is symmetric, so signs may be fixed: all latents start open on one side.
        signs = 1.0 - 2.0 * (np.indices((n_features, slot.units)).sum(axis=0) % 2)
        weights = self.slab_sd * signs * spike_slab_transport(u, rate)
        weights = pm.Deterministic(slot.name("W_1"), weights, dims=(slot.feature, slot.hidden))
        row_in = pt.any(pt.neq(weights, 0.0), axis=1)
        member = slot.group_of[:, None] == slot.group_of[None, :]
        included = pt.gt(pt.dot(member.astype(float), row_in), 0.0)
        return FirstLayer(weights, included=included)


def spike_slab_transport(u: TensorVariable, rate: float | np.ndarray) -> TensorVariable:
    """Map standard normal ``u`` to 0 with probability ``1 - rate``, else to ``N(0, 1)``."""
    tail = pt.erfc(abs(u) / np.sqrt(2.0)) / rate
    inside = pt.lt(tail, 1.0)
    # Both branches of a switch are differentiated: keep the unused one away from its pole.
    size = np.sqrt(2.0) * pt.erfcinv(pt.switch(inside, pt.maximum(tail, 1e-300), 0.5))
    return pt.switch(inside, pt.sign(u) * size, 0.0)


PRIORS: dict[str, type[Prior]] = {
    cls.kind: cls for cls in (Gated, Gaussian, ARD, Horseshoe, SpikeSlab)
}


def as_prior(prior: str | Prior) -> Prior:
    """Turn a name into a prior with its defaults."""
    if isinstance(prior, Prior):
        return prior
    if isinstance(prior, str) and prior in PRIORS:
        return PRIORS[prior]()
    raise unknown_option("prior", prior, PRIORS)

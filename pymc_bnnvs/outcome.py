"""The outcome, and the likelihood that ties it to a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from pytensor.tensor import TensorVariable

from pymc_bnnvs.encode import RESOLUTION, Unusable, as_array, listed, numbers_or_text
from pymc_bnnvs.errors import check_option

__all__ = ["LIKELIHOODS", "Outcome", "add_likelihood", "read_outcome"]

# exp(f) beyond this is no count, and numpy refuses to draw one from 2**63 on.
LARGEST_LOG_RATE = 35.0

# What is wrong with an outcome that is no vector of numbers, and the cure.
PROBLEMS = {
    "nested": "y holds lists or structs: give one number a row.",
    "complex": "y holds complex numbers: give real ones.",
    "dates": (
        "y holds dates or durations: convert them to numbers, for example days, "
        "y / pandas.Timedelta('1D')."
    ),
    "mixed": "y mixes text and numbers ({detail}): correct that value or drop its row.",
    "missing": (
        "y has missing values ({detail}): drop those rows from y and from X; an outcome is not "
        "imputed."
    ),
    "unsupported": "y holds values that are no numbers ({detail}): convert them.",
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """An outcome as numbers.

    Attributes
    ----------
    values : (n,) ndarray
        The outcome on the user's own scale: float64, or int64 for counts and for 0 and 1.
    center : float
        Where the function is centred, on its own scale: that of the likelihood's link.
    scale : float
        Unit of the function: the outcome's standard deviation if a normal or Student t outcome
        is standardised, else 1.
    likelihood : str
        One of ``LIKELIHOODS``.
    noise : float or None
        Known noise standard deviation, in the outcome's unit; None if it is learned.
    """

    values: np.ndarray
    center: float
    scale: float
    likelihood: str
    noise: float | None = None


def read_outcome(
    y: Any,
    n_rows: int,
    *,
    likelihood: str = "normal",
    noise: float | None = None,
    standardize: bool = True,
) -> Outcome:
    """Read an outcome, or say what is wrong with it.

    Parameters
    ----------
    y : Series, DataFrame of one column, DataArray or array_like, shape (n,) or (n, 1)
        The outcome.
    n_rows : int
        Number of rows of the inputs.
    likelihood : str, default "normal"
        ``"normal"``, ``"student_t"``, ``"bernoulli"`` (0 and 1, or booleans), ``"poisson"`` or
        ``"negative_binomial"`` (counts).
    noise : float, optional
        Known noise standard deviation, in the outcome's unit.
    standardize : bool, default True
        Centre the function at the outcome's mean, on the link's scale, and measure it in the
        outcome's standard deviations where the outcome is a real number.

    Returns
    -------
    Outcome

    Raises
    ------
    ValueError
        If the outcome does not fit the inputs or the likelihood; the message says the cure.

    Examples
    --------
    >>> outcome = read_outcome([1.0, 2.0, 3.0], 3)
    >>> outcome.center, round(outcome.scale, 3)
    (2.0, 0.816)
    """
    check_option("likelihood", likelihood, LIKELIHOODS)
    kind = LIKELIHOODS[likelihood]
    if noise is not None:
        noise = check_noise(noise, likelihood)
    raw = open_vector(y)
    if len(raw) != n_rows:
        raise ValueError(
            f"y has {len(raw)} values and X has {n_rows} rows: give one outcome for each row of X."
        )
    if n_rows < 2:
        raise ValueError(f"y has {n_rows} value{'s' * (n_rows != 1)}: give two rows or more.")
    values = kind.check(as_numbers(raw, likelihood), likelihood)
    if not standardize:
        return Outcome(values, 0.0, 1.0, likelihood, noise)
    return Outcome(values, *kind.standard(values), likelihood, noise)


def add_likelihood(
    name: str,
    f: TensorVariable,
    observed: Any,
    outcome: Outcome,
    *,
    dims: str | None = None,
    scale: TensorVariable | float | None = None,
) -> TensorVariable:
    """Register the outcome of a function in the current model.

    Adds ``sigma`` (normal, Student t; a ``pm.Data`` if it is known), ``nu`` (Student t) or
    ``alpha`` (negative binomial, with its latent ``inv_sqrt_alpha``), and the outcome itself,
    as long as ``f`` is, so that it follows new inputs.

    Parameters
    ----------
    name : str
        Name of the outcome.
    f : TensorVariable, shape (n,)
        The function: the mean, the logit or the log rate.
    observed : pm.Data variable, array or None
        Values of the outcome; None leaves it free.
    outcome : Outcome
        What `read_outcome` returned.
    dims : str, optional
        Dim of the rows, without coordinate values.
    scale : TensorVariable or float, optional
        Scale of the prior of ``sigma``, ``outcome.scale`` by default. Given as ``pm.Data``, a
        refit to other data need not compile again.

    Returns
    -------
    TensorVariable, shape (n,)

    Notes
    -----
    Priors: ``sigma ~ HalfNormal(scale)``; ``nu ~ Gamma(2, 0.1)`` [1]_; ``1 / sqrt(alpha) ~
    HalfNormal(1)`` [2]_, where the variance is ``mu + mu**2 / alpha``.

    References
    ----------
    .. [1] Juarez, M. A. and Steel, M. F. J. (2010). Model-based clustering of non-Gaussian panel
       data based on skew-t distributions. JBES 28.
    .. [2] Stan development team, Prior choice recommendations.
    """
    kind = LIKELIHOODS[outcome.likelihood]
    given = {"observed": observed, "shape": f.shape, "dims": dims}
    if outcome.noise is not None:
        given["sigma"] = pm.Data("sigma", outcome.noise)
    elif kind.has_sigma:
        given["sigma"] = pm.HalfNormal("sigma", sigma=outcome.scale if scale is None else scale)
    return kind.add(name, f, **given)


def open_vector(y: Any) -> np.ndarray:
    """Find the values ``(n,)`` of whatever the user gave; categories become text."""
    given = nw.from_native(y, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(given, nw.DataFrame):
        if len(given.columns) != 1:
            names = listed(map(repr, given.columns))
            raise ValueError(
                f"y has {len(given.columns)} columns ({names}): give one outcome at a time."
            )
        given = next(given.iter_columns())
    if isinstance(given, nw.Series):
        return series_values(given)
    array = as_array(y.values if isinstance(y, xr.DataArray) else y, "y")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 0:
        raise TypeError(f"y is a {type(y).__name__}: give a Series, a 1-d DataArray or an array.")
    if array.ndim != 1:
        raise ValueError(f"y has the shape {array.shape}: give one outcome at a time, shape (n,).")
    return array


def series_values(series: nw.Series[Any]) -> np.ndarray:
    """Values of a column of a DataFrame."""
    dtype = series.dtype
    if isinstance(dtype, nw.Categorical | nw.Enum):
        # A category's order is not its meaning: categories of numbers are labels too.
        missing = series.is_null().to_numpy()
        labels = [
            None if gap else str(label)
            for label, gap in zip(series.to_list(), missing, strict=True)
        ]
        return np.array(labels, dtype=object)
    if dtype.is_nested():
        raise ValueError(PROBLEMS["nested"])
    if dtype.is_numeric():
        return series.cast(nw.Float64).to_numpy()
    return series.to_numpy()


def as_numbers(raw: np.ndarray, likelihood: str) -> np.ndarray:
    """Values of the outcome as finite floats ``(n,)``; text and gaps are refused."""
    try:
        values = numbers_or_text(raw)
    except Unusable as bad:
        raise ValueError(PROBLEMS[bad.problem].format(detail=bad.detail)) from None
    if not isinstance(values, np.ndarray):
        raise text_outcome(values)
    if (missing := np.isnan(values)).any():
        raise ValueError(PROBLEMS["missing"].format(detail=rows_where(missing)))
    if (infinite := np.isinf(values)).any():
        raise ValueError(
            f"y has infinite values ({rows_where(infinite)}): correct them or drop those rows "
            "from y and from X."
        )
    yes_no = raw.dtype.kind == "b" or isinstance(raw[0], bool | np.bool_)
    if yes_no and LIKELIHOODS[likelihood].check is not check_binary:
        raise ValueError(
            f"y is boolean, which likelihood={likelihood!r} does not model: use likelihood="
            '"bernoulli", or convert with y.astype(float).'
        )
    return values


def text_outcome(values: list[str]) -> ValueError:
    """Error for an outcome of labels; what they stand for is not guessed."""
    levels = sorted(set(values))
    shown = listed(map(repr, levels))
    if len(levels) == 2:
        return ValueError(
            f"y holds labels ({shown}): code it 0/1 yourself, for example (y == {levels[1]!r})"
            '.astype(int), and use likelihood="bernoulli".'
        )
    return ValueError(
        f"y holds text ({shown}): convert numbers with .astype(float); one level against the rest "
        f'is (y == {levels[0]!r}).astype(int) with likelihood="bernoulli".'
    )


def rows_where(mask: np.ndarray) -> str:
    """Say which rows are marked."""
    rows = np.flatnonzero(mask)
    return f"row{'s' * (rows.size > 1)} {listed(map(str, rows))}, counting from 0"


def check_noise(noise: float, likelihood: str) -> float:
    """Return a known noise if the likelihood has one and it is a positive number."""
    if not LIKELIHOODS[likelihood].has_sigma:
        having = " or ".join(repr(name) for name, kind in LIKELIHOODS.items() if kind.has_sigma)
        raise ValueError(
            f"noise={noise!r} is given, but likelihood={likelihood!r} has no noise standard "
            f"deviation: leave noise out, or use likelihood={having}."
        )
    try:
        value = float(noise)
    except (TypeError, ValueError):
        value = np.nan
    if isinstance(noise, bool) or not np.isfinite(value) or value <= 0:
        raise ValueError(
            f"noise={noise!r}: give the noise standard deviation as one positive, finite number "
            "in the unit of y, or leave it out to learn it."
        )
    return value


def check_real(values: np.ndarray, likelihood: str) -> np.ndarray:
    """Accept any finite number."""
    return values


def check_binary(values: np.ndarray, likelihood: str) -> np.ndarray:
    """Return 0 and 1 as integers; refuse other classes, and one class alone."""
    classes = np.unique(values)
    if not np.isin(classes, (0.0, 1.0)).all():
        shown = listed(f"{value:g}" for value in classes)
        raise ValueError(
            f'y has the values {shown}, and likelihood="bernoulli" takes 0 and 1: code it 0/1, '
            f"for example (y == {classes[-1]:g}).astype(int)."
        )
    if classes.size == 1:
        raise ValueError(
            f"y is {classes[0]:g} in every row, so there is nothing to learn: give rows of both "
            "classes."
        )
    return values.astype(np.int64)


def check_counts(values: np.ndarray, likelihood: str) -> np.ndarray:
    """Return counts as integers; refuse what is no count, and zeros alone."""
    whole = (values >= 0) & (values == np.floor(values)) & (values <= 2.0**53)
    if not whole.all():
        row = int(np.argmin(whole))
        raise ValueError(
            f"y is {values[row]:g} in row {row}, counting from 0, which is no count: "
            f"likelihood={likelihood!r} takes 0, 1, 2, ...; correct the value or use "
            'likelihood="normal".'
        )
    if not values.any():
        raise ValueError(
            "y is 0 in every row, so there is nothing to learn: give rows with counts above 0."
        )
    return values.astype(np.int64)


def standard_real(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation."""
    spread = float(np.ptp(values))
    if spread <= RESOLUTION * float(np.abs(values).max()):
        raise ValueError(
            f"y is constant ({values[0]:.6g} in every row), so there is nothing to learn: give an "
            "outcome that varies."
        )
    if not 1e-100 < spread < 1e100:
        raise ValueError(f"y has a spread of {spread:.3g}: change its unit to a closer one.")
    return float(values.mean()), spread * float(np.std(values / spread))


def standard_binary(values: np.ndarray) -> tuple[float, float]:
    """Logit of the mean, with half a case added to each class; unit 1."""
    ones = float(values.sum())
    return float(np.log((ones + 0.5) / (values.size - ones + 0.5))), 1.0


def standard_counts(values: np.ndarray) -> tuple[float, float]:
    """Log of the mean; unit 1."""
    return float(np.log(values.mean())), 1.0


def add_normal(name: str, f: TensorVariable, **given: Any) -> TensorVariable:
    """Add a normal about ``f``."""
    return pm.Normal(name, mu=f, **given)


def add_student_t(name: str, f: TensorVariable, **given: Any) -> TensorVariable:
    """Add a Student t about ``f``, for outliers."""
    nu = pm.Gamma("nu", alpha=2.0, beta=0.1)
    return pm.StudentT(name, nu=nu, mu=f, **given)


def add_bernoulli(name: str, f: TensorVariable, **given: Any) -> TensorVariable:
    """Add a Bernoulli with the logit ``f``."""
    return pm.Bernoulli(name, logit_p=f, **given)


def add_poisson(name: str, f: TensorVariable, **given: Any) -> TensorVariable:
    """Add a Poisson with the log rate ``f``."""
    return pm.Poisson(name, mu=rate(f), **given)


def add_negative_binomial(name: str, f: TensorVariable, **given: Any) -> TensorVariable:
    """Add a negative binomial with the log mean ``f``."""
    root = pm.HalfNormal("inv_sqrt_alpha", sigma=1.0)
    alpha = pm.Deterministic("alpha", 1.0 / root**2)
    return pm.NegativeBinomial(name, mu=rate(f), alpha=alpha, **given)


def rate(f: TensorVariable) -> TensorVariable:
    """Rate of a log rate, short of where draws of it overflow."""
    return pt.exp(pt.minimum(f, LARGEST_LOG_RATE))


class Likelihood(NamedTuple):
    """What an outcome must be, where its function is centred, and its distribution."""

    check: Callable[[np.ndarray, str], np.ndarray]
    standard: Callable[[np.ndarray], tuple[float, float]]
    add: Callable[..., TensorVariable]
    has_sigma: bool


LIKELIHOODS: dict[str, Likelihood] = {
    "normal": Likelihood(check_real, standard_real, add_normal, True),
    "student_t": Likelihood(check_real, standard_real, add_student_t, True),
    "bernoulli": Likelihood(check_binary, standard_binary, add_bernoulli, False),
    "poisson": Likelihood(check_counts, standard_counts, add_poisson, False),
    "negative_binomial": Likelihood(check_counts, standard_counts, add_negative_binomial, False),
}

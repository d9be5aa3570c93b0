"""Data sets that ship with the package, and null inputs to add to any table."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

import numpy as np
import pandas as pd

__all__ = ["load_diabetes", "load_penguins", "permuted_copies"]


def load_diabetes() -> tuple[pd.DataFrame, pd.Series]:
    """Disease progression of 442 diabetes patients, with ten inputs in their raw units.

    Returns
    -------
    X : pandas.DataFrame, shape (442, 10)
        All ``float64``, no missing values:

        - ``age``: age (years)
        - ``sex``: coded 1 and 2; the source does not say which is which
        - ``bmi``: body mass index (kg/m²)
        - ``bp``: average blood pressure (mm Hg)
        - ``total_cholesterol``, ``ldl``, ``hdl``: serum cholesterol (mg/dL)
        - ``tch_ratio``: total cholesterol divided by HDL, rounded in many rows
        - ``log_triglycerides``: natural logarithm of serum triglycerides (mg/dL)
        - ``glucose``: blood glucose (mg/dL)
    y : pandas.Series, shape (442,)
        ``progression``: a score of the disease's progression one year after the inputs were
        measured, 25 to 346 (no unit), ``float64``.

    Notes
    -----
    ``total_cholesterol``, ``ldl``, ``hdl`` and ``tch_ratio`` are nearly functions of one
    another, so their importance is shared among them.

    The source states the unit of age alone; the other units are those that the values fit.
    The file is the unscaled version that scikit-learn distributes under the BSD 3-Clause
    licence, under names that say more than its ``s1`` to ``s6``.

    References
    ----------
    Efron, B., Hastie, T., Johnstone, I. and Tibshirani, R. (2004). Least angle regression.
    *Annals of Statistics* 32(2), 407-499. https://doi.org/10.1214/009053604000000067

    Examples
    --------
    >>> from pymc_bnnvs.datasets import load_diabetes
    >>> X, y = load_diabetes()
    >>> X.shape, y.name
    ((442, 10), 'progression')
    """
    table = _read("diabetes.csv").astype("float64")
    return table.drop(columns="progression"), table["progression"]


def load_penguins() -> tuple[pd.DataFrame, pd.Series]:
    """Body mass of 333 penguins of three species, with categorical and numeric inputs.

    Returns
    -------
    X : pandas.DataFrame, shape (333, 7)
        No missing values:

        - ``species``: Adelie, Chinstrap or Gentoo (``category``)
        - ``island``: Biscoe, Dream or Torgersen (``category``)
        - ``bill_length_mm``, ``bill_depth_mm``, ``flipper_length_mm``: size (mm, ``float64``)
        - ``sex``: female or male (``category``)
        - ``year``: year of the observation, 2007 to 2009 (``int64``)
    y : pandas.Series, shape (333,)
        ``body_mass_g``: body mass (g), ``float64``.

    Notes
    -----
    The 11 rows of the original 344 that have a missing value are left out. Collected at
    Palmer Station, Antarctica, and dedicated to the public domain (CC0 1.0).

    References
    ----------
    Gorman, K. B., Williams, T. D. and Fraser, W. R. (2014). Ecological sexual dimorphism and
    environmental variability within a community of Antarctic penguins (genus *Pygoscelis*).
    *PLoS ONE* 9(3), e90081. https://doi.org/10.1371/journal.pone.0090081

    Horst, A. M., Hill, A. P. and Gorman, K. B. (2020). palmerpenguins: Palmer Archipelago
    (Antarctica) penguin data. https://doi.org/10.5281/zenodo.3960218

    Examples
    --------
    >>> from pymc_bnnvs.datasets import load_penguins
    >>> X, y = load_penguins()
    >>> list(X["species"].cat.categories)
    ['Adelie', 'Chinstrap', 'Gentoo']
    """
    table = _read("penguins.csv").astype(
        {
            "species": "category",
            "island": "category",
            "flipper_length_mm": "float64",
            "sex": "category",
            "body_mass_g": "float64",
        }
    )
    return table.drop(columns="body_mass_g"), table["body_mass_g"]


def permuted_copies(
    X: pd.DataFrame,
    n_copies: int,
    random_seed: int | Sequence[int] | np.random.SeedSequence | np.random.Generator | None = None,
) -> pd.DataFrame:
    """Add inputs that are null by construction: columns of `X` with their rows permuted.

    A copy has the values of its column, and so its distribution, but no relation to the
    outcome or to any other column: the rate at which copies are selected estimates the
    false positive rate on the user's own table.

    Parameters
    ----------
    X : pandas.DataFrame, shape (n, P)
        Inputs, of any dtype; left as it is.
    n_copies : int
        Number of columns to add. They cycle over the columns of `X` from left to right.
    random_seed : int, sequence of int, SeedSequence, Generator or None
        Seed of the permutations, one independent permutation for each copy.

    Returns
    -------
    pandas.DataFrame, shape (n, P + n_copies)
        The columns of `X`, then the copies, named ``<column>_permuted_1`` in the first cycle,
        ``<column>_permuted_2`` in the second. Index and dtypes are those of `X`.

    Raises
    ------
    ValueError
        If `n_copies` is negative, `X` has no column to copy, or a name would occur twice.

    Examples
    --------
    >>> from pymc_bnnvs.datasets import load_penguins, permuted_copies
    >>> X, y = load_penguins()
    >>> permuted_copies(X[["species", "year"]], n_copies=3, random_seed=1).columns.to_list()
    ['species', 'year', 'species_permuted_1', 'year_permuted_1', 'species_permuted_2']
    """
    if n_copies < 0:
        raise ValueError(f"n_copies={n_copies} is negative: give the number of columns to add.")
    n_rows, n_columns = X.shape
    if n_copies and not n_columns:
        raise ValueError("X has no columns, so there is nothing to copy.")

    rng = np.random.default_rng(random_seed)
    copies = []
    for i in range(n_copies):
        cycle, j = divmod(i, n_columns)
        copy = X.iloc[rng.permutation(n_rows), j].set_axis(X.index)
        copies.append(copy.rename(f"{X.columns[j]}_permuted_{cycle + 1}"))

    result = pd.concat([X, *copies], axis="columns")
    repeated = result.columns[result.columns.duplicated()].unique().to_list()
    if repeated:
        raise ValueError(f"These columns would occur twice: {repeated}. Rename them in X first.")
    return result


def _read(name: str) -> pd.DataFrame:
    with resources.files("pymc_bnnvs").joinpath("data", name).open(encoding="utf-8") as file:
        return pd.read_csv(file)

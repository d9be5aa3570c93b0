from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymc_bnnvs.datasets import load_diabetes, load_penguins, permuted_copies

DIABETES_INPUTS = [
    "age",
    "sex",
    "bmi",
    "bp",
    "total_cholesterol",
    "ldl",
    "hdl",
    "tch_ratio",
    "log_triglycerides",
    "glucose",
]
PENGUIN_DTYPES = {
    "species": "category",
    "island": "category",
    "bill_length_mm": "float64",
    "bill_depth_mm": "float64",
    "flipper_length_mm": "float64",
    "sex": "category",
    "year": "int64",
}


def test_diabetes_has_the_published_shape_names_and_dtypes():
    X, y = load_diabetes()
    assert X.columns.to_list() == DIABETES_INPUTS
    assert X.shape == (442, 10)
    assert y.shape == (442,)
    assert y.name == "progression"
    assert (X.dtypes == "float64").all()
    assert y.dtype == "float64"


def test_diabetes_is_in_raw_units():
    X, y = load_diabetes()
    assert X["age"].between(19, 79).all()
    assert set(X["sex"]) == {1.0, 2.0}
    # Table 1 of the source: the first patient.
    first = [59.0, 2.0, 32.1, 101.0, 157.0, 93.2, 38.0, 4.0, 4.8598, 87.0]
    np.testing.assert_array_equal(X.iloc[0], first)
    assert y.iloc[0] == 151.0


def test_diabetes_columns_are_under_the_right_names():
    X, _ = load_diabetes()
    ratio = X["total_cholesterol"] / X["hdl"]
    assert np.abs(ratio - X["tch_ratio"]).max() < 0.7  # rounded in the source
    assert (X["ldl"] < X["total_cholesterol"]).all()


def test_diabetes_agrees_with_scikit_learn():
    sklearn_datasets = pytest.importorskip("sklearn.datasets")
    X, y = load_diabetes()
    reference = sklearn_datasets.load_diabetes(scaled=False)
    np.testing.assert_array_equal(X, reference.data)
    np.testing.assert_array_equal(y, reference.target)


def test_penguins_have_the_documented_shape_names_and_dtypes():
    X, y = load_penguins()
    assert X.shape == (333, 7)
    assert {name: str(dtype) for name, dtype in X.dtypes.items()} == PENGUIN_DTYPES
    assert X["species"].value_counts().to_dict() == {"Adelie": 146, "Gentoo": 119, "Chinstrap": 68}
    assert X["island"].cat.categories.to_list() == ["Biscoe", "Dream", "Torgersen"]
    assert X["sex"].cat.categories.to_list() == ["female", "male"]
    assert y.name == "body_mass_g"
    assert y.dtype == "float64"


@pytest.mark.parametrize("load", [load_diabetes, load_penguins])
def test_nothing_is_missing_and_rows_are_numbered(load):
    X, y = load()
    assert not X.isna().any(axis=None)
    assert not y.isna().any()
    assert X.index.equals(pd.RangeIndex(len(X)))
    assert y.index.equals(X.index)


@pytest.mark.parametrize("load", [load_diabetes, load_penguins])
def test_each_call_returns_its_own_table(load):
    X, y = load()
    X.iloc[:, -1] = 0
    y[:] = 0
    again_X, again_y = load()
    assert (again_X.iloc[:, -1] != 0).any()
    assert (again_y != 0).any()


def test_copies_cycle_over_the_columns_and_are_numbered():
    X, _ = load_penguins()
    result = permuted_copies(X[["species", "year"]], 5, random_seed=0)
    assert result.columns.to_list() == [
        "species",
        "year",
        "species_permuted_1",
        "year_permuted_1",
        "species_permuted_2",
        "year_permuted_2",
        "species_permuted_3",
    ]


@pytest.mark.parametrize("load", [load_diabetes, load_penguins])
def test_a_copy_keeps_the_values_and_dtype_of_its_column_but_not_their_order(load):
    X, _ = load()
    result = permuted_copies(X, 2 * X.shape[1], random_seed=1)
    for name in X:
        for cycle in (1, 2):
            copy = result[f"{name}_permuted_{cycle}"]
            assert copy.dtype == X[name].dtype
            pd.testing.assert_series_equal(
                copy.sort_values(ignore_index=True),
                X[name].sort_values(ignore_index=True),
                check_names=False,
            )
            assert (copy != X[name]).any()
        assert (result[f"{name}_permuted_1"] != result[f"{name}_permuted_2"]).any()


def test_copies_are_permuted_independently():
    X = pd.DataFrame({"a": np.arange(100), "b": np.arange(100)})
    result = permuted_copies(X, 2, random_seed=0)
    assert (result["a_permuted_1"] != result["b_permuted_1"]).any()


def test_the_seed_decides_the_permutations():
    X, _ = load_diabetes()
    result = permuted_copies(X, 4, random_seed=3)
    pd.testing.assert_frame_equal(result, permuted_copies(X, 4, random_seed=3))
    pd.testing.assert_frame_equal(
        result, permuted_copies(X, 4, random_seed=np.random.default_rng(3))
    )
    assert not result.equals(permuted_copies(X, 4, random_seed=4))


def test_the_original_is_untouched_and_comes_first():
    X, _ = load_penguins()
    before = X.copy(deep=True)
    result = permuted_copies(X, 3, random_seed=0)
    pd.testing.assert_frame_equal(X, before)
    pd.testing.assert_frame_equal(result[X.columns], before)
    result.iloc[:, :] = result.iloc[::-1].to_numpy()
    pd.testing.assert_frame_equal(X, before)


def test_the_index_is_kept():
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=["x", "y", "y"])
    result = permuted_copies(X, 1, random_seed=0)
    assert result.index.equals(X.index)
    assert sorted(result["a_permuted_1"]) == [1.0, 2.0, 3.0]


@settings(deadline=None)
@given(
    n_rows=st.integers(0, 8),
    n_columns=st.integers(1, 4),
    n_copies=st.integers(0, 9),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_shape(n_rows, n_columns, n_copies, seed):
    X = pd.DataFrame({f"x{j}": np.arange(n_rows) + 10 * j for j in range(n_columns)})
    result = permuted_copies(X, n_copies, random_seed=seed)
    assert result.shape == (n_rows, n_columns + n_copies)
    for i in range(n_copies):
        assert sorted(result.iloc[:, n_columns + i]) == sorted(X.iloc[:, i % n_columns])


def test_a_negative_number_of_copies_is_refused():
    with pytest.raises(ValueError, match="n_copies=-1 is negative"):
        permuted_copies(pd.DataFrame({"a": [1.0]}), -1)


def test_a_table_without_columns_is_refused():
    with pytest.raises(ValueError, match="no columns"):
        permuted_copies(pd.DataFrame(index=[0, 1]), 1)


def test_a_name_that_is_taken_is_refused_by_name():
    X = pd.DataFrame({"a": [1.0], "a_permuted_1": [2.0]})
    with pytest.raises(ValueError, match="'a_permuted_1'"):
        permuted_copies(X, 1)

"""Tables of inputs: the same numbers from every kind of table, and clear refusals."""

from __future__ import annotations

import datetime
import decimal
import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pymc_bnnvs import table as table_module
from pymc_bnnvs.table import Table, check_memory, read_table

RNG = np.random.default_rng(20240)
N = 12
NUMBERS = RNG.normal(size=(N, 3))
ISLANDS = ["Dream", "Biscoe", "Torgersen"] * 4


def refuses(X, *parts, error=ValueError, **options):
    """Check that reading ``X`` fails, with every part in the message."""
    with pytest.raises(error) as caught:
        read_table(X, **options)
    message = str(caught.value)
    for part in parts:
        assert part in message, message


def column(values, **kwargs):
    """A table of an innocent column and the one in question."""
    length = len(values)
    return pd.DataFrame({"fine": np.arange(length) ** 2.0, "bad": pd.Series(values, **kwargs)})


def assert_same(a: Table, b: Table):
    """Check that two tables are equal in all that they hold."""
    assert (a.features, a.groups) == (b.features, b.groups)
    for field in ("values", "group_of", "always_in", "center", "scale"):
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field))


def penguins():
    """A table with a number, a boolean, text, an ordered category and an integer category."""
    return pd.DataFrame(
        {
            "mass": NUMBERS[:, 0],
            "wild": [True, False, True] * 4,
            "island": ISLANDS,
            "age": pd.Categorical(
                ["old", "young", "old", "old"] * 3, categories=["young", "mid", "old"]
            ),
            "code": pd.Categorical([30, 1, 2, 2, 1, 30, 1, 1, 2, 30, 2, 2]),
        }
    )


class TestKindsOfTable:
    def test_numbers_agree_over_all_kinds(self):
        names = ["a", "b", "c"]
        expected = read_table(NUMBERS, feature_names=names)
        np.testing.assert_array_equal(expected.values, NUMBERS)
        by_name = dict(zip(names, NUMBERS.T, strict=True))
        for X in (
            pd.DataFrame(by_name),
            pd.DataFrame(by_name, index=range(100, 100 + N)),
            pl.DataFrame(by_name),
            pa.table(by_name),
            xr.DataArray(NUMBERS, dims=("obs_id", "feature"), coords={"feature": names}),
        ):
            assert_same(read_table(X), expected)
        for X in (NUMBERS.tolist(), NUMBERS.astype(object), np.asfortranarray(NUMBERS)):
            assert_same(read_table(X, feature_names=names), expected)

    def test_kinds_of_column_agree_over_pandas_polars_and_pyarrow(self):
        df = penguins()
        text = df.assign(age=df["age"].astype(str))[["mass", "wild", "island", "age"]]
        expected = read_table(text)
        assert_same(read_table(pl.from_pandas(text)), expected)
        assert_same(read_table(pa.Table.from_pandas(text)), expected)
        assert_same(read_table(text.astype({"island": object})), expected)
        assert_same(read_table(text.astype({"island": "category"})), expected)
        coded = pl.from_pandas(text).with_columns(pl.col("island").cast(pl.Categorical))
        assert_same(read_table(coded), expected)
        ordered = pl.from_pandas(text).with_columns(
            pl.col("age").cast(pl.Enum(["young", "mid", "old"]))
        )
        assert_same(read_table(ordered), read_table(df[list(text)]))

    def test_layout(self):
        table = read_table(np.asfortranarray(NUMBERS.astype(np.float32)))
        assert table.values.dtype == np.float64
        assert table.values.flags.c_contiguous
        assert table.features == table.groups == ("x0", "x1", "x2")
        assert not table.has_groups
        assert not table.always_in.any()

    def test_does_not_write_to_the_users_array(self):
        X = NUMBERS.copy()
        table = read_table(X)
        table.values[:] = 0
        np.testing.assert_array_equal(X, NUMBERS)

    @pytest.mark.parametrize(
        "values",
        [
            pd.array([1, 2, 4], dtype="Int64"),
            pd.array([1.0, 2, 4], dtype="Float64"),
            pd.array([1, 2, 4], dtype="int64[pyarrow]"),
            pd.arrays.SparseArray([1, 2, 4]),
            np.array([1, 2, 4], dtype=np.uint8),
            np.array([1, 2, 4], dtype=object),
            [decimal.Decimal(1), decimal.Decimal(2), decimal.Decimal(4)],
        ],
    )
    def test_numbers_of_every_dtype(self, values):
        table = read_table(pd.DataFrame({"a": values}))
        np.testing.assert_array_equal(table.values[:, 0], [1.0, 2.0, 4.0])

    @pytest.mark.parametrize("dtype", [bool, "boolean", object, "bool[pyarrow]"])
    def test_booleans(self, dtype):
        X = pd.DataFrame({"a": pd.Series([True, False, True], dtype=dtype)})
        np.testing.assert_array_equal(read_table(X).values[:, 0], [1.0, 0.0, 1.0])

    def test_polars_decimals_and_booleans(self):
        X = pl.DataFrame(
            {"a": pl.Series(["1.5", "2.5", "4"]).cast(pl.Decimal(9, 2)), "b": [True, False, False]}
        )
        np.testing.assert_array_equal(read_table(X).values, [[1.5, 1], [2.5, 0], [4, 0]])

    def test_masked_array_without_gaps(self):
        assert_same(read_table(np.ma.masked_array(NUMBERS)), read_table(NUMBERS))

    def test_dataarray_without_names(self):
        X = xr.DataArray(NUMBERS, dims=("obs_id", "feature"))
        assert read_table(X).features == ("x0", "x1", "x2")


class TestNames:
    def test_integer_labels_become_text_and_still_name_columns(self):
        X = pd.DataFrame(NUMBERS, columns=[7, 3, 5])
        table = read_table(X, groups={"pair": [3, "5"]}, always_in=7)
        assert table.features == ("7", "3", "5")
        assert table.groups == ("7", "pair")
        np.testing.assert_array_equal(table.always_in, [True, False])

    def test_an_integer_is_never_a_position(self):
        refuses(NUMBERS, "always_in names 0", "'x0'", always_in=[0])
        refuses(NUMBERS, "names 0", groups={"g": [0, 1]})

    def test_feature_names_replace_the_tables_own(self):
        X = pd.DataFrame(NUMBERS, columns=[7, 3, 5])
        table = read_table(X, feature_names=np.array(["a", "b", "c"]), groups={"g": ["a", "b"]})
        assert table.features == ("a", "b", "c")
        assert all(type(name) is str for name in table.features)
        refuses(X, "names 7", feature_names=["a", "b", "c"], always_in=[7])

    def test_feature_names_name_columns_before_encoding(self):
        table = read_table(penguins(), feature_names=["a", "b", "c", "d", "e"])
        assert "c[Biscoe]" in table.features

    def test_too_few_names(self):
        refuses(NUMBERS, "2 names", "3 columns", feature_names=["a", "b"])

    def test_names_that_are_no_text(self):
        refuses(NUMBERS, "0, 1, 2", "str", feature_names=range(3), error=TypeError)
        refuses(NUMBERS, "list", feature_names="abc", error=TypeError)

    def test_duplicate_names(self):
        refuses(NUMBERS, "'a'", "rename", feature_names=["a", "b", "a"])
        refuses(pd.DataFrame(NUMBERS, columns=["a", "b", "a"]), "'a'", "rename")
        refuses(pd.DataFrame(NUMBERS, columns=[1, "1", 2]), "'1'", "rename")
        twice = pa.table([pa.array([1, 2]), pa.array([1, 3])], names=["a", "a"])
        refuses(twice, "'a'", "rename")

    def test_a_level_that_has_the_name_of_a_column(self):
        X = penguins().assign(**{"island[Dream]": NUMBERS[:, 1]})
        refuses(X, "'island[Dream]'", "rename")


class TestCategories:
    def test_one_column_a_level_in_the_categorys_order(self):
        table = read_table(penguins())
        assert table.features == (
            "mass",
            "wild",
            *(f"island[{level}]" for level in ("Biscoe", "Dream", "Torgersen")),
            "age[old]",  # two levels are one column
            *(f"code[{level}]" for level in (1, 2, 30)),
        )
        assert table.groups == ("mass", "wild", "island", "age", "code")
        np.testing.assert_array_equal(table.group_of, [0, 1, 2, 2, 2, 3, 4, 4, 4])
        np.testing.assert_array_equal(table.category_of, [-1, -1, 0, 0, 0, -1, 1, 1, 1])
        assert table.has_groups
        np.testing.assert_array_equal(table.values[:3, 2:5], [[0, 1, 0], [1, 0, 0], [0, 0, 1]])

    def test_levels_share_a_scale(self):
        X = pd.DataFrame({"a": ["u"] * 10 + ["v"] * 9 + ["w"], "b": np.arange(20.0)})
        table = read_table(X)
        p = np.array([0.5, 0.45, 0.05])
        np.testing.assert_allclose(table.center[:3], p)
        np.testing.assert_allclose(table.scale[:3], np.sqrt(np.mean(p * (1 - p))))
        np.testing.assert_allclose(table.scale[3], X["b"].std(ddof=0))

    def test_intervals_of_a_cut(self):
        table = read_table(pd.DataFrame({"age": pd.cut([1, 5, 9, 2], 2)}))
        assert all(re.fullmatch(r"age\[\(.*\]\]", name) for name in table.features)

    def test_one_level(self):
        refuses(column(["u"] * 4), "'bad'", "one level, 'u'", "Drop")
        refuses(column(["u"] * 4, dtype=pd.CategoricalDtype(["u", "v"])), "'bad'", "constant")

    def test_missing_level(self):
        for missing in (None, np.nan, ""):
            values = ["u", "v", missing, "u"]
            refuses(column(values), "'bad' (1 row)", "missing", "impute")
            refuses(column(values, dtype="category"), "'bad' (1 row)", "missing", "impute")
        refuses(pl.DataFrame({"bad": ["u", None, "v"]}), "'bad' (1 row)", "missing")
        enum = pl.Series(["u", None, "v"], dtype=pl.Enum(["u", "v"]))
        refuses(pl.DataFrame({"bad": enum}), "'bad' (1 row)", "missing")

    def test_identifiers(self):
        refuses(column([f"id{i}" for i in range(11)]), "'bad'", "11 levels in 11 rows", "Drop")
        many = [f"id{i % 26}" for i in range(50)]
        refuses(column(many), "'bad'", "26 levels in 50 rows", "merge")
        refuses(column(many, dtype="category"), "'bad'", "26 levels in 50 rows", "merge")
        assert len(read_table(column([f"id{i}" for i in range(10)])).features) == 11
        assert len(read_table(column([f"id{i % 25}" for i in range(50)])).features) == 26

    def test_levels_that_fill_the_memory(self, monkeypatch):
        monkeypatch.setattr(table_module, "physical_memory", lambda: 500)
        refuses(penguins(), "12 rows and 9 inputs", "rare levels")


class TestGroups:
    def test_groups_come_in_the_order_of_their_first_columns(self):
        table = read_table(
            penguins(), groups={"late": ["code", "wild"], "early": ["mass", "island"]}
        )
        assert table.groups == ("early", "late", "age")
        np.testing.assert_array_equal(table.group_of, [0, 1, 0, 0, 0, 2, 1, 1, 1])

    def test_a_name_alone_and_a_group_named_like_its_column(self):
        table = read_table(NUMBERS, groups={"x0": ["x0", "x2"], "one": "x1"})
        assert table.groups == ("x0", "one")

    def test_unknown_column(self):
        refuses(penguins(), "groups['g']", "'ilsand'", "mean 'island'", groups={"g": ["ilsand"]})

    def test_long_tables_are_not_listed_whole(self):
        X = RNG.normal(size=(3, 400))
        refuses(X, "'x4' and 395 more", "mean 'x399'?", groups={"g": ["x3999"]})

    def test_one_level_of_a_category(self):
        refuses(penguins(), "'island[Dream]'", "'island'", groups={"g": ["island[Dream]", "mass"]})

    def test_overlap(self):
        groups = {"g": ["x0", "x1"], "h": ["x1", "x2"]}
        refuses(NUMBERS, "'x1'", "'g' and 'h'", "merge", groups=groups)

    def test_empty(self):
        refuses(NUMBERS, "groups['g'] is empty", "leave it out", groups={"g": []})

    def test_name_of_another_column(self):
        refuses(NUMBERS, "'x0'", "rename the group", groups={"x0": ["x1", "x2"]})
        refuses(penguins(), "'island[Dream]'", groups={"island[Dream]": ["mass", "wild"]})

    def test_no_dict(self):
        refuses(NUMBERS, "list", "dict", groups=[["x0", "x1"]], error=TypeError)
        refuses(NUMBERS, "name 1", "text", groups={1: ["x0"]}, error=TypeError)
        refuses(NUMBERS, "['x0']", "no name", groups={"g": [["x0"]]}, error=TypeError)


class TestAlwaysIn:
    @pytest.mark.parametrize("names", ["island", ["island"], ("island",)])
    def test_a_category(self, names):
        np.testing.assert_array_equal(
            read_table(penguins(), always_in=names).always_in, [0, 0, 1, 0, 0]
        )

    def test_a_group_or_all_its_columns(self):
        groups = {"g": ["mass", "island"]}
        for names in ("g", ["mass", "island"]):
            table = read_table(penguins(), groups=groups, always_in=names)
            np.testing.assert_array_equal(table.always_in, [True, False, False, False])
        levels = [f"island[{level}]" for level in set(ISLANDS)]
        assert read_table(penguins(), always_in=levels).always_in[2]

    def test_a_part_of_a_group(self):
        groups = {"g": ["mass", "wild"]}
        parts = ("'mass'", "'g'", "not 'wild'", "as a whole")
        refuses(penguins(), *parts, groups=groups, always_in="mass")
        refuses(penguins(), "'island'", "as a whole", always_in="island[Dream]")

    def test_unknown(self):
        refuses(NUMBERS, "always_in", "'X1'", "mean 'x1'", always_in=["X1"])
        refuses(NUMBERS, "'gg'", "mean 'g'", groups={"g": ["x0", "x1"]}, always_in="gg")

    def test_a_mask_is_no_name(self):
        refuses(NUMBERS, "always_in names True", always_in=[True, False, False])


class TestShapes:
    def test_one_dimension(self):
        refuses(NUMBERS[:, 0], "X[:, None]")
        refuses(xr.DataArray(NUMBERS[:, 0]), "X[:, None]")
        refuses(pd.Series(NUMBERS[:, 0]), "X.to_frame()", error=TypeError)
        refuses(pl.Series(NUMBERS[:, 0]), "X.to_frame()", error=TypeError)

    def test_three_dimensions(self):
        refuses(NUMBERS[None], "3 dimensions")

    def test_no_columns(self):
        refuses(NUMBERS[:, :0], "no columns")
        refuses(pd.DataFrame(index=range(3)), "no columns")

    @pytest.mark.parametrize("n", [0, 1])
    def test_too_few_rows(self, n):
        refuses(NUMBERS[:n], f"{n} row", "two rows or more")
        refuses(pd.DataFrame(NUMBERS[:n]), "two rows or more")

    def test_ragged(self):
        refuses([[1, 2], [3]], "different lengths")

    @pytest.mark.parametrize(
        ("X", "cure"),
        [
            ({"a": [1, 2]}, "pandas.DataFrame(X)"),
            (np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), "pandas.DataFrame(X)"),
            (pl.DataFrame({"a": [1, 2]}).lazy(), "X.collect()"),
            (xr.Dataset({"a": ("i", [1, 2])}), "X.to_dataframe()"),
            (None, "give a DataFrame"),
        ],
    )
    def test_no_table(self, X, cure):
        refuses(X, cure, error=TypeError)

    def test_sparse_matrix(self):
        scipy_sparse = pytest.importorskip("scipy.sparse")
        refuses(scipy_sparse.eye(3).tocsr(), "X.toarray()", error=TypeError)


class TestBadColumns:
    @pytest.mark.parametrize(
        "X",
        [
            column([1.0, np.nan, 3.0]),
            column([1, None, 3], dtype="Int64"),
            column([1, None, 3], dtype="int64[pyarrow]"),
            column([True, None, False], dtype="boolean"),
            column([1.0, None, 3.0], dtype=object),
            column([None, None, None]),
            column(["1", " ", "3"]),
            pl.DataFrame({"fine": [1, 2, 4], "bad": [1, None, 3]}),
            pl.DataFrame({"fine": [1, 2, 4], "bad": [True, None, False]}),
            pl.DataFrame({"fine": [1, 2, 4], "bad": [None, None, None]}),
        ],
    )
    def test_missing(self, X):
        refuses(X, "'bad' (", "missing", "drop those rows", "impute", "which were missing")

    def test_missing_in_an_array(self):
        X = NUMBERS.copy()
        X[[2, 5], 1] = np.nan
        refuses(X, "'x1' (2 rows)", "missing")
        refuses(np.ma.masked_invalid(X), "'x1' (2 rows)", "missing")

    def test_at_most_five_are_listed(self):
        X = RNG.normal(size=(4, 9))
        X[0, 1:] = np.nan
        refuses(X, "'x5' (1 row) and 3 more")

    def test_infinite(self):
        refuses(column([1.0, np.inf, -np.inf]), "'bad' (2 rows)", "infinite", "drop those rows")

    @pytest.mark.parametrize("values", [[2.5] * 4, [0] * 4, [True] * 4, [0.1 + 0.2, 0.3] * 2])
    def test_constant(self, values):
        refuses(column(values), "'bad'", "constant", "Drop")

    def test_far_from_zero_is_not_constant(self):
        table = read_table(column([1e9, 1e9 + 1, 1e9 + 2]))
        np.testing.assert_allclose(table.scale[1], np.sqrt(2 / 3), rtol=1e-12)

    def test_center_is_exact_far_from_zero(self):
        X = 1e9 + RNG.normal(size=(20_000, 2))
        mean = [math.fsum(values) / len(X) for values in X.T]
        np.testing.assert_allclose(read_table(X).center, mean, rtol=3e-16)

    @pytest.mark.parametrize("unit", [1e-200, 1e200, 1e-310])
    def test_unit(self, unit):
        refuses(column(np.arange(1, 5) * unit), "'bad'", "change the unit")

    def test_identical(self):
        X = pd.DataFrame({"a": [0.0, 1, 2], "b": [2.0, 1, 4], "c": [-0.0, 1, 2], "d": [0, 1, 2]})
        refuses(X, "'a' and 'c', 'a' and 'd'.", "Drop one")
        refuses(np.repeat(NUMBERS[:, :1], 8, axis=1), "'x0' and 'x5' and 2 more")
        levels = pd.DataFrame({"a": ["u", "v", "v"], "b": ["x", "y", "y"]})
        refuses(levels, "'a[v]' and 'b[y]'", "merge the levels")

    def test_identical_in_distant_blocks(self):
        X = RNG.normal(size=(5, 600))
        X[:, 599] = X[:, 3]
        refuses(X, "'x3' and 'x599'")

    def test_affine_copies_are_fine(self):
        X = NUMBERS[:, :1] * [1.0, 2.0, -1.0] + [0.0, 1.0, 0.0]
        assert read_table(X).values.shape == (N, 3)

    def test_array_of_text(self):
        X = NUMBERS.astype(object)
        X[:, 1] = ISLANDS
        refuses(X, "'x1' ('Dream' in row 0", "array that holds text", "give a DataFrame")
        refuses(X.tolist(), "'x1' ('Dream' in row 0", "array that holds text")
        refuses(X[:, 1:2].astype(str), "'x0'", "array that holds text")

    def test_mixed(self):
        refuses(column([1, "n/a", 3.5, 2]), "'bad' ('n/a' in row 1", "correct", ".astype(str)")
        refuses(column(["u", "v", "u", 2]), "'bad' (2 in row 3", "mixes text and numbers")
        refuses([[1, 2], [3, "x"]], "'x1' ('x' in row 1", "mixes")

    def test_text_of_which_a_part_is_numbers(self):
        refuses(
            column(["1", "2.5", "nan", "-3e2"]),
            "'bad' ('nan' in row 2",
            ".astype(float)",
            "correct",
        )
        refuses(pl.DataFrame({"bad": ["u", "v", "7"]}), "'bad' ('7' in row 2", "category")

    def test_numbers_as_text(self):
        refuses(column(["1", " 2.5", "-3e2"]), "'bad' ('1' in row 0", ".astype(float)", "category")
        refuses(NUMBERS.astype(str), "'x0'", ".astype(float)")
        table = read_table(column(["1", "2", "1"], dtype="category"))
        assert table.features[1:] == ("bad[2]",)

    @pytest.mark.parametrize(
        "X",
        [
            column(pd.date_range("2020-01-01", periods=3)),
            column(pd.date_range("2020-01-01", periods=3, tz="UTC")),
            column(pd.to_timedelta([1, 2, 3], unit="D")),
            column(pd.period_range("2020-01", periods=3, freq="M")),
            column([datetime.date(2020, 1, d) for d in (1, 2, 3)], dtype=object),
            pl.DataFrame({"bad": [datetime.date(2020, 1, d) for d in (1, 2, 3)]}),
            pl.DataFrame({"bad": [datetime.time(d) for d in (1, 2, 3)]}),
            pl.DataFrame({"bad": [datetime.timedelta(d) for d in (1, 2, 3)]}),
        ],
    )
    def test_dates(self, X):
        refuses(X, "'bad'", "dates or durations", "days since")

    def test_array_of_dates(self):
        refuses(np.array([["2020-01-01"], ["2020-01-02"]], dtype="M8[D]"), "'x0'", "days since")

    def test_complex(self):
        refuses(column([1j, 2.0, 3.0]), "'bad'", "complex", "two columns")
        refuses(column([1j, 2.0, 3.0], dtype=object), "'bad'", "complex")
        refuses(NUMBERS.astype(complex), "'x0'", "complex")

    @pytest.mark.parametrize(
        "X",
        [
            column([[1], [2], [3]]),
            pl.DataFrame({"bad": [[1], [2], [3]]}),
            pl.DataFrame({"bad": [{"a": 1}, {"a": 2}, {"a": 3}]}),
        ],
    )
    def test_nested(self, X):
        refuses(X, "'bad'", "lists or structs", "a column of its own")

    def test_neither_number_nor_label(self):
        refuses(column([b"a", b"b", b"c"], dtype=object), "'bad'", "convert", "category")
        refuses(column(pd.arrays.IntervalArray.from_breaks(range(4))), "'bad'", "Interval")

    def test_the_gravest_problem_is_told_for_all_its_columns(self):
        X = pd.DataFrame({"a": [1.0, np.nan], "b": ["1", "2"], "c": ["3", "4"]})
        refuses(X, "'b' ('1' in row 0, counting from 0), 'c' (", "numbers as text")


class TestMemory:
    def test_estimate(self):
        needed = 3 * 100 * 50 * 8 + 2 * (4000 + 1600) * 50 * (20 + 6) * 8
        check_memory(100, 50, 20, memory=needed)
        with pytest.raises(ValueError, match="check_memory=False") as caught:
            check_memory(100, 50, 20, memory=needed - 1)
        message = str(caught.value)
        for part in ("100 rows", "50 inputs", "20 hidden", "4,000", "Screen", "fewer hidden units"):
            assert part in message

    def test_gigabytes(self):
        with pytest.raises(ValueError, match=r"about 109\.8 GB; this machine has 8\.0 GB"):
            check_memory(10_000, 10_000, 100, draws=4_733, memory=8_000_000_000)

    def test_unknown_memory(self, monkeypatch):
        def refuse(name):
            raise ValueError(name)

        monkeypatch.setattr(table_module.os, "sysconf", refuse, raising=False)
        check_memory(10**9, 10**9, 10**3)
        monkeypatch.delattr(table_module.os, "sysconf")
        check_memory(10**9, 10**9, 10**3)

    def test_this_machine(self):
        check_memory(100, 10, 20)
        with pytest.raises(ValueError, match="GB"):
            check_memory(10**9, 10**9, 10**3)


finite = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 3))


@st.composite
def matrices(draw):
    """Matrices whose columns vary and differ."""
    shape = draw(st.tuples(st.integers(2, 8), st.integers(1, 5)))
    X = draw(arrays(np.float64, shape, elements=finite))
    # The first two rows alone make every column vary, and differ from every other.
    X[0] = np.arange(shape[1])
    X[1] = X[0] + 1.0 + 2.0 * np.arange(shape[1])
    return X


@given(matrices(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_permuting_columns_permutes_the_table(X, random):
    order = list(range(X.shape[1]))
    random.shuffle(order)
    names = [f"v{j}" for j in range(X.shape[1])]
    a = read_table(X, feature_names=names, always_in="v0")
    b = read_table(X[:, order], feature_names=[names[j] for j in order], always_in="v0")
    assert b.features == tuple(a.features[j] for j in order)
    np.testing.assert_array_equal(b.values, a.values[:, order])
    np.testing.assert_array_equal(b.always_in, a.always_in[order])
    np.testing.assert_allclose(b.center, a.center[order], rtol=1e-12)
    np.testing.assert_allclose(b.scale, a.scale[order], rtol=1e-12)


@given(matrices(), st.floats(1e-3, 1e3), st.floats(-100, 100))
@settings(max_examples=40, deadline=None)
def test_affine_rescaling_changes_center_and_scale_only(X, slope, shift):
    a, b = read_table(X), read_table(shift + slope * X)
    assert (a.features, a.groups) == (b.features, b.groups)
    np.testing.assert_allclose(b.center, shift + slope * a.center, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(b.scale, slope * a.scale, rtol=1e-6)
    np.testing.assert_allclose(
        (b.values - b.center) / b.scale, (a.values - a.center) / a.scale, atol=1e-6
    )
    np.testing.assert_allclose(a.center, X.mean(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(a.scale, X.std(axis=0), rtol=1e-9)


labels = st.sampled_from(["u", "v", "w", "x y", "ä", "[z]"])


@given(st.lists(labels, min_size=2, max_size=10).filter(lambda x: len(set(x)) > 1))
@settings(max_examples=40, deadline=None)
def test_one_hot_columns_say_which_level(values):
    table = read_table(pl.DataFrame({"a": values}))
    levels = sorted(set(values))
    shown = levels if len(levels) > 2 else levels[1:]
    assert table.features == tuple(f"a[{level}]" for level in shown)
    np.testing.assert_array_equal(table.values, np.array(values)[:, None] == np.array(shown))
    assert table.groups == ("a",)
    assert len(set(table.scale)) == 1

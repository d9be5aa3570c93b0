import warnings

import numpy as np
import pytest
import xarray as xr
from arviz_base.labels import MapLabeller
from arviz_plots import PlotCollection

from pymc_bnnvs.diagnostics import ConvergenceWarning
from pymc_bnnvs.plots import plot_importance
from pymc_bnnvs.selection import select
from pymc_bnnvs.summary import importance

NAMES = ["age", "bmi", "total_cholesterol_permuted_2", "sex"]
SIZE = [0.02, 3.0, 0.5, 0.01]
CHANCE = [0.05, 1.0, 0.8, 0.03]


def fake(names=NAMES, size=SIZE, chance=CHANCE, *, n_chains=2, extra=None):
    """Draws as of a prior with exact zeros, and inputs of unlike spread."""
    rng = np.random.default_rng(3)
    shape = (n_chains, 1000, len(names))
    psi = np.array(size) * rng.gamma(8.0, 1 / 8, size=shape)
    X = rng.normal(size=(20, len(names))) * np.linspace(2.0, 0.2, len(names))
    draws = {}
    if chance is not None:
        included = rng.random(shape) < chance
        psi = psi * included
        draws["inclusion"] = (("chain", "draw", "feature"), included.astype("int8"))
    draws["psi"] = (("chain", "draw", "feature"), psi / X.var(axis=0))
    coords = {"feature": list(names)}
    posterior = xr.Dataset(draws, coords=coords)
    data = xr.Dataset({"X": (("obs_id", "feature"), X)}, coords=coords)
    tree = xr.DataTree.from_dict({"posterior": posterior, "constant_data": data})
    return tree if extra is None else extra(tree)


def many(n=35, n_in=2):
    """Two inputs in, but for the order of the data the last ones; the rest nearly out."""
    size = np.full(n, 0.01)
    size[-n_in:] = 2.0 + np.arange(n_in)
    chance = np.full(n, 0.05)
    chance[-n_in:] = 1.0
    return fake([f"x{i}" for i in range(n)], size, chance)


@pytest.fixture(scope="module")
def tree():
    return fake()


@pytest.fixture(scope="module")
def drawn(tree):
    return plot_importance(tree, backend="none")


def visual(pc, name, row=None, var_name="psi", dim="feature"):
    array = pc.viz[name][var_name]
    return (array if row is None else array.sel({dim: row})).item()


def labels(pc, dim="feature"):
    """Names from top to bottom."""
    found = [label.item() for label in pc.viz[f"{dim}_label"]["psi"]]
    return [label["string"] for label in sorted(found, key=lambda label: -label["y"][0])]


def title(pc):
    return visual(pc, "title")["string"]


@pytest.mark.parametrize("backend", ["matplotlib", "bokeh", "plotly", "none"])
def test_every_backend_returns_a_collection_with_the_same_visuals(tree, backend):
    if backend != "none":
        pytest.importorskip(backend)
    if backend == "matplotlib":
        import matplotlib as mpl

        mpl.use("Agg")
    pc = plot_importance(tree, backend=backend)
    assert isinstance(pc, PlotCollection)
    assert pc.backend == backend
    visuals = {"twig", "trunk", "point_estimate", "ref_line", "feature_label", "inclusion"}
    assert visuals <= set(pc.viz.children)
    for name in visuals - {"ref_line"}:
        assert pc.viz[name]["psi"].sizes["feature"] == len(NAMES)
    if backend == "matplotlib":
        import matplotlib.pyplot as plt

        figure = pc.get_viz("figure")
        figure.canvas.draw()
        box = figure.get_window_extent()
        for label in pc.viz["feature_label"]["psi"].values:
            inside = label.get_window_extent()
            assert box.x0 <= inside.x0 and inside.x1 <= box.x1
        plt.close(figure)
    if backend == "bokeh":
        widths = [pc.get_target("psi", {"column": c}).width for c in ("forest", "inclusion")]
        assert widths == [500, 90]


def test_the_largest_share_is_on_top_and_names_stand_once(drawn):
    assert labels(drawn) == ["bmi", "total_cholesterol_permuted_2", "age", "sex"]
    assert "variable_label" not in drawn.viz.children


@pytest.mark.parametrize("scale", [None, "sd", "raw"])
def test_marks_are_where_importance_says(tree, scale):
    pc = plot_importance(tree, backend="none", scale=scale, ci_prob=0.8, ci_kind="hdi")
    table = importance(tree, ci_prob=0.8, ci_kind="hdi")
    spread = tree["constant_data"]["X"].var("obs_id")
    for name in NAMES:
        row = table.sel(feature=name)
        factor = 1.0 if scale == "raw" else float(spread.sel(feature=name))
        for mark, ends in {
            "trunk": ("ci_lower", "ci_upper"),
            "twig": ("band_lower", "band_upper"),
            "point_estimate": ("psi",),
        }.items():
            expected = [float(row[end]) * factor for end in ends]
            np.testing.assert_allclose(visual(pc, mark, name)["x"], expected, rtol=1e-12)
    unit = "(unit of f / unit of x)²" if scale == "raw" else "Var(x), (unit of f)²"
    assert unit in visual(pc, "xlabel")["string"]
    assert "80% interval" in title(pc)


def test_without_the_inputs_psi_is_plotted_as_it_is(tree):
    bare = xr.DataTree.from_dict({"posterior": tree["posterior"].dataset})
    pc = plot_importance(bare, backend="none")
    assert "units differ" in visual(pc, "xlabel")["string"]
    with pytest.raises(ValueError, match="needs the inputs in constant_data"):
        plot_importance(bare, backend="none", scale="sd")


@pytest.mark.parametrize(
    "rule", [{}, {"rule": "median"}, {"rule": "fdr", "q": 0.2}, {"rule": "top_k", "k": 3}]
)
def test_selected_inputs_are_coloured_and_filled(tree, rule):
    pc = plot_importance(tree, backend="none", **rule)
    selected = select(tree, **rule)["selected"]
    assert 0 < selected.sum() < len(NAMES)
    for name in NAMES:
        inside = bool(selected.sel(feature=name))
        point = visual(pc, "point_estimate", name)
        assert (point["facecolor"] == point["edgecolor"]) == inside
        for mark in ("trunk", "twig"):
            assert visual(pc, mark, name)["color"] == point["edgecolor"]
    assert f"{int(selected.sum())} of 4 inputs selected" in title(pc)
    assert "● selected   ○ not selected" in title(pc)


def test_an_empty_selection_is_drawn_and_said():
    pc = plot_importance(fake(chance=[0.1, 0.4, 0.3, 0.2]), backend="none")
    assert title(pc).startswith("0 of 4 inputs selected (rule interval, alpha = 0.05)")
    colors = {visual(pc, "point_estimate", name)["edgecolor"] for name in NAMES}
    assert len(colors) == 1


def test_the_line_at_zero_is_in_the_forest_alone(drawn):
    lines = {
        column: [
            mark for mark in drawn.get_target("psi", {"column": column}) if "vline" in str(mark)
        ]
        for column in ("labels", "forest", "inclusion")
    }
    assert [len(found) for found in lines.values()] == [0, 1, 0]
    assert lines["forest"][0]["x"] == 0


def test_inclusion_stands_beside_where_there_is_one(tree, drawn):
    table = importance(tree)
    for name in NAMES:
        shown = visual(drawn, "inclusion", name)
        assert shown["string"] == f"{float(table['inclusion'].sel(feature=name)):.2f}"
        assert shown["y"] == visual(drawn, "point_estimate", name)["y"]
    without = plot_importance(fake(chance=None), backend="none")
    assert "inclusion" not in without.viz.children
    assert list(without.viz["column"].values) == ["labels", "forest"]


def test_thirty_rows_at_most_unless_asked(drawn):
    tree = many()
    pc = plot_importance(tree, backend="none", sort=False)
    assert len(labels(pc)) == 30
    assert labels(pc)[-2:] == ["x33", "x34"]
    assert "30 of 35 inputs shown" in title(pc) and "left out" not in title(pc)
    assert "shown" not in title(drawn)
    height = [p.viz["figure"].item()["figsize"][1] for p in (pc, drawn)]
    assert height[0] - height[1] == pytest.approx(26 * 25)
    one = plot_importance(tree, backend="none", top_k=1)
    assert labels(one) == ["x34"]
    assert "1 of 35 inputs shown; 1 selected left out" in title(one)


def test_coords_choose_rows_and_leave_the_decision(tree, drawn):
    pc = plot_importance(tree, backend="none", coords={"feature": ["sex", "bmi"]})
    assert labels(pc) == ["bmi", "sex"]
    assert "1 of 4 inputs selected" in title(pc) and "2 of 4 inputs shown" in title(pc)
    for name in ("sex", "bmi"):
        np.testing.assert_array_equal(
            visual(pc, "twig", name)["x"], visual(drawn, "twig", name)["x"]
        )
    assert labels(plot_importance(tree, backend="none", coords={"feature": "age"})) == ["age"]


def test_groups_have_a_row_each():
    def grouped(tree):
        psi = tree["posterior"]["psi"]
        by_group = psi[..., :3].assign_coords(feature=["body", "blood", "sex"])
        posterior = tree["posterior"].dataset.assign(psi_group=by_group.rename(feature="group"))
        data = tree["constant_data"].dataset.assign(group_of=("feature", [0, 0, 1, 2]))
        return xr.DataTree.from_dict({"posterior": posterior, "constant_data": data})

    tree = fake(extra=grouped)
    pc = plot_importance(tree, by="group", backend="none")
    assert labels(pc, "group") == ["body", "blood", "sex"]
    table = importance(tree, by="group", scale="sd")
    for name in ("body", "blood", "sex"):
        row = table.sel(group=name)
        found = visual(pc, "twig", name, dim="group")["x"]
        np.testing.assert_allclose(found, [row["band_lower"], row["band_upper"]])
    assert "summed over a group's columns" in visual(pc, "xlabel")["string"]
    assert "of 3 groups selected" in title(pc)
    raw = plot_importance(tree, by="group", scale="raw", backend="none")
    assert "units differ" in visual(raw, "xlabel")["string"]


def test_one_chain_is_enough():
    pc = plot_importance(fake(n_chains=1), backend="none")
    assert labels(pc)[0] == "bmi"
    assert "*" not in title(pc)


def test_unconverged_inputs_are_marked_and_warned_of_once(tree):
    moved = tree.copy()
    moved["posterior"] = tree["posterior"].dataset.copy(deep=True)
    moved["posterior"]["psi"].loc[{"chain": 0, "feature": "bmi"}] *= 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pc = plot_importance(moved, backend="none", labeller=MapLabeller())
    assert [w.category for w in caught] == [ConvergenceWarning]
    assert labels(pc)[0] == "bmi *"
    assert sum("*" in label for label in labels(pc)) == 1
    assert "* not converged" in title(pc)


def test_visuals_labeller_and_grid_are_the_users(tree):
    pc = plot_importance(
        tree,
        backend="none",
        labeller=MapLabeller(coord_map={"feature": {"bmi": "Body mass"}}),
        visuals={
            "twig": False,
            "inclusion": False,
            "ref_line": {"width": 7},
            "title": {"text": "Mine"},
            "point_estimate": {"size": 3},
            "labels": {"color": "red"},
        },
        figure_kwargs={"figsize": (300, 400)},
        color=["blue"],
    )
    assert labels(pc)[0] == "Body mass"
    assert "twig" not in pc.viz.children and "inclusion" not in pc.viz.children
    assert visual(pc, "ref_line")["width"] == 7
    assert title(pc) == "Mine"
    assert visual(pc, "point_estimate", "sex")["size"] == 3
    assert visual(pc, "feature_label", "sex")["color"] == "red"
    assert visual(pc, "trunk", "sex")["color"] == "blue"
    assert pc.viz["figure"].item()["figsize"] == (300, 400)


def test_draws_on_a_collection_that_is_given(tree, drawn):
    data = tree["posterior"].dataset[["psi"]].expand_dims(column=["labels", "forest"])
    given = PlotCollection.grid(
        data, cols=["column"], aes={"y": ["feature"], "overlay": ["feature"]}, backend="none"
    )
    pc = plot_importance(tree, plot_collection=given)
    assert pc is given
    assert "inclusion" not in pc.viz.children
    np.testing.assert_array_equal(
        visual(pc, "trunk", "bmi")["x"], visual(drawn, "trunk", "bmi")["x"]
    )


def test_names_of_variables(tree):
    renamed = xr.DataTree.from_dict(
        {
            "posterior": tree["posterior"].dataset.rename(psi="f_psi", inclusion="f_inclusion"),
            "constant_data": tree["constant_data"].dataset.rename(X="f_X"),
        }
    )
    for kwargs in (
        {"var_names": "f_psi"},
        {"var_names": ["f_psi"]},
        {"var_names": "psi", "filter_vars": "like"},
        {"var_names": "psi$", "filter_vars": "regex"},
    ):
        pc = plot_importance(renamed, backend="none", top_k=1, **kwargs)
        assert visual(pc, "inclusion", "bmi", "f_psi")["string"] == "1.00"


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"scale": "std"}, "scale='std' is not known.*'sd'"),
        ({"rule": "intervals"}, "Did you mean 'interval'"),
        ({"point_estimate": "mode"}, "point_estimate='mode' is not known"),
        ({"top_k": 0}, "top_k=0: give a positive number"),
        ({"top_k": 2.5}, "top_k=2.5: give a positive number"),
        ({"ci_kind": "ci"}, "ci_kind='ci' is not known"),
        ({"coords": {"features": "bmi"}}, "coords key='features'.*'feature'"),
        ({"coords": {"feature": ["bmj"]}}, "'bmj' is not known.*Did you mean 'bmi'"),
        ({"var_names": "ps"}, "no variable 'ps'"),
        ({"var_names": ["psi", "inclusion"]}, "stands for 2 variables"),
        ({"var_names": ["ps"]}, "ps"),
        ({"var_names": "psi", "filter_vars": "glob"}, "filter_vars='glob' is not known"),
        ({"group": "prior"}, "no group 'prior'"),
        ({"group": "prior", "var_names": ["psi"]}, "no group 'prior'"),
        ({"sample_dims": ["sample"]}, "sample_dims"),
        ({"backend": "ggplot"}, "backend='ggplot' is not known"),
        ({"visuals": {"twigs": False}}, "visuals key='twigs'.*Did you mean 'twig'"),
        ({"visuals": {"labels": False}}, "labels"),
        ({"stats": {"twig": {}}}, "stats key='twig' is not known"),
    ],
)
def test_a_wrong_option_is_named(tree, kwargs, message):
    with pytest.raises(ValueError, match=message):
        plot_importance(tree, **{"backend": "none"} | kwargs)

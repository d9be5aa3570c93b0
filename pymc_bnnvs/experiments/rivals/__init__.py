"""Methods that say which inputs matter: the paper's ten, and what else a user would try."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymc_bnnvs.experiments.rivals.bayes import (
    gated_network,
    paper_network,
    spike_and_slab_network,
)
from pymc_bnnvs.experiments.rivals.forest import forest, forest_knockoffs, forest_test
from pymc_bnnvs.experiments.rivals.lasso import lasso, lasso_knockoffs, lasso_test
from pymc_bnnvs.experiments.rivals.others import bart, conditional_importance, t_tests
from pymc_bnnvs.experiments.rivals.selection import Selection
from pymc_bnnvs.experiments.rivals.sparse_network import group_lasso_network

__all__ = ["METHODS", "Method", "Selection"]


class Method(NamedTuple):
    """A model and its measure; ``fit(X, y, rng)`` gives a selection for each of its rules."""

    model: str
    fit: Callable[[np.ndarray, np.ndarray, np.random.Generator], dict[str, Selection]]


METHODS: dict[str, Method] = {
    "lasso": Method("LASSO", lasso),
    "lasso-knockoffs": Method("LASSO", lasso_knockoffs),
    "lasso-test": Method("LASSO", lasso_test),
    "forest": Method("Random forest", forest),
    "forest-knockoffs": Method("Random forest", forest_knockoffs),
    "forest-test": Method("Random forest", forest_test),
    "group-lasso-network": Method("Network", group_lasso_network),
    "spike-slab-network": Method("Network", spike_and_slab_network),
    "paper-network": Method("Network", paper_network),
    "gated-network": Method("Network", gated_network),
    "t-tests": Method("Least squares", t_tests),
    "conditional-importance": Method("Random forest", conditional_importance),
    "bart": Method("BART", bart),
}

"""Problems for the tests of bounds and searches, in a few fixed shapes.

XLA compiles anew for every shape and operator set, which takes seconds; values cost nothing. So a
test draws one of a few *buckets* and, inside it, whatever numpy makes of a seed.
"""

from dataclasses import dataclass
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jaxtyping import Array, PyTree

import optexp_jax as ox
from helpers.strategies import ALL_OPERATORS, XOR
from helpers.support import thorough
from optexp_jax.bounds import LabelBatch, ProblemView, TopBott
from optexp_jax.bounds.paper.chains import UNKNOWN, Chains, View, make_view
from optexp_jax.bounds.paper.exact_prefixes import ExactLabels
from optexp_jax.formulas.operators import Operator
from optexp_jax.methods.oracle import OracleResult, best_formula
from optexp_jax.search.problem import Problem
from optexp_jax.testing import Case, random_case

seeds = st.integers(0, 2**32 - 1)

SUBSETS = tuple(subset for n in (1, 2, 3) for subset in combinations(ox.DEFAULT_OPERATORS, n))
DEFAULT = ox.DEFAULT_OPERATORS
PUBLISHED, LABEL = ox.PublishedVectors(), ox.LabelVectors()
# So few ranks that samples have concepts past them.
PAIRS = ox.PairVectors(ranks=1)


@dataclass(frozen=True)
class Bucket:
    """What decides which programs are compiled."""

    n_concepts: int
    n_samples: int
    length: int
    operators: tuple[Operator, ...] = DEFAULT
    batch_size: int = 8
    vectors: ox.AbstractVectors = PUBLISHED
    aggregated_first: bool = True
    index_order: bool = True

    def case(self, seed: int) -> Case:
        return random_case(np.random.default_rng(seed), self.n_concepts, self.n_samples)

    def method(self, *, frontier_reduction: bool = True, callback=None, **devices) -> ox.Optimal:
        """The search; `devices` of `PaperBounds` to switch on or off."""
        bounds = ox.PaperBounds(
            self.vectors,
            aggregated_first=self.aggregated_first,
            index_order=self.index_order,
            **devices,
        )
        return ox.Optimal(
            self.length,
            bounds=bounds,
            operators=self.operators,
            batch_size=self.batch_size,
            frontier_reduction=frontier_reduction,
            callback=callback,
        )

    def optimum(self, case: Case) -> OracleResult:
        """The best formula by enumeration on the raw masks: no table, no signatures."""
        return best_formula(
            case.columns,
            case.inside.reshape(-1),
            case.outside.reshape(-1),
            case.names,
            self.length,
            self.operators,
        )


USUAL = Bucket(6, 3, 3)
ONE_BY_ONE = Bucket(6, 3, 3, batch_size=1)
SMALL = Bucket(3, 1, 4)  # longer than there are concepts
QUICK_BUCKETS = (
    USUAL,
    ONE_BY_ONE,
    SMALL,
    Bucket(1, 1, 3),
    Bucket(4, 3, 2, operators=(ox.AND, XOR), aggregated_first=False, index_order=False),
    Bucket(4, 1, 2, operators=(ox.OR,)),
    Bucket(4, 1, 2, operators=(ox.AND, ox.AND_NOT), vectors=LABEL, batch_size=64),
    Bucket(6, 3, 3, vectors=PAIRS),
)
THOROUGH_BUCKETS = (
    *QUICK_BUCKETS,
    *(Bucket(4, 1, 2, operators=subset) for subset in SUBSETS),
    *(Bucket(6, 3, 3, operators=subset) for subset in SUBSETS if len(subset) < 3),
    *(Bucket(4, 1, 4, operators=subset, batch_size=1) for subset in SUBSETS),
    *(Bucket(6, 3, 3, operators=(*subset, XOR)) for subset in SUBSETS if len(subset) > 1),
    *(Bucket(5, 1, 4, operators=subset, batch_size=64) for subset in SUBSETS),
    Bucket(3, 1, 3, vectors=LABEL, batch_size=64),
    Bucket(4, 3, 4, vectors=LABEL, batch_size=64),
    Bucket(6, 3, 3, vectors=LABEL, aggregated_first=False, index_order=False),
    *(Bucket(6, 3, 3, operators=subset, vectors=PAIRS) for subset in SUBSETS if len(subset) < 3),
    Bucket(6, 3, 3, operators=(ox.OR, ox.AND, XOR), vectors=PAIRS),
    Bucket(6, 3, 3, vectors=PAIRS, aggregated_first=False, index_order=False),
    Bucket(6, 1, 3, vectors=ox.PairVectors(), batch_size=1),
    Bucket(4, 3, 4, vectors=PAIRS, batch_size=64),
    Bucket(3, 1, 4, vectors=PAIRS),
    Bucket(6, 3, 3, aggregated_first=False, batch_size=64),
    Bucket(6, 3, 3, batch_size=64),
    Bucket(6, 3, 3, batch_size=5),
    Bucket(6, 1, 3, batch_size=1),
    Bucket(6, 1, 2, batch_size=1, index_order=False),
    Bucket(6, 1, 1),
    Bucket(3, 3, 3, operators=ALL_OPERATORS),
)
BUCKETS = THOROUGH_BUCKETS if thorough() else QUICK_BUCKETS


class OnlyOne(ox.AbstractVectors):
    """Top_1 in place of Top_t: wrong as soon as two more concepts can be added."""

    def prepare(self, view: ProblemView) -> PyTree[Array]:
        return PUBLISHED.prepare(view)

    def of_labels(self, prepared: PyTree[Array], labels: LabelBatch) -> TopBott:
        right = PUBLISHED.of_labels(prepared, labels)
        return TopBott(right.top_one, right.top_one, right.bottom)


@dataclass(frozen=True)
class Split:
    """Exact I^U, I^C, E^U, E^C, `[row, sample]`, counted on the raw masks."""

    iu: np.ndarray
    ic: np.ndarray
    eu: np.ndarray
    ec: np.ndarray

    def aggregate(self) -> "Split":
        return Split(*(part.sum(1, keepdims=True) for part in vars(self).values()))


def split(case: Case, held: np.ndarray) -> Split:
    """The quantities of masks `[row, sample, cell]`."""
    concepts_here = case.masks.sum(0)
    parts = [
        (held & where) * weight
        for weight in (case.inside, case.outside)
        for where in (concepts_here == 1, concepts_here > 1)
    ]
    return Split(*(part.sum(2) for part in parts))


def random_chains(
    rng: np.random.Generator, n_concepts: int, n_rows: int, depth: int, n_operators: int
) -> tuple[np.ndarray, np.ndarray]:
    """Concepts and operators of chains of 1 to `depth` concepts, padded with -1."""
    concepts = np.full((n_rows, depth), -1, np.int32)
    operators = np.full((n_rows, depth), -1, np.int32)
    for row in range(n_rows):
        length = rng.integers(1, depth + 1)
        concepts[row, :length] = rng.permutation(n_concepts)[:length]
        operators[row, 1:length] = rng.integers(0, n_operators, length - 1)
    return concepts, operators


def hold(
    case: Case, concepts: np.ndarray, operators: np.ndarray, operator_set: tuple[Operator, ...]
) -> np.ndarray:
    """Where each chain holds, `[row, sample, cell]`, by truth table."""
    tables = np.array([[[False, o.q], [o.p, o.r]] for o in operator_set])
    rows = []
    for chain, steps in zip(concepts.tolist(), operators.tolist(), strict=True):
        value = case.masks[chain[0]]
        for concept, code in zip(chain[1:], steps[1:], strict=True):
            if concept >= 0:
                value = tables[code][value.astype(int), case.masks[concept].astype(int)]
        rows.append(value)
    return np.array(rows)


def view_of(
    case: Case,
    operators: tuple[Operator, ...],
    depth: int,
    *,
    aggregated: bool,
    vectors: ox.AbstractVectors | None = None,
    known: ExactLabels | None = None,
) -> View:
    """The view in which chains of a case are estimated."""
    problem = Problem(case.table, case.neuron, depth, operators)
    known = ExactLabels(case.table.n_samples, np.int32) if known is None else known
    with jax.enable_x64(True):
        return make_view(
            ox.PublishedVectors() if vectors is None else vectors,
            problem,
            known.aggregated if aggregated else known.per_sample,
            aggregated=aggregated,
        )


def as_chains(concepts: np.ndarray, operators: np.ndarray) -> Chains:
    """Chains of which nothing is known."""
    unknown, leaf_only = np.full(len(concepts), UNKNOWN, np.int32), np.ones(len(concepts), np.int32)
    return Chains(*(jnp.asarray(part) for part in (concepts, operators, unknown, leaf_only)))

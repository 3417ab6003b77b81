"""How many neurons of a table are explained together."""

from optexp_jax.concepts.table import ConceptTable

MOST = 8
"""More would be counted no faster, and the first would be waited for longer."""
TOGETHER_BYTES = 2**28
"""Of the Gram matrices and counts of a group, which are held at once."""


def neurons_together(table: ConceptTable) -> int:
    """Neurons whose counts of pairs, 64 bits each, fit memory together."""
    bytes_a_neuron = 8 * (table.n_concepts**2 + len(table.signatures))
    return max(1, min(MOST, TOGETHER_BYTES // bytes_a_neuron))

"""What a neuron and a table have in common, in exact integers: counts, scores, overlaps."""

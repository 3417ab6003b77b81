"""The published family: admissible estimates of labels and of paths, and their search."""

"""The search: subproblems, their nodes, and what is left of them after bounding."""

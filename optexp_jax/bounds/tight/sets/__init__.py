"""Searching sets of concepts instead of chains: cells, the bound U, and the best chain of a set."""

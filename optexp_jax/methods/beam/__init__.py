"""Beam search, and what guides it."""

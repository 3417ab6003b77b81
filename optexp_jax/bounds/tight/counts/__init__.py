"""Exact counts that the tight bounds are made of: pairs of concepts, and labels with concepts."""

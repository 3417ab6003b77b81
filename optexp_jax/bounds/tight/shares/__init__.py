"""Searching sets of concepts of large tables: one concept at a time, bounded by shares."""

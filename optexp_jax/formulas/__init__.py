"""Formulas: left-deep chains of concepts, their operators, their text, and batches of them."""

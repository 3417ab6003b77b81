"""The mathematics: pure functions, one a proposition of `docs/explanation/tight_bounds.md`."""

"""Projections: pure folds of the log, one per file."""

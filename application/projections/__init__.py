"""Projections: pure folds of the log, one file each, named for the question it answers."""

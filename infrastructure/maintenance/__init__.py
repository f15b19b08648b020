"""Checks, backup, salvage and repair of a log file."""

"""Maintain a log as a whole: verify it, rebuild derived data, and report."""

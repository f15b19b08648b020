"""Compaction: policy, budget, and the decisions of an attempt."""

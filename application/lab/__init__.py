"""Replay and simulate recorded conversations, and compute their cost."""

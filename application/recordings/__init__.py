"""Recorded conversations: playing them, simulating policies, what they would have cost."""

"""Playing and simulating recorded conversations, and what they cost."""

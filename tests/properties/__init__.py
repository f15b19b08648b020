"""Property tests: whatever a conversation holds and whatever is done to it, the invariants hold."""

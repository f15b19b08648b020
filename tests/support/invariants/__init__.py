"""The invariants, each a function of its own that fails with its name."""

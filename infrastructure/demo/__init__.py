"""The conversation that ships with refold, for ``refold demo``: written for it, kept as a file."""

"""Taking care of a log as a whole: verify, rebuild, and what that answers."""

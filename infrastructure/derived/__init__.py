"""Files that are derived from the log: followed, checked, and folded anew when they are damaged."""

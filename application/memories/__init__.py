"""Earlier messages that matter now, quoted in the system text: which they are, and when that changes."""

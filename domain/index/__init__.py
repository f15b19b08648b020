"""The index: exact values of covered messages in a compact list, and where the work stood."""

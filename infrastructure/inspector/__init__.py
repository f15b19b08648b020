"""The inspector: pages that show a memory in a browser or in a file. It reads and never changes a log."""

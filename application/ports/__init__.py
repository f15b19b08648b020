"""Ports that the use cases need: one port a file, each with its errors."""

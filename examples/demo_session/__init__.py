"""Plays the screenplay of the demo conversation: parser, file system, terminal, recorder."""

"""Topics: what covered messages are about, named by a model or by code, counted by code."""

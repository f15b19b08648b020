"""Tools for agents: what a model may ask its own memory for, as schemas, callables and texts."""

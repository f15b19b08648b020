"""Adapters of the Summariser port: some use a model, one uses code only."""

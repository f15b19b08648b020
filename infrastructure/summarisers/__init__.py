"""Adapters of the Summariser port: one by a model, one by code alone."""

"""Embedders: adapters of programs and endpoints that make vectors of texts."""

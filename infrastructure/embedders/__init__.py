"""Embedders: adapters of packages and endpoints that compute vectors of texts."""

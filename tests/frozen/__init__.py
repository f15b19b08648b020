"""Outputs that a change of structure must not change: stored bytes, requests, ``--json`` answers, hits of recall."""

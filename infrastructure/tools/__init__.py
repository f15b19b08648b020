"""Adapters that let SDKs of vendors run the tools for agents by themselves."""

"""Adapters for SDKs and frameworks. Import each one by its name, such as ``refold.adapters.anthropic``."""

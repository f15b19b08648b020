"""The rules of the Messages API, one small function each, independent of refold's code."""

"""The embedded summariser: extracts what matters by code, with no model, the same for the same input."""

from .summariser import ALGORITHM, ExtractiveSummariser

__all__ = ["ALGORITHM", "ExtractiveSummariser"]

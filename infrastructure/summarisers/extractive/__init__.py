"""The built-in summariser. It extracts lines with code only, always the same from the same input."""

from .summariser import ALGORITHM, ExtractiveSummariser

__all__ = ["ALGORITHM", "ExtractiveSummariser"]

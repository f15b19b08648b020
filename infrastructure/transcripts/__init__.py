"""Read recorded agent conversations of other tools as ``Transcript`` values."""

from .read_transcript import FORMATS, read_transcript

__all__ = ["FORMATS", "read_transcript"]

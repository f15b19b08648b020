"""Reading recorded agent conversations: files of other tools become ``Transcript`` values."""

from .read_transcript import FORMATS, read_transcript

__all__ = ["FORMATS", "read_transcript"]

"""Text of transcripts made safe to show: no character moves a cursor, hides text or reorders it."""

from refold.domain.lazy_pattern import lazy_pattern

# Invisible characters that reorder or hide text: direction marks, zero-width spaces, tags. Not emoji joiners.
MISLEADING = "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f"
# Everything that could move a cursor, ring a bell or colour a screen.
_CONTROL = lazy_pattern(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{MISLEADING}\ud800-\udfff]")


def strip_control(text: str) -> str:
    """Return text for showing as it is: no character moves the cursor or hides text."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text).replace("\t", "    ")

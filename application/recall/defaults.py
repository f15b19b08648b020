"""What is asked of recall where the question itself does not say."""

from typing import cast

from refold.application.core import Core

from .inquiry import Inquiry, RecallOptions, inquire


def inquiry_of(
    core: Core, query: str, options: RecallOptions, thread_id: str | None = None
) -> Inquiry:
    """A question with its options; for others, the settings say it.

    Raises:
        InvalidSetting: an option cannot be; says what is allowed.
    """
    settings = core.settings
    defaults: RecallOptions = {
        "limit": settings.recall_hits,
        "min_score": settings.recall_least_score,
        "mode": settings.recall_mode,
    }
    return inquire(query, thread_id=thread_id, **cast("RecallOptions", {**defaults, **options}))

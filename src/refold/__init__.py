"""refold: conversation memory for LLM agents that can always be rebuilt.

``refold.open(path)`` gives the memory; everything else here is what it takes and what it answers.
"""

from typing import TYPE_CHECKING, Any

from refold.application.chat import Chat
from refold.application.context import Context
from refold.application.errors import (
    LogBusy,
    LogDamaged,
    LogError,
    LogFull,
    LogNotFound,
    LogNotWritable,
    NewerLog,
    NotARefoldLog,
    SummariserError,
    TranscriptError,
)
from refold.application.memory import AsyncChat, AsyncMemory, Memory
from refold.application.ports import (
    SourceMessage,
    Summariser,
    SummaryDraft,
    SummaryRequest,
    TokenCount,
    TokenCounter,
)
from refold.application.results import (
    Appended,
    AppendedMessage,
    CompactionResult,
    StoredMessage,
)
from refold.application.verifying import DamageReport, Replayed, Verification
from refold.domain.budget import Budget
from refold.domain.errors import (
    ContextWindowExceeded,
    InvalidMessage,
    InvalidSetting,
    InvalidThreadId,
    RefoldError,
    UnknownToolCall,
)
from refold.domain.messages import Message
from refold.domain.policy import CompactionPolicy

if TYPE_CHECKING:
    from refold.infrastructure.opening import open_async_memory as aopen
    from refold.infrastructure.opening import open_memory as open

__all__ = [
    "Appended",
    "AppendedMessage",
    "AsyncChat",
    "AsyncMemory",
    "Budget",
    "Chat",
    "CompactionPolicy",
    "CompactionResult",
    "Context",
    "ContextWindowExceeded",
    "DamageReport",
    "InvalidMessage",
    "InvalidSetting",
    "InvalidThreadId",
    "LogBusy",
    "LogDamaged",
    "LogError",
    "LogFull",
    "LogNotFound",
    "LogNotWritable",
    "Memory",
    "Message",
    "NewerLog",
    "NotARefoldLog",
    "RefoldError",
    "Replayed",
    "SourceMessage",
    "StoredMessage",
    "Summariser",
    "SummariserError",
    "SummaryDraft",
    "SummaryRequest",
    "TokenCount",
    "TokenCounter",
    "TranscriptError",
    "UnknownToolCall",
    "Verification",
    "aopen",
    "open",
]

# The stores behind these two are imported when they are first used: ``import refold`` stays light.
_LATE = {"open": "open_memory", "aopen": "open_async_memory"}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from refold.infrastructure import opening

    return getattr(opening, _LATE[name])

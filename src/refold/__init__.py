"""refold: conversation memory for LLM agents that can always be rebuilt.

``refold.open(path)`` gives the memory; everything else here is what it takes and what it answers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refold.application.async_memory import (
        AsyncChat,
        AsyncMemory,
    )
    from refold.application.block_checks import (
        UnknownBlockWarning,
    )
    from refold.application.chat import (
        Chat,
    )
    from refold.application.context import (
        Context,
    )
    from refold.application.erasure.erasure_report import (
        ErasureReport,
        RebuiltSummary,
        Removed,
    )
    from refold.application.errors import (
        BackupDamaged,
        EmbedderError,
        ForeignAddress,
        InvalidAddress,
        LogBehindAnchor,
        LogBusy,
        LogDamaged,
        LogError,
        LogFull,
        LogGone,
        LogLocked,
        LogNotFound,
        LogNotWritable,
        NewerLog,
        NotARefoldLog,
        OpenedBeforeFork,
        SummariserError,
        TargetExists,
        ThreadExists,
        TokenCountError,
        TranscriptError,
        TurnTaken,
        WriteAheadDamaged,
    )
    from refold.application.explaining import (
        MessageFate,
    )
    from refold.application.instructions import (
        instruction_text,
    )
    from refold.application.memory import (
        Memory,
    )
    from refold.application.notes.taker import (
        NotesDraft,
        NotesRequest,
        NoteTaker,
    )
    from refold.application.pinning import (
        PinnedItem,
    )
    from refold.application.ports import (
        BoundedSummariser,
        Observer,
        SourceMessage,
        Summariser,
        SummaryDraft,
        SummaryRequest,
        TokenCount,
        TokenCounter,
    )
    from refold.application.read_models import (
        CompactionRow,
        ConversationRow,
        NoteRow,
        SummaryRow,
        TopicSeen,
    )
    from refold.application.recall.embedding import (
        EmbeddingProgress,
    )
    from refold.application.recall.expanding import (
        ExpandedSummary,
        LeafText,
    )
    from refold.application.recall.history import (
        HistoryPage,
    )
    from refold.application.recall.inquiry import (
        RecallOptions,
    )
    from refold.application.recall.paging import (
        TextPart,
    )
    from refold.application.recall.records import (
        HistoryRecord,
    )
    from refold.application.recall.results import (
        Neighbour,
        Recalled,
        RecallHit,
    )
    from refold.application.recall.vectors import (
        Embedder,
    )
    from refold.application.recordings.transcripts import (
        RecordedConversation,
        RecordedMessage,
        Skipped,
        Transcript,
    )
    from refold.application.results import (
        Appended,
        AppendedMessage,
        CompactionResult,
        StoredMessage,
    )
    from refold.application.time_travel.diffing import (
        ContextDiff,
        EventCount,
        MessageChange,
    )
    from refold.application.tools.checking import (
        UnknownToolFieldWarning,
    )
    from refold.application.tools.tool import (
        Tool,
        ToolOutput,
    )
    from refold.application.tools.toolbox import (
        AsyncToolbox,
        Toolbox,
    )
    from refold.application.turns import (
        AsyncConversationTurn,
        ConversationTurn,
    )
    from refold.application.upkeep.housekeeping import (
        BackedUp,
        ConversationSize,
        ErasedAgain,
        FileSize,
        Restored,
        Share,
        Sizes,
    )
    from refold.application.upkeep.salvaging import (
        LostEvent,
        Salvaged,
    )
    from refold.application.upkeep.verifying import (
        AnchorState,
        DamageReport,
        Replayed,
        Verification,
    )
    from refold.domain.budget import (
        Budget,
        InstructionFileSize,
    )
    from refold.domain.errors import (
        ContextWindowExceeded,
        ConversationGone,
        EmptyConversation,
        InvalidMessage,
        InvalidOwner,
        InvalidSetting,
        InvalidThreadId,
        KeyReused,
        OwnerConflict,
        PinnedContentTooLarge,
        RefoldError,
        RequestTooLarge,
        UnknownMessage,
        UnknownSummary,
        UnknownToolCall,
        VersionConflict,
    )
    from refold.domain.events import (
        OmittedMessage,
    )
    from refold.domain.messages import (
        Author,
        Message,
    )
    from refold.domain.policy import (
        CompactionPolicy,
    )
    from refold.domain.remembering import (
        Note,
    )
    from refold.infrastructure.opening import (
        open_async_memory as aopen,
    )
    from refold.infrastructure.opening import (
        open_memory as open,
    )
    from refold.infrastructure.options import (
        Options,
    )
    from refold.infrastructure.restoring import (
        restore_log as restore,
    )
    from refold.infrastructure.transcripts.from_openai import (
        from_openai,
        tools_from_openai,
    )
    from refold.infrastructure.transcripts.reading import (
        read_transcript,
    )

    __version__: str

__all__ = [
    "AnchorState",
    "Appended",
    "AppendedMessage",
    "AsyncChat",
    "AsyncConversationTurn",
    "AsyncMemory",
    "AsyncToolbox",
    "Author",
    "BackedUp",
    "BackupDamaged",
    "BoundedSummariser",
    "Budget",
    "Chat",
    "CompactionPolicy",
    "CompactionResult",
    "CompactionRow",
    "Context",
    "ContextDiff",
    "ContextWindowExceeded",
    "ConversationGone",
    "ConversationRow",
    "ConversationSize",
    "ConversationTurn",
    "DamageReport",
    "Embedder",
    "EmbedderError",
    "EmbeddingProgress",
    "EmptyConversation",
    "ErasedAgain",
    "ErasureReport",
    "EventCount",
    "ExpandedSummary",
    "FileSize",
    "ForeignAddress",
    "HistoryPage",
    "HistoryRecord",
    "InstructionFileSize",
    "InvalidAddress",
    "InvalidMessage",
    "InvalidOwner",
    "InvalidSetting",
    "InvalidThreadId",
    "KeyReused",
    "LeafText",
    "LogBehindAnchor",
    "LogBusy",
    "LogDamaged",
    "LogError",
    "LogFull",
    "LogGone",
    "LogLocked",
    "LogNotFound",
    "LogNotWritable",
    "LostEvent",
    "Memory",
    "Message",
    "MessageChange",
    "MessageFate",
    "Neighbour",
    "NewerLog",
    "NotARefoldLog",
    "Note",
    "NoteRow",
    "NoteTaker",
    "NotesDraft",
    "NotesRequest",
    "Observer",
    "OmittedMessage",
    "OpenedBeforeFork",
    "Options",
    "OwnerConflict",
    "PinnedContentTooLarge",
    "PinnedItem",
    "RebuiltSummary",
    "RecallHit",
    "RecallOptions",
    "Recalled",
    "RecordedConversation",
    "RecordedMessage",
    "RefoldError",
    "Removed",
    "Replayed",
    "RequestTooLarge",
    "Restored",
    "Salvaged",
    "Share",
    "Sizes",
    "Skipped",
    "SourceMessage",
    "StoredMessage",
    "Summariser",
    "SummariserError",
    "SummaryDraft",
    "SummaryRequest",
    "SummaryRow",
    "TargetExists",
    "TextPart",
    "ThreadExists",
    "TokenCount",
    "TokenCountError",
    "TokenCounter",
    "Tool",
    "ToolOutput",
    "Toolbox",
    "TopicSeen",
    "Transcript",
    "TranscriptError",
    "TurnTaken",
    "UnknownBlockWarning",
    "UnknownMessage",
    "UnknownSummary",
    "UnknownToolCall",
    "UnknownToolFieldWarning",
    "Verification",
    "VersionConflict",
    "WriteAheadDamaged",
    "aopen",
    "from_openai",
    "instruction_text",
    "open",
    "read_transcript",
    "restore",
    "tools_from_openai",
]

# Imported when first used: ``import refold`` costs next to nothing, stores and vendors come later.
_PLACES = {
    "refold.application.async_memory": "AsyncChat AsyncMemory",
    "refold.application.chat": "Chat",
    "refold.application.context": "Context",
    "refold.application.time_travel.diffing": "ContextDiff EventCount MessageChange",
    "refold.application.erasure.erasure_report": "ErasureReport RebuiltSummary Removed",
    "refold.application.errors": (
        "BackupDamaged EmbedderError ForeignAddress InvalidAddress LogBehindAnchor LogBusy LogDamaged LogError LogFull "
        "LogGone LogLocked LogNotFound LogNotWritable NewerLog NotARefoldLog OpenedBeforeFork SummariserError "
        "TargetExists ThreadExists TokenCountError TranscriptError TurnTaken WriteAheadDamaged"
    ),
    "refold.application.explaining": "MessageFate",
    "refold.application.instructions": "instruction_text",
    "refold.application.upkeep.housekeeping": (
        "BackedUp ConversationSize ErasedAgain FileSize Restored Share Sizes"
    ),
    "refold.application.memory": "Memory",
    "refold.application.notes.taker": "NoteTaker NotesDraft NotesRequest",
    "refold.application.pinning": "PinnedItem",
    "refold.application.ports": (
        "BoundedSummariser Observer SourceMessage Summariser SummaryDraft SummaryRequest TokenCount "
        "TokenCounter"
    ),
    "refold.application.read_models": "CompactionRow ConversationRow NoteRow SummaryRow TopicSeen",
    "refold.application.recall.embedding": "EmbeddingProgress",
    "refold.application.recall.expanding": "ExpandedSummary LeafText",
    "refold.application.recall.history": "HistoryPage",
    "refold.application.recall.inquiry": "RecallOptions",
    "refold.application.recall.paging": "TextPart",
    "refold.application.recall.records": "HistoryRecord",
    "refold.application.recall.results": "Neighbour Recalled RecallHit",
    "refold.application.recall.vectors": "Embedder",
    "refold.application.recordings.transcripts": (
        "RecordedConversation RecordedMessage Skipped Transcript"
    ),
    "refold.application.block_checks": "UnknownBlockWarning",
    "refold.application.results": "Appended AppendedMessage CompactionResult StoredMessage",
    "refold.application.turns": "AsyncConversationTurn ConversationTurn",
    "refold.application.upkeep.salvaging": "LostEvent Salvaged",
    "refold.application.upkeep.verifying": "AnchorState DamageReport Replayed Verification",
    "refold.application.tools.checking": "UnknownToolFieldWarning",
    "refold.application.tools.tool": "Tool ToolOutput",
    "refold.application.tools.toolbox": "AsyncToolbox Toolbox",
    "refold.domain.budget": "Budget InstructionFileSize",
    "refold.domain.errors": (
        "ContextWindowExceeded ConversationGone EmptyConversation InvalidMessage InvalidOwner "
        "InvalidSetting InvalidThreadId KeyReused OwnerConflict PinnedContentTooLarge RefoldError "
        "RequestTooLarge UnknownMessage UnknownSummary UnknownToolCall VersionConflict"
    ),
    "refold.domain.events": "OmittedMessage",
    "refold.domain.messages": "Author Message",
    "refold.domain.policy": "CompactionPolicy",
    "refold.domain.remembering": "Note",
    "refold.infrastructure.opening": "aopen open",
    "refold.infrastructure.options": "Options",
    "refold.infrastructure.restoring": "restore",
    "refold.infrastructure.transcripts.from_openai": "from_openai tools_from_openai",
    "refold.infrastructure.transcripts.reading": "read_transcript",
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names.split()}
_OWN_NAME = {"open": "open_memory", "aopen": "open_async_memory", "restore": "restore_log"}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("refold")
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_PLACE_OF[name]), _OWN_NAME.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

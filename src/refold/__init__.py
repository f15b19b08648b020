"""Event-sourced conversation memory for LLM agents.

``refold.open(path)`` returns a ``Memory``, ``refold.aopen(path)`` one for asyncio. The other names are the types of
arguments and results, the errors, and functions that read transcripts.
"""

# Type checkers know this name. Importing it from typing takes longer than all the rest.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from refold.application.agent_tools.definitions import UnknownToolFieldWarning
    from refold.application.agent_tools.memory_edits import AllowedEdit, EditProposal
    from refold.application.agent_tools.tool_scope import Tool
    from refold.application.agent_tools.toolbox import Toolbox
    from refold.application.api.async_memory import (
        AsyncConversationMemory,
        AsyncFollower,
        AsyncMemory,
        AsyncToolbox,
    )
    from refold.application.api.conversation_memory import ConversationMemory
    from refold.application.api.followed_events import FollowedEvent
    from refold.application.api.followers import Follower
    from refold.application.api.following import MemoryUnusedWarning
    from refold.application.api.memory import Memory
    from refold.application.api.memory_files import FileChange, MemoryFiles
    from refold.application.api.results import (
        Appended,
        AppendedMessage,
        CompactionResult,
        Context,
        StoredMessage,
    )
    from refold.application.compaction.pinning import PinnedItem
    from refold.application.conversation.block_checks import UnknownBlockWarning
    from refold.application.conversation.instructions import instruction_text
    from refold.application.conversation.transcripts import (
        RecordedConversation,
        RecordedMessage,
        Skipped,
        Transcript,
    )
    from refold.application.conversation.turn_lock import AsyncConversationTurn, ConversationTurn
    from refold.application.erasure.erasure_report import ErasureReport, RebuiltSummary, Removed
    from refold.application.errors import (
        BackupDamaged,
        EmbedderError,
        FoldError,
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
        OtherHistory,
        SummariserError,
        TargetExists,
        ThreadExists,
        TokenCountError,
        TranscriptError,
        TurnTaken,
        WriteAheadDamaged,
    )
    from refold.application.history.diff import ContextDiff, EventCount, MessageChange
    from refold.application.history.expand import ExpandedSummary, LeafText
    from refold.application.history.explain import MessageFate
    from refold.application.history.export import TextPart
    from refold.application.history.fact_history import RuleDifference, RulesCompared
    from refold.application.history.fate_history import FateChange
    from refold.application.history.query import HistoryPage, HistoryRecord
    from refold.application.history.value_history import (
        Occurrence,
        ValueChange,
        ValueHistory,
        ValuePlace,
    )
    from refold.application.history.ways_back import SimilarLine, WayBack
    from refold.application.inspection.ledger_view import LedgerEntry, LedgerView
    from refold.application.inspection.message_strip import FateTokens, MessageStrip, StripCell
    from refold.application.inspection.missing_facts import MissingFact
    from refold.application.inspection.size_history import SizeHistory, SizeMark, SizePoint
    from refold.application.inspection.summary_sources import (
        LineSource,
        SourcedLine,
        SummarySources,
    )
    from refold.application.maintenance.maintenance_results import (
        AnchorState,
        BackedUp,
        ConversationSize,
        Copied,
        ErasedAgain,
        ErasedPlace,
        FileSize,
        LostEvent,
        Restored,
        Salvaged,
        Share,
        Sizes,
    )
    from refold.application.maintenance.verifying import DamageReport, Replayed, Verification
    from refold.application.ports.embedder import Embedder
    from refold.application.ports.observer import Observer
    from refold.application.ports.read_models import (
        CompactionRow,
        ConversationRow,
        ConversationsPage,
        ListedConversation,
        NoteRow,
        SummaryRow,
        TopicSeen,
    )
    from refold.application.ports.sdk_tools import ToolOutput
    from refold.application.ports.summariser import (
        BoundedSummariser,
        NotesDraft,
        NotesRequest,
        NoteTaker,
        SourceMessage,
        Summariser,
        SummaryDraft,
        SummaryRequest,
    )
    from refold.application.ports.token_counter import TokenCount, TokenCounter
    from refold.application.recall.embedding import EmbeddingProgress
    from refold.application.recall.hits import Neighbour, Recalled, RecallHit
    from refold.application.recall.recall_query import RecallOptions
    from refold.domain.compaction.budget import Budget, InstructionFileSize
    from refold.domain.compaction.policy import CompactionPolicy
    from refold.domain.errors import (
        ContextWindowExceeded,
        ConversationGone,
        EditClosed,
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
        UnknownEdit,
        UnknownMessage,
        UnknownSummary,
        UnknownToolCall,
        VersionConflict,
    )
    from refold.domain.events import OmittedMessage
    from refold.domain.facts.fact import Fact
    from refold.domain.facts.message_reader import ReadCall
    from refold.domain.facts.reading import MessagesRead
    from refold.domain.memory_files import FileRefused
    from refold.domain.messages import Author, Message
    from refold.domain.notes import Note
    from refold.domain.originals import Original
    from refold.infrastructure.bootstrap import open_async_memory as aopen
    from refold.infrastructure.bootstrap import open_memory as open
    from refold.infrastructure.maintenance.copy_log import copy_log
    from refold.infrastructure.maintenance.restore import restore_log as restore
    from refold.infrastructure.settings.option_checks import Options
    from refold.infrastructure.transcripts.from_openai import from_openai, tools_from_openai
    from refold.infrastructure.transcripts.read_transcript import read_transcript

    __version__: str

__all__ = [
    "AllowedEdit",
    "AnchorState",
    "Appended",
    "AppendedMessage",
    "AsyncConversationMemory",
    "AsyncConversationTurn",
    "AsyncFollower",
    "AsyncMemory",
    "AsyncToolbox",
    "Author",
    "BackedUp",
    "BackupDamaged",
    "BoundedSummariser",
    "Budget",
    "CompactionPolicy",
    "CompactionResult",
    "CompactionRow",
    "Context",
    "ContextDiff",
    "ContextWindowExceeded",
    "ConversationGone",
    "ConversationMemory",
    "ConversationRow",
    "ConversationSize",
    "ConversationTurn",
    "ConversationsPage",
    "Copied",
    "DamageReport",
    "EditClosed",
    "EditProposal",
    "Embedder",
    "EmbedderError",
    "EmbeddingProgress",
    "EmptyConversation",
    "ErasedAgain",
    "ErasedPlace",
    "ErasureReport",
    "EventCount",
    "ExpandedSummary",
    "Fact",
    "FateChange",
    "FateTokens",
    "FileChange",
    "FileRefused",
    "FileSize",
    "FoldError",
    "FollowedEvent",
    "Follower",
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
    "LedgerEntry",
    "LedgerView",
    "LineSource",
    "ListedConversation",
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
    "MemoryFiles",
    "MemoryUnusedWarning",
    "Message",
    "MessageChange",
    "MessageFate",
    "MessageStrip",
    "MessagesRead",
    "MissingFact",
    "Neighbour",
    "NewerLog",
    "NotARefoldLog",
    "Note",
    "NoteRow",
    "NoteTaker",
    "NotesDraft",
    "NotesRequest",
    "Observer",
    "Occurrence",
    "OmittedMessage",
    "OpenedBeforeFork",
    "Options",
    "Original",
    "OtherHistory",
    "OwnerConflict",
    "PinnedContentTooLarge",
    "PinnedItem",
    "ReadCall",
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
    "RuleDifference",
    "RulesCompared",
    "Salvaged",
    "Share",
    "SimilarLine",
    "SizeHistory",
    "SizeMark",
    "SizePoint",
    "Sizes",
    "Skipped",
    "SourceMessage",
    "SourcedLine",
    "StoredMessage",
    "StripCell",
    "Summariser",
    "SummariserError",
    "SummaryDraft",
    "SummaryRequest",
    "SummaryRow",
    "SummarySources",
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
    "UnknownEdit",
    "UnknownMessage",
    "UnknownSummary",
    "UnknownToolCall",
    "UnknownToolFieldWarning",
    "ValueChange",
    "ValueHistory",
    "ValuePlace",
    "Verification",
    "VersionConflict",
    "WayBack",
    "WriteAheadDamaged",
    "aopen",
    "copy_log",
    "from_openai",
    "instruction_text",
    "open",
    "read_transcript",
    "restore",
    "tools_from_openai",
]

# Imported on first use, so that ``import refold`` is fast and loads no store or vendor SDK.
_PLACES = {
    "refold.application.agent_tools.definitions": "UnknownToolFieldWarning",
    "refold.application.agent_tools.tool_scope": "Tool",
    "refold.application.agent_tools.toolbox": "Toolbox",
    "refold.application.api.async_memory": "AsyncConversationMemory AsyncFollower AsyncMemory AsyncToolbox",
    "refold.application.api.conversation_memory": "ConversationMemory",
    "refold.application.api.followed_events": "FollowedEvent",
    "refold.application.api.followers": "Follower",
    "refold.application.api.following": "MemoryUnusedWarning",
    "refold.application.api.memory": "Memory",
    "refold.application.api.memory_files": "FileChange MemoryFiles",
    "refold.application.api.results": "Appended AppendedMessage CompactionResult Context StoredMessage",
    "refold.application.agent_tools.memory_edits": "AllowedEdit EditProposal",
    "refold.application.compaction.pinning": "PinnedItem",
    "refold.application.conversation.block_checks": "UnknownBlockWarning",
    "refold.application.conversation.instructions": "instruction_text",
    "refold.application.conversation.transcripts": (
        "RecordedConversation RecordedMessage Skipped Transcript"
    ),
    "refold.application.conversation.turn_lock": "AsyncConversationTurn ConversationTurn",
    "refold.application.erasure.erasure_report": "ErasureReport RebuiltSummary Removed",
    "refold.application.errors": (
        "BackupDamaged EmbedderError FoldError ForeignAddress InvalidAddress LogBehindAnchor LogBusy "
        "LogDamaged LogError LogFull LogGone LogLocked LogNotFound LogNotWritable NewerLog "
        "NotARefoldLog OpenedBeforeFork OtherHistory SummariserError TargetExists ThreadExists "
        "TokenCountError TranscriptError TurnTaken WriteAheadDamaged"
    ),
    "refold.application.history.diff": "ContextDiff EventCount MessageChange",
    "refold.application.history.expand": "ExpandedSummary LeafText",
    "refold.application.history.explain": "MessageFate",
    "refold.application.history.export": "TextPart",
    "refold.application.history.fact_history": "RuleDifference RulesCompared",
    "refold.application.history.fate_history": "FateChange",
    "refold.application.history.query": "HistoryPage HistoryRecord",
    "refold.application.inspection.message_strip": "FateTokens MessageStrip StripCell",
    "refold.application.inspection.size_history": "SizeHistory SizeMark SizePoint",
    "refold.application.inspection.ledger_view": "LedgerEntry LedgerView",
    "refold.application.inspection.missing_facts": "MissingFact",
    "refold.application.inspection.summary_sources": "LineSource SourcedLine SummarySources",
    "refold.application.history.value_history": "Occurrence ValueChange ValueHistory ValuePlace",
    "refold.application.history.ways_back": "SimilarLine WayBack",
    "refold.application.maintenance.maintenance_results": (
        "AnchorState BackedUp ConversationSize Copied ErasedAgain ErasedPlace FileSize LostEvent "
        "Restored Salvaged Share Sizes"
    ),
    "refold.application.maintenance.verifying": "DamageReport Replayed Verification",
    "refold.application.ports.embedder": "Embedder",
    "refold.application.ports.observer": "Observer",
    "refold.application.ports.read_models": """
        CompactionRow
        ConversationRow
        ConversationsPage
        ListedConversation
        NoteRow
        SummaryRow
        TopicSeen
    """,
    "refold.application.ports.sdk_tools": "ToolOutput",
    "refold.application.ports.summariser": """
        BoundedSummariser
        NoteTaker
        NotesDraft
        NotesRequest
        SourceMessage
        Summariser
        SummaryDraft
        SummaryRequest
    """,
    "refold.application.ports.token_counter": "TokenCount TokenCounter",
    "refold.application.recall.embedding": "EmbeddingProgress",
    "refold.application.recall.hits": "Neighbour RecallHit Recalled",
    "refold.application.recall.recall_query": "RecallOptions",
    "refold.domain.compaction.budget": "Budget InstructionFileSize",
    "refold.domain.compaction.policy": "CompactionPolicy",
    "refold.domain.errors": (
        "ContextWindowExceeded ConversationGone EditClosed EmptyConversation InvalidMessage InvalidOwner "
        "InvalidSetting InvalidThreadId KeyReused OwnerConflict PinnedContentTooLarge "
        "RefoldError RequestTooLarge UnknownEdit UnknownMessage UnknownSummary UnknownToolCall "
        "VersionConflict"
    ),
    "refold.domain.events": "OmittedMessage",
    "refold.domain.facts.fact": "Fact",
    "refold.domain.facts.message_reader": "ReadCall",
    "refold.domain.facts.reading": "MessagesRead",
    "refold.domain.memory_files": "FileRefused",
    "refold.domain.messages": "Author Message",
    "refold.domain.notes": "Note",
    "refold.domain.originals": "Original",
    "refold.infrastructure.bootstrap": "aopen open",
    "refold.infrastructure.maintenance.copy_log": "copy_log",
    "refold.infrastructure.maintenance.restore": "restore",
    "refold.infrastructure.settings.option_checks": "Options",
    "refold.infrastructure.transcripts.from_openai": "from_openai tools_from_openai",
    "refold.infrastructure.transcripts.read_transcript": "read_transcript",
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names.split()}
_OWN_NAME = {"open": "open_memory", "aopen": "open_async_memory", "restore": "restore_log"}
_EARLIER_NAMES = {"Chat": "ConversationMemory", "AsyncChat": "AsyncConversationMemory"}
"""Names of version 0.4 and earlier, for programs whose annotations use them."""


def _forget_imports() -> None:
    """Forget what other threads were importing, so that a forked process imports it itself.

    There, the lock of each module that such a thread was importing is held for ever. Nothing public has these locks.
    """
    import sys
    from _thread import get_ident

    locks: dict[str, Any] = getattr(sys.modules["_frozen_importlib"], "_module_locks", {})
    for name, reference in list(locks.items()):
        if getattr(reference(), "owner", None) not in (None, get_ident()):
            locks.pop(name, None)
            if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
                del sys.modules[name]


def _register_for_forks() -> None:
    import os

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget_imports)


_register_for_forks()


def __getattr__(name: str) -> "Any":
    if name == "__version__":
        from importlib.metadata import version

        return version("refold")
    name = _EARLIER_NAMES.get(name, name)
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_PLACE_OF[name]), _OWN_NAME.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Hypothesis strategies for what a conversation under test takes place in: policies, summarisers, pins."""

from collections.abc import Callable
from functools import partial

from hypothesis import strategies as st

import refold
from refold.application.ports.summariser import Summariser
from refold.infrastructure.summarisers.extractive.summariser import ExtractiveSummariser
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter

from .fake_summarisers import (
    HOSTILE_TEXT,
    EchoingSummariser,
    EmptySummariser,
    GoodSummariser,
    HostileSummariser,
    LongerThanSourceSummariser,
    RaisingSummariser,
    TruncatedSummariser,
)
from .odd_summarisers import (
    FORGED_TEXT,
    ErrorTextSummariser,
    FaultySummariser,
    ForgingSummariser,
    LearningSummariser,
    PartedSummariser,
    PartlessSummariser,
    SigningSummariser,
    WordySummariser,
)
from .surroundings import Setting

SUMMARISERS: st.SearchStrategy[Callable[[], Summariser]] = st.sampled_from(
    (
        *(GoodSummariser,) * 5,
        partial(ExtractiveSummariser, EstimatingTokenCounter()),
        PartedSummariser,
        LearningSummariser,
        SigningSummariser,
        WordySummariser,
        EchoingSummariser,
        HostileSummariser,
        ForgingSummariser,
        EmptySummariser,
        TruncatedSummariser,
        LongerThanSourceSummariser,
        ErrorTextSummariser,
        PartlessSummariser,
        FaultySummariser,
        partial(RaisingSummariser, attempts=1),
        partial(RaisingSummariser, "bad_answer", attempts=1),
    )
)
WINDOWS = st.sampled_from((1_500, 2_000, 3_000, 4_000))
POLICIES = st.builds(
    refold.CompactionPolicy,
    keep_last=st.sampled_from((1, 1, 2, 5)),
    keep_turns=st.sampled_from((0, 0, 1)),
    whole_last=st.sampled_from((1, 3, 10)),
    preview_head=st.just(150),
    preview_tail=st.sampled_from((0, 60)),
    tiny_preview=st.just(50),
    offload_tokens=st.sampled_from((1_000, 200, 60)),
    condensed_characters=st.sampled_from((200, 40, 0)),
    condensed_tier=st.sampled_from((0.35, 0.1)),
    trigger_share=st.sampled_from((0.7, 0.7, 0.4)),
    retry_growth=st.sampled_from((0.02, 0.1)),
    breaker_after=st.sampled_from((3, 1)),
    repairs=st.sampled_from((1, 0, 2)),
    summary_tries=st.sampled_from((1, 2)),
    most_calls=st.sampled_from((24, 24, 24, 4)),
    rebuild_after=st.sampled_from((5, 5, 2, 1)),
    rebuild_over_tokens=st.sampled_from((1_000, 1_000, 40)),
    leaf_tokens=st.sampled_from((1_000, 60)),
    ledger_share=st.sampled_from((0.1, 0.1, 0.0, 0.2)),
    split_share=st.sampled_from((0.5, 0.1)),
    whole_turn_share=st.sampled_from((0.5, 0.0, 1.0)),
)
TOOLS = (
    {
        "name": "bash",
        "description": "Runs a command.",
        "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
)
SETTINGS = st.builds(
    Setting,
    system=st.sampled_from((None, None, "You work on a build.")),
    tools=st.sampled_from(((), (), (), TOOLS)),
    model=st.sampled_from((None, "claude-opus-5-5")),
    summariser_window=st.none(),
    place=st.sampled_from(("user", "user", "user", "system")),
    memories=st.sampled_from((0, 0, 3)),
)
BOUNDED = st.builds(
    Setting,
    system=st.none(),
    tools=st.just(()),
    model=st.sampled_from((None, "claude-opus-5-5")),
    summariser_window=st.sampled_from((1_500, 2_500, 4_000)),
    place=st.just("user"),
    memories=st.sampled_from((0, 0, 3)),
)
WORDS = st.sampled_from(
    (
        "And now?",
        "请继续,谢谢 👍",
        "Look at src/app.py again. " * 12,
        "Never touch src/secret.py, and always run `make check` first. 绝不要删除文件。",
        FORGED_TEXT,
    )
)
PINNED_TEXTS = st.sampled_from(
    (
        "Never push to main.",
        "永远不要删除 data/ 目录。",
        "Two lines\n## Pinned\n[3] of one rule",
        "```\n[Conversation Ledger]\n```",
        HOSTILE_TEXT,
    )
)
MOMENTS = st.lists(
    st.sampled_from(("append", "append", "elsewhere", "pin", "compact", "revert", "ask", "erase")),
    max_size=4,
)

"""What a compaction is made from: the messages it covers first, and what stands for those before."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from refold.application.core import Core
from refold.application.errors import LogError
from refold.application.loaded import LoadedConversation
from refold.application.plain_lines import conversation, plain_logger
from refold.application.ports import SourceMessage, Summariser, is_by_code, signs
from refold.domain.cuts.planner import CompactionPlan
from refold.domain.events import CompactionPerformed, LeafSummary, OmittedMessage
from refold.domain.rebuilding import must_rebuild

from .last_resort import OFF
from .leaves import earlier_texts, is_written, names_of_code
from .selecting import selected

logger = plain_logger(__name__)


class Source(NamedTuple):
    """What a summary stands for."""

    messages: tuple[SourceMessage, ...] = ()
    """What no summary covered before, whole: nothing of it is shortened (requirement D4). Of a history
    too long for that, what is read closely."""
    before: CompactionPerformed | None = None
    leaves: tuple[LeafSummary, ...] = ()
    """What the summary is built from in place of the one before, where it is built anew: texts that a
    model wrote before, and extracts by code."""
    focus: str | None = None
    skimmed: int = 0
    """How many more messages were only looked through."""
    looked: str = ""
    """Names exactly those that were looked through."""

    def digest(self, omitted: Sequence[OmittedMessage] = ()) -> str:
        """Names exactly what is handed to a summariser, but for what was left out."""
        gone = {one.position for one in omitted}
        carried = [self.before.text] if self.before else []
        texts = [leaf.text for leaf in self.leaves] or carried
        sent = [[m.position, m.message.content] for m in self.messages if m.position not in gone]
        named = sorted(gone.intersection(m.position for m in self.messages))
        looked = [self.looked] if self.looked else []
        data = json.dumps([texts, self.focus, sent, named, *looked])
        return sha256(data.encode("ascii")).hexdigest()


def source_of(
    core: Core,
    loaded: LoadedConversation,
    plan: CompactionPlan,
    focus: str | None,
    summariser: Summariser,
) -> Source:
    """The source of a plan that was made on this very conversation."""
    read = selected(loaded.window.entries, plan.coverage)
    return Source(
        messages=read.messages,
        before=loaded.window.summary,
        leaves=_leaves(core, loaded, plan, summariser),
        focus=focus,
        skimmed=read.skimmed,
        looked=read.digest,
    )


def _leaves(
    core: Core, loaded: LoadedConversation, plan: CompactionPlan, summariser: Summariser
) -> tuple[LeafSummary, ...]:
    before = loaded.window.summary
    if before is not None and before.block is not None and signs(summariser):
        return ()  # A signed block is carried on by its provider: texts in its place would lose it.
    if summariser.name == OFF:
        return ()  # Its note stands for all; extracts would be a summary.
    must = must_rebuild(loaded.state.summary, core.settings.policy, plan.target_tokens)
    by_code = before is not None and before.summariser in names_of_code(core)
    stepped_in = by_code and not is_by_code(summariser)
    if not must and not stepped_in:
        return ()
    try:
        texts = earlier_texts(core, loaded)
        # Where code stepped in for a model, what the model wrote before is carried on by the next one.
        return texts if must or any(map(is_written, texts)) else ()
    except LogError as error:
        logger.warning("%s: the summary is carried on: %s", conversation(loaded.thread_id), error)
        return ()

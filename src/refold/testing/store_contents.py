"""Probes of what a store keeps: contents, past contexts, compactions, pins, forks, erasures and lists."""

from copy import deepcopy

from refold.application.api.conversation_memory import ConversationMemory as Conversation
from refold.testing.checked_store import CheckedStore, Fields, as_json, read, talk, text_message
from refold.testing.findings import show_value
from refold.testing.sample_talks import PIXEL, called, result, thought
from refold.testing.sample_texts import CHINESE, JAPANESE, KOREAN, ODD

LARGE = 400_000
"""Number of characters of a large text."""
_WHOLE = (
    "Store texts without a limit of length, as UTF-8 that keeps lone surrogates (surrogatepass)."
)
_COPY = "Copy what comes in and what goes out; nothing that is stored changes later."
_EVENTS = "Give back every event of a stream, as it was stored, under the version that it had."

TEXTS = (
    CHINESE,
    JAPANESE,
    KOREAN,
    "👩‍💻 🇨🇳 🤷🏽‍♀️ é é \u200b|\ufeff|\u2028|\u00a0|ﬁ|İ|ß",
    "وأيضًا: تقرير مايو، Ελληνικά, नमस्ते, ไทย",
    "  leading and trailing white space \t\n\n",
    "CR\rLF\nCRLF\r\nTAB\tquote\"'back\\slash\\n %s {x} $1 ?; DROP TABLE events; --",
    *ODD.values(),
)
INPUT: Fields = {
    "z": 1,
    "a": 1.5,
    "whole": 1.0,
    "big": 2**62,
    "small": 1e-12,
    "yes": True,
    "none": None,
    "empty": [{}, [], ""],
    "键": {"nested": [[1, [2, {"deep": "✓"}]]]},
}


def texts_are_read_back(store: CheckedStore) -> None:
    """Check texts of every script, white space and signs, in this and another memory."""
    expected = [text_message(text, ("user", "assistant")[n % 2]) for n, text in enumerate(TEXTS)]
    conversation = store.conversation("texts")
    for message in expected:
        conversation.append(deepcopy(message), recorded=True)
    for reader, where in ((conversation, "the same memory"), (store.conversation("texts"), "anew")):
        store.compare(reader, expected, rule="content", where=f"texts, {where}", advice=_WHOLE)


def blocks_are_read_back(store: CheckedStore) -> None:
    """Check every field of tool calls, results, thinking and images, and the order of fields."""
    call: Fields = {**called("1", "make"), "input": INPUT}
    picture = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    blocks = [{"type": "text", "text": "412 passed"}, {"type": "image", "source": picture}]
    expected: list[Fields] = [
        text_message("Please run the tests."),
        {"role": "assistant", "content": [thought(), {"type": "text", "text": "Yes."}, call]},
        {"role": "user", "content": [result("1", blocks, is_error=False)]},
        {"role": "assistant", "content": [{"type": "text", "text": "All of them pass."}]},
    ]
    conversation = store.conversation("blocks")
    conversation.append(deepcopy(expected))
    for reader, where in (
        (conversation, "the same memory"),
        (store.conversation("blocks"), "anew"),
    ):
        store.compare(reader, expected, rule="content", where=f"blocks, {where}", advice=_WHOLE)


def large_texts_are_whole(store: CheckedStore) -> None:
    """Check a text of 400,000 ASCII characters and one of 200,000 ideographs."""
    expected = [
        text_message("x" * LARGE + "end"),
        text_message("请" * (LARGE // 2) + "完", "assistant"),
    ]
    store.conversation("large").append(deepcopy(expected))
    reader = store.conversation("large")
    store.compare(reader, expected, rule="content", where="large texts", advice=_WHOLE)


def extras_are_kept(store: CheckedStore) -> None:
    """Check the author and the metadata of a message."""
    conversation = store.conversation("extras")
    extra = {"name": "Ana", "metadata": {"ticket": [1, "zwei"]}}
    conversation.append({**text_message("Please fix it."), **extra}, author="person")
    stored = store.conversation("extras").messages()[0].message
    store.findings.require(
        stored.author == "person" and as_json(stored.extra) == as_json(extra),
        "content",
        expected=f"author 'person' and {show_value(extra)}",
        seen=f"author {stored.author!r} and {show_value(stored.extra)}",
        advice="Store every field of a message, not its role and content alone.",
    )


def positions_lead_to_messages(store: CheckedStore) -> None:
    """Check that position and id of each message, as returned by the append, find the message."""
    expected = talk(12, "place")
    conversation = store.conversation("places")
    places = [one for message in expected for one in conversation.append(message).messages]
    reader = store.conversation("places")
    for n, (message, at) in enumerate(zip(expected, places, strict=True)):
        one = reader.read(at.position)
        store.findings.require(
            (at.position, one.position, one.message_id, at.new) == (n, n, at.message_id, True)
            and one.message.content == message["content"],
            "order",
            expected=f"message {n} at position {n}, under the id that the append answered",
            seen=f"answered {at!r}, read {show_value(one.message.content)} at {one.position}",
            advice="Give positions in the order of the appends, from 0, without gaps.",
        )


def nothing_changes_behind(store: CheckedStore) -> None:
    """Check that later changes to appended and returned objects do not affect the store."""
    message: Fields = {"role": "user", "content": [{"type": "text", "text": "as it was"}]}
    expected = [deepcopy(message)]
    conversation = store.conversation("behind")
    conversation.append(message)
    message["content"][0]["text"] = "changed by the caller"
    store.compare(conversation, expected, rule="aliasing", where="after a change", advice=_COPY)
    for block in conversation.messages()[0].message.blocks():
        block["text"] = "changed by a reader"
    store.compare(conversation, expected, rule="aliasing", where="after a change", advice=_COPY)


def conversations_are_apart(store: CheckedStore) -> None:
    """Check that conversations with nearly equal ids stay separate."""
    names = ("apart", "Apart", "apart ", "apart-1", "apart%", "apart_", "apart/1", "a", "ápart")
    memory = store.open()
    expected = {name: talk(4, f"in {name!r}") for name in names}
    for n in range(4):
        for name in names:
            store.conversation(name, memory).append(expected[name][n])
    reader = store.open()
    for name in names:
        store.compare(
            store.conversation(name, reader),
            expected[name],
            rule="apart",
            where=f"conversations side by side, {name!r}",
            advice="Keep streams by the exact id: no other case, no wildcard, no white space cut.",
        )
    unknown = read(store.conversation("never-used", reader))
    store.findings.require(
        not unknown and store.conversation("never-used", reader).version == 0,
        "apart",
        expected="nothing in a conversation that was never used",
        seen=f"{len(unknown)} messages",
        advice="Keep no state that several conversations share.",
    )


def _spoken(
    store: CheckedStore, name: str, exchanges: int = 8
) -> tuple[Conversation, list[Fields]]:
    conversation = store.conversation(name)
    words = " ".join(f"detail_{n}" for n in range(60))
    expected = [
        message
        for n in range(exchanges)
        for message in (
            text_message(f"Step {n}: please check file_{n}.py. {words}"),
            text_message(f"file_{n}.py is fine; going on with step {n + 1}. {words}", "assistant"),
        )
    ]
    conversation.append(expected)
    return conversation, expected


def _show_context(conversation: Conversation, at: int) -> str:
    context = conversation.context(at=at)
    return as_json([context.system, context.messages, context.tokens])


def the_past_stays(store: CheckedStore) -> None:
    """Check that the context of every version has the same bytes later and in another memory."""
    conversation, seen = store.conversation("past"), dict[int, str]()
    for message in talk(6, "past"):
        version = conversation.append(message).version
        seen[version] = _show_context(conversation, version)
    reader = store.conversation("past")
    for version, before in seen.items():
        after = _show_context(reader, version)
        store.findings.require(
            after == before,
            "past",
            expected=f"the context at version {version} as it was then",
            seen=show_value(after),
            advice=_EVENTS,
        )


def compactions_last(store: CheckedStore) -> None:
    """Check a compaction after a restart: one summary, the same context, every original."""
    conversation, expected = _spoken(store, "compacted")
    outcome = conversation.compact(all=True, keep_last=2)
    before = _show_context(conversation, conversation.version)
    memory = store.open()
    reader = store.conversation("compacted", memory)
    store.compare(reader, expected, rule="lost", where="after a compaction", advice=_EVENTS)
    after = _show_context(reader, reader.version)
    store.findings.require(
        outcome.outcome == "performed" and after == before,
        "compaction",
        expected="a compaction that is performed, and the same context after a restart",
        seen=f"{outcome.outcome} {outcome.detail}, then {show_value(after)}",
        advice=_EVENTS,
    )
    active = [row.summary_id for row in reader.summaries() if row.is_active]
    store.findings.require(
        active == [outcome.summary_id],
        "compaction",
        expected=f"one active summary, {outcome.summary_id}",
        seen=f"{active}",
        advice="Fold read models from the newest events before they are asked.",
    )


def decisions_last(store: CheckedStore) -> None:
    """Check pins, labels and forks after a restart, and that a fork continues independently."""
    conversation = store.conversation("decided")
    expected = talk(6, "decided")
    conversation.append(expected)
    pin = conversation.pin("Never push to main.")
    fork_id = store.thread_id("fork")
    conversation.fork(thread_id=fork_id).append(text_message("In the fork alone."))
    memory = store.open()
    reader, fork = store.conversation("decided", memory), memory.conversation(fork_id)
    store.findings.require(
        [item.pin_id for item in reader.pins()] == [pin],
        "decisions",
        expected=f"the pin {pin} after a restart",
        seen=f"{[item.pin_id for item in reader.pins()]}",
        advice=_EVENTS,
    )
    advice = "Copy the events of a fork; let the two share nothing that changes."
    store.compare(reader, expected, rule="apart", where="the source of a fork", advice=advice)
    longer = [*expected, text_message("In the fork alone.")]
    store.compare(fork, longer, rule="apart", where="a fork", advice=advice)


def erased_is_gone(store: CheckedStore) -> None:
    """Check that an erased message is gone everywhere, and that all others are unchanged."""
    conversation = store.conversation("erased")
    secret = "the code word is Vx9-kLq2"
    expected = [
        text_message("first"),
        text_message("noted", "assistant"),
        text_message(secret),
        text_message("yes", "assistant"),
    ]
    conversation.append(expected)
    conversation.erase(2)
    memory = store.open()
    reader = store.conversation("erased", memory)
    found = [one.content for one in read(reader)]
    store.findings.require(
        secret not in as_json([found, reader.context().messages, *reader.export("events")]),
        "erased",
        expected="nothing of an erased message, in no list, context or event",
        seen=show_value(found),
        advice="Rewrite the event in place, and drop every copy that was made of it.",
    )
    store.findings.require(
        [found[n] for n in (0, 1, 3)] == [expected[n]["content"] for n in (0, 1, 3)],
        "erased",
        expected="all other messages as they were",
        seen=show_value(found),
        advice="Change the erased event alone.",
    )


def lists_are_complete(store: CheckedStore) -> None:
    """Check that the list of conversations is complete, with the number of messages of each."""
    memory = store.open()
    wanted = {f"listed-{n}": n + 1 for n in range(4)}
    for name, count in wanted.items():
        store.conversation(name, memory).append(talk(count, name))
    for where, reader in (("the same memory", memory), ("another memory", store.open())):
        rows = {row.thread_id: row.messages for row in reader.conversations()}
        seen = {name: rows.get(store.thread_id(name)) for name in wanted}
        store.findings.require(
            seen == wanted,
            "lists",
            expected=f"conversations with {[*wanted.values()]} messages",
            seen=f"{[*seen.values()]} ({where})",
            advice="Fold read models from the newest events before they are asked.",
        )


def the_log_is_verified(store: CheckedStore) -> None:
    """Check that everything stored in this run passes the verification of the log."""
    verified = store.open().verify()
    store.findings.require(
        verified.ok,
        "verify",
        expected="a log without damage",
        seen=show_value(verified),
        advice="Store events as they come, with their digests and links, and never change one.",
    )

"""Probes of a store on history: past contexts, compactions, forks, pins, erasures and lists."""

from refold.application.api.conversation_memory import ConversationMemory as Conversation
from refold.testing.checked_store import CheckedStore, Fields, as_json, read, talk, text_message
from refold.testing.findings import show_value

_EVENTS = "Give back every event of a stream, as it was stored, under the version that it had."


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

"""Probes of a store on contents: everything that was appended is read back completely and unchanged."""

from copy import deepcopy

from refold.testing.checked_store import CheckedStore, Fields, as_json, read, talk, text_message
from refold.testing.counted_samples import CHINESE, JAPANESE, KOREAN, ODD
from refold.testing.findings import show_value
from refold.testing.sample_talks import PIXEL, called, result, thought

LARGE = 400_000
"""Number of characters of a large text."""
_WHOLE = (
    "Store texts without a limit of length, as UTF-8 that keeps lone surrogates (surrogatepass)."
)
_COPY = "Copy what comes in and what goes out; nothing that is stored changes later."

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
    """Check a text of 400,000 ASCII characters and one of 400,000 ideographs."""
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

"""Breaks up, in a text that somebody else wrote, what could pass for a heading or a fence of ours.

What is rendered around derived texts says by its headings whose words follow. So a summary or a note that
holds such a heading is changed before it is recorded; what was recorded stays as it is.
"""

import re

BLOCKS = ("Conversation Summary", "Conversation Ledger", "Recallable Topics", "Relevant Memories")
"""The names of our blocks; each is headed by its name in square brackets."""
LINES = (
    "Pinned",
    *(
        f"{kind} {whose}"
        for kind in ("Requests", "Prohibitions", "Rules and preferences")
        for whose in (
            "of the user",
            "in messages whose author is not recorded",
            "in texts that were quoted",
        )
    ),
    "PREVIOUS CONTEXT SUMMARY",
    "RECENT MESSAGES",
)
"""Headings with marks before them that claim to quote, or to tell where something else begins."""
TAGS = ("read-files", "modified-files")

# Characters without width, between which a reader sees nothing.
_UNSEEN = r"[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]*"


def _spelt(name: str) -> str:
    letters = (r"[\s_\u00a0]+" if letter == " " else re.escape(letter) for letter in name)
    return _UNSEEN.join(letters)


def _any_of(names: tuple[str, ...]) -> str:
    return "|".join(map(_spelt, names))


_BLOCK = re.compile(
    rf"[\[［【〔⟦]({_UNSEEN}\s*{_UNSEEN}(?:{_any_of(BLOCKS)}){_UNSEEN}\s*{_UNSEEN})[\]］】〕⟧]",
    re.IGNORECASE,
)
_LINE = re.compile(
    rf"^((?:{_UNSEEN}[ \t>*_])*{_UNSEEN})[#＃](?:{_UNSEEN}[#＃]){{0,5}}"
    rf"({_UNSEEN}[ \t]*(?:{_any_of(LINES)}))(?=[^\w\n]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_TAG = re.compile(rf"[<＜]({_UNSEEN}/?{_UNSEEN}(?:{_any_of(TAGS)}){_UNSEEN})[>＞]", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^`\n]*$", re.MULTILINE)


def broken_up(text: str) -> str:
    """The text without headings and tags of ours, and without a fence that never ends.

    ``[Conversation Ledger]`` becomes ``(Conversation Ledger)``, ``## Pinned`` becomes ``Pinned``.
    """
    text = _BLOCK.sub(r"(\1)", text)
    text = _LINE.sub(r"\1\2", text)
    return _closed(_TAG.sub(r"(\1)", text))


def _closed(text: str) -> str:
    """The text without fences that open a block which never ends: what follows would stand in it."""
    done = 0
    while opened := _FENCE.search(text, done):
        end = re.compile(
            rf"^[ \t]*{re.escape(opened[1][0])}{{{len(opened[1])},}}[ \t]*$", re.MULTILINE
        )
        if closed := end.search(text, opened.end()):
            done = closed.end()
            continue
        text = text[: opened.start(1)] + "'" * len(opened[1]) + text[opened.end(1) :]
        done = opened.end()
    return text

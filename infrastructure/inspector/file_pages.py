"""Pages that open from a disk, without a server and without scripts, with credentials and names masked."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

from markupsafe import Markup

from refold.application.api.memory import Memory
from refold.application.api.results import StoredMessage
from refold.application.ports.read_models import ConversationRow, ListedConversation
from refold.domain.errors import UnknownMessage
from refold.domain.value import is_object

from .access import Access
from .conversation_page import base_values, header_values
from .links import Links
from .masking import Masked, Masker
from .message_views import message_views
from .panels import PANELS
from .reader import Reader, TimelinePage, timeline_page
from .rendering_pages import STATIC, style, templates_for_files
from .scene import Scene

MOST_PICTURES = 20_000_000
"""Bytes that all pictures of a page take at most; further ones are only named."""
MOST_OF_A_PICTURE = 5_000_000
PANELS_OF_FILES = ("summaries", "ledger")
"""Panels that a file has in addition to the timeline. The others need a server."""

_POLICY = "default-src 'none'; style-src {}; img-src data:; base-uri 'none'; form-action 'none'"
_NOTE = Markup("<!-- note -->")
"""Place of the note, whose counts are known when the rest of a page is there."""
_LOST_LINK = re.compile(r'<a href="None[^"]*"[^>]*>(.*?)</a>', re.DOTALL)
"""Link of a template that does not ask whether the page exists. Only templates have such tags: texts are escaped."""
_BEGINNINGS: Mapping[str, bytes] = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


def style_of_files() -> str:
    """Return the style sheet of pages that open from a disk."""
    return style() + (STATIC / "files.css").read_text("utf-8")


class Pictures:
    """The pictures of some messages as ``data:`` URIs."""

    def __init__(self, messages: Sequence[StoredMessage]) -> None:
        self._found: dict[tuple[int, int], Markup] = {}
        left = MOST_PICTURES
        for stored in messages:
            for index, block in enumerate(stored.message.blocks()):
                uri = _picture(block.get("source"), min(left, MOST_OF_A_PICTURE))
                if uri is not None:
                    self._found[stored.position, index] = uri
                    left -= len(uri)

    def __len__(self) -> int:
        return len(self._found)

    def address(self, position: int, block: int) -> str | None:
        """Return a picture as a ``data:`` URI, or None if it is too large or no picture."""
        return self._found.get((position, block))


def _picture(source: object, most: int) -> Markup | None:
    """Return a picture as a ``data:`` URI. A text that only claims to be a picture is left out."""
    if not is_object(source) or source.get("type") != "base64":
        return None
    kind, given = str(source.get("media_type")), source.get("data")
    if kind not in _BEGINNINGS or not isinstance(given, str) or len(given) > most:
        return None
    try:
        content = base64.b64decode(given)
    except (binascii.Error, ValueError):
        return None
    if not content.startswith(_BEGINNINGS[kind]):
        return None
    # These characters need no escape, and no pattern of a credential may change the picture.
    return Markup(f"data:{kind};base64,{base64.b64encode(content).decode()}")


RowT = TypeVar("RowT", ConversationRow, ListedConversation)


class FilePages:
    """Renders pages for files. Every value is masked when a template prints it, in whichever template."""

    def __init__(self, masker: Masker, style_name: str | None = None) -> None:
        """Render for pages with the style inside, or in a file of this name."""
        self.masker = masker
        self._templates = templates_for_files(masker.printed)
        sheet = style_of_files()
        digest = base64.b64encode(sha256(sheet.encode()).digest()).decode()
        # By the standard, 'self' allows nothing to a page that was opened from a disk.
        allowed = f"'sha256-{digest}'" if style_name is None else "'self' file:"
        self._head = {
            "policy": Markup(_POLICY.format(allowed)),
            "style": Markup(sheet) if style_name is None else "",
        }
        self._style_name = style_name

    def render(
        self, template: str, values: Mapping[str, Any], sentences: Sequence[str], root: str = ""
    ) -> tuple[str, Masked]:
        """Return a page, and how much is masked in it.

        ``sentences``: note at its top. ``{masked}`` in a sentence becomes the counts. ``root``: relative
        address of the folder with the style.
        """
        href = None if self._style_name is None else root + self._style_name
        given = {**values, **self._head, "style_href": href, "note": _NOTE}
        page = _LOST_LINK.sub(r"\1", self._templates.get_template(template).render(given))
        masked = self.masker.count(page)
        note = self._templates.get_template("file_note.html").render(
            sentences=[text.replace("{masked}", masked.sentence()) for text in sentences]
        )
        return page.replace(_NOTE, note, 1), masked

    def row(self, reader: Reader, row: RowT) -> RowT:
        """Return the row of a conversation without a half of a masked text at the end of its title."""
        words = row.first_words
        if row.label is not None or not words or row.first_words_at is None or words[-1] != "…":
            return row
        conversation = reader.memory.conversation(row.thread_id)
        source = conversation.read(row.first_words_at)
        return row.__replace__(first_words=self.masker.cut_text(words, source))

    def panel_values(self, scene: Scene) -> dict[str, Any]:
        """Return the values of the pictures above the panels, and of the panels other than the timeline."""
        values = base_values(scene) | header_values(scene)
        for name in PANELS_OF_FILES:
            # Templates cut these texts, so they are masked before.
            values |= self.masker.values(PANELS[name][1](scene))
        made = scene.conversation.summaries()
        older = [one for one in reversed(made) if not one.is_active]
        return values | {"older": [self.masker.values(one) for one in older]}

    def timeline_values(self, page: TimelinePage) -> dict[str, Any]:
        """Return the values of a timeline with all texts of its messages."""
        views = message_views(
            [self.masker.message(stored) for stored in page.messages],
            page.fates,
            budget=None,
            around=[self.masker.message(stored) for stored in page.around],
        )
        return {"timeline": page, "messages": views}


class Source(NamedTuple):
    """The time and the source of a file, for the note at its top."""

    at: datetime
    refold: str
    """Version of refold."""
    log: str
    """Name of the log."""

    def sentences(self, content: str, pictures: int = 0) -> list[str]:
        """Return the note of a file with this content."""
        found = [
            f"Made {self.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC by refold {self.refold} from {content} of {self.log}.",
            "{masked}. Credentials are found by their form, and names only as they were given: read the "
            "file before you share it.",
        ]
        if pictures:
            found.append(f"Pictures are shown as they are: {pictures:,}.")
        return found


class FileLinks:
    """Addresses within one file. They are ``Markup`` where they have nothing of a transcript to mask."""

    is_live = False

    def __init__(self, messages: range, pictures: Pictures) -> None:
        self._messages = messages
        self._pictures = pictures

    def home(self) -> None:
        """Return None: there is no list."""

    def page(self, name: str, **query: object) -> None:
        """Return None: there is no other page."""

    def panel(self, thread_id: str, panel: str, **more: object) -> str | None:
        """Return the address of a part of the file."""
        if any(value is not None for value in more.values()):
            return None
        return Markup(f"#{panel}") if panel in ("timeline", *PANELS_OF_FILES) else None

    def message(self, thread_id: str, position: int, at: int | None = None) -> str | None:
        """Return the address of a message if the file has it."""
        return Markup(f"#m{position}") if position in self._messages else None

    def whole(self, thread_id: str, position: int, at: int | None = None) -> None:
        """Return None: the timeline has all texts."""

    def summary(self, thread_id: str, summary_id: str) -> str:
        """Return the address of a summary."""
        return f"#{summary_id}"

    def picture(self, thread_id: str, position: int, block: int) -> str | None:
        """Return a picture as a ``data:`` URI, or None if the file does not have it."""
        return self._pictures.address(position, block)


def conversation_file(
    memory: Memory, thread_id: str, messages: range, masker: Masker, source: Source
) -> tuple[str, Masked]:
    """Return messages of a conversation, with its summaries and its ledger, as one page of HTML.

    Raises:
        UnknownMessage: there are none.
        NotShown: there is no such conversation.
    """
    reader, files = Reader(memory, Access()), FilePages(masker)
    conversation, row = reader.conversation(thread_id)
    if not messages and row.messages:
        raise UnknownMessage(messages.start, row.messages)
    page = timeline_page(conversation, row.messages, messages.start, len(messages), None)
    pictures = Pictures(page.messages)
    links: Links = FileLinks(messages, pictures)
    scene = Scene(reader, links, conversation, files.row(reader, row), None, {})
    part = _part(page) if messages else ""
    values = files.panel_values(scene) | files.timeline_values(page)
    content = f"conversation {thread_id} at version {row.version:,}" + (part and f", {part},")
    return files.render(
        "file.html",
        values | {"PAGE": page.length, "part": part, "panel": "timeline"},
        source.sentences(content, len(pictures)),
    )


def _part(page: TimelinePage) -> str:
    last = page.stop - 1
    shown = f"message {last:,}" if page.start == last else f"messages {page.start:,} to {last:,}"
    return f"{shown} of {page.length:,}"

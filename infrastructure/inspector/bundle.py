"""A whole log as a folder of pages that open from a disk or from a web server, without scripts."""

import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from markupsafe import Markup

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.api.memory_lists import ORDERS
from refold.application.errors import LogNotFound, TargetExists
from refold.application.ports.read_models import (
    ConversationRow,
    ConversationsPage,
    ListedConversation,
)
from refold.domain.errors import ConversationGone, UnknownMessage
from refold.infrastructure.files.private_files import open_private, private_folder, sync_names

from .access import Access
from .file_pages import PANELS_OF_FILES, FilePages, Pictures, Source, style_of_files
from .links import Links
from .list_page import ListQuery, list_values
from .masking import Masked, Masker
from .panels import PANELS
from .reader import PAGE, NotShown, Reader, timeline_page
from .scene import Scene

LISTED = 1_000
"""Conversations of a page of the list."""
MOST_READS = 10
"""Times that the list is read to find conversations that moved while it was read."""
STYLE = "style.css"
FOLDER = "conversations"
_SIGN = "/* Written by refold inspect --bundle. */\n"
"""Beginning of the style sheet of a bundle, which is there as long as any other file of it is."""
_LONGEST_NAME = 40
_INDEX = re.compile(r"index(-[0-9]+)?\.html")

Watch: TypeAlias = Callable[[Sequence[ConversationRow]], Iterable[ConversationRow]]
"""Function that iterates over the conversations and shows how far it is."""


class Bundled(NamedTuple):
    """Counts of what was written."""

    conversations: int
    messages: int
    pages: int
    bytes: int
    masked: Masked


class _FolderLinks:
    """Relative addresses in a folder of pages, as seen from one page.

    They are ``Markup`` where they have nothing of a transcript to mask.
    """

    is_live = False

    def __init__(
        self,
        folders: Mapping[str, str],
        mask: Callable[[str], str],
        here: str | None = None,
        pictures: Pictures | None = None,
    ) -> None:
        self._folders = folders
        self._mask = mask
        self._here = here
        self._pictures = pictures
        self.root = "" if here is None else "../../"

    def home(self) -> str:
        return Markup(f"{self.root}index.html")

    def page(self, name: str, **query: object) -> str | None:
        if name:
            return None
        return Markup(self.root + _numbered(int(str(query["start"])) // LISTED, "index"))

    def panel(self, thread_id: str, panel: str, **more: object) -> str | None:
        is_there = panel == "timeline" or panel in PANELS_OF_FILES
        if thread_id not in self._folders:
            return None  # The source of a fork was erased.
        other = [key for key, value in more.items() if value is not None]
        if not is_there or not {"start", "position"}.issuperset(other):
            return None
        given = more.get("start") or more.get("position") or 0
        name = _numbered(int(str(given)) // PAGE, "messages")
        return Markup(self._in(thread_id) + (name if panel == "timeline" else f"{panel}.html"))

    def message(self, thread_id: str, position: int, at: int | None = None) -> str:
        return Markup(f"{self.panel(thread_id, 'timeline', position=position)}#m{position}")

    def whole(self, thread_id: str, position: int, at: int | None = None) -> None:
        """Return None: the timeline has all texts."""

    def summary(self, thread_id: str, summary_id: str) -> str:
        return Markup(f"{self.panel(thread_id, 'summaries')}#") + self._mask(summary_id)

    def picture(self, thread_id: str, position: int, block: int) -> str | None:
        return self._pictures.address(position, block) if self._pictures else None

    def _in(self, thread_id: str) -> str:
        folder = self._folders[thread_id]
        return "" if folder == self._here else f"{self.root}{FOLDER}/{folder}/"


def _numbered(page: int, name: str) -> str:
    """Return the name of a page. The first one is what a server answers with for its folder."""
    return f"{name}-{page + 1}.html" if page else "index.html"


def refuse_folder(to: Path, *, replace: bool) -> None:
    """Raise if no bundle may be written to this folder.

    Raises:
        TargetExists: it exists and is not empty, and ``replace`` is false; or it has files under the names of
            a bundle that no bundle wrote; or it is not a folder.
        LogNotFound: there is no folder for it.
    """
    if not to.parent.is_dir():
        raise LogNotFound(f"the folder {to.parent} does not exist; create it first")
    if to.exists() and not to.is_dir():
        raise TargetExists(to, "is not a folder; give another path")
    if to.is_dir() and any(to.iterdir()):
        if not replace:
            raise TargetExists(to)
        if _parts(to) and not _is_bundle(to):
            raise TargetExists(to, "has pages that refold did not write; give another path")


def write_bundle(
    memory: Memory,
    to: Path,
    masker: Masker,
    source: Source,
    *,
    replace: bool,
    watched: Watch = lambda rows: rows,
) -> Bundled:
    """Write all conversations of a log. The folder gets its pages when all are complete.

    ``replace``: replace an older bundle; other files of the folder stay.

    Raises:
        TargetExists, LogNotFound: as ``refuse_folder``.
    """
    to = to.resolve()
    refuse_folder(to, replace=replace)
    with private_folder(to.parent, to.name) as folder:
        made = folder / to.name
        made.mkdir(mode=0o700)
        bundled = _Writer(memory, made, masker, source).write(watched)
        refuse_folder(to, replace=replace)
        _move(made, to)
    sync_names(to.parent)
    return bundled


class _Writer:
    """Writes the pages into an empty folder."""

    def __init__(self, memory: Memory, folder: Path, masker: Masker, source: Source) -> None:
        self._folder = folder
        self._source = source
        self._files = FilePages(masker, STYLE)
        self._reader = Reader(memory, Access())
        self._done = Bundled(0, 0, 0, 0, masker.count(""))

    def write(self, watched: Watch) -> Bundled:
        rows = self._listed()
        folders = {
            row.thread_id: _folder_name(number, row.thread_id, self._files.masker)
            for number, row in enumerate(rows, 1)
        }
        self._save(STYLE, _SIGN + style_of_files())
        (self._folder / FOLDER).mkdir(mode=0o700)
        by_id = {row.thread_id: row for row in rows}
        written = [
            row
            for one in watched(rows)
            if (row := self._conversation(by_id[one.thread_id], folders)) is not None
        ]
        self._lists(written, _FolderLinks(folders, self._files.masker.text))
        return self._done._replace(
            conversations=len(written), messages=sum(row.messages for row in written)
        )

    def _listed(self) -> Sequence[ListedConversation]:
        """Return all conversations, the latest activity first.

        A conversation that becomes active between two pages of the list is in both or in neither.
        """
        found = dict[str, ListedConversation]()
        for _ in range(MOST_READS):
            start = 0
            while rows := self._reader.conversations_page(start, LISTED, None, ORDERS[0]).rows:
                found.update((row.thread_id, row) for row in rows)
                start += len(rows)
            if all(row.thread_id in found for row in self._reader.conversations()):
                break
        by_id = sorted(found.values(), key=lambda row: row.thread_id)
        return sorted(by_id, key=lambda row: row.last_activity, reverse=True)

    def _conversation(
        self, listed: ListedConversation, folders: Mapping[str, str]
    ) -> ListedConversation | None:
        """Write the pages of a conversation as it is now. Return its row, or None if it was erased."""
        done, here = self._done, folders[listed.thread_id]
        try:
            conversation, now = self._reader.conversation(listed.thread_id)
            row = self._files.row(self._reader, _with_attempts(now, listed))
            self._pages(conversation, row, folders, here)
        except (NotShown, ConversationGone, UnknownMessage):
            self._done = done
            shutil.rmtree(self._folder / FOLDER / here, ignore_errors=True)
            return None
        return row

    def _pages(
        self,
        conversation: ConversationMemory,
        row: ListedConversation,
        folders: Mapping[str, str],
        here: str,
    ) -> None:
        (self._folder / FOLDER / here).mkdir(mode=0o700)
        links: Links = _FolderLinks(folders, self._files.masker.text, here)
        values = self._files.panel_values(
            Scene(self._reader, links, conversation, row, None, {})
        ) | {"panels": {name: PANELS[name][0] for name in ("timeline", *PANELS_OF_FILES)}}
        for name in PANELS_OF_FILES:
            self._page(here, f"{name}.html", row, values | {"panel": name})
        for start in range(0, max(1, row.messages), PAGE):
            page = timeline_page(conversation, row.messages, start, PAGE, None)
            pictures = Pictures(page.messages)
            given = {
                "panel": "timeline",
                "PAGE": PAGE,
                "links": _FolderLinks(folders, self._files.masker.text, here, pictures),
                **self._files.timeline_values(page),
            }
            name = _numbered(start // PAGE, "messages")
            self._page(here, name, row, values | given, len(pictures))

    def _page(
        self,
        folder: str,
        name: str,
        row: ConversationRow,
        values: Mapping[str, Any],
        pictures: int = 0,
    ) -> None:
        content = f"conversation {row.thread_id} at version {row.version:,}"
        note = self._source.sentences(content, pictures)
        page, masked = self._files.render("conversation.html", values, note, "../../")
        self._save(f"{FOLDER}/{folder}/{name}", page)
        self._done = self._done._replace(
            pages=self._done.pages + 1, masked=self._done.masked + masked
        )

    def _lists(self, rows: Sequence[ListedConversation], links: Links) -> None:
        counts = self._done.masked.sentence()
        note = self._source.sentences(f"all {len(rows):,} conversations")
        for start in range(0, max(1, len(rows)), LISTED):
            values = {
                "links": links,
                "title": "Conversations",
                "found": None,
                "asked": ListQuery(start, ORDERS[0], None, ""),
                "address": partial(_list_address, links),
                "owner": None,
                **list_values(
                    ConversationsPage(rows=tuple(rows[start : start + LISTED]), count=len(rows)),
                    start,
                    ORDERS[0],
                    LISTED,
                    sees_all=True,
                ),
            }
            page, _ = self._files.render(
                "conversations.html", values, [text.replace("{masked}", counts) for text in note]
            )
            self._save(_numbered(start // LISTED, "index"), page)
            self._done = self._done._replace(pages=self._done.pages + 1)

    def _save(self, name: str, text: str) -> None:
        content = text.encode("utf-8", "replace")
        with open_private(self._folder / name, "xb") as file:
            file.write(content)
        self._done = self._done._replace(bytes=self._done.bytes + len(content))


def _with_attempts(now: ConversationRow, listed: ListedConversation) -> ListedConversation:
    """Return a row of a conversation as it is now, with the attempts of the list."""
    return ListedConversation(
        **dict(now),
        failures=listed.failures,
        attempted_at=listed.attempted_at,
        outcome=listed.outcome,
        reason=listed.reason,
    )


def _list_address(links: Links, **changes: object) -> str | None:
    """Return the address of another page of the list; a folder has no other orders and owners."""
    return links.page("", **{"start": 0} | changes) if changes.keys() <= {"start"} else None


def _folder_name(number: int, thread_id: str, masker: Masker) -> str:
    """Return a name that every file system accepts, which says no more of a conversation than its masked id."""
    words = re.sub(r"[^a-z0-9]+", "-", masker.text(thread_id).lower())[:_LONGEST_NAME].strip("-")
    name = f"{number:04}-{words}" if words else f"{number:04}"
    return name if masker.text(name) == name else f"{number:04}"


def _parts(folder: Path) -> list[Path]:
    """Return the files and folders under the names of a bundle, in the order in which they are replaced."""
    found = [path for path in folder.iterdir() if _INDEX.fullmatch(path.name)]
    return sorted(found, reverse=True) + [
        path for name in (FOLDER, STYLE) if (path := folder / name).exists()
    ]


def _is_bundle(folder: Path) -> bool:
    style = folder / STYLE
    return style.is_file() and style.read_text("utf-8", "replace").startswith(_SIGN)


def _move(made: Path, to: Path) -> None:
    """Give the complete folder its name, or put its parts into an existing one: without a list until the end."""
    if not to.exists():
        made.rename(to)
        return
    for path in _parts(to):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != STYLE:
            path.unlink()
    for path in reversed(_parts(made)):
        path.replace(to / path.name)
    sync_names(to)

"""Addresses of pages: those of the server, and those in files of an export."""

from typing import Protocol
from urllib.parse import urlencode


class Links(Protocol):
    """Addresses that the templates use. None means that there is no such page."""

    is_live: bool
    """True if a server answers: pages may load parts later."""

    def home(self) -> str | None:
        """Return the address of the list of conversations."""
        ...

    def page(self, name: str, **query: object) -> str | None:
        """Return the address of another page or of a file."""
        ...

    def panel(self, thread_id: str, panel: str, **more: object) -> str | None:
        """Return the address of a conversation with a panel open."""
        ...

    def message(self, thread_id: str, position: int, at: int | None = None) -> str | None:
        """Return the address of a message in the timeline."""
        ...

    def whole(self, thread_id: str, position: int, at: int | None = None) -> str | None:
        """Return the address of the page that shows all of one message."""
        ...

    def summary(self, thread_id: str, summary_id: str) -> str | None:
        """Return the address of a summary."""
        ...

    def picture(self, thread_id: str, position: int, block: int) -> str | None:
        """Return the address of a picture in a message, or its content as a ``data:`` URI."""
        ...


class ServerLinks:
    """Addresses below the path at which the application is mounted."""

    is_live = True

    def __init__(self, root: str) -> None:
        self._root = root

    def page(self, name: str, **query: object) -> str:
        """Return the address of a page; values that are None are left out."""
        given = {key: value for key, value in query.items() if value is not None}
        return f"{self._root}/{name}" + (f"?{urlencode(given, errors='replace')}" if given else "")

    def home(self) -> str:
        """Return the address of the list of conversations."""
        return self.page("")

    def panel(self, thread_id: str, panel: str, **more: object) -> str:
        """Return the address of a conversation with a panel open."""
        return self.page("conversation", id=thread_id, panel=panel, **more)

    def message(self, thread_id: str, position: int, at: int | None = None) -> str:
        """Return the address of a message in the timeline."""
        return self.page("conversation", id=thread_id, position=position, at=at) + f"#m{position}"

    def whole(self, thread_id: str, position: int, at: int | None = None) -> str:
        """Return the address of the page that shows all of one message."""
        return self.page("message", id=thread_id, position=position, at=at)

    def summary(self, thread_id: str, summary_id: str) -> str:
        """Return the address of a summary."""
        return self.panel(thread_id, "summaries") + f"#{summary_id}"

    def picture(self, thread_id: str, position: int, block: int) -> str:
        """Return the address of a picture in a message."""
        return self.page("media", id=thread_id, position=position, block=block)

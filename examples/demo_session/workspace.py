"""The project that the conversation works on: files in memory, and as much git as it needs."""

import difflib
import re
from random import Random


class Refused(Exception):
    """A call failed, as the agent will read it."""


class Workspace:
    """Files by path, the last commit and the commits so far, newest first."""

    def __init__(self, rng: Random) -> None:
        self.files: dict[str, str] = {}
        self.head: dict[str, str] = {}
        self.commits: list[tuple[str, str]] = []
        self._rng = rng

    def read(self, path: str, offset: int = 1, limit: int | None = None) -> str:
        """The lines from ``offset`` (from 1), numbered."""
        text = self._text(path)
        lines = text.splitlines()
        end = len(lines) if limit is None else offset - 1 + limit
        return "\n".join(
            f"{n:>6}\t{line}" for n, line in enumerate(lines[offset - 1 : end], offset)
        )

    def write(self, path: str, content: str) -> str:
        """Replace a whole file."""
        verb = "Updated" if path in self.files else "Created"
        self.files[path] = content
        return f"{verb} {path} ({len(content.splitlines())} lines, {len(content)} characters)"

    def edit(self, path: str, old: str, new: str) -> str:
        """Replace the one place where ``old`` stands; shows the place."""
        text = self._text(path)
        match text.count(old):
            case 1:
                pass
            case 0:
                raise Refused(f"old_string not found in {path}")
            case n:
                raise Refused(f"old_string occurs {n} times in {path}; add context to make it one")
        self.files[path] = text.replace(old, new)
        first = text[: text.index(old)].count("\n") + 1
        shown = self.read(path, max(1, first - 3), new.count("\n") + 7)
        return f"Edited {path}:\n{shown}"

    def grep(self, pattern: str, path: str) -> str:
        """``path:line:text`` of every match at or below ``path``."""
        wanted = re.compile(pattern)
        below = "" if path == "." else path.rstrip("/")
        hits = [
            f"{name}:{n}:{line}"
            for name in sorted(self.files)
            if name == below or not below or name.startswith(below + "/")
            for n, line in enumerate(self.files[name].splitlines(), 1)
            if wanted.search(line)
        ]
        return "\n".join(hits) or "No matches found"

    def commit(self, message: str, branch: str) -> str:
        """Take the files as they are; prints what git prints."""
        changed = self.changed()
        if not changed:
            raise Refused("On branch " + branch + "\nnothing to commit, working tree clean")
        name = f"{self._rng.getrandbits(28):07x}"
        created = [f" create mode 100644 {path}" for mark, path in changed if mark == "A"]
        counts = self._counts()
        self.commits.insert(0, (name, message))
        self.head = dict(self.files)
        return "\n".join([f"[{branch} {name}] {message}", counts, *created])

    def changed(self) -> list[tuple[str, str]]:
        """Mark (A, M, D) and path of what differs from the last commit; ``var/`` is ignored."""
        paths = sorted({*self.files, *self.head})
        marks = [(self._mark(path), path) for path in paths if not path.startswith(("var/", "/"))]
        return [(mark, path) for mark, path in marks if mark]

    def diff(self, below: str = "") -> str:
        """The unified diff against the last commit."""
        return "\n".join(
            text
            for mark, path in self.changed()
            if mark == "M" and path.startswith(below)
            for text in self._diff(path)
        )

    def _diff(self, path: str) -> list[str]:
        before = self.head.get(path, "").splitlines()
        after = self.files.get(path, "").splitlines()
        body = difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm="")
        return [f"diff --git a/{path} b/{path}", *body]

    def _counts(self) -> str:
        plus = minus = 0
        for _, path in self.changed():
            for line in self._diff(path)[3:]:
                plus += line.startswith("+")
                minus += line.startswith("-")
        n = len(self.changed())
        text = f" {n} file{'s' * (n != 1)} changed, {plus} insertions(+)"
        return text + (f", {minus} deletions(-)" if minus else "")

    def _mark(self, path: str) -> str:
        if path not in self.head:
            return "A"
        if path not in self.files:
            return "D"
        return "M" if self.files[path] != self.head[path] else ""

    def _text(self, path: str) -> str:
        if path not in self.files:
            raise Refused(f"File not found: {path}")
        return self.files[path]

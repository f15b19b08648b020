"""Turns scenes into the records of the file: messages with ids, times, calls and their results."""

import base64
import re
import string
from datetime import datetime, timedelta
from random import Random
from typing import Any

from .screenplay import Part, Scene
from .terminal import Terminal
from .workspace import Refused, Workspace

Json = dict[str, Any]
_ALPHABET = string.ascii_letters + string.digits
# One transparent pixel: enough for the shape of an image block.
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
_STATES = {"x": "completed", ">": "in_progress", " ": "pending"}


class Recorder:
    """Plays scenes one after another and keeps the records."""

    def __init__(self, rng: Random, start: datetime) -> None:
        self.records: list[Json] = []
        self.workspace = Workspace(rng)
        self._terminal = Terminal(self.workspace, rng)
        self._rng = rng
        self._now = start
        self._calls: list[tuple[str, Part]] = []

    def play(self, scene: Scene) -> None:
        """Add what the scene says; results of the calls before it come first."""
        match scene.kind:
            case "project":
                self._set_files(scene)
                self.workspace.head = dict(self.workspace.files)
            case "agent":
                self._answer(())
                self._speak(scene)
            case "aside":
                self._answer(tuple(self._user_blocks(scene)))
            case "user":
                self._answer(())
                self._user(scene)
            case "interrupted":
                self._calls = []
                self._user(scene)
            case other:
                raise ValueError(f"unknown scene {other!r}")

    def _user(self, scene: Scene) -> None:
        self._advance(scene.when)
        self._set_files(scene)
        blocks = self._user_blocks(scene)
        alone = len(blocks) == 1 and blocks[0]["type"] == "text"
        self._record("user", blocks[0]["text"] if alone else blocks)

    def _user_blocks(self, scene: Scene) -> list[Json]:
        image = {"type": "base64", "media_type": "image/png", "data": _PIXEL}
        found: list[Json] = []
        for part in scene.parts:
            if part.name == "text":
                found.append({"type": "text", "text": part.body})
            elif part.name == "image":
                found.append({"type": "image", "source": image})
        return found

    def _set_files(self, scene: Scene) -> None:
        for part in scene.parts:
            match part.name:
                case "file":
                    text = self._terminal.generated(part.body) or part.body + "\n"
                    self.workspace.files[part.argument] = text
                case "commits":
                    lines = [line.split(" ", 1) for line in part.body.splitlines()]
                    self.workspace.commits = [(name, text) for name, text in lines]
                case _:
                    pass

    def _speak(self, scene: Scene) -> None:
        blocks: list[Json] = []
        for part in scene.parts:
            match part.name:
                case "text":
                    blocks.append({"type": "text", "text": part.body})
                case "thinking":
                    blocks.insert(0, self._thinking(part.body))
                case _:
                    call = f"toolu_01{self._token(22)}"
                    name, given = _call(part)
                    blocks.append({"type": "tool_use", "id": call, "name": name, "input": given})
                    self._calls.append((call, part))
        self._now += timedelta(seconds=3 + sum(len(str(b)) for b in blocks) / 260)
        self._now += timedelta(seconds=self._rng.uniform(0.4, 6))
        self._record("assistant", blocks)

    def _thinking(self, text: str) -> Json:
        size = self._rng.randrange(90, 240) + len(text) // 2
        signature = base64.b64encode(self._rng.randbytes(size)).decode("ascii")
        return {"type": "thinking", "thinking": text, "signature": signature}

    def _answer(self, more: tuple[Json, ...]) -> None:
        if not self._calls:
            return
        blocks = [self._result(call, part) for call, part in self._calls]
        self._calls = []
        self._now += timedelta(seconds=self._rng.uniform(0.2, 5))
        self._record("user", [*blocks, *more])

    def _result(self, call: str, part: Part) -> Json:
        block: Json = {"type": "tool_result", "tool_use_id": call}
        failed = False
        try:
            block["content"] = self._run(part)
        except Refused as error:
            block["content"] = str(error)
            block["is_error"] = failed = True
        if failed != (part.fails or part.body.startswith("!fail")):
            wanted = "fail" if part.fails else "succeed"
            raise ValueError(f"{part.name} {part.argument} should {wanted}:\n{block['content']}")
        return block

    def _run(self, part: Part) -> str:
        _, given = _call(part)
        match part.name:
            case "read":
                return self.workspace.read(
                    given["path"], given.get("offset", 1), given.get("limit")
                )
            case "write":
                return self.workspace.write(given["path"], given["content"])
            case "edit":
                return self.workspace.edit(given["path"], given["old_string"], given["new_string"])
            case "grep":
                return self.workspace.grep(given["pattern"], given["path"])
            case "todo":
                return "Todos updated. Continue with the item that is in progress."
            case _:
                text = self._terminal.run(given["command"], part.body, part.fails)
                seconds = self._rng.uniform(0.3, 9) + _duration(given["command"], text)
                self._now += timedelta(seconds=seconds)
                return text

    def _advance(self, when: str) -> None:
        if when.startswith("@"):
            self._now = datetime.fromisoformat(when[1:]).replace(tzinfo=self._now.tzinfo)
        unit = {"s": 1, "m": 60, "h": 3600}
        if when.startswith("+"):
            self._now += timedelta(seconds=int(when[1:-1]) * unit[when[-1]])
        self._now += timedelta(seconds=self._rng.uniform(1, 40))

    def _record(self, role: str, content: str | list[Json]) -> None:
        at = self._now.isoformat(timespec="milliseconds")
        name = f"msg_01{self._token(22)}"
        self.records.append({"role": role, "content": content, "id": name, "at": at})

    def _token(self, length: int) -> str:
        return "".join(self._rng.choice(_ALPHABET) for _ in range(length))


def _duration(command: str, output: str) -> float:
    """The seconds that a command ran, as far as its options or its output tell."""
    asked = re.findall(r"--(minutes|seconds|stop) (\d+)", command)
    told = re.findall(r"(?:claims|passed) in ([\d.]+) ?s", output)
    return sum(int(n) * (60 if unit == "minutes" else 1) for unit, n in asked) + sum(
        float(n) for n in told
    )


def _call(part: Part) -> tuple[str, Json]:
    match part.name:
        case "read":
            path, *numbers = part.argument.split()
            given: Json = {"path": path}
            given.update(zip(("offset", "limit"), map(int, numbers), strict=False))
            return "read_file", given
        case "write":
            return "write_file", {"path": part.argument, "content": part.body + "\n"}
        case "edit":
            old, _, new = part.body.partition("\n%=\n")
            return "edit_file", {"path": part.argument, "old_string": old, "new_string": new}
        case "grep":
            pattern, _, path = part.argument.partition(" :: ")
            return "grep", {"pattern": pattern, "path": path or "."}
        case "todo":
            todos = [
                {"content": line[4:], "status": _STATES[line[1]]} for line in part.body.splitlines()
            ]
            return "todo_write", {"todos": todos}
        case "bash":
            description, _, command = part.argument.partition(" :: ")
            return "bash", {"command": command, "description": description}
        case other:
            raise ValueError(f"unknown block {other!r}")

"""A new event touches three files of the product: what it is, what it does to the state, what erasing leaves of it.

The steps are those of the page for newcomers. The event has a name of its own here, so that the tests also pass
in a project where the page was followed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.architecture.rules import LAYERS, ROOT, modules_under
from tests.support.howto_pages import follow, renamed, steps_of

PAGE = ROOT / "docs/howto/add-an-event.md"
NAMES = {"MoodNoted": "TestedEvent", "mood_noted": "tested_event"}
DEFINING = ("1.", "2.", "3.", "4.", "5.", "6.")
"""Sections of the page that define an event; the later ones keep it in the state, and store it."""
STEPS = [
    step
    for step in renamed(steps_of(PAGE), NAMES)
    if Path(step.path).parts[0] in LAYERS and step.section.startswith(DEFINING)
]
"""What a newcomer changes in the product to define an event."""

SCENE = """
from datetime import UTC, datetime
from pathlib import Path
import sys
import refold
from refold.domain.events import TestedEvent

path = Path(sys.argv[1])
for turn in range(2):
    with refold.open(path, window=8_000) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": f"hello {turn}"})
        memory._opened.log.transact("t", lambda _: [TestedEvent(mood="calm")], at=datetime.now(UTC))
        conversation.append({"role": "assistant", "content": "hi"})
        assert conversation.context().messages
        assert [m.position for m in conversation.messages()] == list(range(2 * turn + 2))
        assert conversation.recall("hello")
        conversation.explain()
        assert memory.verify().ok
        stored = [one.event for one in memory._opened.log.read("t", 1, 99)]
        assert sum(isinstance(event, TestedEvent) for event in stored) == turn + 1
        conversation.fork()
conversation = refold.open(path).conversation("t")
conversation.erase(0)
print("done")
"""


ERASING_SCENE = """
from datetime import UTC, datetime
import refold
from refold.domain.events import TestedEvent

with refold.open(":memory:", window=8_000) as memory:
    conversation = memory.conversation("t")
    conversation.append({"role": "user", "content": "the quokka"})
    event = TestedEvent(mood="about the quokka", position=0)
    memory._opened.log.transact("t", lambda _: [event], at=datetime.now(UTC))
    fork = conversation.fork()
    conversation.erase(0)
    for one in (conversation, fork, conversation.fork(at=2)):
        (fields,) = [e["fields"] for e in one.export("events") if e["name"] == "tested_event"]
        assert fields == {"mood": "", "position": 0}, fields
    assert memory.verify().ok
print("done")
"""
ABOUT_A_MESSAGE = {
    "domain/events.py": (("    mood: str\n", "    mood: str\n    position: int\n"),),
    "domain/erasing.py": (
        ("            | TestedEvent()\n", ""),
        (
            "        case CompactionFailed():\n            return replace(",
            "        case TestedEvent():\n            return replace(event, mood='')\n"
            "        case CompactionFailed():\n            return replace(",
        ),
        (
            "        case MessagePinned():\n            return event.position",
            "        case MessagePinned() | TestedEvent():\n            return event.position",
        ),
    ),
}
"""What the page says of an event about a message."""


def copy_with_event(place: Path) -> None:
    for layer in LAYERS:
        shutil.copytree(ROOT / layer, place / layer, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "src", place / "src", symlinks=True)
    shutil.copy(ROOT / "pyproject.toml", place)
    follow(STEPS, place)


def run_scene(place: Path, scene: str = SCENE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", scene, str(place / "agent.db")],
        env={**os.environ, "PYTHONPATH": str(place / "src")},
        cwd=place,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_new_event_touches_at_most_three_files(tmp_path: Path) -> None:
    assert 0 < len(STEPS) <= 3
    copy_with_event(tmp_path)
    ran = run_scene(tmp_path)
    assert ran.stdout == "done\n", ran.stderr


def test_an_event_that_the_state_does_not_know_fails_when_it_is_stored(tmp_path: Path) -> None:
    copy_with_event(tmp_path)
    shutil.copy(ROOT / "domain/evolve.py", tmp_path / "domain/evolve.py")
    assert "Expected code to be unreachable" in run_scene(tmp_path).stderr


def test_an_event_about_a_message_loses_its_words_when_the_message_is_erased(
    tmp_path: Path,
) -> None:
    copy_with_event(tmp_path)
    for path, changes in ABOUT_A_MESSAGE.items():
        text = (tmp_path / path).read_text("utf-8")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / path).write_text(text, "utf-8")
    ran = run_scene(tmp_path, ERASING_SCENE)
    assert ran.stdout == "done\n", ran.stderr


def test_the_type_checker_finds_a_file_that_was_forgotten() -> None:
    """It does so where every event is matched: there, and nowhere else."""
    matching = {
        str(module.path)
        for module in modules_under(*LAYERS)
        if "assert_never(event)" in module.text
    }
    assert matching == {"domain/evolve.py", "domain/erasing.py"}

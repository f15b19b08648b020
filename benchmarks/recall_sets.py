"""Conversations with questions whose answers are known, read from data that nobody here wrote.

Each set is a sequence of ``Talk``. Evidence is a tuple of groups of positions: a group counts as found when
one of its messages is (a whole session, or both sides of an exchange).
"""

import gzip
import json
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

DATA = Path(os.environ.get("REFOLD_X_DATA") or Path(__file__).parents[2] / "shared" / "data")
OURS = Path(__file__).with_name("fitting_questions.json")
SECOND = timedelta(seconds=1)
LOCOMO_KINDS = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
THIRD_PERSON = (
    (r"\bmy\b", "Wei's"),
    (r"\b(?:I|me)\b", "Wei"),
    (r"\byour\b", "Robin's"),
    (r"\byou\b", "Robin"),
)
Role = Literal["user", "assistant"]


class Said(NamedTuple):
    """A message."""

    role: Role
    text: str
    at: datetime


class Asked(NamedTuple):
    """A question, and where its answer stands."""

    text: str
    evidence: tuple[tuple[int, ...], ...]
    kind: str


class Talk(NamedTuple):
    """A conversation with its questions."""

    name: str
    language: str
    said: tuple[Said, ...]
    asked: tuple[Asked, ...]


def locomo() -> Iterator[Talk]:
    """Two people, months long. What a picture shows is part of the text, as the set has it in words."""
    for item in _read("locomo/locomo10_dev5.json.gz"):
        said: list[Said] = []
        places: dict[str, int] = {}
        for at, turns in _locomo_sessions(item["conversation"]):
            for number, turn in enumerate(turns):
                shown = f" [shows {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                first = turn["speaker"] == item["conversation"]["speaker_a"]
                places[turn["dia_id"]] = len(said)
                text = f"{turn['speaker']}: {turn['text']}{shown}"
                said.append(Said("user" if first else "assistant", text, at + number * SECOND))
        asked: list[Asked] = []
        for qa in item["qa"]:
            named = re.findall(r"D(\d+):0*(\d+)", " ".join(qa["evidence"]))
            found = {places[key] for a, b in named if (key := f"D{a}:{b}") in places}
            if found:
                asked.append(Asked(qa["question"], _each(found), LOCOMO_KINDS[qa["category"]]))
        yield Talk(item["sample_id"], "en", tuple(said), tuple(asked))


def _locomo_sessions(talk: Mapping[str, Any]) -> Iterator[tuple[datetime, Sequence[Any]]]:
    for number in range(1, 100):
        if f"session_{number}" in talk:
            date = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
            yield date.replace(tzinfo=UTC), talk[f"session_{number}"]


def longmemeval() -> Iterator[Talk]:
    """A user and an assistant. Evidence is a session, and a turn where the set has one."""
    for name in ("longmemeval_s_star_2.json.gz", "longmemeval_s_e47becba.json.gz"):
        for item in _read(f"longmemeval/{name}"):
            yield _longmemeval(item)


def _longmemeval(item: Mapping[str, Any]) -> Talk:
    said: list[Said] = []
    sessions: dict[str, tuple[int, ...]] = {}
    turns: list[int] = []
    parts = (item[key] for key in ("haystack_dates", "haystack_session_ids", "haystack_sessions"))
    for date, key, session in sorted(zip(*parts, strict=True), key=lambda part: part[0]):
        at = datetime.strptime(re.sub(r" \(\w+\)", "", date), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)
        sessions[key] = tuple(range(len(said), len(said) + len(session)))
        for number, turn in enumerate(session):
            if turn.get("has_answer"):
                turns.append(len(said))
            said.append(Said(turn["role"], turn["content"], at + number * SECOND))
    single = "question" in item
    questions = [item["question"]] if single else item["questions"]
    answers = [item["answer_session_ids"]] if single else item["answer_session_ids"]
    asked = [
        Asked(question, tuple(sessions[key] for key in keys), "session")
        for question, keys in zip(questions, answers, strict=True)
    ]
    asked.append(Asked(questions[0], _each(turns), "turn"))
    return Talk(str(item["question_id"]), "en", tuple(said), tuple(asked))


def memorybank(language: str) -> Iterator[Talk]:
    """A user and a companion. In Chinese with labels by hand; in English there are none."""
    part = {"zh": "cn", "en": "en"}[language]
    labels = _read("memorybank/memorybank_cn_labels.json") if language == "zh" else {}
    questions: dict[str, list[str]] = {}
    for line in _lines(f"memorybank/probing_questions_{part}.jsonl"):
        questions |= json.loads(line)
    for user, whole in _read(f"memorybank/memory_bank_{part}.json").items():
        said: list[Said] = []
        for date in sorted(whole["history"]):
            at = datetime.fromisoformat(f"{date.replace('/', '-')}T12:00:00+00:00")
            for exchange in whole["history"][date]:
                said.append(Said("user", exchange["query"], at))
                said.append(Said("assistant", exchange["response"], at + SECOND))
                at += 2 * SECOND
        marked = zip(questions.get(user, ()), labels.get(user, ()), strict=False)
        asked = tuple(
            Asked(question, tuple((2 * e, 2 * e + 1) for e in exchanges), "exchange")
            for question, exchanges in marked
            if exchanges is not None
        )
        yield Talk(user, language, tuple(said), asked)


def madial() -> Iterator[Talk]:
    """What happened to a child, one message each; the question is what was just said in a dialogue."""
    said: list[Said] = []
    places: dict[int, int] = {}
    events = [
        e
        for line in _lines("madial-zh/MADial-Bench-zh-memory.json")
        for e in json.loads(line).values()
    ]
    for event in sorted(events, key=lambda e: (e["time"], int(e["id"]))):
        places[int(event["id"])] = len(said)
        at = datetime.fromisoformat(f"{event['time']}T12:00:00+00:00")
        said.append(Said("user", event["event"], at))
    asked: list[Asked] = []
    for line in _lines("madial-zh/MADial-Bench-zh-dialogue_half.jsonl"):
        talk = json.loads(line)
        for turn in talk["test-turn"]:
            last = talk["dialogue"][max(1, turn - 2) : turn]
            question = " ".join(re.sub(r'^<\w+>:"|"?\s*$', "", text) for text in last)
            found = {places[int(one)] for one in talk["relevant-id"] if int(one) in places}
            if found:
                asked.append(Asked(question, _each(found), "dialogue"))
    yield Talk("events", "zh", tuple(said), tuple(asked))


def beam() -> Iterator[Talk]:
    """A user and an assistant, long technical answers. Abstention has no evidence and is not asked."""
    for path in sorted((DATA / "beam").glob("*_chat.json.gz")):
        name = path.name.removesuffix("_chat.json.gz")
        said: list[Said] = []
        places: dict[int, int] = {}
        at = datetime(2024, 1, 1, tzinfo=UTC)
        for batch in _read(f"beam/{path.name}"):
            for turn in (turn for turns in batch["turns"] for turn in turns):
                anchor = turn.get("time_anchor") or batch.get("time_anchor") or ""
                at = max(at + SECOND, _beam_date(anchor) or at)
                places[turn["id"]] = len(said)
                said.append(Said(turn["role"], turn["content"], at))
        asked: list[Asked] = []
        for kind, questions in _read(f"beam/{name}_probing_questions.json").items():
            for one in questions:
                found = {places[i] for i in _numbers(one.get("source_chat_ids")) if i in places}
                if found:
                    asked.append(Asked(one["question"], _each(found), kind.replace("_", " ")))
        yield Talk(name, "en", tuple(said), tuple(asked))


def _beam_date(anchor: str) -> datetime | None:
    try:
        return datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC)
    except ValueError:
        return None


def evermemos(language: str) -> Iterator[Talk]:
    """A user and an assistant; the set has no questions."""
    conversation = _read(f"evermemos-chat/solo_chat_{language}.json")["conversation_list"]
    said = tuple(
        Said(
            "user" if message["sender"].startswith("user") else "assistant",
            message["content"],
            datetime.fromisoformat(message["create_time"]),
        )
        for message in conversation
    )
    yield Talk("solo", language, said, ())


def written_here(name: str) -> Iterator[Talk]:
    """Conversations with the questions of ``fitting_questions.json``, written for the fit."""
    questions = json.loads(OURS.read_text("utf-8"))[name]
    for talk in longmemeval() if name == "longmemeval" else evermemos(name[-2:]):
        asked = tuple(
            Asked(text, tuple(map(tuple, groups)), "written here")
            for text, groups in questions[talk.name]
        )
        yield talk._replace(asked=asked)


def named(talk: Talk) -> Talk:
    """The same between two people who are called by name, and asked about by a third."""
    names = {"user": "Wei", "assistant": "Robin"}
    said = tuple(one._replace(text=f"{names[one.role]}: {one.text}") for one in talk.said)
    asked = tuple(one._replace(text=_third_person(one.text), kind="named") for one in talk.asked)
    return talk._replace(name=f"{talk.name}, named", said=said, asked=asked)


def _third_person(question: str) -> str:
    for pattern, name in THIRD_PERSON:
        question = re.sub(pattern, name, question)
    return question


def two_in_one(talk: Talk) -> Talk:
    """The same conversation with pairs of its questions, each pair asked as one question of two parts."""
    draw = random.Random(1)
    single = [one for one in talk.asked if one.kind != "adversarial"]
    pairs = [draw.sample(single, 2) for _ in range(min(30, len(single)))] if len(single) > 1 else []
    asked = tuple(
        Asked(_joined(talk.language, number, a.text, b.text), a.evidence + b.evidence, "two in one")
        for number, (a, b) in enumerate(pairs)
        if not set(a.evidence) & set(b.evidence)
    )
    return talk._replace(asked=asked)


def _joined(language: str, number: int, first: str, second: str) -> str:
    if language == "zh":
        joint = ("，还有", "？另外，")[number % 2]
        return f"{first.rstrip('？?。')}{joint}{second}"
    if number % 2:
        return f"{first} {second}"
    return f"{first.rstrip('?')}, and {second[0].lower()}{second[1:]}"


FITTED: Mapping[str, Callable[[], Iterable[Talk]]] = {
    "MemoryBank zh": lambda: memorybank("zh"),
    "LongMemEval, our questions": lambda: written_here("longmemeval"),
    "LongMemEval, our questions, named": lambda: map(named, written_here("longmemeval")),
    "EverMemOS en, our questions": lambda: written_here("evermemos-en"),
    "EverMemOS en, our questions, named": lambda: map(named, written_here("evermemos-en")),
    "EverMemOS zh, our questions": lambda: written_here("evermemos-zh"),
}
"""What weights are fitted on; each may be used for anything."""
TESTED: Mapping[str, Callable[[], Iterable[Talk]]] = {
    "LoCoMo": locomo,
    "LongMemEval": longmemeval,
    "BEAM": beam,
    "MADial-Bench": madial,
}
"""What had no part in the fit (of LongMemEval: its own questions; its conversations had)."""


def _read(path: str) -> Any:
    whole = (DATA / path).read_bytes()
    return json.loads(gzip.decompress(whole) if path.endswith(".gz") else whole)


def _lines(path: str) -> list[str]:
    return [line for line in (DATA / path).read_text("utf-8").splitlines() if line.strip()]


def _each(positions: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    return tuple((position,) for position in sorted(positions))


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _numbers(one)

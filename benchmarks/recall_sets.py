"""Sets of questions with known answers, from data that nobody here wrote, each as conversations and questions."""

import gzip
import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

DATA = Path("/work/shared/data")
UTC = timezone.utc


class Said(NamedTuple):
    role: str
    text: str
    at: datetime


class Asked(NamedTuple):
    text: str
    evidence: tuple[tuple[int, ...], ...]
    """Groups of positions: a group is found when one of its messages is (a whole session, say)."""
    kind: str


class Talk(NamedTuple):
    name: str
    language: str
    said: tuple[Said, ...]
    asked: tuple[Asked, ...]


def _json(path: Path):
    with (gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")) as file:
        return json.load(file)


KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


def locomo() -> Iterator[Talk]:
    for item in _json(DATA / "locomo/locomo10_dev5.json.gz"):
        talk = item["conversation"]
        said, places = [], {}
        for n in range(1, 100):
            if f"session_{n}" not in talk:
                continue
            at = datetime.strptime(talk[f"session_{n}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            for m, turn in enumerate(talk[f"session_{n}"]):
                text = f"{turn['speaker']}: {turn['text']}"
                if caption := turn.get("blip_caption"):
                    text += f" [shows {caption}]"
                places[turn["dia_id"]] = len(said)
                role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
                said.append(Said(role, text, at + timedelta(seconds=m)))
        asked = []
        for qa in item["qa"]:
            ids = re.findall(r"D(\d+):0*(\d+)", " ".join(qa["evidence"]))
            found = sorted({places[f"D{a}:{b}"] for a, b in ids if f"D{a}:{b}" in places})
            if found:
                asked.append(Asked(qa["question"], tuple((p,) for p in found), KINDS[qa["category"]]))
        yield Talk(item["sample_id"], "en", tuple(said), tuple(asked))


def longmemeval() -> Iterator[Talk]:
    for name in ("longmemeval_s_star_2.json.gz", "longmemeval_s_e47becba.json.gz"):
        for item in _json(DATA / "longmemeval" / name):
            said, sessions, turns = [], {}, []
            dated = sorted(zip(item["haystack_dates"], item["haystack_session_ids"], item["haystack_sessions"]), key=lambda s: s[0])
            for date, key, session in dated:
                at = datetime.strptime(re.sub(r" \(\w+\)", "", date), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)
                sessions[key] = tuple(range(len(said), len(said) + len(session)))
                for m, turn in enumerate(session):
                    if turn.get("has_answer"):
                        turns.append(len(said))
                    said.append(Said(turn["role"], turn["content"], at + timedelta(seconds=m)))
            if "questions" in item:
                asked = [Asked(q, tuple(sessions[i] for i in ids), "session") for q, ids in zip(item["questions"], item["answer_session_ids"])]
                asked.append(Asked(item["questions"][0], tuple((t,) for t in turns), "turn"))
            else:
                asked = [Asked(item["question"], tuple(sessions[i] for i in item["answer_session_ids"]), "session"),
                         Asked(item["question"], tuple((t,) for t in turns), "turn")]
            yield Talk(str(item["question_id"]), "en", tuple(said), tuple(asked))


def memorybank(language: str = "zh") -> Iterator[Talk]:
    part = {"zh": "cn", "en": "en"}[language]
    folder = DATA / "memorybank"
    bank = _json(folder / f"memory_bank_{part}.json")
    labels = _json(folder / "memorybank_cn_labels.json") if language == "zh" else {}
    questions = {}
    for line in (folder / f"probing_questions_{part}.jsonl").read_text(encoding="utf-8").splitlines():
        questions.update(json.loads(line))
    for user, whole in bank.items():
        said = []
        for date in sorted(whole["history"]):
            at = datetime.fromisoformat(f"{date.replace('/', '-')}T12:00:00+00:00")
            for m, exchange in enumerate(whole["history"][date]):
                said.append(Said("user", exchange["query"], at + timedelta(seconds=2 * m)))
                said.append(Said("assistant", exchange["response"], at + timedelta(seconds=2 * m + 1)))
        asked = []
        for n, question in enumerate(questions.get(user, ())):
            if language == "zh" and labels[user][n] is not None:
                # Either side of the exchange that holds the answer counts, once.
                asked.append(Asked(question, tuple((2 * e, 2 * e + 1) for e in labels[user][n]), "exchange"))
        yield Talk(user, language, tuple(said), tuple(asked))


def madial() -> Iterator[Talk]:
    said, places = [], {}
    folder = DATA / "madial-zh"
    events = [e for line in (folder / "MADial-Bench-zh-memory.json").read_text(encoding="utf-8").splitlines() if line.strip() for e in json.loads(line).values()]
    for event in sorted(events, key=lambda e: (e["time"], int(e["id"]))):
        places[int(event["id"])] = len(said)
        said.append(Said("user", event["event"], datetime.fromisoformat(f"{event['time']}T12:00:00+00:00")))
    asked = []
    for line in (folder / "MADial-Bench-zh-dialogue_half.jsonl").read_text(encoding="utf-8").splitlines():
        talk = json.loads(line)
        for turn in talk["test-turn"]:
            # What was said last before the memory is due: the turn of the user, and what it answers.
            query = " ".join(re.sub(r'^<\w+>:"|"?\s*$', "", t) for t in talk["dialogue"][max(1, turn - 2):turn])
            found = [places[int(i)] for i in talk["relevant-id"] if int(i) in places]
            if found:
                asked.append(Asked(query, tuple((p,) for p in found), "dialogue"))
    yield Talk("madial", "zh", tuple(said), tuple(asked))


def _ids(value) -> Iterator[int]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _ids(one)
    elif isinstance(value, int):
        yield value


def beam() -> Iterator[Talk]:
    folder = DATA / "beam"
    for path in sorted(folder.glob("*_chat.json.gz")):
        name = path.name.removesuffix("_chat.json.gz")
        said, places = [], {}
        at = datetime(2024, 1, 1, tzinfo=UTC)
        for b, batch in enumerate(_json(path)):
            for turns in batch["turns"]:
                for turn in turns:
                    anchor = turn.get("time_anchor") or batch.get("time_anchor")
                    if anchor:
                        for form in ("%B-%d-%Y", "%Y-%m-%d", "%B %d, %Y"):
                            try:
                                new = datetime.strptime(anchor, form).replace(tzinfo=UTC)
                            except ValueError:
                                continue
                            if new.date() > at.date():
                                at = new
                    at += timedelta(seconds=1)
                    places[turn["id"]] = len(said)
                    said.append(Said(turn["role"], turn["content"], at))
        asked = []
        for kind, questions in _json(folder / f"{name}_probing_questions.json").items():
            for q in questions:
                found = sorted({places[i] for i in _ids(q.get("source_chat_ids")) if i in places})
                if found:
                    asked.append(Asked(q["question"], tuple((p,) for p in found), kind))
        yield Talk(name, "en", tuple(said), tuple(asked))


def evermemos(language: str) -> Iterator[Talk]:
    chat = _json(DATA / f"evermemos-chat/solo_chat_{language}.json")["conversation_list"]
    said = [Said("user" if m["sender"].startswith("user") else "assistant", m["content"], datetime.fromisoformat(m["create_time"].replace("Z", "+00:00")))
            for m in chat]
    yield Talk("solo", language, tuple(said), ())


def written_here(name: str) -> Iterator[Talk]:
    """Conversations with the questions of ``fitting_questions.json``, which were written for fitting."""
    whole = json.loads((Path(__file__).parent / "fitting_questions.json").read_text(encoding="utf-8"))[name]
    talks = longmemeval() if name == "longmemeval" else evermemos(name[-2:])
    for talk in talks:
        asked = tuple(Asked(q, tuple(map(tuple, groups)), "written") for q, groups in whole[talk.name])
        yield talk._replace(asked=asked)


def named(talk: Talk) -> Talk:
    """The same between two people who are called by name, asked about by a third."""
    names = {"user": "Wei", "assistant": "Robin"}
    said = tuple(m._replace(text=f"{names[m.role]}: {m.text}") for m in talk.said)
    asked = tuple(a._replace(text=_third_person(a.text), kind="named") for a in talk.asked)
    return talk._replace(name=f"{talk.name} named", said=said, asked=asked)


def _third_person(question: str) -> str:
    for pattern, name in ((r"\b(?:my)\b", "Wei's"), (r"\b(?:I|me)\b", "Wei"), (r"\byour\b", "Robin's"), (r"\byou\b", "Robin")):
        question = re.sub(pattern, name, question)
    return question

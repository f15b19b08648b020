"""Fits the weights of the token estimator to o200k_base, and prints its error per class of text.

Run ``python benchmarks/calibrate_tokens.py`` with numpy, scipy and bpe-openai installed. It reads the
recorded conversations under ``../shared/data`` (or REFOLD_X_DATA), fits on two thirds of their parts and
measures on the others too. Paste the printed weights into ``infrastructure/tokens/estimator.py``.
"""

import base64
import gzip
import json
import os
import random
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bpe_openai
import numpy as np
from scipy.optimize import lsq_linear

from refold.infrastructure.tokens.estimator import CLASSES, EstimatingTokenCounter, Weights

DATA = Path(os.environ.get("REFOLD_X_DATA", Path(__file__).parents[2] / "shared" / "data"))
SOURCES = (
    "claude-code-entire/*.gz",
    "pi/*.gz",
    "tau-bench/*.gz",
    "deer-flow-langgraph/*-*-*",
    "crosswoz-zh/*.gz",
    "madial-zh/*dialogue*",
    "openhands-llm-logs/*676.651.json",
    "longmemeval/*.gz",
    "evermemos-chat/*.json",
)
CHATS = {"longmemeval", "evermemos-chat", "tau-bench"}
PER_CLASS = 600
LONGEST = 6_000

# Scripts and strings that the recordings hardly hold, so that no weight is left to chance.
SCRIPTS = {
    "german": "Die Prüfung ergab, dass größere Änderungen übermäßig häufig zurückgenommen wurden. ",
    "french": "Le système a été arrêté après la défaillance répétée du contrôleur à l'étage supérieur. ",
    "vietnamese": "Hệ thống đã tự động khởi động lại sau khi phát hiện lỗi trong bộ nhớ đệm. ",
    "russian": "Система автоматически перезапустилась после обнаружения ошибки в журнале событий. ",
    "greek": "Το σύστημα επανεκκινήθηκε αυτόματα μετά τον εντοπισμό σφάλματος στη μνήμη. ",
    "arabic": "أعيد تشغيل النظام تلقائيا بعد اكتشاف خطأ في سجل الأحداث خلال الليل. ",
    "hebrew": "המערכת הופעלה מחדש באופן אוטומטי לאחר שזוהתה שגיאה ביומן האירועים. ",
    "hindi": "त्रुटि मिलने के बाद प्रणाली अपने आप फिर से चालू हो गई और सब ठीक रहा। ",
    "thai": "ระบบรีสตาร์ทโดยอัตโนมัติหลังจากพบข้อผิดพลาดในบันทึกเหตุการณ์เมื่อคืนนี้ ",
    "korean": "시스템은 이벤트 로그에서 오류를 발견한 뒤 자동으로 다시 시작되었습니다. ",
    "japanese": "システムはイベントログのエラーを検出した後、自動的に再起動しました。",
    "emoji": "🎉 🚀 ✅ ⚠️ 🐛 🔥 💡 👍🏽 🧑‍💻 📦 ❌ 🙏 😂 🤔 🇩🇪 ",
}
# So that no class of characters is nearly free because the sample has few of it.
# The floor of lone_space is a choice: plain prose of short words came out too low without it.
FLOORS = {
    "lower": 0.104,
    "other": 0.2,
    "lone_space": 0.4,
    "latin": 0.6,
    "alphabet": 0.33,
    "symbol": 0.5,
    "astral": 1.5,
}

# Full-width commas are one token; the variation selectors beside them would draw the weight up. Digits of
# times and capitals of log lines far from them would count as base64.
CEILINGS = {"fullwidth": 1.0, "digit": 0.7, "digit_then_upper": 1.6}


def strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """The texts of a record, each with the class that its place suggests."""
    match value:
        case str() if key in {"text", "thinking", "content", "reasoning_content"}:
            yield ("prose", value)
        case {"type": "tool_result", "content": content} | {"role": "tool", "content": content}:
            yield from (("tool output", text) for _, text in strings(content, "content"))
        case {"type": "tool", "content": content}:
            yield from (("tool output", text) for _, text in strings(content, "content"))
        case {"type": "tool_use", "input": call} | {"type": "toolCall", "arguments": call}:
            yield ("json", json.dumps(call, ensure_ascii=False))
        case dict():
            for name, inner in value.items():
                yield from strings(inner, name)
        case list():
            for inner in value:
                yield from strings(inner, key)
        case _:
            pass


def classify(kind: str, text: str) -> str:
    """The class of a text: by its characters where those decide, else as suggested."""
    letters = Counter("zh" if "\u3000" <= c <= "\u9fff" else c > "\x7f" for c in text)
    if letters["zh"] > 0.3 * len(text):
        return "chinese"
    if letters["zh"] + letters[True] > 0.02 * len(text):
        return "mixed"
    code = kind == "tool output" and ("→" in text[:20] or text.lstrip()[:2] in {"//", "im", "pa"})
    return "code" if code else kind


def recorded() -> Iterator[tuple[str, str, str]]:
    """Class, group and text of everything recorded; a group is never split by the hold-out."""
    for path in sorted(p for pattern in SOURCES for p in DATA.glob(pattern)):
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8", "replace")
        lines = text.splitlines() if "jsonl" in path.name else [text]
        for number, line in enumerate(lines):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and "dialogue" in record:
                record = {"content": "\n".join(record["dialogue"])}
            if path.parent.name == "crosswoz-zh":
                record = [
                    {"content": "\n".join(m["content"] for m in dialogue["messages"])}
                    for dialogue in record.values()
                ]
            for index, (kind, found) in enumerate(strings(record)):
                part = (number + index) // 20
                group = path.name if "entire" in str(path) else f"{path.name} {part}"
                if len(found) >= 200:
                    kind = "chat" if kind == "prose" and path.parent.name in CHATS else kind
                    yield classify(kind, found), group, found[:LONGEST]


def made() -> Iterator[tuple[str, str, str]]:
    """Class, group and text of what is made here: other scripts, emoji, base64, hashes."""
    rng = random.Random(1)
    for repeat in range(2, 8):
        yield from ((f"{n}", f"{repeat}", text * repeat) for n, text in SCRIPTS.items())
        yield "base64", f"{repeat}", base64.b64encode(rng.randbytes(700)).decode()
        yield "hashes", f"{repeat}", "\n".join(rng.randbytes(20).hex() for _ in range(20))


def sample() -> list[tuple[str, str, str]]:
    """At most ``PER_CLASS`` different texts of a class, the same at every run."""
    texts = list({text: (kind, group, text) for kind, group, text in recorded()}.values())
    random.Random(1).shuffle(texts)
    taken: Counter[str] = Counter()
    kept: list[tuple[str, str, str]] = []
    for entry in texts:
        taken[entry[0]] += 1
        if taken[entry[0]] <= PER_CLASS:
            kept.append(entry)
    return kept + list(made())


def counts(text: str) -> list[int]:
    """How many characters of each class a text has, in the order of ``Weights``."""
    data = text.encode("utf-8", "surrogatepass")
    found = {
        name: len(data) - len(data.translate(None, bytes_)) for name, bytes_ in CLASSES.items()
    }
    found["lone_space"] = found["space"] - data.count(b"  ")
    signs = re.sub(r"[^0-9A-Z]", "", text)
    found["digit_then_upper"] = len(re.findall(r"[0-9](?=[A-Z])", signs))
    return [found[name] for name in Weights._fields]


def main() -> int:
    """Fit, and print weights and errors."""
    if not DATA.is_dir():
        print(f"no recordings at {DATA}: set REFOLD_X_DATA")
        return 1
    entries = sample()
    kinds = np.array([kind for kind, _, _ in entries])
    texts = [text for _, _, text in entries]
    held = np.array([zlib.crc32(group.encode()) % 3 == 0 for _, group, _ in entries])
    encode = bpe_openai.get_encoding("o200k_base").encode_ordinary
    true = np.array([len(encode(text)) for text in texts], float)
    rows = np.array([counts(text) for text in texts], float)

    # Relative errors, each class of text with the same voice; what is made here with a quarter.
    voices = {
        k: (1.0 if (kinds == k).sum() > 20 else 0.25) / ((kinds == k) & ~held).sum()
        for k in set(kinds)
    }
    voice = np.sqrt(np.array([voices[k] for k in kinds]))
    fit = ~held
    least = [FLOORS.get(name, 0.0) for name in Weights._fields]
    most = [CEILINGS.get(name, np.inf) for name in Weights._fields]
    solution = lsq_linear(
        (rows / true[:, None] * voice[:, None])[fit], voice[fit], bounds=(least, most)
    ).x
    print("Weights(")
    for name, weight in zip(Weights._fields, solution, strict=True):
        print(f"    {name}={weight:.3f},")
    print(")")

    fitted = rows @ solution
    shipped = np.array([EstimatingTokenCounter().count_text(text) for text in texts], float)
    print(f"\n{'':14}{'texts':>6}{'fit':>8}{'p5':>7}{'p95':>7}{'shipped':>9}{'p5':>7}{'p95':>7}")
    for kind in sorted(set(kinds)):
        for name, part in (("fitted on", ~held), ("held out", held)):
            chosen = (kinds == kind) & part
            if not chosen.any():
                continue
            cells = [f"{kind:14}{chosen.sum():6d}"]
            for estimate in (fitted, shipped):
                errors = estimate[chosen] / true[chosen] - 1
                whole = estimate[chosen].sum() / true[chosen].sum() - 1
                low, high = np.quantile(errors, [0.05, 0.95])
                cells.append(f"{whole:+8.1%}{low:+7.0%}{high:+7.0%}")
            print("".join(cells), name)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Find a value in texts: exactly, or regardless of case and spacing."""

import re
from json import dumps

from refold.application.conversation.parsing import is_utf8
from refold.domain.errors import InvalidSetting
from refold.domain.facts.cues import mask

LONGEST_VALUE = 10_000
"""Characters of a value, at most."""
BEFORE, AFTER = 40, 60
"""Characters of a line to show before and after the value."""
_LONGEST_SHOWN = 80
"""Characters of the value itself to show; the middle of a longer one is left out."""
_AROUND = 400
"""Characters on both sides that are read to recognise a credential."""
_BREAK = re.compile(r"\n|\\n")


class ValueMatch:
    """A value to search for, in the forms that texts of messages may have it.

    A tool call is readable as JSON, and a result often is JSON. There a quotation mark or a line break is written
    as an escape, and other programs also write letters so.
    """

    def __init__(self, value: str) -> None:
        self.value = value
        self.exact = True
        """True until no text has the value exactly, so that case and spacing are ignored."""
        once = dumps(value, ensure_ascii=False)[1:-1]
        escaped = (once, dumps(value)[1:-1], dumps(once, ensure_ascii=False)[1:-1])
        self._forms = tuple(dict.fromkeys((value, *escaped)))
        alike = [r"\s+".join(map(re.escape, form.split())) for form in self._forms]
        self._alike = re.compile("|".join(alike), re.IGNORECASE)

    def ignore_case(self) -> "ValueMatch":
        """Return a match of the same value that ignores case and spacing."""
        other = ValueMatch(self.value)
        other.exact = False
        return other

    def __contains__(self, text: str) -> bool:
        if self.exact:
            return any(form in text for form in self._forms)
        return self._alike.search(text) is not None

    def span(self, text: str) -> tuple[int, int] | None:
        """Return start and stop of the first match in a text, or None."""
        if not self.exact:
            found = self._alike.search(text)
            return found.span() if found else None
        starts = [(text.find(form), len(form)) for form in self._forms]
        first = min((place for place in starts if place[0] >= 0), default=None)
        return None if first is None else (first[0], first[0] + first[1])

    def line(self, text: str) -> str:
        """Return a little of the line around the first match, or an empty string without a match.

        Characters of an obvious credential are left out, also if they are the value.
        """
        found = self.span(text)
        if found is None:
            return ""
        start, stop = found
        first, last = max(0, start - _AROUND), stop + _AROUND
        safe = mask(text[first:last])
        before, own, after = safe[: start - first], safe[start - first : stop - first], ""
        after = safe[stop - first :]
        before = _BREAK.split(before)[-1]
        after = _BREAK.split(after)[0]
        if len(own) > _LONGEST_SHOWN:
            own = f"{own[: _LONGEST_SHOWN // 2]} … {own[-_LONGEST_SHOWN // 2 :]}"
        shown = f"{_last(before)}{own}{_first(after)}"
        return " ".join(re.sub("\0+", "[redacted]", shown).split())


def _last(text: str) -> str:
    return text if len(text) <= BEFORE else f"…{text[-BEFORE:]}"


def _first(text: str) -> str:
    return text if len(text) <= AFTER else f"{text[:AFTER]}…"


def read_value(value: object) -> str:
    """Return a value that can be searched for.

    Raises:
        InvalidSetting: it is not a text, is blank or too long, or has half of a surrogate pair.
    """
    if not isinstance(value, str) or not value.strip():
        problem = "must be a text to look for, such as 6390 or src/app.py"
    elif len(value) > LONGEST_VALUE:
        problem = f"has {len(value):,} characters; give a part of at most {LONGEST_VALUE:,}"
    elif not is_utf8(value):
        problem = "has half of a surrogate pair, which no message can have"
    else:
        return value
    raise InvalidSetting(f"value: {problem}", setting="value", value=value)

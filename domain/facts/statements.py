"""Find statements: requests and rules of the user, and decisions."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Literal, NamedTuple

from refold.domain.lazy_pattern import lacks, lazy_pattern, signs_of

from . import cues
from . import lasting_facts as lasting
from .grounds import NO_GROUNDS, Grounds, grounds_of
from .headings import Place, choose_headings, sense_of
from .quotations import has_own_words, mask_quotations, own_words, quotes_in
from .speech import Print, Quote, Span, print_of, sentences, user_words, without_code

Kind = Literal["request", "rule", "prohibition", "decision"]

_TYPED = 1_500  # A longer text is pasted, and only partly the user's own words.
_SCANNED = 24_000
_SHORT = 600
_LONGEST = 400
_SHORTEST_DECISION = 20
_MOST: dict[Kind, int] = {"request": 6, "rule": 8, "prohibition": 8, "decision": 4}
_MOST_OF_ASSISTANT = 3
_MOST_READ = 6
"""Maximum number of documents and reviews read in one message."""
_MOST_QUOTED: dict[Kind, int] = {"request": 3, "rule": 6, "prohibition": 8}
_DESCRIBES = lazy_pattern(
    r"(?<!\bwe )(?<!\bi )(?<!\bwill )\bno longer\b|\bapproved\b|(?<!我们)(?<!我)不再",
    re.IGNORECASE,
    signs="no longer|approved",
)
_CODE = lazy_pattern(
    r"[+\-|{}<$=@/\\│├└]|\d+[:\t|→]|(?:at|func|def|class|import|var|const|let) \S+[(.{=]"
)
_RAN = lazy_pattern(r"^! .*$", re.MULTILINE)
"""A command that the person ran in the agent's prompt."""
_STRUCK = lazy_pattern(r"~~[^~\n]+~~")
"""Text that the writer struck out."""
_POLITELY_NOT = lazy_pattern(r"\b(?:can|could) (?:we|you) (?:please )?not\b", re.IGNORECASE)
_POLITE = lazy_pattern(
    r"(?:so |and |also |ok(?:ay)?,? )*(?:can|could|would|will) (?:we|you)\b", re.I
)
_CUT = lazy_pattern(r"[\s,;:.!?，；：。！？、）)]")


_WORDLIKE = bytes(n for n in range(128) if chr(n).isalnum() or chr(n).isspace())


class Said(NamedTuple):
    """A passage of a text."""

    kind: Kind
    text: str
    under: tuple[str, ...] = ()
    """Headings above the passage, nearest last."""
    cut: int = 0
    """Number of characters that are left out at the end."""
    is_quoted: bool = False
    """Whether the person only pasted the text: a plan, a specification or a review."""
    grounds: Grounds = NO_GROUNDS
    """Reason and rejected alternatives of a decision."""

    @property
    def whole(self) -> str:
        """The passage with its headings in front."""
        return " ".join((*self.under, self.text))


_WITHDRAWS = lazy_pattern(
    r"(?:(?:oh|ok(?:ay)?|actually|no|wait|hm+|well|sorry|and|but|please)[,.!… ]+)*(?:"
    r"never ?mind\b|forget (?:it|that|this|about (?:it|that|this|the)\b)|(?:cancel|scrap|drop|skip"
    r"|ignore) (?:that|this|it)\b"
    r"(?! (?:file|line|test|step|part|error|warning|one|if|when|for now))|(?:cancel|scrap|ignore) (?:my"
    r"|the) (?:last|previous|earlier)\b"
    r"|no need (?:to|for) (?:do |that|it|this)|(?:you )?(?:don['’]?t|do not) (?:need to )?(?:bother"
    r"|do (?:that|it|this)\b(?! (?:yet|here|in|if|when|with)))"
    r"|(?:that|this|it)(?:['’]s| is) (?:no longer|not) (?:needed|necessary)(?: any ?more)?\b"
    r")|(?:算了|不用了|不需要了|不必了|取消(?:吧|了|这个|上一个)|别(?:做|弄|改|管)了|先不(?:做|弄|改)了)",
    re.IGNORECASE,
    signs="never|forget|cancel|scrap|drop|skip|ignore|no need|don|do not|needed|necessary",
)
_OVERRIDES = lazy_pattern(
    r"(?:(?:oh|ok(?:ay)?|no|wait|hm+|well|sorry)[,.!… ]+)*(?:scratch that\b|on second thoughts?\b"
    r"|(?:i(?:['’]ve| have)?|we(?:['’]ve| have)?) "
    r"changed (?:my|our) minds?\b|change of plans?\b|(?:no|actually|wait)[,.!… ]+.{3,160}\binstead\b)"
    r"|(?:我|我们)?改(?:变)?主意了|(?:不|不对|等等)[，,].{1,60}(?:改成|换成|改用|换用)|(?:还是|干脆)(?:改成|换成|改用|换用)",
    re.IGNORECASE,
    signs="scratch that|second thought|change|instead",
)
_REOPENS = lazy_pattern(
    r"(?:(?:no|hm+|but|unfortunately|sorry|it|that|this|the \w+|,) ?)*(?:still (?:fails?|failing|broken|wrong"
    r"|crash\w*|get|see|the same|not|n['’]t)"
    r"|(?:does|did|is|was)(?: not|n['’]t) (?:work|fix|help|fixed|working)\b|(?:fails?|failed|broke|broken) again\b)"
    r"|(?:还是|仍然|依然)(?:不行|不对|报错|失败|有问题)|没有?(?:解决|修好|用)|又(?:报错|失败|坏)了",
    re.IGNORECASE,
    signs="still | not |n't |again",
)
_ACCEPTS = lazy_pattern(
    r"(?:(?:ok(?:ay)?|yes|yeah|great|nice|cool|wow|perfect|awesome|excellent|thanks?|thank you|now)[,.!… ]+)*(?:"
    r"(?:(?:it|that|this|everything|all)(?: all)? )?(?:works?|worked|is working|runs?|passes)(?: (?:now|fine"
    r"|great|well|perfectly|again))*"
    r"|(?:(?:it|that|this) )?(?:looks?|lgtm|sounds?) ?(?:very )?(?:good|great|perfect|fine|nice)?(?: to me| now)?"
    r"|(?:that|this|it)(?:['’]s| is) (?:it|all|perfect|great|fixed|good|exactly (?:it|right|what i \w+))(?: now)?"
    r"|(?:perfect|awesome|excellent|great(?: (?:work|job))?|well done|nice work|good job|thanks?(?: (?:a lot"
    r"|so much|very much))?"
    r"|thank you(?: (?:so|very) much)?|fixed(?: now)?|solved)"
    r")[.!… ]*|(?:好了|可以了|行了|搞定了?|没问题了|完美|太好了|谢谢你?了?|多谢)[!！。~～]*",
    re.IGNORECASE,
)
_CLAIMS = lazy_pattern(
    r"(?:\W*(?:all )?(?:done|fixed|implemented|completed|finished|resolved)\b(?! (?:by|with the|when|if|yet|soon))"
    r"|(?:great|perfect|excellent)?[!,. ]*(?:all|every|the)(?: \w+){0,4} tests? (?:now )?pass(?:es|ed)?\b"
    r"|i(?:['’]ve| have) (?:now |successfully |just |also )*(?:fixed|implemented|added|updated|changed"
    r"|completed|finished|created|removed|"
    r"refactored|renamed|replaced|resolved|written|moved|merged|pushed|committed|deployed|made|set up)\b"
    r"|已(?:经)?(?:完成|修复|实现|添加|更新|修改|创建|删除|解决|提交)|(?:完成|修好|改好|做好|搞定|写好)了)",
    re.IGNORECASE,
)
_LONGEST_CLOSING = 200
Closing = Literal["open", "done", "withdrawn", "overridden"]


@lru_cache(maxsize=64)  # Each sentence is judged as a request, and by itself.
def closing_of(said: str) -> Closing | None:
    """Return what a sentence of a person says about the request before, or None if it says nothing."""
    if len(said) > _LONGEST_CLOSING or said.endswith(("?", "？")):
        return None
    if _WITHDRAWS.match(said):
        return "withdrawn"
    if _OVERRIDES.match(said):
        return "overridden"
    if _REOPENS.match(said):
        return "open"
    return "done" if _ACCEPTS.fullmatch(said) else None


_DECIDING = signs_of(cues.ASSISTANT_DECISION, cues.DECISION, cues.REASON)


class ModelText(NamedTuple):
    """The beginning of a text of the model without code, and its sentences."""

    words: str
    spans: tuple[Span, ...]


def read_model_text(text: str) -> ModelText:
    """Return the words of a text of the model."""
    words = without_code(text[:_SCANNED])
    return ModelText(words, tuple(sentences(words)))


def claim_in(text: ModelText) -> str | None:
    """Return the first sentence in which the model says that it did what was asked, or None."""
    for span in text.spans:
        said = text.words[span.start : span.stop]
        if len(said) <= _LONGEST and not said.endswith(("?", "？")) and _CLAIMS.match(said):
            return said
    return None


class UserText(NamedTuple):
    """A text of the role ``user``, with the quotations in it."""

    words: str
    """The text without parts that the program inserted."""
    read: str
    """The beginning of the words, without commands that the person ran."""
    quotes: tuple[Quote, ...]
    """Quotations in what is read, in order. Positions are those in ``words``."""

    own: str
    """The text that is read, with newlines in place of quotations and of the words that announce them."""


def read_user_text(text: str) -> UserText:
    """Return the words of a user's text, with their quotations."""
    words = user_words(text)
    read = _RAN.sub(_blank, words[:_SCANNED])
    quotes = quotes_in(read)
    return UserText(words, read, quotes, own_words(read, quotes))


def find_user_passages(text: UserText, *, conversation: bool) -> list[Said]:
    """Return requests, prohibitions, preferences and decisions in a user's text.

    ``conversation`` means that no tools are used; "must" and "always" are then mostly small talk. Of
    quoted texts, only documents and reviews are read, and their passages are marked.
    """
    found = _find_passages(text.own, conversation=conversation)
    said = [said for kind in _MOST for said in _select_strongest(found, kind, _MOST[kind])]
    read = [q for q in text.quotes if (q.lead or q.is_review) and q.sort != "output"]
    for quote in read[:_MOST_READ]:
        said += _find_quoted_passages(text.read, quote, conversation=conversation)
    return said


def own_sentences(own: str) -> Iterator[str]:
    """Yield the sentences of a user's own words that no program printed.

    A sentence under a heading is left out, because the heading may reverse its meaning, and so is struck text.
    """
    words = without_code(own)
    for span in sentences(words):
        said = words[span.start : span.stop]
        if not span.under and "~~" not in said and print_of(said) < Print.YES:
            yield said


def _find_passages(words: str, *, conversation: bool) -> list[Said]:
    """Return all passages of a text. Words in quotation marks do not decide the kind."""
    words = _STRUCK.sub(_blank, words)
    judged = mask_quotations(words)
    found: list[Said] = []
    asked: list[Span] = []
    spans = _spans(judged)
    for at, span in enumerate(spans):
        said, under = judged[span.start : span.stop], _headings_of(words, span)
        if not has_own_words(said):
            continue
        kind = _kind(said, under, conversation=conversation)
        if kind != "request":
            found.append(_passage(kind, words, span, _grounds(kind, words, spans, at)))
        elif closing_of(said) not in ("done", "withdrawn") and (
            not conversation or _asks(" ".join((*under, said)))
        ):
            asked.append(span)
    return found + [_passage("request", words, run) for run in _select_runs(words, _runs(asked))]


def _find_quoted_passages(words: str, quote: Quote, *, conversation: bool) -> list[Said]:
    """Return the passages of a document, or the beginning of a review or mail."""
    quoted = words[quote.start : quote.stop]
    quoted = own_words(quoted, [q for q in quotes_in(quoted) if q.sort in ("code", "output")])
    if quote.sort == "document":
        found = _find_passages(quoted, conversation=conversation)
        found = [
            said
            for kind, most in _MOST_QUOTED.items()
            for said in _select_strongest(found, kind, most)
        ]
    else:
        found = [_passage("request", quoted, run) for run in _runs(_spans(quoted))[:1]]
    announced = (words[slice(*quote.lead)],) if quote.lead else ()
    return [said._replace(under=said.under or announced, is_quoted=True) for said in found]


def find_assistant_decisions(text: ModelText, *, conversation: bool) -> list[Said]:
    """Return the decisions in a text of the model."""
    words, found = text.words, list[Said]()
    if not conversation and lacks(words, _DECIDING):
        return found
    spans = _telling_spans(words, text.spans)
    for at, span in enumerate(spans):
        said = words[span.start : span.stop]
        if _decides(said, conversation=conversation):
            found.append(_passage("decision", words, span, grounds_of(words, spans, at)))
    return _select_strongest(found, "decision", _MOST_OF_ASSISTANT)


def newest_decision(text: ModelText) -> Said | None:
    """Return the last sentence of the model that decides something or gives a reason, or None."""
    words, spans = text
    if lacks(words, _DECIDING):
        return None
    for at in reversed(range(len(spans))):
        said = words[spans[at].start : spans[at].stop]
        if len(said) >= _SHORTEST_DECISION and (
            cues.ASSISTANT_DECISION.search(said) or cues.REASON.search(said)
        ):
            return Said("decision", said, grounds=grounds_of(words, spans, at))
    return None


def _spans(words: str) -> list[Span]:
    return _telling_spans(words, sentences(words))


def _telling_spans(words: str, found: Iterable[Span]) -> list[Span]:
    """Return the sentences that have content, without headings that only announce other lines."""
    spans = [
        span
        for span in found
        if _says_something(words[span.start : span.stop])
        and not cues.ACKNOWLEDGEMENT.fullmatch(words, span.start, span.stop)
    ]
    leads = {place for span in spans for place in span.under}
    return [span for span in spans if not _only_announces(words, span, leads)]


def _only_announces(words: str, span: Span, leads: set[Place]) -> bool:
    """Return whether a sentence is only a heading for the lines under it."""
    if lasting.is_order(words[span.start : span.stop]) and words[span.stop - 1] not in ":：":
        return False
    return any(span.start <= start and stop <= span.stop for start, stop in leads)


def _headings_of(words: str, span: Span) -> tuple[str, ...]:
    """Return the headings of a sentence, or none if both the sentence and its heading forbid."""
    if not span.under:
        return ()
    under = choose_headings(words, span.under)
    said = words[span.start : span.stop]
    forbid_both = sense_of(under) == sense_of([said]) == "forbids"
    return () if forbid_both and lasting.is_order(said) else under


def _decides(said: str, *, conversation: bool) -> bool:
    if said.endswith((*"?？:：",)):
        return False
    if conversation:
        return cues.CHAT_BINDING.search(said) is not None
    return bool(cues.ASSISTANT_DECISION.search(said) or _has_decision(said))


def _has_decision(said: str) -> bool:
    """Return whether a sentence of the model decides something.

    In the model's words "no longer" mostly describes behaviour, so it does not count.
    """
    found = cues.DECISION.search(_DESCRIBES.sub("", said))
    return found is not None


def _kind(said: str, under: tuple[str, ...], *, conversation: bool) -> Kind:
    sense = sense_of(under)
    if sense == "forbids":
        return "prohibition"
    kind = _kind_in_chat(said) if conversation else _kind_at_work(said)
    return "rule" if kind == "request" and sense == "rules" else kind


def _kind_at_work(said: str) -> Kind:
    if _forbids(said):
        return "rule"
    if said.endswith(("?", "？")) or _POLITE.match(said):
        return "request"
    if cues.DECISION.search(said) and not cues.LASTING.search(said):
        return "decision"
    return "rule" if cues.PREFERENCE.search(said) else "request"


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _forbids(said: str) -> bool:
    """Return whether a sentence forbids. A question only does if it politely asks not to do something."""
    if said.endswith(("?", "？")):
        return _POLITELY_NOT.search(said) is not None
    return cues.PROHIBITION.search(said) is not None


def _kind_in_chat(said: str) -> Kind:
    if lasting.is_order(said):
        return "rule"
    if _forbids(said):
        return "rule"
    if said.endswith(("?", "？")):
        return "request"
    if cues.DECISION.search(said) and not cues.LASTING.search(said):
        return "decision"
    return "rule" if cues.CHAT_BINDING.search(said) else "request"


def _runs(spans: Iterable[Span]) -> list[Span]:
    """Join the sentences of each line into passages."""
    runs: list[Span] = []
    for line, group in groupby(spans, key=lambda span: span.line):
        run = list(group)
        start = run[0].start
        for before, span in zip(run, [*run[1:], None], strict=True):
            if span is None or span.stop - start > _LONGEST or span.start - before.stop > 2:
                runs.append(Span(start, before.stop, line, before.under))
                start = span.start if span else start
    return runs


def _select_runs(words: str, runs: list[Span]) -> list[Span]:
    """Return all passages of a short message, or those of a longer one that ask, come first or come last."""
    if len(words) <= _SHORT:
        return runs
    asking = [
        r for r in runs if _asks(" ".join((*_headings_of(words, r), words[r.start : r.stop])))
    ]
    ends = [*runs[:1], *runs[-1:]] if len(words) < _TYPED else runs[:1]
    return [run for run in runs if run in ends or run in asking]


def _asks(said: str) -> bool:
    return bool(cues.ASKING.search(said) or cues.DEFERRED.search(said) or cues.ORDER.match(said))


def _select_strongest(found: list[Said], kind: Kind, most: int) -> list[Said]:
    own = list(dict.fromkeys(said for said in found if said.kind == kind))
    if len(own) <= most:
        return own
    best = sorted(own, key=lambda said: -cues.weight(said.whole))[:most]
    return [said for said in own if said in best]


def _says_something(said: str) -> bool:
    if len(said) < 2 or _CODE.match(said):
        return False
    head = said[:200]
    if head.isascii():
        return len(head) - len(head.encode().translate(None, _WORDLIKE)) >= 0.7 * len(head)
    # No character is both, so two fast counts give the sum without a Python loop.
    return sum(map(str.isalnum, head)) + sum(map(str.isspace, head)) >= 0.7 * len(head)


def _grounds(kind: Kind, words: str, spans: list[Span], at: int) -> Grounds:
    return grounds_of(words, spans, at) if kind == "decision" else NO_GROUNDS


def _passage(kind: Kind, words: str, span: Span, grounds: Grounds = NO_GROUNDS) -> Said:
    text = _to_boundary(words, span)
    cut = span.stop - span.start - len(text)
    return Said(kind, text, _headings_of(words, span), cut, grounds=grounds)


def _to_boundary(words: str, span: Span) -> str:
    if span.stop - span.start <= _LONGEST:
        return words[span.start : span.stop]
    cut = span.start + _LONGEST
    for found in reversed(list(_CUT.finditer(words, cut - 80, cut))):
        return words[span.start : found.start()].rstrip()
    return words[span.start : cut]

"""Words of people and models: without text that the agent's harness inserted, quoted, or printed by programs."""

import re
from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple

from refold.domain.lazy_pattern import lazy_pattern

from .headings import Place, lines_under

_TAGGED = lazy_pattern(
    r"<(system-reminder|local-command-\w+|command-message|bash-stdout|bash-stderr|ide_\w+|"
    r"task-notification|user-prompt-submit-hook|environment_context)>.*?</\1>",
    re.DOTALL,
)
_SLASH = lazy_pattern(
    r"<command-name>(.*?)</command-name>\s*(?:<command-args>(.*?)</command-args>)?", re.DOTALL
)
_BASH_INPUT = lazy_pattern(r"<bash-input>(.*?)</bash-input>", re.DOTALL)
_NOISE = lazy_pattern(
    r"\[Request interrupted by user[^\]]*\]|\ACaveat: The messages below.*\Z", re.DOTALL
)
_HANDOVER = lazy_pattern(
    r"(?:This session is being continued from a previous conversation"
    r"|\[Conversation Summary\]|The conversation history before this point was compacted)"
)
_SKILL = lazy_pattern(
    r"\s*(?:Base directory for this skill:|Invoke the \S+ skill and follow it exactly)"
)
_LOCAL = {
    "exit",
    "quit",
    "clear",
    "compact",
    "context",
    "cost",
    "model",
    "resume",
    "help",
    "status",
    "login",
}
_FENCE = lazy_pattern(r"```.*?(?:```|\Z)", re.DOTALL)
# Control characters also end a line, because text after them could imitate another line.
_LINE = lazy_pattern(
    r"(?:[^\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff])+"
)
# An ellipsis inside of marks ends no sentence, as in "`src/...` is gone".
_SENTENCE_END = lazy_pattern(
    r"(?<![.!?…])(?!(?:\.{2,}|…+)[\"'”’)\]`]+[^\S\n]+[a-z])[.!?…]+[\"'”’)\]*_`]*(?=\s)|[。！？；]+[”’」』）]*"
)
_BULLET = lazy_pattern(r"[\s>]*(?:(?:[-*•+]|\d{1,2}[.)、]|#{1,6}|\[[ xX]\])\s+)*[*_]*")


class Span(NamedTuple):
    """A sentence in a text."""

    start: int
    stop: int
    line: int
    """Index of its line. Sentences of one line belong together."""
    under: tuple[Place, ...] = ()
    """Places of its headings, nearest last."""


def user_words(text: str) -> str:
    """Return the text of a user message without parts that the agent's harness inserted."""
    if "<" in text:
        text = _SLASH.sub(_slash_command, _TAGGED.sub("", text))
        text = _BASH_INPUT.sub(r"! \1", text)
    return _NOISE.sub("", text).strip()


def inserted_texts(text: str) -> Iterator[str]:
    """Yield the parts of a user message that the agent's harness inserted, without those of the person."""
    if "<" in text:
        for found in _TAGGED.finditer(text):
            yield found[0]


def is_program_text(text: str) -> bool:
    """Return whether the program around the agent clearly wrote this text of the role ``user``."""
    words = user_words(text)
    return not words or _SKILL.match(words) is not None or is_handover(words)


def is_handover(words: str) -> bool:
    """Return whether a user message is the summary of an earlier session."""
    return _HANDOVER.match(words) is not None


def join_words(blocks: Iterator[dict[str, object]]) -> str:
    """Return the words of a message's text blocks, with a mark for each picture or document."""
    parts: list[str] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "text" and isinstance(text := block.get("text"), str):
            parts.append(text)
        elif kind in ("image", "document", "video", "audio"):
            parts.append(f"[{kind}]")
    return "\n".join(parts)


def without_code(text: str) -> str:
    """Return the text with fenced code replaced by newlines, so that positions do not change."""
    return _FENCE.sub(lambda found: "\n" * len(found[0]), text) if "```" in text else text


def lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and stop of each line, without control characters and surrounding spaces."""
    if text.isprintable():  # The only white space that is printable is a space.
        start, stop = len(text) - len(text.lstrip()), len(text.rstrip())
        if start < stop:
            yield start, stop
        return
    for found in _LINE.finditer(text):
        start, stop = found.span()
        while start < stop and text[start].isspace():
            start += 1
        while start < stop and text[stop - 1].isspace():
            stop -= 1
        if start < stop:
            yield start, stop


def is_line(text: str) -> bool:
    """Return whether a text is a single line without control characters or surrounding spaces."""
    if text.isprintable():
        return bool(text) and not (text[0].isspace() or text[-1].isspace())
    return next(lines(text), None) == (0, len(text))


def sentences(text: str) -> Iterator[Span]:
    """Yield the sentences of a text, with list marks removed."""
    return iter(sentences_of(text))


def forget_sentences() -> None:
    """Forget the newest texts, because some of them were erased."""
    sentences_of.cache_clear()


@lru_cache(maxsize=16)  # Several rules ask for the sentences of one text after another.
def sentences_of(text: str) -> tuple[Span, ...]:
    """Return the sentences that ``sentences`` yields."""
    return tuple(_find_sentences(text))


def _find_sentences(text: str) -> Iterator[Span]:
    places = list(lines(text))
    if len(places) == 1 and text[places[0][0]].isalpha():
        start, stop = places[0]
        for end in _SENTENCE_END.finditer(text, start, stop):
            yield from _span(text, start, end.end(), 0, ())
            start = end.end()
        yield from _span(text, start, stop, 0, ())
        return
    for number, line in enumerate(lines_under(text, places)):
        start, stop = line.start, line.stop
        if marks := _BULLET.match(text, start, stop):
            start = marks.end()
        for end in _SENTENCE_END.finditer(text, start, stop):
            yield from _span(text, start, end.end(), number, line.under)
            start = end.end()
        yield from _span(text, start, stop, number, line.under)


def _span(text: str, start: int, stop: int, line: int, under: tuple[Place, ...]) -> Iterator[Span]:
    while start < stop and text[start].isspace():
        start += 1
    while start < stop and text[stop - 1].isspace():
        stop -= 1
    if start < stop:
        yield Span(start, stop, line, under)


def _slash_command(found: re.Match[str]) -> str:
    name, args = found[1].strip(), (found[2] or "").strip()
    return "" if name.lstrip("/") in _LOCAL else f"{name} {args}"


_LEVEL = r"(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL|CRITICAL|NOTICE|ERR|SEVERE)"
_TIME = r"(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d\b)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"

_PRINTED = lazy_pattern(
    rf"[\[(]?{_TIME}|{_MONTH} +\d{{1,2}} \d\d:\d\d:\d\d|\[\s?{_LEVEL}\s?\]|{_LEVEL}\s?[|\]]|level=\w+"
    r"|(?:\w+\.)*\w*(?:Error|Exception|Warning|Fault)(?:\[\w+\])?: |Error: |ERROR[: ]|FATAL[: ]|CRITICAL[: ]|E\d{3,5}: "
    r"|(?:error|warning)(?:\[\w+\])?: |fatal: |hint: |remote: |panic: |goroutine \d+ |thread '\w+' panicked"
    r"|npm (?:ERR!?|WARN|error|warn|notice)\b|yarn (?:error|warn)\b|\d+\.\d+ (?:npm|yarn|pip)\b"
    r"|Traceback \(most recent|File \"[^\"]+\", line \d+|at (?:async )?[\w.$<>/ ]+\(.*:\d+.*\)|at \S+:\d+:\d+"
    r"|\.\.\. \d+ (?:more|common frames)|Caused by: |Segmentation fault|Killed\b.{0,20}\Z"
    r"|[\w./@-]+\.\w{1,5}:\d+:\d+(?::|\s|\Z)|[\w./@-]+\.\w{1,5}\(\d+,\d+\)"
    r"|diff --git |index [0-9a-f]{6,}\.\.|@@ -\d|--- a/|\+\+\+ b/"
    r"|\[\+\] |=> |\[\d+/\d+\] |#\d+ (?:\d+\.\d|\[|DONE|CACHED|ERROR)|Step \d+/\d+ ?:"
    r"|-{3} (?:FAIL|PASS|SKIP)|={2,} (?:RUN|PAUSE|CONT)|(?:FAIL|ok|PASS)\t|(?:PASSED|FAILED|ERROR|XFAIL) \S+::|=={3,}"
    r"|(?:FAIL|PASS) \S+\.\w+|Tests?: +\d+ |Test Suites: |\d+ (?:passed|failed)\b"
    r"|(?:Process|Command|Script) (?:exited|completed|failed|finished) with|exit(?:ed with)? (?:code|status):? \d+"
    r"|Node\.js v\d|Compiling \S+ v\d|Downloading \S|Collecting \S+\Z|Requirement already satisfied"
    r"|⎿|⏺|✻|\{\"|\[\{|\w+=\S+(?: \w+=\S+){2,}|Running \[\S+|Ran [\w-]+ in \d"
    # Messages and advice of git.
    r"|\(use \"git |Your branch (?:is|and)|On branch |nothing to commit|Changes (?:not staged|to be committed)"
    r"|Untracked files:|Auto-merging |CONFLICT \(|Automatic merge failed|Already up to date"
    r"|(?:Please,? )?commit your changes (?:or|before)|You are in 'detached HEAD'|Aborting\Z|interactive rebase in"
    r"|Updates were rejected|To (?:push|see|undo|abort|continue)\b.{0,60}\buse\Z"
    r"|To address (?:all )?issues|Run [`'\"]?npm (?:fund|audit)|\d+ packages? (?:are )?looking for funding",
)
_MAYBE = lazy_pattern(
    rf"{_LEVEL}: |note: |[\w./@-]+\.\w{{1,5}}:\d+: |(?:\w+, )*\w+ :?= \S|\*? ?\w+: \d+\Z|\d+ issues?:|\^+\Z|[~^]{{2,}}"
    r"|[}\])]+[;,]?\Z|\"[\w-]+\"\s*:|\w+: ['\"{\[]|\+(?:\s{2,}|[^\s+])|~?/[\w./~@-]+(?: \([\w/.-]+\))?\Z"
    r"|(?:return|if|for|while|func|def|class|const|let|var|import|export|public|private)\b.*[{(;:]\Z"
    r"|[\w.]+\(.*\)[;,]?\Z|.*[{;}]\Z|[✓✔✗✘●○]\s|Checked \d+|CACHED|DONE|Done in|Fetching|Building|Installing"
    r"|(?:错误|报错|异常|警告)[:：]",
)
_PROMPT = lazy_pattern(
    r"(?:[$❯➜»]|[\w.-]+@[\w.-]+[: ]\S*\s?[$#%]|PS [A-Z]:\\\S*>|[A-Z]:\\[^>]{0,80}>|>>>|In \[\d+\]:|"
    r"\([\w.-]+\) [$%])\s+\S"
)
_ADVERTISEMENT = lazy_pattern(
    r"(?:(?<=\A)|(?<=[.!?。！？] )|(?<=[│⎿>*•💡✨🎉] )|(?<=[💡✨🎉]))"
    r"(?:(?:pro[- ]?)?tips?(?: of the day)?\s?[:：]|did you know\b|sponsored\b|advertisement\b|"
    r"upgrade to \w+ (?:pro|plus|premium|max)\b|(?:小|温馨)?提示[:：]|小贴士|广告[:：]|赞助[:：])",
    re.IGNORECASE,
    signs="tip|did you know|sponsored|advertisement|upgrade to",
)


class Print(IntEnum):
    """How certain it is that a program printed a line."""

    NO = 0
    MAYBE = 1
    YES = 2
    PROMPT = 3
    """A command after a shell prompt; its output follows."""


def print_of(line: str) -> Print:
    """Return how certain it is that a program printed this line. The line must be stripped."""
    if _PROMPT.match(line):
        return Print.PROMPT
    if _PRINTED.match(line):
        return Print.YES
    return Print.MAYBE if _MAYBE.match(line) else Print.NO


def advertisement_in(line: str) -> int | None:
    """Return the position of an advertisement in a line, or None. It extends to the end of the line."""
    found = _ADVERTISEMENT.search(line)
    return found.start() if found else None


Sort = Literal["output", "words", "document", "code"]
"""Sort of a quotation.

Output of a program, words of another person or a model, a document such as a plan or specification, or
fenced text without an announcement.
"""

LONGEST = 200
_OUTPUT = (
    r"(?:(?:error|ci|build|test|server|console|terminal|debug|crash|compiler|full)? ?logs?|(?:\w+ )?output|"
    r"stdout|stderr|"
    r"error messages?|"
    r"(?:stack ?)?traces?|traceback|stack ?trace|dump|diff|(?:test|lint|build) results?|CI|response)"
)
_WORDS = (
    r"(?:(?<!my )(?<!some )(?<!our )feedback|(?:code |pr )?reviews?|(?:review |pr |code )?comments?|remarks?|findings|"
    r"suggestions?|critique|e-?mails?|mails?|messages?|thread|conversation|transcript|chat|article|"
    r"(?:web ?)?page|(?:blog ?)?post|tweet|quotes?|docs?|documentation|readme|man ?page|paper|excerpt|passage|letter|"
    r"advice|notification|report)"
)
_DOCUMENT = (
    r"(?:plan|spec|specification|ticket|issue|(?:user )?story|prd|rfc|design(?: doc\w*)?|proposal|"
    r"document|brief)"
)
_BEFORE = (
    r"\b(?:here(?:['’]s|['’]re| is| are| comes?)|this is|these are|got|getting|received|receiving|saw|seeing|see|"
    r"from|below|following|pasted?|pasting|copied|quoting|eval|evaluate|address|review|read|analy[sz]e|summari[sz]e|"
    r"explain|debug|translate|investigate|per|according to)\b"
)
_MACHINE = (
    r"(?:CI|builds?|compiler|linter|lint|tests?|test suite|server|terminal|console|script|tool|bot|command|api|"
    r"pipeline|"
    r"job|action|workflow|logs?|git|npm|pip|cargo|go|pytest|docker|browser|dialog|output|hook|program|app|it)"
)
_PEOPLE = (
    r"(?:reviewers?|review|copilot|coderabbit\w*|greptile|bugbot|codex|chatgpt|gpt[\w.-]*|gemini|claude|cursor|"
    r"colleagues?|"
    r"co-?workers?|boss|manager|lead|customers?|clients?|users?|teammates?|maintainers?|author|support|vendor|docs?|"
    r"documentation|readme|manual|guide|article|page|ticket|issue|e-?mail|mail|he|she|they|someone|somebody|people|"
    r"(?:another|the other) (?:agent|model|ai|dev\w*))"
)
_SAYS = (
    r"(?:says?|said|wrote|writes|comments?|commented|repl(?:y|ies|ied)|answer(?:s|ed)|suggests?|suggested|recommends?|"
    r"recommended|told (?:me|us)|tells (?:me|us)|asks|asked(?: me| us)?|states?|stated|reads|noted?|mentioned|advises?|"
    r"advised|requests|requested|claims?|left)"
)
_PRINTS = (
    r"(?:prints?|printed|reports?|reported|shows?|showed|complains?|complained|outputs?|returned|logged|gives?|gave|"
    r"responded|responds|warns?|warned|fail(?:s|ed) with|throws?|threw|hints?)"
)
_LEADS: dict[Sort, re.Pattern[str]] = {
    "output": lazy_pattern(
        rf".*\b(?:(?:the|my|our|this|that|a|an)\s)?{_MACHINE}(?: \S+){{0,3}}? (?:{_SAYS}|{_PRINTS})\b.{{0,40}}"
        rf"|.*(?:{_BEFORE}|\b(?:with|the|this|that|these|an?)\b)(?: \S+){{0,6}}? {_OUTPUT}\b(?![/.-]\w)[^,;]{{0,60}}"
        r"|.*\b(?:the|this|that|following|an?|with) (?:\w+[ -]){0,3}(?:error|exception|warning|failure)\b.{0,60}"
        r"|.*\b(?:get|got|getting|see|seeing|have) (?:\w+[ -]){0,4}(?:errors|exceptions|warnings|failures)\b.{0,60}"
        r"|(?:the |full |ci |build |error |test |command )*(?:logs?|output|stdout|stderr|traceback|stack ?trace)"
        r"|(?:.*[，。,])?(?:这是|以下是?|下面是?|收到|看到|得到|出现|附上|贴上?)?.{0,10}(?:日志|报错|错误信息|输出|堆栈|控制台|终端).{0,8}"
        r"|.{0,10}(?:CI|编译器|服务器|终端|程序|脚本|测试|控制台)[^，。]{0,6}(?:说|报|提示|显示|打印|输出).{0,6}",
        re.IGNORECASE,
    ),
    "words": lazy_pattern(
        rf".*\b{_PEOPLE}(?: \S+){{0,3}}? {_SAYS}\b.{{0,60}}"
        rf"|.*{_BEFORE}(?: \S+){{0,6}}? {_WORDS}\b(?![/.-]\w)[^,;]{{0,120}}"
        r"|(?:.*[.!?,] )?(?-i:(?!We|You|They)[A-Z][a-z]+) (?:said|wrote|commented|replied|suggested|told (?:me|"
        r"us)|says|"
        r"writes|asked(?: me| us)?)\b.{0,40}"
        r"|on .{6,100} wrote"
        r"|(?:the |full |chat |meeting |call )*(?:transcript|chat(?: log)?|conversation|thread|e-?mail|minutes)"
        r"|(?:.*[，。,])?(?:这是|以下是?|下面是?|收到|看到|来自).{0,14}(?:反馈|评论|评审|意见|邮件|消息|原文|引用|留言).{0,8}"
        r"|.{0,10}(?:他|她|他们|同事|老板|经理|客户|用户|评审|审阅者|对方|产品|文档|邮件)[^，。我]{0,6}"
        r"(?:说|写道?|回复|评论|反馈|提到).{0,6}",
        re.IGNORECASE,
    ),
    "document": lazy_pattern(
        rf"(?:.*{_BEFORE}|.*\b(?:implement|execute|follow|apply|do))(?: \S+){{0,6}}? {_DOCUMENT}\b.{{0,60}}",
        re.IGNORECASE,
    ),
}
# Words about a text that the person wants written, or about the person's own opinions and
# statements.
_OWN = lazy_pattern(
    r"\A(?:when(?:ever)?|if)\b|\b(?:should|must|shall|ought|want|need|write|draft|send|reply with|post|add|"
    r"create|produce|make sure|ensure|expected|"
    r"desired|i['’]d like|let['’]?s|modify|update|change|rewrite|improve|edit|extend|include|put|i think|(?:i|"
    r"we)(?:['’]ve)? (?:already |"
    r"just |have |also )*"
    r"(?:said|wrote|told|asked|mentioned|suggest\w*|reported?|noted)|my|mine)\b(?! (?:colleague|boss|manager|"
    r"co-?worker|"
    r"teammate|customer|client|lead|ci|build|reviewer|server|terminal|console|log|logs|output|error|traceback))"
    r"|应该|必须|需要|请写|写一|我(?:说|写|认为|觉得|的意见)",
    re.IGNORECASE,
)
_ORDERS = lazy_pattern(
    r"\b(?:eval|evaluate|implement|execute|follow|apply|address|review|analy[sz]e|summari[sz]e|explain|debug|translate|"
    r"investigate|check|look|read|fix|handle|resolve|consider|please|can|could|would|why|what|how|"
    r"[a-z]+ me)\b|请|帮|看看",
    re.IGNORECASE,
)


def announced_sort(lead: str) -> Sort | None:
    """Return the sort of quotation that these words announce, or None if the person's own words follow."""
    if len(lead) > LONGEST or _OWN.search(lead):
        return None
    return next((sort for sort, pattern in _LEADS.items() if pattern.fullmatch(lead)), None)


def asks_for_something(lead: str) -> bool:
    """Return whether the announcing words also ask for something."""
    return _ORDERS.search(lead) is not None


QUOTATION = lazy_pattern(
    r"(?<![^\s(\[:：,，。>])[\"“]([^\s\"“”](?:[^\"“”]|(?<=\w)\"(?=\w)){0,3000}?)[\"”](?![\w])|"
    r"「([^「」]{1,3000})」|『([^『』]{1,3000})』"
)
QUOTATION_MARKS = ('"', "“", "「", "『")
"""Every quotation begins with one of these."""
_LONG_QUOTATION = 160
_SEVERAL = lazy_pattern(r"[.!?]\s+\S|[。！？]\s*[^\s\"”]")
_APART = lazy_pattern(r"[ \t]{3,}|\t")
_MOST_PARTS = 4
_HEAD = 300


class Quote(NamedTuple):
    """A passage that another person or a program wrote, and the place of the words that announce it."""

    start: int
    stop: int
    sort: Sort
    lead: Place | None = None
    is_review: bool = False
    """Whether the passage is in the style of a code review."""


def blank_out(text: str, quotes: Iterable[Quote]) -> str:
    """Return the text with newlines in place of all quotations, so that positions do not change."""
    quotes = sorted(quotes, key=lambda quote: quote.start)
    if not quotes:
        return text
    parts: list[str] = []
    end = 0
    for quote in quotes:
        if quote.stop > end:
            start = max(end, quote.start)
            parts += text[end:start], "\n" * (quote.stop - start)
            end = quote.stop
    return "".join([*parts, text[end:]])


def is_long(quotation: str) -> bool:
    """Return whether a quotation has several sentences or one long sentence."""
    return len(quotation) > _LONG_QUOTATION or _SEVERAL.search(quotation[:-1]) is not None


def blocks_of(text: str) -> list[list[Place]]:
    """Return the places of all lines, grouped into blocks that blank lines separate."""
    found: list[list[Place]] = []
    end = -2
    for start, stop in _segments(text):
        if not found or text.count("\n", end, start) > 1:
            found.append([])
        found[-1].append((start, stop))
        end = stop
    return found


def _segments(text: str) -> Iterator[Place]:
    """Yield the places of lines, split where program output was pasted after words on the same line."""
    for start, stop in lines(text):
        parts = islice(_APART.finditer(text, start, stop), _MOST_PARTS)
        behind = next(
            (f for f in parts if print_of(text[f.end() : min(stop, f.end() + _HEAD)]) >= Print.YES),
            None,
        )
        if behind and print_of(text[start:stop]) < Print.YES and text[behind.end()] not in "⎿⏺✻":
            yield start, behind.start()
            yield behind.end(), stop
        else:
            yield start, stop

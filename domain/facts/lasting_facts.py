"""Recognise sentences that stay true: rules, preferences, facts about a person, and decisions."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from refold.domain.lazy_pattern import lazy_pattern

from . import cues
from .exact_values import paths_in
from .headings import choose_headings, sense_of
from .speech import sentences

_RULE = (
    *("never", "always", "dont", "must", "mustnt", "shouldnt", "prefer", "prefers", "preferred"),
    *("remember", "ensure", "avoid", "forbid", "forbidden", "allowed", "favorite", "favourite"),
    *("allergic", "untouched", "unchanged", "important", "required", "rather"),
)
_MAYBE = (
    *("not", "only", "instead", "cannot", "cant", "require", "requires", "least", "most", "leave"),
    *("without", "stop", "should", "decided", "decision", "agreed", "chose", "chosen", "settled"),
    *("approved", "conclusion", "longer", "later", "afterwards", "forget", "eventually", "todo"),
    *("waiting", "finally", "switch", "name", "call", "plan", "keep", "drop"),
)
PROMISES = {**dict.fromkeys(_MAYBE, 1.0), **dict.fromkeys(_RULE, 2.0)}
"""Weight of each word as a sign that a message has rules, decisions or requests."""

OTHERS = (
    *(("不要", 2.0), ("不许", 2.0), ("禁止", 2.0), ("严禁", 2.0), ("不得", 2.0), ("千万", 2.0)),
    *(("必须", 2.0), ("务必", 2.0), ("一定要", 2.0), ("绝不", 2.0), ("勿", 2.0), ("记住", 2.0)),
    *(("喜欢", 2.0), ("讨厌", 2.0), ("过敏", 2.0), ("优先", 2.0), ("统一", 2.0), ("我叫", 2.0)),
    *(("别", 1.0), ("不能", 1.0), ("只能", 1.0), ("最好", 1.0), ("改用", 1.0), ("决定", 1.0)),
    *(("采用", 1.0), ("同意", 1.0), ("结论", 1.0), ("约定", 1.0), ("以后", 1.0), ("稍后", 1.0)),
    *(("回头", 1.0), ("别忘", 1.0), ("待办", 1.0), ("我的", 1.0), ("don’t", 2.0), ("mustn’t", 2.0)),
)
"""Weights as in ``PROMISES``, for words with characters outside ASCII."""

LONGEST = 200
"""Maximum number of characters of a lasting statement, which is usually one short sentence."""

_ORDER = lazy_pattern(
    r"(?:please |and |so |also |but |from now on,? )*(?:never|always|do not|don['’]?t|you must(?: not)?|must not)\b"
    r"(?! (?:worry|mind|be|think|know|you|get|see|let|a|an|the|have|had|feel|forget|sure|say|believe|want|need)\b)"
    r".{4,}[^?？]\Z"
    r"|(?:请|以后|今后|千万)?(?:不要|别|永远不|绝不|务必|一律|必须|禁止)(?!忘|担心|客气|着急|急|怕|说).{2,}[^?？吗呢]\Z",
    re.IGNORECASE,
    signs="never|always|do not|don|must",
)
# Excludes "I like it" and "I like the second one", which are about the moment.
_LIKING = lazy_pattern(
    r"(?:^|[,;:] ?|\b(?:and|but|because|so|since|well|actually|personally|also|yes|no) )"
    r"(?:i (?:(?:really|also|do|just|generally|usually|always|still|absolutely) )*(?:(?:don['’]?t|do not) )?"
    r"(?:(?:really|much|even) )*(?:like|love|hate|dislike|prefer)"
    r"(?! (?:it|that|this|these|those|them|him|her|you\w*|how|what|when|where|which|the|option|both|neither|"
    r"to (?:see|know|hear|ask|say|think|thank))\b)(?! ?[.,;:!?]) \S{2,}"
    r"|my favou?rite [\w -]{2,60}? (?:is|are) \S)"
    r"|(?:^|[,，。；;：:、] ?|其实|因为|但是?|而且|不过|所以|平时|一直)"
    r"我(?:们)?(?:也|都|真的|特别|非常|一直|平时|比较|更|最|很|不太|不怎么|不)*(?:喜欢|偏好|讨厌)"
    r"(?![你您它他她这那上])[^\s，,。.！!；;]{2,}",
    re.IGNORECASE,
    signs="like|love|hate|prefer|favo",
)
_ABOUT_SELF = lazy_pattern(
    r"(?:and |but |also |by the way,? )?my (?:[\w-]+ )?(?:name|budget|birthday|time zone|timezone) (?:is|are) \S"
    r"|我叫[^\s，。？?]{2,}|我的(?:预算|名字|生日|时区)(?:是|为|有)\S",
    re.IGNORECASE,
)
_QUESTION = lazy_pattern(r"[?？][\"'”’)）]*\Z|[吗呢]\Z", signs="?")
_POLITE = lazy_pattern(
    r"(?:^|[,;:.] ?|\b(?:so|and|but|also|then|now|ok|okay) )(?:can|could|would|will) (?:you|we)\b|\bplease\b"
    r"|请(?!问)|帮我|(?:能不能|能否|可以|可不可以)帮|麻烦你",
    re.IGNORECASE,
)


def is_order(said: str) -> bool:
    """Return whether a sentence of a user is a lasting order or prohibition."""
    return len(said) <= LONGEST and _ORDER.match(said) is not None


def is_liking(said: str) -> bool:
    """Return whether a sentence of a user states a preference and no prohibition."""
    if len(said) > LONGEST or _QUESTION.search(said) or not _LIKING.search(said):
        return False
    return cues.PROHIBITION.search(_LIKING.sub("", said)) is None


def is_about_self(said: str) -> bool:
    """Return whether a sentence of a user states a plain fact about that person."""
    return len(said) <= LONGEST and not _QUESTION.search(said) and bool(_ABOUT_SELF.match(said))


def is_question(said: str) -> bool:
    """Return whether a passage only asks a question. A polite order is not a question."""
    if not _QUESTION.search(said):
        return False
    parts = [said[span.start : span.stop] for span in sentences(said)]
    return not any(
        _POLITE.search(part) or (cues.ORDER.match(part) and not _QUESTION.search(part))
        for part in parts
    )


def is_path(text: str) -> bool:
    """Return whether a text is only an address or the name of a file."""
    return "/" in text or any(found.span() == (0, len(text)) for found in paths_in(text))


LONGEST_STATEMENT = 200
"""Maximum number of characters of a statement, which is usually one short sentence."""

MOST_CLAUSES = 6
"""Maximum number of clauses of a sentence that are checked. Later clauses are rarely statements."""

_CLAUSE = lazy_pattern(r"(?:[,;:.!–—-] +|[，；：。！]\s?)")
# The atomic group prevents backtracking, so that matching stays fast for every text.
_LEAD = (
    r"(?>(?:(?:ok(?:ay)?|fine|alright|all right|good|great|right|well|yes|yeah|so|then|and|but|also|now|actually|"
    r"personally|sorry|btw|by the way|for me|for now|in the end|after all)[,;:.!]* )*)"
    r"(?:(?:after|for|on|in|at|with|since|because of) [^,;:]{1,40} )?"
)
_NOT = r"(?:not |n['’]t |no longer |never )?"
_USUAL = r"(?:always|usually|normally|typically|generally|mostly|tend to|never|only|rarely)"
# Passing remarks such as "we'll see" and "I'm going to check" state nothing.
_PASSING = (
    r"(?!see\b|check\b|try\b|look\b|talk\b|need\b|have\b|get\b|be\b|let\b|tell\b|ask\b|think\b|know\b|come\b|find\b|"
    r"test\b|read\b|send\b|paste\b|share\b|give\b|wait\b|show\b|discuss\b|continue\b|review\b|figure\b|trying\b|"
    r"getting\b|having\b|looking\b|seeing\b|asking\b|wondering\b|talking\b|trying\b|thinking\b|working\b|running\b|"
    r"doing\b|testing\b|happy\b|sure\b|sorry\b|afraid\b|still\b|just\b|really\b|able\b|about\b|glad\b|done\b)"
)
_HABIT = lazy_pattern(
    rf"{_LEAD}(?:i(?:['’]d| would) (?:much |far )?(?:rather|prefer)\b|i (?:can['’]?t|cannot) (?:stand|bear)\b"
    rf"|i(?:['’]m| am) (?:{_NOT}(?:a (?:big |huge )?fan of|into|keen on)|allergic|vegan|vegetarian|used to)\b"
    rf"|i {_USUAL} (?!get\b|see\b|have to\b|thought\b|forget\b|wonder\b|found\b|saw\b|got\b)\w"
    rf"|(?:(?:in|on|at) (?:this|our|my|the) (?:team|company|group|repo\w*|project|office|house|family),? )?"
    rf"we {_USUAL} (?!get\b|see\b|saw\b|got\b|had\b|found\b)\w"
    r"|we use [^,]{1,40},? not |i (?:like|want) (?:the|my|our|all) [\w-]+ (?:of|in|for|to)\b.{4,}"
    r"|(?:i )?(?:really |absolutely |strongly )?(?:dislike|prefer) (?!it\b|that\b|this\b|these\b|how\b|the\b|to\b)\w"
    r"|(?:please )?stop (?!the\b|it\b|here\b|now\b|at\b)\w+ing \w"
    r"|(?:going forward|in (?:the )?future|from now on|from here on|from today on),? \S"
    r"|please (?:keep|write|use|put|name|format|answer|reply|call|speak|leave|refer)\b.{4,}"
    r"|(?:my|our) (?:preference|favou?rite|habit|rule|policy|convention|style)\b.{0,40}\b(?:is|are) \S"
    r"|whenever (?:you|we|i) \w+|no [\w /.-]{3,60}, ever\b|[\w-]+ over [\w-]+ (?:in|for) \w"
    r"|the \w[\w ]{0,30} (?:is|are) (?:better|nicer|easier|best) (?:than|for me)\b)",
    re.IGNORECASE,
)
_DECISION = lazy_pattern(
    rf"{_LEAD}(?:(?:we|i)(?:['’]ll| will| shall) {_NOT}{_PASSING}\w|(?:we|i) won['’]?t {_PASSING}\w"
    rf"|(?:we|i)(?:['’]re|['’]m| are| am) {_NOT}(?:going to {_PASSING}\w|{_PASSING}\w+ing\b)"
    r"|(?:we|i)(?:['’]ve| have)? (?:decided|chosen|chose|picked|agreed|settled|opted|dropped)\b"
    r"|let['’]?s (?:use|go|keep|not|move|stick|stay|drop|skip|call|take|leave|make it)\b"
    r"|(?:it(?:['’]s| is)|that(?:['’]s| is)) (?:final|settled|decided|agreed)\b"
    r"|(?:decision|decided|agreed|settled|conclusion|verdict|final (?:call|answer))(?: with \w+)?\s*[:：–—-] ?\S"
    r"|the [\w -]{2,40} (?:will be|is going to be|is (?:now )?(?:moved|set|fixed|postponed|called)|stays|moves|goes) \S"
    r"|(?:the|our) (?:plan|decision|choice|answer|call) is\b)",
    re.IGNORECASE,
)
_HAN_LEAD = r"(?>(?:好的|好吧|好|行|嗯|对了|另外|那么|那|所以|其实|以后|今后|还有|记住|注意|暂时|目前|最后|结果)*)"
_WE = r"(?:(?:我|我们|咱们|咱)(?:组|团队|公司|家|项目|部门)?(?:里)?)"
_HAN_HABIT = lazy_pattern(
    rf"{_HAN_LEAD}(?:(?:[^，。：:；我咱]{{1,60}})?{_WE}(?:也|都|真的|其实|平时|一直|比较|更|最|很|特别|非常|不太|不怎么|不)*"
    r"(?:(?:喜欢|偏好|讨厌)(?![你您它他她这那上])|宁愿|宁可|习惯|倾向|受不了|不爱|反感|一般|通常|总是|总|向来|一向|从来|从不|只(?:在|用|看|吃|喝|买|做)|"
    r"不(?:太|怎么)?(?:能吃|吃|喝|用|要))"
    rf"|比起[^，。]{{1,20}}{_WE}"
    r"|(?:以后|今后)[^，。]{0,20}(?:都|请|用|要|别|不)|[^，。]{1,20}(?:一律|统一|都要|都得|必须|请用|请叫)|请(?:用|叫|按|始终|一直)\S"
    r"|每次\S{2,}(?:之?前|都|先)\S|[^，。]{1,40}的(?:文件|代码|日志|文档|注释|提交)(?:请|都|只|一律)*用\S)",
    signs="我",
)
_HAN_DECISION = lazy_pattern(
    rf"{_HAN_LEAD}(?:{_WE}(?:还是|就|最终|最后|也|已经)*(?:决定|选|定|同意|接受|改|放弃|换|不再|不(?:支持|存|做|用|要|考虑|拆|买|去))"
    r"|[^，。]{0,16}(?:就(?:用|选|定|叫|这么|按|在)|定(?:在|为|成|于|下来|了)|改(?:在|到|为|成|用|坐|去)|保留|选(?:了|定|用|择)|"
    r"决定|最终|确定|采用|敲定|暂时(?:继续|不|用|先)|先不|不再|不(?:存|做|用|要|支持|考虑)了?\b|名(?:字|称)?(?:就)?叫|"
    r"推迟到|提前到|取消了?)"
    r"|(?:结论|决定|最终方案|说好了?|定了|同意了)[：:，,]\S"
    r"|每(?:周|天|月|年|[一二三四五六七八九十两\d]+(?:个)?(?:小时|天|周|月|分钟))[^，。]{0,8}(?:发布|备份|开会|更新|一次|部署|检查|提交))",
    signs="我",
)
_ASKS = lazy_pattern(r"[?？][\"'”’)）]*\Z|[吗呢][。.]?\Z", signs="?")


def classify_statement(said: str) -> Literal["rule", "decision"] | None:
    """Return the kind of a user's statement: a rule or habit, a decision, or None."""
    if len(said) > LONGEST_STATEMENT or _ASKS.search(said):
        return None
    starts = [0, *(found.end() for found in islice(_CLAUSE.finditer(said), MOST_CLAUSES))]
    if any(_HABIT.match(said, start) or _HAN_HABIT.match(said, start) for start in starts):
        return "rule"
    if any(_DECISION.match(said, start) or _HAN_DECISION.match(said, start) for start in starts):
        return "decision"
    return None


def is_preference(said: str) -> bool:
    """Return whether a sentence of a user is a lasting order, a preference or a habit."""
    return is_order(said) or is_liking(said) or classify_statement(said) == "rule"


def lasting_statements(own: str) -> Iterator[tuple[Literal["preference", "decision"], str]]:
    """Yield sentences with lasting orders, preferences, facts and decisions of a user, from their own words."""
    for span in sentences(own):
        found, under = own[span.start : span.stop], choose_headings(own, span.under)
        if sense_of(under) == "forbids" and not is_order(found):
            continue
        kind = "rule" if is_order(found) or is_liking(found) else classify_statement(found)
        if kind == "rule" or is_about_self(found):
            yield "preference", found
        elif kind == "decision":
            yield "decision", found

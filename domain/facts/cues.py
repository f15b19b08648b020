"""Clean texts into single lines without credentials, and recognise rules, decisions and requests."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.text_cuts import beginning, ends

_ANSI = lazy_pattern(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")
_BREAKS = lazy_pattern(r"[ \t]*(?:[\n\r\v\f\x1c-\x1e\x85\u2028\u2029][ \t]*)+")
_CONTROL = lazy_pattern(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
_SURROGATE = lazy_pattern(r"[\ud800-\udfff]")
_BLANKS = lazy_pattern(r"[ \t\xa0]{2,}|\t")

_CUT = lazy_pattern(r" ⟨… (\d{1,9}) characters cut …⟩ ")

# Each pattern begins with a literal and has no nested repetition, because tool output may be
# hostile.
_SECRETS = lazy_pattern(
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bxox[abposr]-[\w-]{10,}|\bAIza[\w-]{30,}|\bhf_[A-Za-z0-9]{20,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_NAMED = (
    r"((?:pass(?:word|wd|phrase)|secret(?:[_-]?key)?|token|api[_-]?key|access[_-]?key|"
    r"private[_-]?key|密码|口令)[\"']?\s{0,2}"
)
_ASCII_NAMES = ("pass", "secret", "token", "api", "access", "private")
"""The beginnings of these names, without the Chinese ones."""
_ASSIGNED = lazy_pattern(
    _NAMED + r"(?:=|:=)\s{0,2}[\"']?)(?!\[redacted\]|-----BEGIN)([^\s\"'&;,)}\]⏎]{4,})",
    re.IGNORECASE,
)
# After a colon only text that looks like a credential is matched: "token: string" is code.
_LABELLED = lazy_pattern(
    _NAMED
    + r"[:：]\s{0,2}[\"']?)(?!\[redacted\]|-----BEGIN)((?=[^\s\"'&;,)}\]⏎]{0,60}\d)[^\s\"'&;,)}\]⏎]{6,})",
    re.IGNORECASE,
)
_PREFIXES = (
    *("sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *("github_pat_", "glpat-", "AKIA", "ASIA", "xox", "AIza", "hf_", "eyJ", "-----BEGIN"),
)
# Parts of the prefixes with these characters, each of several, so that few are looked for.
_UNDERLINED, _HYPHENED = ("k_", "gh", "pat_", "hf_"), ("k-", "pat-", "-----BEGIN")
_ASCII_HINTS = ("key", "pass", "token", "secret")
_HINTS = (*_ASCII_HINTS, "密码", "口令")
_BEARER = lazy_pattern(r"(\b(?:Bearer|Basic)\s+)(?!\[redacted\])[A-Za-z0-9._~+/=-]{12,}")
_IN_URL = lazy_pattern(r"(://[^\s:/@]{1,80}:)[^\s@/]{1,200}@")


def clean(text: str) -> str:
    """Return the text as one line, without colours and control characters. ``⏎`` replaces line breaks."""
    if text.isprintable():
        return (_BLANKS.sub(" ", text.strip()) if "  " in text else text).strip(" ⏎")
    if _SURROGATE.search(text):
        text = _SURROGATE.sub("\ufffd", text)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    text = _BREAKS.sub(" ⏎ ", text.strip())
    return _BLANKS.sub(" ", _CONTROL.sub("", text)).strip(" ⏎")


_HINT = lazy_pattern("|".join(map(re.escape, _HINTS)), re.IGNORECASE)
_SHORT = 300


def has_sign(text: str) -> bool:
    """Return whether a text has a part that every credential has."""
    return has_exact_sign(text) or may_assign(text)


def has_exact_sign(text: str) -> bool:
    """Return whether a text has a part that every credential has which no name announces."""
    has = text.__contains__
    if has("_") and any(map(has, _UNDERLINED)) and any(map(has, _PREFIXES)):
        return True
    if has("-") and any(map(has, _HYPHENED)) and any(map(has, _PREFIXES)):
        return True
    # Many texts lack the capital letters.
    amazon_or_google = has("A") and (has("AKIA") or has("ASIA") or has("AIza"))
    header = (has("B") and (has("Bearer") or has("Basic"))) or (has("J") and has("eyJ"))
    return amazon_or_google or header or has("@") or has("xox")


def may_assign(text: str) -> bool:
    """Return whether a text has parts that every credential with a name in front has."""
    if not ("=" in text or ":" in text or "：" in text):
        return False
    if not text.isascii():
        return _HINT.search(text) is not None
    return any(map(text.lower().__contains__, _ASCII_HINTS))


def redact(text: str) -> str:
    """Return the text with obvious credentials replaced by ``[redacted]``."""
    # Plain searches run first: most of thousands of texts contain no credentials.
    if len(text) < _SHORT and not has_exact_sign(text) and not may_assign(text):
        return text
    # Named values first: a name that follows a key without a blank would be taken for its end.
    text = _replace_named(text, _redacted_behind)
    if not has_exact_sign(text):
        return text
    if any(map(text.__contains__, _PREFIXES)):
        text = _SECRETS.sub("[redacted]", text)
    if "@" in text:
        text = _IN_URL.sub(r"\1[redacted]@", text)
    if "Bearer" in text or "Basic" in text:
        text = _BEARER.sub(r"\1[redacted]", text)
    return text


def mask(text: str) -> str:
    """Return the text with a NUL for each character of an obvious credential, so that positions do not change."""
    text = mask_named(text)
    if not has_exact_sign(text):
        return text
    if any(map(text.__contains__, _PREFIXES)):
        text = _SECRETS.sub(_masked, text)
    if "@" in text:
        text = _IN_URL.sub(_masked_behind, text)
    if "Bearer" in text or "Basic" in text:
        text = _BEARER.sub(_masked_behind, text)
    return text


def mask_named(text: str) -> str:
    """Return what ``mask`` returns for a text without an exact sign."""
    return _replace_named(text, _masked_behind)


def _replace_named(text: str, replacement: Callable[[re.Match[str]], str]) -> str:
    """Return the text with a replacement for each value that a name says to be secret."""
    if not text.isascii():
        folded = text.casefold()
        if any(hint in folded for hint in _HINTS):
            text = _LABELLED.sub(replacement, _ASSIGNED.sub(replacement, text))
        return text
    places = _names_in(text) if "=" in text or ":" in text else ()
    if places and "=" in text:
        before = text
        text = _replace_at(_ASSIGNED, places, replacement, text)
        places = places if text == before else _names_in(text)
    return _replace_at(_LABELLED, places, replacement, text) if places and ":" in text else text


def _names_in(text: str) -> list[int]:
    """Return where a name of a secret may begin in a text of ASCII characters."""
    folded, places = text.lower(), list[int]()
    for name in _ASCII_NAMES:
        at = folded.find(name)
        while at >= 0:
            places.append(at)
            at = folded.find(name, at + len(name))
    return sorted(places)


def _replace_at(
    pattern: re.Pattern[str],
    places: Iterable[int],
    replacement: Callable[[re.Match[str]], str],
    text: str,
) -> str:
    """Return what ``pattern.sub`` returns if no match begins anywhere else. The places are in order."""
    parts, done = list[str](), 0
    for at in places:
        found = pattern.match(text, at) if at >= done else None
        if found is not None:
            parts += [text[done:at], replacement(found)]
            done = found.end()
    return "".join([*parts, text[done:]])


def _redacted_behind(found: re.Match[str]) -> str:
    return f"{found[1]}[redacted]"


def _masked(found: re.Match[str]) -> str:
    return "\0" * len(found[0])


def _masked_behind(found: re.Match[str]) -> str:
    return found[1] + "\0" * (len(found[0]) - len(found[1]))


_LONGEST_CREDENTIAL = 400
"""Characters beyond a cut that are read, so that half a credential is recognised as one."""


def redacted_beginning(text: str, limit: int) -> str:
    """Return the first ``limit`` characters of the redacted text, without redacting all of a long one."""
    return redact(text[: limit + _LONGEST_CREDENTIAL])[:limit]


def redacted_end(text: str, limit: int) -> str:
    """Return the last ``limit`` characters of the redacted text, without redacting all of a long one."""
    return redact(text[-limit - _LONGEST_CREDENTIAL :])[-limit:]


def masked_beginning(text: str, limit: int) -> str:
    """Return the first ``limit`` characters of the masked text, without masking all of a long one."""
    return mask(text[: limit + _LONGEST_CREDENTIAL])[:limit]


def masked_end(text: str, limit: int) -> str:
    """Return the last ``limit`` characters of the masked text, without masking all of a long one."""
    return mask(text[-limit - _LONGEST_CREDENTIAL :])[-limit:]


def shorten(text: str, limit: int) -> str:
    """Cut a person's words to ``limit`` characters: the head (two thirds) and the tail around a marker.

    The marker counts the characters that were cut. A text that was cut before keeps one marker with the
    sum. An ellipsis is used if there is no room for a marker.
    """
    if len(text) <= limit:
        return text
    if limit < 90:
        return squeeze(text, limit)
    earlier = _CUT.search(text)
    head, tail = (text[: earlier.start()], text[earlier.end() :]) if earlier else (text, text)
    known = int(earlier[1]) if earlier else 0
    room = limit - len(f" ⟨… {known + len(text)} characters cut …⟩ ")
    kept_tail = tail[len(tail) - min(len(tail), room // 3) :]
    kept_head = head[: room - len(kept_tail)]
    total = known + (len(head) + len(tail) if earlier else len(text))
    return f"{kept_head} ⟨… {total - len(kept_head) - len(kept_tail)} characters cut …⟩ {kept_tail}"


def squeeze(text: str, limit: int) -> str:
    """Cut a text that is not a quotation to ``limit`` characters: head and tail around an ellipsis."""
    if len(text) <= limit:
        return text
    tail = max(0, limit - 3) // 3
    head = max(0, limit - 3 - tail)
    if tail < 8:
        return beginning(text, limit, trim=True) if limit > 0 else ""
    return ends(text, head, tail, " … ", trim=True)


def excerpt(text: str, limit: int) -> str:
    """Return a clean, redacted line of at most ``limit`` characters from a text of any size."""
    if len(text) > 8 * limit:
        # Cleaning is linear, and a whole megabyte of output is not worth reading for one line.
        text = text[: 4 * limit] + "\n…\n" + text[-3 * limit :]
    return squeeze(redact(clean(text)), limit)


# "I don't see it" reports and does not count; "don't touch it" forbids and counts.
_ORDER = (
    r"(?:^|[.!?,;:(“\"*>–—-]\s{0,3}|\b(?:please|and|but|so|also|just|then|must|should|shall|to|do) )"
    r"(?:don['’]?t|do not|never|avoid|skip)\b(?! (?:see|know|think|have|get|understand|receive|mind)\b)"
)
PROHIBITION = lazy_pattern(
    _ORDER + r"|\b(?:i|we|you) (?:\w+ly |really |just |still )?(?:don['’]?t|do not|never) "
    r"(?:want|like|need|use|allow|touch|push|commit)\b"
    r"|(?:^|[.!?] )no (?:new |more )?[\w-]+ (?:in|on|for|at|without)\b"
    r"|(?:^|[.!?] )not (?!sure|yet|really|now|bad|only|even|too|much|many|that|a|an|the|so|quite|all|every\w*|just)\w+"
    r"(?: \w+){1,6}[.!]"
    r"|\b(?:can|could) (?:we|you) (?:please )?not\b"
    r"|\bleave .{1,40}(?:alone|as is|unchanged|untouched)\b"
    r"|\b(?:must(?: not|n['’]t)|should(?: not|n['’]t)|may not|not allowed|forbid\w*|no more|"
    r"stop (?:using|doing|adding|making)|under no circumstances|hands off|off[- ]limits|"
    r"without (?:ask|touch|chang|break)\w+|(?:no|not) (?:new )?(?:dependenc\w+|need)|not? later than)\b"
    r"|不要|不许|禁止|严禁|不得|千万|[切请]勿|切忌|绝不|不准|不应|不可以|避免|(?<![特分区性级个告类辨差派])别(?![人的墅处名致样称离扭])|不能(?!够)|只能|不允许",
    re.IGNORECASE | re.MULTILINE,
    signs="no |not|don|never|avoid|skip|leave|must|should|forbid|stop |off|without",
)
PREFERENCE = lazy_pattern(
    r"\b(?:prefer\w*|always|must|make sure|ensure|remember|from now on|important|required?|"
    r"i(?:['’]d)? (?:rather|want|need|would like)|have to|has to|needs? to be|"
    r"should be(?! (?:\w+ )?(?:better|fine|ok(?:ay)?|good|back|working|fixed|done|ready|able|there|easy|possible)\b)|"
    r"only (?:ever|if|use|in|do|run|touch|change)|"
    r"uses? \S+(?: \S+)?, not \S+|"
    r"favou?rite|please use|at (?:most|least)|instead(?: of)?|rather than)\b"
    r"|喜欢|偏好|一律|必须|务必|一定要|请用|改用|改成|换成|记住|最好|希望|宁愿|统一用|优先|只用|至少|最多|讨厌|不喜欢",
    re.IGNORECASE,
    signs="prefer|always|must|make sure|ensure|remember|from now on|important|require|rather|want|need|"
    "would like|have to|has to|should be|only |, not|favo|please use|at most|at least|instead",
)
# "The fix is in place", "the fix is simple" and "yes, do that" contain no decision worth keeping.
_FIX = (
    r"the (?:fix|solution|approach) (?:is|was)(?= \S+ \S+)(?! (?:\w+ly )?(?:simple|straightforward|easy|clear|"
    r"trivial|in|"
    r"already|now|also|correct|right|good|fine|done|applied|complete|working|there|here|at|not|pretty|quite|"
    r"very)\b(?!:))"
)
_AGREED = r"yes,? (?:do|please|go(?: with)?|let['’]?s \w+) (?!(?:this|that|it|so|them|all|ahead|on)\b)\S+ \S+"
DECISION = lazy_pattern(
    r"\b(?:decided|decision (?:is|was)|we(?:['’]ll| will) (?:use|go|keep|not|drop|stop|switch|move)|"
    r"let['’]?s (?:use|go with|keep|not|do|move)(?= \S+)|we(?:['’]re| are) (?:going|doing|using|keeping|dropping)|"
    r"go(?:ing)? with|chose|chosen|agreed|opted|picked(?! (?:\w+ )?up\b)|settled on|switch(?:ed|ing)? to|"
    r"the plan is(?! (?:clear|good|fine|ready|done)\b)|"
    r"root cause (?:is|was)|conclusion (?:is|was)|approved|final (?:call|answer|choice)|no longer|"
    r"i(?:['’]ll| will) (?:not|keep|use|avoid)|"
    rf"{_AGREED}|{_FIX})\b"
    r"|决定|确定[用采选]|采用|选[定了用择]|就用|就这么|定[为了]|定下来|敲定|同意|方案[是为]|结论|根本原因|原因是|约定|不再|改[用为]|放弃",
    re.IGNORECASE,
    signs="decided|decision|we'll|we will|let|we're|we are|go with|going with|chose|agreed|opted|picked|"
    "settled on|switch|the plan is|root cause|conclusion|approved|final |no longer|i'll|i will|yes|"
    "the fix|the solution|the approach",
)
ASSISTANT_DECISION = lazy_pattern(
    r"\b(?:(?:i|we)(?:['’]ve| have)? decided|decision (?:is|was)|we(?:['’]ll| will) (?:use|go with|keep)|going with|"
    r"settled on|agreed|root cause (?:is|was)|conclusion (?:is|was)|must not|must never|"
    rf"{_FIX}|"
    r"i(?:['’]ll| will) (?:not|avoid|use)|switch(?:ed|ing) to|not possible|(?<!\()per (?:policy|your)|"
    r"key (?:finding|decision)|turns out|real (?:issue|problem) (?:is|was))\b"
    r"|决定|采用|选定|定为|方案是|结论|根本原因|原因是|约定|改用|改为",
    re.IGNORECASE,
    signs="decided|decision|we'll|we will|going with|settled on|agreed|root cause|conclusion|must n|the fix|"
    "the solution|the approach|i'll|i will|switch|not possible|per |key finding|turns out|real ",
)
REASON = lazy_pattern(
    r"\b(?:because|instead of|rather than|so that|the reason|that['’]s why|since (?:the|this|we|it))\b"
    r"|因为|由于|所以|而不是",
    re.IGNORECASE,
    signs="because|instead of|rather than|so that|the reason|why|since ",
)
FACT = lazy_pattern(
    r"\bmy (?:[\w-]+ ){0,2}(?:name|wife|husband|partner|son|daughter|kids?|child\w*|dogs?|cats?|mom|mother|dad|"
    r"father|parents|friends?|sister|brother|boss|job|birthday|email|phone|address|account|user\w*|id|github|"
    r"team|company|house|home|hobb\w+|favou?rite|goal|dream|plan)\b"
    r"|\bi(?:['’]m| am| was) (?:an?|from|in|at|\d|going|planning|working|allergic|learning|studying|married|"
    r"vegan|vegetarian|thinking|taking|trying)\b"
    r"|\bi(?:['’]ve)? (?:just |also |recently |really |finally |used to )?(?:live|work|moved|bought|went|visited|"
    r"started|joined|study|studied|own|love|enjoy|hate|play|plan|hope|grew|signed|took|made|got|met|lost|won|"
    r"have|had|like|painted|read|ran|been|adopted|found|want)\b"
    r"|\b(?:call me|yesterday|tomorrow|next (?:week|month|year|weekend|summer)|"
    r"last (?:week|month|year|night|weekend|summer)|birthday|anniversary|years? ago|since i)\b"
    r"|我叫|我是|我(?:的)?(?:名字|生日|女儿|儿子|妻子|丈夫|老婆|老公|朋友|男友|女友|男朋友|女朋友|妈妈|爸爸|"
    r"父母|同事|工作|公司|专业|家|爱好|女孩|梦想|目标)|我(?:们)?(?:在|住|喜欢|爱|讨厌|想|打算|计划|准备|最近|今天|昨天|"
    r"刚|有|买|学|去|正在|一直|经常|平时)|明天|周末|下周|下个月|生日|过敏",
    re.IGNORECASE,
)
IDENTITY = lazy_pattern(
    r"\bmy (?:[\w'-]+ ){1,4}(?:is|are|was)\b|\bcall me\b|\bi(?:['’]m| am) (?:allergic|called|based|from)\b"
    r"|我叫|我的[^，。,]{1,10}是|我是|我住|过敏",
    re.IGNORECASE,
    signs="my |call me|allergic|called|based|from",
)
CHAT_BINDING = lazy_pattern(
    r"\b(?:i(?:['’]d)? prefer|my preference|please (?:don['’]?t|never|always|stop|remember)|from now on|call me|"
    r"(?:do not|don['’]?t) (?:call|tell|mention|share|ask|send|use|forget that)|remember (?:that|this|my)|"
    r"(?:i|we)(?:['’]ve| have)? (?:decided|chosen|chose|agreed)|must not|not allowed|allergic)\b"
    r"|决定|记住|以后(?:都|请|别|不)|(?:请|千万)(?:不要|别|用|叫)|不要(?:再|告诉|提|用|叫)|过敏|约定|改成|改用",
    re.IGNORECASE,
)
"""Binding words in a chat, where "must", "always" and "important" are common in small talk."""
ASKING = lazy_pattern(
    r"[?？]|\b(?:can|could|would) you\b|\bplease\b|\b(?:help|tell|show|give|write|make|recommend|explain) (?:me|us)\b"
    r"|请|帮我|告诉我|推荐|能不能|可以.{0,12}吗|怎么|如何",
    re.IGNORECASE,
    signs="?| you|please| me| us",
)
ADVICE = lazy_pattern(
    r"\b(?:i(?:['’]d)? (?:recommend|suggest)|recommend\w*|you (?:could|might|should) try|how about)\b"
    r"|推荐|建议|可以试试|不妨|《[^》]{1,40}》",
    re.IGNORECASE,
)
LASTING = lazy_pattern(
    r"\b(?:prefer\w*|always|make sure|ensure|remember|from now on|have to|has to|i(?:['’]d)? rather|"
    r"favou?rite)\b|喜欢|偏好|一律|必须|务必|一定要|记住|宁愿|统一|优先|讨厌",
    re.IGNORECASE,
    signs="prefer|always|make sure|ensure|remember|from now on|have to|has to|rather|favo",
)
"""Words of ``PREFERENCE`` that stay valid beyond the moment."""
DEFERRED = lazy_pattern(
    r"\b(?:later|afterwards?|after (?:that|this)|(?:when|once|as soon as) (?:you|we|this|that|it|the)\b|"
    r"before (?:you|we|the|this|that)\b|(?:don['’]?t|do not) forget|remember to|at the end|eventually|"
    r"next time|at some point|still (?:open|need\w*|to|missing|have)|to[- ]?do|follow[- ]?up|"
    r"(?:your|the|my) list|not (?:done|finished) yet|waiting for|one more thing|by the way|also)\b"
    r"|以后|之后|稍后|回头|待会|别忘|记得|最后|完成后|做完|有空|顺便|还有|还没|还需要|还要|上线前|之前|等.{1,12}(?:再|后)|清单|待办",
    re.IGNORECASE,
    signs="later|after|when |once |as soon as|before|forget|remember to|at the end|eventually|next time|"
    "at some point|still |todo|to-do|to do|follow|list|yet|waiting for|one more thing|by the way|also",
)
"""Words that defer a request to a later time. Such a request stays open for long."""
ORDER = lazy_pattern(
    r"(?:please |now |then |also |and |so )*(?:add|build|bump|change|check|clean|close|commit|convert|copy|create|"
    r"debug|delete|deploy|do|document|draft|drop|explain|extract|find|fix|format|generate|get|give|go|implement|"
    r"improve|install|investigate|keep|let|list|look|make|measure|merge|migrate|move|open|plot|prepare|print|put|"
    r"read|refactor|remove|rename|replace|report|review|rewrite|rotate|run|search|send|set|show|split|start|stop|"
    r"summari[sz]e|take|tell|test|translate|try|turn|update|upgrade|use|verify|wire|write)\b"
    r"|(?:把|给|将|为|请|再|先|帮)",
    re.IGNORECASE,
)
"""Beginning of a sentence that gives an order."""
NEXT = lazy_pattern(
    r"\b(?:next(?:,|:)? (?:i|we|step\w*|up|let|is)|i['’]ll (?:now|next|then)|now (?:i|let)|remaining|"
    r"still (?:need|have|"
    r"to)|todos?|not yet|left to do|once (?:that|this|you)|waiting for|follow[- ]?up)\b"
    r"|接下来|下一步|待办|还需要|尚未|未完成|剩下|稍后|之后(?:我|会)",
    re.IGNORECASE,
)
ACKNOWLEDGEMENT = lazy_pattern(
    r"(?:(?:yes|yep|yeah|ok(?:ay)?|sure|thanks?|thank you|great|cool|nice|good|wow|continue|go on|go ahead|"
    r"proceed|please|do it|hi|hello|hey|yo|bye|perfect|right|"
    r"好的?|可以|继续|谢谢|嗯|是的?|行|对|没问题|你好)(?![a-z])[\s.!,。！，~]*){1,6}",
    re.IGNORECASE,
)

_MOST_JUDGED = 4_096
"""Number of texts whose judgement is remembered. Lines of a summary are judged at every compaction."""


def forget_judged() -> None:
    """Forget the texts that were judged, because some of them were erased."""
    weight.cache_clear()
    is_binding.cache_clear()


@lru_cache(maxsize=_MOST_JUDGED)
def weight(text: str) -> float:
    """Return the weight of a decision line from 0 to 3: prohibitions, then preferences, then the rest."""
    score = 0.0
    if PROHIBITION.search(text):
        score += 1.5
    if PREFERENCE.search(text):
        score += 1.0
    if DECISION.search(text):
        score += 0.75
    return min(score, 3.0) * (0.4 if text.rstrip().endswith(("?", "？")) else 1.0)


@lru_cache(maxsize=_MOST_JUDGED)
def is_binding(text: str) -> bool:
    """Return whether a text contains a prohibition, a preference or a decision."""
    return bool(PROHIBITION.search(text) or PREFERENCE.search(text) or DECISION.search(text))


def is_lasting(text: str) -> bool:
    """Return whether a text contains a prohibition or a preference, which stay valid."""
    return bool(PROHIBITION.search(text) or PREFERENCE.search(text))


def has_chat_facts(text: str) -> bool:
    """Return whether a user's text in a chat contains facts or preferences of a person."""
    return bool(FACT.search(text) or PREFERENCE.search(text))


def has_chat_advice(text: str) -> bool:
    """Return whether an assistant's text in a chat contains facts about itself or advice."""
    return bool(FACT.search(text) or ADVICE.search(text))

"""Find terms that messages use more often than everyday language does."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise
from math import log2
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize

from refold.application.recall.tokens import tokens_of
from refold.domain.facts.cues import redact, redacted_beginning
from refold.domain.facts.fact import Fact, Kind
from refold.domain.facts.speech import user_words, without_code
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import Message, said

if TYPE_CHECKING:
    from refold.application.ports.summariser import SourceMessage

_ENGLISH = """
a able about above absolutely accept access account across act action active actual actually add addition additional
advice afraid after afternoon again age ago agree ahead ain all allow almost alone along already also alternative
although always am amazing among amount an analysis and angry another answer any anybody anymore anyone anything
anyway anywhere apart apparently appear applicable apply appreciate approach appropriate approve are area argue
argument arm around arrange arrive article as aside ask aspect assist assistance assistant assume at attach attempt
attention available average avoid aware away awesome awful awhile back bad based basic basically be beautiful became
because become been before begin beginning behave behavior behind being believe below bench benefit best better
between beyond big bit block body book both bottom bought box break bring broken brought build built bunch busy but
button buy by call calm came can cannot capable card care careful carefully carry case catch cause certain certainly
chance change character chat check child choice choose chose clean clear clearly click close code cold collect
column come comfort comfortable command comment common community company compare complete completely concern
condition confirm confused connect consider consist consistent contact contain content context continue control
conversation convert cool copy correct correctly cost could count couple course cover crazy create created creating
cup current currently custom cut daily data date day deal dear decide decision deep default define definitely delete
demand depend describe description design despite detail detailed determine develop did die differ difference
different difficult direct direction directly directory discover discuss display distance do document does doing
done door double doubt down draw dream drive drop due dump during each earlier early easier easily easy eat echo
edge edit effect effective effectively effort either else email emotion empty encourage end energy enjoy enough
ensure enter entire entry environment error especially essential etc evaluate even evening event eventually ever
every everybody everyone everything everywhere evidence exact exactly examine example excellent except exciting
excited execute exist existing expand expect expected expensive experience explain explanation explore express extra
extremely eye face fact fail failed failure fair fall false familiar family fantastic far fast favorite favourite
fear feature feel feedback feeling fell felt few field figure file fill final finally find fine finger finish first
fit fix flow focus folder follow following food for force forget form format former forward found free frequently
fresh friend friendly from front full fully fun function further future gain game gave general generally generate
get getting gift give given glad go goal god goes going gone gonna good got gotten great green group grow growth
guess guide guy had half hand handle hang happen happened happy hard hardly has hate have having he head hear heard
heart help helped helpful hello her here hers herself hey hi high highly him himself his history hit hold home
honest honestly hope hopefully hour house how however huge human i idea identify if imagine immediately impact
implement import importance important impossible impress improve in include including increase incredible indeed
indicate individual info inform information initial inner input inside inspire inspiring install instance instead
instruction interest interested interesting into introduce invalid involve is isn issue it item its itself job join
joy journey just keep kept key kid kind kinda know knowledge known lack large last late lately later laugh lead
learn learned learning least leave left length less let level lie life light like likely limit line link list listen
little live living ll load local located location log long longer look looked looking looks lose lost lot lots love
loved lovely low luck lucky made main mainly maintain major make makes making man manage manner many mark match
matter may maybe me mean meaning means meant meanwhile measure meet meeting member memory men mention mentioned
merely mess message met method middle might mind mine minimal minute miss missing mistake modify moment money month
more moreover morning most mostly move moved much multiple must my myself name natural naturally near nearby nearly
necessarily necessary need needed negative neither never nevertheless new news next nice night no nobody none nope
nor normal normally not note nothing notice now number object obvious obviously of off offer often oh ok okay old on
once one ones only onto open operation opinion opportunity option or order original other others otherwise ought our
ours ourselves out output outside over overall overview own page pain pair part particular particularly party pass
passed past path pattern pay peace people perfect perfectly perform perhaps period person personal perspective phone
phrase physical pick picture piece place plain plan plans play please pleased pleasure plenty plus point popular
position positive possible possibly post potential potentially power practice prefer prepare present pretty prevent
previous previously primary print prior probably problem proceed process produce product program progress project
proper properly protect proud prove provide provided public pull purpose push put quality question quick quickly
quiet quite raise ran random range rather re reach react read ready real reality realize really reason reasonable
receive recent recently recommend recommendation record reduce refer reference reflect regard regarding regular
relate relationship relax relevant reliable remain remember remind remove repeat replace reply report represent
request require required requirement reset resolve resource respect respond response responsible rest result results
return review rid right rise role room root row rule run running runs safe said same save saw say saying says scene
school script search season second section see seem seemed seems seen select self send sense sent separate series
serious seriously serve set setting setup several shall shape share shared she short should shouldn show showed
shown shows side sign significant similar simple simply since single sir sit situation size skill sleep slightly
slow slowly small smart smile so social solution solve some somebody someday somehow someone something sometimes
somewhat somewhere soon sorry sort sound sounds source space speak special specific specifically spend spent spot
stage stand standard star start started starting state statement stay step steps still stop store story straight
strange stress strong structure struggle stuff style subject submit success successful successfully such suddenly
suggest suggestion suit summary super support suppose sure surprise surprised system take taken takes taking talk
talking target task teach team tell ten tend term test tested testing text than thank thanks that the their theirs
them themselves then there therefore these they thing things think thinking third this those though thought thoughts
thousand three through throughout thus time times tip tiny tired to today together told tomorrow tonight too took
tool top topic total totally touch toward towards track transform treat tried trouble true truly trust truth try
trying turn turned twice two type typical typically um unable under understand understanding understood
unfortunately unit unknown unless until up update updated upon us usage use used useful user uses using usual
usually valid valuable value variable variety various ve verify version very via view visit vs wait walk wanna want
wanted wants warm warning was wasn waste watch way ways we wear week weekend welcome well went were weren what
whatever when whenever where whereas wherever whether which while who whoever whole whom whose why wide wife will
win wise wish with within without woman women won wonder wonderful word words work worked working works world worry
worse worst worth would wouldn wow write writing written wrong wrote yeah year years yep yes yesterday yet you young
your yours yourself accomplish achieve acknowledge adore amaze appreciation aspire attitude blast bless bond boost
bravo capture celebrate challenge cherish chill commend companion companionship compassion confidence congrats
congratulations connection courage curious cute definite delight dedicate determination difficulty empathy
encouragement engage enjoyable enjoyment epic excitement fabulous fascinate fulfill fulfilling gorgeous grateful
gratitude heartwarming haha harmony heck honor hug inspiration intense joke joyful kindness laughter legit lol
magical meaningful memorable motivate motivation motivated nervous neat nostalgic optimistic overcome overwhelm
passion passionate peaceful perseverance pleasant powerful precious pumped pursue refresh relaxation relieve
respectful reward rewarding satisfy satisfaction sentiment sincere stoked strength strive stunning supportive sweet
tackle talent tough treasure tricky unwind unforgettable vibe warmth whoa wild willing wisdom yay yup ability
accompany capability communicate communication concentrate consult enhance expertise expression judgment necessity
pace pressure stressful sufficient actor additionally algorithm basis caller detection duplicate essentially
fallback handler helper hook implementation initialize interactive invoke logic manual mode optional overhead
package prefix prompt refactor skip strategy trigger util utils variant assertion array boolean bug bytes byte char
class compile compiler console constructor debug dict exception executable exit filename flag float grep indent init
int integer iteration json lambda lib library loop matches module msg null offset param parameter params parse patch
pip pwd py python regex repo repository returned sed stderr stdin stdout str string stub substring sudo syntax tab
token traceback tuple undefined usr utf whitespace wrapper yaml monday tuesday wednesday thursday friday saturday
sunday january february march april june july august september october november december zero four five six seven
eight nine hundred million dozen
"""
CHINESE_EDGES = frozenset(
    "的了是我你您他她它们吗呢吧啊呀嘛哦嗯哈和跟与及或在有过这那就也都很还又把被给对向让从到着地得个些之其么什哪谁怎几"
    "不没会可要想说去来做看听觉请帮更最太再才只但而因所如果虽然则若且并以于由比每各某该此将已经正曾刚"
    "时候天次种样一二两三四五六七八九十百千万零多少叫喜欢爱应需常十吃喝买卖走跑坐站拿放找"
)
"""Characters that rarely begin or end a noun: function words, numbers, everyday verbs."""
CHINESE_PARTICLES = frozenset("的了是我你您他她它吗呢吧啊呀嘛和跟与及或在这那就也都很还又把被给着")
"""Characters that occur between nouns, never in one."""
_CHINESE_TERM = """
能够 作为 家里 我们 你们 他们 自己 什么 怎么 可以 可能 应该 需要 觉得 知道 希望 建议 问题 时候 时间 方面
方式 方法 情况 事情 东西 今天 明天 昨天 最近 现在 以后 以前 之前 之后 一些 一下 一起 一直
一个 这个 那个 这样 那样 这些 那些 因为 所以 如果 但是 不过 然后 或者 还是 还有 非常 特别
比较 真的 感觉 感到 喜欢 谢谢 你好 帮助 推荐 分享 告诉 介绍 了解 理解 尝试 注意 选择 开始
继续 保持 提高 学习 工作 生活 朋友 大家 别人 内容 部分 重要 不同 适合 通过 根据 关于 对于
以及 并且 意思 试试 确实 意义 任何 考虑 支持 交流 愉快 互相 相互 启发 任务 确定 满意 精彩
有趣 有意 陪伴 鼓励 积极 决定 特色 丰富 不错 合理 适当 适量 影响 避免 增加 减少 具体 各种
许多 很多 有些 随时 继续聊 保证 达到 产生 出现 发现 认识 表达 表示 充满 充分 完成 例如 比如
当然 其实 记得 相信 享受 放松 心情 开心 高兴 快乐 难过 压力 能力 机会 想法 建立 提供 使用
进行 认为
"""
_CHINESE_WORDS = frozenset(_CHINESE_TERM.split())


@cache
def _stems() -> frozenset[str]:
    return frozenset(tokens_of(_ENGLISH))


def frames_everyday(piece: str) -> bool:
    """Return whether a piece of Chinese begins or ends with an everyday word."""
    return piece[:2] in _CHINESE_WORDS or piece[-2:] in _CHINESE_WORDS


@lru_cache(maxsize=20_000)
def is_everyday(word: str) -> bool:
    """Return whether a word, in any form, says nothing about the subject."""
    return _stems().issuperset(tokens_of(word))


_SCANNED = 4_000  # Characters of a message; the rest is usually pasted.
_FILE = lazy_pattern(
    r"(?<![\w.-])[A-Za-z_][\w-]{0,60}(?:\.[\w-]{1,30}){0,2}\.(?:bash|c|cc|cfg|conf|cpp|cs|css|csv|go|h|hpp|html|"
    r"ini|ipynb|java|js|json|jsonl|jsx|kt|lock|lua|md|mjs|pdf|php|proto|py|pyi|rb|rs|rst|scss|sh|sql|svelte|swift|"
    r"toml|ts|tsx|txt|vue|xml|yaml|yml)(?![\w-]|\.\w)"
)
_WORD = lazy_pattern(r"[A-Za-z][A-Za-z0-9'’+#-]*")
_GAP = lazy_pattern(r"[^\S\n]{1,2}")
_BEGINS = lazy_pattern(r"(?:\A|[\n.!?:;\"“*>-])\s*\Z")
_HAN = lazy_pattern(r"[\u3400-\u9fff]+")
_TITLE = lazy_pattern(r"《([^》\n]{1,20})》")
_SHORTEST, _MOST_CAPITALISED, _LONGEST_HAN = 3, 3, 4
_PLAIN = 0.4
"""Weight of a single word that is no name."""


_TELLING: frozenset[Kind] = frozenset({"path", "name", "address"})


class Candidate(NamedTuple):
    """A text that could name a topic."""

    text: str
    weight: float
    """Likelihood that a text of this kind is a topic."""
    is_file: bool = False
    neighbours: tuple[str, str] | None = None
    """For Chinese text, the characters before and after it; empty strings at the edges."""


def candidates(message: Message, facts: Sequence[Fact]) -> list[Candidate]:
    """Return every text in a message that could name its subject, some repeated; ``facts`` are telling ones."""
    found: list[Candidate] = []
    for fact in facts:
        files = _FILE.findall(fact.text) if "." in fact.text else ()
        found += [Candidate(file, 2.0, is_file=True) for file in files]
        if fact.kind == "name" and fact.by != "call" and not files:
            found.append(Candidate(fact.text, 1.5))
    text = _words(message)
    if "《" in text:
        found += [Candidate(one[1], 3.0, neighbours=("", "")) for one in _TITLE.finditer(text)]
    for start, words in _runs(text):
        if not all(map(is_everyday, words)):
            found += _phrases(text, start, words)
    for one in () if text.isascii() else _HAN.finditer(text):
        found += _chinese(one[0])
    return found


def _words(message: Message) -> str:
    if not (given := said(message)):
        return ""
    # A piece of a credential does not look like one.
    words = redacted_beginning(given, 2 * _SCANNED).replace("[redacted]", "\n")
    return without_code(user_words(words) if message.role == "user" else words)[:_SCANNED]


def _runs(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield words that are separated by spaces only, with where they begin."""
    words: list[str] = []
    begin = last = 0
    for found in _WORD.finditer(text):
        start, stop = found.span()
        if words and text[last:start] != " " and not _GAP.fullmatch(text, last, start):
            yield begin, words
            words = []
        if not words:
            begin = start
        words.append(found[0])
        last = stop
    if words:
        yield begin, words


def _phrases(text: str, start: int, words: list[str]) -> Iterator[Candidate]:
    names: list[str] = []
    telling = ["" if is_everyday(word) else word for word in words]
    begins = bool(_BEGINS.search(text[max(0, start - 8) : start]))
    for word in telling:
        if word and word[0].isupper():
            names.append(word)
            continue
        if names:
            yield from _name(names, begins)
            names = []
        begins = False
    yield from _name(names, begins)
    plain = [w if len(w) >= _SHORTEST and "'" not in w and "’" not in w else "" for w in telling]
    yield from [Candidate(word, _PLAIN) for word in plain if len(word) > _SHORTEST]
    for first, second in pairwise(plain):
        # "tree fetched" says what happened, and names nothing.
        if first and second and not second.endswith(("ed", "ing")):
            yield Candidate(f"{first} {second}", 1.6)


def _name(words: list[str], begins: bool) -> Sequence[Candidate]:
    # A single word at the beginning of a sentence is always capitalised.
    if not begins < len(words) <= _MOST_CAPITALISED:
        return ()
    return (Candidate(" ".join(words), 1.5 if len(words) == 1 else 2.2),)


def _chinese(run: str) -> Iterator[Candidate]:
    """Yield pieces of two to four characters that can begin and end a noun."""
    for start in range(len(run)):
        if run[start] in CHINESE_EDGES:
            continue
        for stop in range(start + 2, min(len(run), start + _LONGEST_HAN) + 1):
            piece = run[start:stop]
            if piece[-1] in CHINESE_PARTICLES:
                break
            if piece[-1] not in CHINESE_EDGES and not frames_everyday(piece):
                neighbours = (run[start - 1 : start], run[stop : stop + 1])
                yield Candidate(piece, 0.8 + 0.2 * len(piece), neighbours=neighbours)


MOST_WORDS = 4
LONGEST = 40
"""Largest number of characters of a name."""
LONGEST_CHINESE = 12
"""Largest number of characters of a name in a script without spaces."""

_LONGEST_GIVEN = 200
# Characters that could end the list or the line or look like markup, and quotation marks.
_APART = lazy_pattern(
    r"""[\s,;:"“”„'‘’`´<>()\[\]{}|*#~=，、；：。！？!?…「」『』【】《》（）·•\\]+"""
)
_CHINESE = lazy_pattern(r"[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
_EDGE = "-–—_./+&@^%$"
_JOINT = lazy_pattern(r"[^A-Za-z0-9]+")
_HEX = lazy_pattern(r"(?:0x)?(?=[a-f]*[0-9])[0-9a-f]{7,}", re.IGNORECASE)
_MIXED = lazy_pattern(r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{12,}|[0-9]{5,}")
_PIECE = lazy_pattern(r"[0-9]+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_RANDOM = 12
"""Number of letters from which a word with many case changes is random."""


def topic_name(text: str) -> str | None:
    """Return the name in a form that can be shown, or None.

    A name has 1 to 4 words on one line and at most 40 characters, or 12 in Chinese. It cannot end a list,
    open a bracket, hide text or look like a credential.
    """
    return None if len(text) > _LONGEST_GIVEN else _shown_name(text)


@lru_cache(maxsize=2_000)  # The topics of a conversation come again with every compaction.
def _shown_name(text: str) -> str | None:
    if not text.isprintable() or redact(text) != text:
        return None
    words = [word.strip(_EDGE) for word in _APART.split(normalize("NFC", text))]
    words = [word for word in words if word]
    name = " ".join(words)
    if not 2 <= len(name) <= LONGEST or len(words) > MOST_WORDS:
        return None
    if len(_CHINESE.findall(name)) > LONGEST_CHINESE or not any(c.isalpha() for c in name):
        return None
    return None if any(map(_is_secret, words)) or redact(name) != name else name


def distinct_names(names: Iterable[str]) -> list[str]:
    """Return the names that can be shown, without repetitions regardless of case."""
    found: dict[str, str] = {}
    for text in names:
        name = topic_name(text)
        if name is not None:
            found.setdefault(name.casefold(), name)
    return list(found.values())


def _is_secret(word: str) -> bool:
    """Return whether a word could be a key, a token or a digest."""
    parts = [part for part in _JOINT.split(word) if part]
    if any(_HEX.fullmatch(part) or _MIXED.fullmatch(part) for part in parts):
        return True
    longest = max(parts, key=len, default="")
    return len(longest) >= _RANDOM and len(longest) < 3 * len(_PIECE.findall(longest))


_LEAST = 2
"""Number of messages that must mention a topic, unless there are only a few messages."""
_FEW = 6
_OVERLAP = 0.6
"""Share of messages from which a longer name replaces a shorter one that it contains."""
_FILES = 0.5
"""Share of topics that may be files, because a session touches many."""

_Key = tuple[str, ...]


@dataclass(slots=True)
class _Term:
    """A candidate in all its forms."""

    weight: float = 0.0
    messages: set[int] = field(default_factory=set[int])
    forms: dict[str, int] = field(default_factory=dict[str, int])
    """Number of uses of each form."""
    is_file: bool = False
    before: set[str] = field(default_factory=set[str])
    after: set[str] = field(default_factory=set[str])
    """For a Chinese candidate, the characters around it."""

    def take(self, one: Candidate, position: int) -> None:
        if one.weight > self.weight:
            self.weight = one.weight
        self.messages.add(position)
        self.forms[one.text] = self.forms.get(one.text, 0) + 1
        self.is_file = one.is_file
        if one.neighbours is not None:
            self.before.add(one.neighbours[0])
            self.after.add(one.neighbours[1])

    def score(self, of: int) -> float:
        """Return the score, which counts each message once.

        A name that occurs in every message, such as that of a speaker, scores 0.
        """
        share = len(self.messages) / of
        weight = min(self.weight, _PLAIN) if self._is_plain else self.weight
        return weight * log2(1 + len(self.messages)) * (1 - share if of > _FEW else 1)

    @property
    def _is_plain(self) -> bool:
        """True for a single word that also occurs in small letters, so that its capital is no name's."""
        return any(form.isalpha() and form.isascii() and form.islower() for form in self.forms)

    @property
    def is_whole(self) -> bool:
        """False for a fragment of a Chinese word, which always has the same neighbour."""
        return not self.after or (_varies(self.before) and _varies(self.after))


class FrequentTerms:
    """Extracts topics without a model: files, identifiers, names and phrases by number of messages.

    About half of the results would satisfy a person; more in Chinese.
    """

    def topics(
        self, messages: Sequence[SourceMessage], facts: Sequence[Fact], most: int
    ) -> Sequence[str]:
        """Return up to ``most`` topics of these messages, which have these facts, best first."""
        least = _LEAST if len(messages) > _FEW else 1
        common = [
            (key, term)
            for key, term in _terms(messages, facts).items()
            if len(term.messages) >= least and (term.is_whole or least == 1)
        ]
        common.sort(key=lambda one: (-one[1].score(len(messages)), one[0]))
        return _choose(common[: 20 * most], most)


def _choose(ranked: Sequence[tuple[_Key, _Term]], most: int) -> list[str]:
    chosen: list[tuple[frozenset[str], _Term, str]] = []
    for key, term in ranked:
        form, _ = max(term.forms.items(), key=itemgetter(1))
        name, own = topic_name(form), frozenset(key)
        if name is not None and not any(_is_part(own, term, k, t) for k, t, _ in chosen):
            chosen = [one for one in chosen if not _is_part(*one[:2], own, term)]
            chosen.append((own, term, name))
    files = [name for _, term, name in chosen if term.is_file][int(most * _FILES) :]
    names = [name for _, _, name in chosen if name not in files]
    return [*names, *files][:most]


def _terms(messages: Sequence[SourceMessage], facts: Sequence[Fact]) -> dict[_Key, _Term]:
    terms, keys = defaultdict[_Key, _Term](_Term), dict[str, _Key]()
    stated: defaultdict[int, list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.by != "result" and fact.kind in _TELLING:
            stated[fact.position].append(fact)
    for source in messages:
        for one in candidates(source.message, stated.get(source.position, ())):
            key = keys.get(one.text) if one.neighbours is None else (one.text,)
            if key is None:
                key = keys[one.text] = tuple(tokens_of(one.text))
            if key:
                terms[key].take(one, source.position)
    return terms


def _varies(characters: set[str]) -> bool:
    return len(characters) > 1 or "" in characters


def _is_part(key: frozenset[str], term: _Term, other: frozenset[str], longer: _Term) -> bool:
    """Return whether the other name contains this one and occurs in most of its messages."""
    if term.after and longer.after:  # Each is one piece of Chinese.
        inside = key != other and min(key) in min(other)
    else:
        inside = key < other and not term.after and not longer.after
    return inside and len(longer.messages) >= _OVERLAP * len(term.messages)

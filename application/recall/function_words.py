"""Words of questions that weigh nothing in a search: function words and filler, in three languages."""

import re
from functools import cache

from .tokens import tokens_of

# Function words, and words that frame questions to a memory. "may" is missing because it is a
# month.
_ENGLISH = """
a about above after again against ago all also am an and any are as at be because been before being below
between both but by can could did do does doing don down during each ever few for from further had has have
having he her here hers herself him himself his how i if in into is it its itself just ll me might mine more
most must my myself no nor not now of off on once only or other our ours ourselves out over own please re same
shall she should so some such than that the their theirs them themselves then there these they this those
through to too under until up us ve very was we were what when where whether which while who whom whose why
will with would you your yours yourself yourselves
doesn didn isn aren wasn weren hasn haven hadn wouldn couldn shouldn won
know mention mentioned recall remember remind said say tell told
"""
# Some of these mean something in English, so they weigh nothing only in German questions.
_GERMAN = """
aber alle als also am an auch auf aus bei bin bis bist da damals damit dann das dass dein deine dem den denn der
des dich die dir doch du durch ein eine einem einen einer eines er es für gegen gibt hab habe haben hat hatte
hatten hast ich ihm ihn ihr ihre ihren im in ins ist ja kann kannst mal man mein meine meinem meinen meiner mich
mir mit nach nicht noch nur ob oder ohne schon sein seine seinem seinen sich sie sind so über um und uns unser
unsere unter vom von vor war waren warum was weil welche welchem welchen welcher welches wem wen wenn wer werden
wessen weshalb wie wieso wird wir wo woher wohin womit wurde wurden zu zum zur
erinnerst erwähnt erzählt gesagt
"""
_GERMAN_SIGNS = re.compile(
    r"\b(?:der|das|und|ist|sind|wie|wann|wer|wo|wohin|welche[mnrs]?|warum|ich|nicht|mein|meine|dem|den|ein|eine"
    r"|einen|hat|haben|von|für|mit|wurde)\b",
    re.IGNORECASE,
)
_CHINESE = frozenset(
    "的了是曾我你您他她它们咱吗呢吧啊呀嘛哦和跟与及或在有过这那就也都很还又把被给对向让从到着地得个些之其么什哪谁怎几"
    "另外来去上下里中时说想要会能可以为于用做没不最再更只才并而但因所每该将已正请问叫吃看听点次位件种部样一"
)
"""Characters that weigh nothing by themselves."""
_CHINESE_PARTICLES = frozenset(
    "的了是曾我你您他她它们吗呢吧啊呀嘛和跟与及或在有过这那就也都很还又把被给对向让从到着地得个些之其么什哪谁怎几"
)
"""Characters that weigh nothing as a pair."""
_CHINESE_FILLER = re.compile(
    "是?什么样|什么时候|为什么|是什么|有什么|什么|怎么样|怎么|怎样|如何|哪些|哪个|哪里|哪儿|哪位|哪家|为何|多少|几个|几次"
    "|还记得|记不记得|记得|曾经|之前|以前|之后|以后|上次|请问|想问|告诉|提到|提过|说过|聊过|聊到|关于|对于|另外|还有|以及|并且|而且"
    "|此外|同时|顺便|我们|你们|他们|她们|它们|咱们|大家|自己|这个|那个|这些|那些|这次|那次|这天|那天|这里|那里|有没有|是不是"
    "|是否|能不能|可不可以|可以|的时候|时候|到底|究竟|具体|分别"
    "|(?<!第)一[个些下部种次位件本档家条张直]|名字是|叫做|是(?=[什多哪谁几怎])|[吗呢吧啊呀嘛哦么我你您她它们咱]|(?<!目)的(?!士)|了(?!解)|(?<!其)他"
)
"""Words that weigh nothing, and neither do the pairs of characters across their ends."""


def content_tokens(text: str) -> list[str]:
    """Return the tokens of a question without those that weigh nothing, with repetitions."""
    stopped = stop_words(german=is_german(text))
    tokens = tokens_of(_CHINESE_FILLER.sub(" ", text))
    return [token for token in tokens if token not in stopped and not _is_particle(token)]


def is_german(text: str) -> bool:
    """Return whether a text has two different German function words, so that it is not English."""
    return len({word.lower() for word in _GERMAN_SIGNS.findall(text)}) > 1


@cache
def stop_words(*, german: bool = False) -> frozenset[str]:
    """Return the tokens that weigh nothing by themselves."""
    return frozenset(tokens_of(_GERMAN if german else _ENGLISH)) | _CHINESE


def _is_particle(token: str) -> bool:
    """Return whether the token is two Chinese function characters."""
    return len(token) == 2 and token[0] in _CHINESE_PARTICLES and token[1] in _CHINESE_PARTICLES

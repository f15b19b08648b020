"""What somebody asks later about a planted fact, without the words that are to be found."""

from collections.abc import Mapping

QUESTIONS = {
    ("pin", "en"): "What was agreed about {about}, word for word?",
    ("prohibition", "en"): "What am I not allowed to do with {about}?",
    ("request", "en"): "What did the user still ask for about {about}?",
    ("preference", "en"): "How does the user like it when it comes to {about}?",
    ("decision", "en"): "What did we decide about {about}, or find out?",
    ("path", "en"): "Which file was it that has to do with {about}?",
    ("command", "en"): "Which command was it for {about}?",
    ("number", "en"): "How much was it for {about}?",
    ("pin", "zh"): "关于{about}，原话是怎么约定的？",
    ("prohibition", "zh"): "{about}有什么是不能做的？",
    ("request", "zh"): "关于{about}，用户还要求了什么？",
    ("preference", "zh"): "关于{about}，用户喜欢怎么做？",
    ("decision", "zh"): "关于{about}，我们决定了什么，或者查到了什么？",
    ("path", "zh"): "和{about}有关的是哪个文件？",
    ("command", "zh"): "{about}用的是哪条命令？",
    ("number", "zh"): "{about}是多少？",
}
"""They name what the fact is about, and nothing else of it."""

_KEYS = ("name", "db", "branch", "ticket", "path")
"""What a fact is about: the first of these that it mentions."""


def question_about(type_: str, language: str, phrasing: str, values: Mapping[str, str]) -> str:
    """The question for a fact that is stated by this phrasing; a file or a command goes by whose it is."""
    key = next((key for key in _KEYS if f"{{{key}}}" in phrasing), "name")
    about = values["name"] if type_ in ("path", "command", "number") else values[key]
    return QUESTIONS[type_, language].format(about=about)

"""Texts as a model can take them."""


def cut(text: str, longest: int) -> str:
    """The beginning of a text, at most so many characters; what no encoding has becomes a question mark."""
    return text[:longest].encode("utf-8", "replace").decode("utf-8")

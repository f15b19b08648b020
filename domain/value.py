"""The base of every value in the domain: frozen, compared by value, closed to unknown fields."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict

# The slots of every model, written past the guard that keeps values frozen.
_set_fields = BaseModel.__dict__["__dict__"].__set__
_set_given = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__
_NOT_RECORDED: set[str] = set()
"""Which fields were given explicitly matters to nobody here; one empty set serves all values."""


class Value(BaseModel, frozen=True):
    """An immutable value. Subclasses repeat ``frozen=True``, so that type checkers see it."""

    # Built when first used: most programs use a few of the values, and all of them import quickly.
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def trusted(cls, fields: dict[str, Any]) -> Self:
        """The value of fields that are complete and valid already, without checking them again.

        Loading folds thousands of events; validating each value of each step would double its cost.
        """
        value = cls.__new__(cls)
        _set_fields(value, fields)
        _set_given(value, _NOT_RECORDED)
        _set_extra(value, None)
        _set_private(value, None)
        return value

    def replaced(self, **changes: Any) -> Self:
        """A copy with some fields replaced by values that are valid already."""
        return self.trusted({**self.__dict__, **changes})


class Rewritten(Value, frozen=True):
    """An earlier event of this conversation whose content was removed in place; its place is left."""

    version: int
    remains: str
    """The SHA-256 of what is left of its payload."""

"""The base of every value in the domain: frozen, compared by value, closed to unknown fields."""

from pydantic import BaseModel, ConfigDict


class Value(BaseModel, frozen=True):
    """An immutable value. Subclasses repeat ``frozen=True``, so that type checkers see it."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

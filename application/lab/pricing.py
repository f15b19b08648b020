"""What requests cost: prices by model, and what a prompt cache makes of a run of requests."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from pydantic import Field

from refold.application.api.context import Context
from refold.application.conversation.models import longest_prefix
from refold.application.ports.summariser import TokenCounter
from refold.domain.value import Value

from .playing import RepeatedPrefix, in_tokens

MILLION = 1_000_000


class Price(Value, frozen=True):
    """What a million tokens of one model cost."""

    input: float = Field(ge=0)
    """Input that neither comes from the cache nor goes into it."""
    cached_read: float = Field(ge=0)
    """Input that the cache serves."""
    cache_write: float = Field(ge=0)
    """Input that goes into the cache, to be served to the next request."""
    output: float = Field(ge=0)
    least_cached: int = Field(default=1_024, ge=0)
    """A prefix with fewer tokens is not cached."""


class Prices(Value, frozen=True):
    """A price table. Prices change: ``as_of`` says when these were looked up."""

    as_of: date
    currency: str = "USD"
    default: str
    """The entry that stands for models without one."""
    cache_seconds: int | None = Field(default=None, gt=0)
    """How long a cached prefix lives after its last use; None: as long as the conversation."""
    models: dict[str, Price] = Field(min_length=1)
    """By the beginning of the model's name; the longest that fits counts."""

    def entry_of(self, model: str | None) -> str:
        """The name of the entry that gives a model's price."""
        return longest_prefix(model, self.models) or self.default


class Sent(NamedTuple):
    """One request as a prompt cache sees it, in tokens."""

    tokens: int
    served: int
    """From the cache."""
    written: int
    """Into the cache: all that was not served, unless the request is too short to be cached."""


@dataclass
class Bill:
    """What a run of requests comes to. Sums are tokens and money."""

    sent: int = 0
    served: int = 0
    written: int = 0
    answered: int = 0
    summariser_calls: int = 0
    summariser_tokens: int = 0
    """Input and output of the summariser's own model."""
    cost: float = 0
    cost_without_cache: float = 0


class CostMeter:
    """Adds up what requests cost if each marks its end for the cache.

    The cache serves what repeats the beginning of the request before byte for byte, from the least
    cacheable length on and while it lives.
    """

    def __init__(self, prices: Prices, counter: TokenCounter) -> None:
        self.bill = Bill()
        self.entries: set[str] = set()
        """The entries of the price table that were used."""
        self._prices = prices
        self._prefix = RepeatedPrefix(in_tokens(counter))
        self._model: str | None = None
        self._last: datetime | None = None

    def request(self, context: Context, at: datetime | None = None) -> Sent:
        """Add a request. ``at``: when it was sent, if that is known."""
        price = self._price(context.model)
        compared = self._prefix.compare(context)
        # Parts are measured one by one: together they may differ a little from the whole estimate.
        served = min(compared.repeated, context.tokens)
        if served < price.least_cached or self._expired(at) or context.model != self._model:
            served = 0
        written = context.tokens - served if context.tokens >= price.least_cached else 0
        self._last, self._model = at or self._last, context.model
        plain = context.tokens - served - written
        self._add(
            served * price.cached_read + written * price.cache_write + plain * price.input,
            context.tokens * price.input,
        )
        self.bill.sent += context.tokens
        self.bill.served += served
        self.bill.written += written
        return Sent(context.tokens, served, written)

    def answer(self, tokens: int, model: str | None) -> None:
        """Add an answer of the model."""
        self.bill.answered += tokens
        cost = tokens * self._price(model).output
        self._add(cost, cost)

    def summariser(self, given: int, written: int, model: str | None) -> None:
        """Add a call of the summariser's model: ``given`` tokens in, ``written`` out."""
        self.bill.summariser_calls += 1
        self.bill.summariser_tokens += given + written
        price = self._price(model)
        cost = given * price.input + written * price.output
        self._add(cost, cost)

    def _price(self, model: str | None) -> Price:
        entry = self._prices.entry_of(model)
        self.entries.add(entry)
        return self._prices.models[entry]

    def _expired(self, at: datetime | None) -> bool:
        lives = self._prices.cache_seconds
        if lives is None or at is None or self._last is None:
            return False
        return (at - self._last).total_seconds() > lives

    def _add(self, cost: float, without_cache: float) -> None:
        self.bill.cost += cost / MILLION
        self.bill.cost_without_cache += without_cache / MILLION

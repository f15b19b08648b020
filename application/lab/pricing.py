"""Compute the cost of requests with prices by model and a prompt cache."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from refold.application.api.results import Context
from refold.application.conversation.models import longest_prefix
from refold.application.inspection.token_use import TokenUse
from refold.application.ports.token_counter import TokenCounter
from refold.domain.late_model import Field
from refold.domain.value import Value

from .playing import RepeatedPrefix, token_measure

MILLION = 1_000_000


class Price(Value, frozen=True):
    """Prices per million tokens of one model."""

    input: float = Field(ge=0)
    """Price of input outside the cache."""
    cached_read: float = Field(ge=0)
    """Price of input that is read from the cache."""
    cache_write: float = Field(ge=0)
    """Price of input that is written to the cache for the next request."""
    output: float = Field(ge=0)
    least_cached: int = Field(default=1_024, ge=0)
    """Shortest prefix in tokens that is cached."""


class Prices(Value, frozen=True):
    """A price table with its date, since prices change."""

    as_of: date
    currency: str = "USD"
    default: str
    """Entry for models that have none."""
    cache_seconds: int | None = Field(default=None, gt=0)
    """Lifetime of a cached prefix after its last use, or None for unlimited."""
    models: dict[str, Price] = Field(min_length=1)
    """Prices by the beginning of the model's name; the longest match is used."""

    def entry_of(self, model: str | None) -> str:
        """Return the name of the entry with a model's price."""
        return longest_prefix(model, self.models) or self.default

    def cost_of(self, use: TokenUse) -> float:
        """Return the price of the tokens that replies used."""
        price = self.models[self.entry_of(use.model)]
        read, written = use.read * price.cached_read, use.written * price.cache_write
        return (use.input * price.input + read + written + use.output * price.output) / MILLION


class Sent(NamedTuple):
    """Tokens of one request by their use of the prompt cache."""

    tokens: int
    served: int
    """Tokens read from the cache."""
    written: int
    """Tokens written to the cache: all others, unless the request is too short to be cached."""


@dataclass
class Bill:
    """Total tokens and cost of a series of requests."""

    sent: int = 0
    served: int = 0
    written: int = 0
    answered: int = 0
    summariser_calls: int = 0
    summariser_tokens: int = 0
    """Input and output tokens of the summariser's model."""
    cost: float = 0
    cost_without_cache: float = 0


class CostMeter:
    """A meter for the cost of requests with a prompt cache.

    Each request marks its end for the cache. The cache serves the bytes that repeat the beginning of the
    previous request, if they are long enough and have not expired.
    """

    def __init__(self, prices: Prices, counter: TokenCounter) -> None:
        self.bill = Bill()
        self.entries: set[str] = set()
        """Entries of the price table that were used."""
        self._prices = prices
        self._prefix = RepeatedPrefix(token_measure(counter))
        self._model: str | None = None
        self._last: datetime | None = None

    def request(self, context: Context, at: datetime | None = None) -> Sent:
        """Add a request that was sent at ``at``, or at an unknown time if None."""
        price = self._price(context.model)
        compared = self._prefix.compare(context)
        # Parts are measured separately, so their sum may differ a little from the whole estimate.
        served = min(compared.repeated, context.tokens)
        if served < price.least_cached or self._is_expired(at) or context.model != self._model:
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
        """Add a call of the summariser's model with ``given`` input and ``written`` output tokens."""
        self.bill.summariser_calls += 1
        self.bill.summariser_tokens += given + written
        price = self._price(model)
        cost = given * price.input + written * price.output
        self._add(cost, cost)

    def _price(self, model: str | None) -> Price:
        entry = self._prices.entry_of(model)
        self.entries.add(entry)
        return self._prices.models[entry]

    def _is_expired(self, at: datetime | None) -> bool:
        lives = self._prices.cache_seconds
        if lives is None or at is None or self._last is None:
            return False
        return (at - self._last).total_seconds() > lives

    def _add(self, cost: float, without_cache: float) -> None:
        self.bill.cost += cost / MILLION
        self.bill.cost_without_cache += without_cache / MILLION

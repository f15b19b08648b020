"""An independent judge of Messages API requests. It reports what the provider would reject.

A finding has the form ``rule: place: what is wrong``, so that tests can select findings by rule. The
judge uses no code of refold, so that it can test that code. The rules about messages and blocks are
in ``request_rules``; those about a request as a whole and about several requests are here.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

from refold.application.api.argument_checks import invalid_argument
from refold.testing import request_rules as rules
from refold.testing.request_parts import (
    THINKING,
    Json,
    all_blocks,
    blocks_of,
    mappings,
    message_blocks,
    messages_of,
    sent,
    signs_the_prefix,
)

MAX_CACHE_MARKS = 4
MAX_MESSAGES = 100_000
MAX_BYTES = 32_000_000

_SURROGATE = re.compile("[\ud800-\udfff]")
_DECISION = ("summary_id", "decision", "revision")


def violations(
    request: dict[str, Any],
    *,
    model: str = "claude-opus-5-5",
    allow_pending_at_end: bool = False,
) -> list[str]:
    """Return a finding for everything in a request that the provider or portability forbids.

    Args:
        request: ``messages``, and optionally ``model``, ``system``, ``tools``, ``thinking``.
        model: the model whose rules apply if the request names none. Unknown models are judged strictly.
        allow_pending_at_end: whether calls of the last assistant turn may lack results, if nothing but
            results follows. Use it for a context that is built while tools still run.

    Raises:
        InvalidSetting: the request is not a dictionary.
    """
    if not isinstance(cast("object", request), Mapping):
        raise invalid_argument(
            "request", request, "a dictionary, as context.for_anthropic() gives it"
        )
    model = str(request.get("model") or model)
    found = [finding for rule in _RULES for finding in rule(request)]
    found += rules.unanswered_calls(request, allow_pending_at_end=allow_pending_at_end)
    found += rules.prefill(request, model=model, allow_pending_at_end=allow_pending_at_end)
    found += rules.system_messages(request, model=model)
    return found


def too_many_cache_marks(request: Json) -> Iterator[str]:
    """Report more than four cache marks in total."""
    holders: list[Json] = [request, *mappings(request.get("tools"))]
    holders += [placed.block for placed in all_blocks(request)]
    count = sum(1 for holder in holders if holder.get("cache_control") is not None)
    if count > MAX_CACHE_MARKS:
        yield f"cache-marks: request: {count} cache marks, at most {MAX_CACHE_MARKS}"


def misplaced_cache_marks(request: Json) -> Iterator[str]:
    """Report cache marks on blank text or thinking, which cannot have one."""
    for placed in all_blocks(request):
        block = placed.block
        if block.get("cache_control") is None:
            continue
        if block.get("type") == "text" and not str(block.get("text") or "").strip():
            yield f"cache-on-blank: {placed.where}: a cache mark on a blank text"
        if block.get("type") in THINKING:
            yield f"cache-on-thinking: {placed.where}: thinking takes no cache mark"


def encoding(request: Json) -> Iterator[str]:
    """Report lone surrogates, numbers that JSON lacks, and values that are not JSON."""
    waiting: list[tuple[str, object]] = [("request", sent(request))]
    while waiting:
        where, value = waiting.pop()
        if fault := _fault(value):
            yield f"encoding: {where}: {fault}"
        elif isinstance(value, Mapping):
            for key, inner in cast("Mapping[object, object]", value).items():
                waiting += [(f"{where} key", key), (f"{where}.{key!r}", inner)]
        elif isinstance(value, list | tuple):
            items = cast("Sequence[object]", value)
            waiting += [(f"{where}[{i}]", inner) for i, inner in enumerate(items)]


def _fault(value: object) -> str:
    match value:
        case str() if _SURROGATE.search(value):
            return "lone surrogate"
        case float() if not math.isfinite(value):
            return f"{value} is not a JSON number"
        case str() | bool() | int() | float() | None | list() | tuple() | Mapping():
            return ""
        case _:
            return f"{type(value).__name__} is not JSON"


def too_many_messages(request: Json) -> Iterator[str]:
    """Report more messages than the API accepts."""
    if (count := len(messages_of(request))) > MAX_MESSAGES:
        yield f"message-count: messages: {count:,} messages, at most {MAX_MESSAGES:,}"


def too_large(request: Json) -> Iterator[str]:
    """Report a request body above 32 MB."""
    size = len(_text(sent(request)).encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        yield f"size: request: {size:,} bytes, at most {MAX_BYTES:,}"


_RULES: tuple[Callable[[Json], Iterator[str]], ...] = (
    rules.shapes,
    rules.no_messages,
    rules.empty_contents,
    rules.empty_system,
    rules.blank_texts,
    rules.errors_without_content,
    rules.errors_with_other_content,
    rules.role_names,
    rules.first_role,
    rules.alternation,
    rules.block_roles,
    rules.trailing_space,
    rules.late_results,
    rules.orphan_results,
    rules.duplicate_results,
    rules.repeated_call_ids,
    rules.call_id_patterns,
    rules.call_names,
    rules.server_results,
    rules.server_calls,
    rules.thinking_last,
    rules.unsigned_thinking,
    rules.thinking_leads_the_loop,
    rules.compaction_blocks,
    too_many_cache_marks,
    misplaced_cache_marks,
    encoding,
    too_many_messages,
    too_large,
)


def _text(value: object) -> str:
    # The order of keys is kept, because it is part of the bytes that are sent.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)


def without_cache_marks(value: object) -> object:
    """Return a copy of JSON data without any ``cache_control``."""
    match value:
        case Mapping():
            items = cast(Json, value).items()
            return {k: without_cache_marks(v) for k, v in items if k != "cache_control"}
        case list() | tuple():
            return [without_cache_marks(v) for v in cast("Sequence[object]", value)]
        case _:
            return value


def prefix_violations(
    requests: Sequence[dict[str, Any]], *, cache_marks_may_move: bool = False
) -> list[str]:
    """Report requests that do not begin with the bytes of the previous one, without a decision between.

    Requests are compared if ``summary_id``, ``decision`` and ``revision`` are equal. Each message of
    the earlier request must be at the same index, byte for byte, but the last one may have further
    blocks at its end. ``system`` and ``tools`` must be identical.
    """
    found: list[str] = []
    for n, (earlier, later) in enumerate(pairwise(requests), start=1):
        if any(earlier.get(key) != later.get(key) for key in _DECISION):
            continue
        faults = _changes(
            *(_strip_marks(r) if cache_marks_may_move else r for r in (earlier, later))
        )
        found += [f"prefix: requests[{n}]: {fault}" for fault in faults]
    return found


def _strip_marks(request: Json) -> Json:
    return cast(Json, without_cache_marks(request))


def _changes(earlier: Json, later: Json) -> Iterator[str]:
    for key in ("system", "tools"):
        if _text(earlier.get(key)) != _text(later.get(key)):
            yield f"{key} changed"
    before, after = messages_of(earlier), messages_of(later)
    if len(after) < len(before):
        yield f"{len(before) - len(after)} messages are gone"
    last = len(before) - 1
    for m, (old, new) in enumerate(zip(before, after, strict=False)):
        if _text(old) != _text(new) and not (m == last and _extends(old, new)):
            yield f"messages[{m}] changed"


def _extends(old: Json, new: Json) -> bool:
    start, whole = old.get("content"), new.get("content")
    if isinstance(start, str) or isinstance(whole, str):
        return False
    shortened = mappings(whole)[: len(mappings(start))]
    return _text({**new, "content": shortened}) == _text(old)


class _Signed(NamedTuple):
    """A signed block, with a digest of all content before it and the signed blocks before it."""

    key: str
    where: str
    prefix: str
    before: tuple[str, ...]


def preserved_thinking_violations(
    requests: Sequence[dict[str, Any]], *, model: str = "claude-opus-5-5"
) -> list[str]:
    """Report signed blocks that the newest models would reject, over the requests of one conversation.

    A block is valid only after the content it was first seen after: ``system``, ``tools`` and all
    earlier content, except cache marks. Earlier thinking may be dropped, oldest first, but not from the
    middle, and it must not return. A signature must not be on another text. A block is first seen in
    the request that sends it back. It is better to give the ``answer`` (content blocks) with the
    request that was answered, because then a compaction between answer and next request is detected
    too.
    """
    known: dict[str, _Signed] = {}
    texts: dict[str, str] = {}
    found: list[str] = []
    for n, request in enumerate(requests):
        strict = signs_the_prefix(str(request.get("model") or model))
        found += [f"changed-thinking: requests[{n}].{w}" for w in _changed_texts(request, texts)]
        for signed in _signed_blocks(request):
            first = known.get(signed.key)
            fault = _broken(first, signed) if first and strict else ""
            if fault:
                found.append(f"preserved-thinking: requests[{n}].{signed.where}: {fault}")
            elif strict or first is None:
                # A model that does not look at the prefix may see the block behind another one.
                known[signed.key] = signed
    return found


def _broken(first: _Signed, now: _Signed) -> str:
    if first.prefix != now.prefix:
        return "the content before this block changed since it was signed"
    if now.before != first.before[len(first.before) - len(now.before) :]:
        return "thinking before this block was dropped from the middle or put back"
    return ""


def _changed_texts(request: Json, texts: dict[str, str]) -> Iterator[str]:
    for placed in message_blocks(request):
        signature, thinking = placed.block.get("signature"), placed.block.get("thinking")
        if placed.block.get("type") != "thinking" or not isinstance(signature, str):
            continue
        if signature and texts.setdefault(signature, str(thinking)) != str(thinking):
            yield f"{placed.where}: other text under the same signature"


def _signed_blocks(request: Json) -> Iterator[_Signed]:
    prefix = hashlib.sha256()
    for part in (blocks_of(request.get("system")), request.get("tools") or []):
        prefix.update(_text(without_cache_marks(part)).encode("utf-8", "surrogatepass"))
    before: tuple[str, ...] = ()
    answer: list[Json] = [{"role": "assistant", "content": request.get("answer") or []}]
    for m, message in enumerate([*messages_of(request), *answer]):
        for b, block in enumerate(blocks_of(message.get("content"))):
            if block.get("type") in THINKING:
                key = _text(without_cache_marks(block))
                yield _Signed(key, f"messages[{m}].content[{b}]", prefix.hexdigest(), before)
                before = (*before, key)
            else:
                entry = _text([message.get("role"), without_cache_marks(block)])
                prefix.update(entry.encode("utf-8", "surrogatepass"))

"""Checks of a token counter on messages and tools: everything that is sent costs tokens, and nothing else."""

from collections.abc import Callable, Iterator
from copy import deepcopy

from refold.domain.messages import Message
from refold.domain.value import replace
from refold.testing import counted_samples as samples
from refold.testing.counting import Counting
from refold.testing.sample_talks import message, thought

_BLOCKS = "Go through message.blocks() and count every block, by its type; what is unknown as JSON."


class MessageChecks(Counting):
    """The checks of ``count_message`` and ``count_tools``."""

    def probes(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield the probes with their names."""
        if callable(getattr(self._counter, "count_message", None)):
            yield "messages", self._messages
            yield "messages that grow", self._growing_messages
            yield "pictures", self._pictures
            yield "thinking", self._thinking
            yield "what is not sent", self._unsent
        if callable(getattr(self._counter, "count_tools", None)):
            yield "tools", self._tools

    def _messages(self) -> None:
        for name, text in samples.KINDS.items():
            alone = self.text(text, name)
            block = self.message(message("user", text), f"a message of {name}").total
            plain = self.message(Message(role="user", content=text), f"a message of {name}").total
            self._findings.require(
                block > alone and plain > alone,
                "frame",
                expected=f"more for a message than the {alone} tokens of its text ({name})",
                seen=f"{plain} as a text, {block} as a block",
                advice="Add the few tokens that the API puts around each message.",
            )
            self._findings.require(
                abs(block - plain) <= max(8, alone // 10),
                "forms",
                expected="the same for a text and for a block with that text",
                seen=f"{plain} as a text, {block} as a block ({name})",
                advice="Go through message.blocks(), which makes a block of a text.",
            )
        self.message(Message(role="user", content=""), "an empty message")
        self.message(Message(role="user", content=()), "a message without blocks")

    def _growing_messages(self) -> None:
        for name, (fewer, more) in samples.GROWING.items():
            given = deepcopy(more)
            small, large = self.message(fewer, f"without {name}"), self.message(given, name)
            self._findings.require(
                large.total > small.total,
                "ignores",
                expected=f"more tokens with {name} than without",
                seen=f"{small.total} without, {large.total} with",
                advice=_BLOCKS,
            )
            self._findings.require(
                given == more,
                "mutates",
                expected="an unchanged message",
                seen=f"another one ({name})",
                advice="Copy what you change.",
            )

    def _pictures(self) -> None:
        loose, tight = (samples.image(samples.png(200, level=level)) for level in (0, 9))
        sizes = [self.message(message("user", one), "a picture").total for one in (loose, tight)]
        self._findings.require(
            abs(sizes[0] - sizes[1]) <= max(sizes) // 10,
            "pictures",
            expected="the same for a picture in any encoding: it is paid by its pixels",
            seen=f"{sizes[0]} and {sizes[1]} for two files of the same picture",
            advice="Count width times height over 750, or a fixed number; never the base64 text.",
        )

    def _thinking(self) -> None:
        without = self.message(message("assistant", samples.PROSE), "an answer")
        with_it = message("assistant", thought(samples.CODE), samples.PROSE)
        counted = self.message(with_it, "an answer with thinking")
        left = counted.total - counted.thinking
        self._findings.require(
            without.thinking == 0 < counted.thinking <= counted.total
            and abs(left - without.total) <= 10,
            "thinking",
            expected="TokenCount.thinking: the share of the total that dropping thinking saves",
            seen=f"{without.thinking} of {without.total} without thinking, {counted.thinking} of "
            f"{counted.total} with it",
            advice="Add up the blocks of the types thinking and redacted_thinking apart as well.",
        )

    def _unsent(self) -> None:
        plain = Message(role="user", content=samples.PROSE)
        more = replace(plain, author="person", extra={"name": "Ana", "usage": {"input_tokens": 9}})
        sizes = [self.message(one, "a message").total for one in (plain, more)]
        self._findings.require(
            sizes[0] == sizes[1],
            "unsent",
            expected="the same with author and metadata, which are not sent to a provider",
            seen=f"{sizes[0]} without them, {sizes[1]} with them",
            advice="Count role and content alone.",
        )

    def _tools(self) -> None:
        plain, none = (samples.PLAIN_TOOL,), self.whole(self._counter.count_tools(()), "no tools")
        size = self.whole(self._counter.count_tools(plain), "a tool")
        self._findings.require(
            none == 0 < size,
            "tools",
            expected="0 tokens without tools, more than 0 for one",
            seen=f"{none} without, {size} for one",
            advice="Count the JSON of every definition, and what the API adds to the first.",
        )
        larger = {
            "a longer description": (samples.WORDY_TOOL,),
            "a longer description in Chinese": (samples.CHINESE_TOOL,),
            "a larger schema": (samples.LARGE_TOOL,),
            "a second tool": (*plain, samples.tool("read_file", "Reads a file.")),
        }
        for name, tools in larger.items():
            given = deepcopy(tools)
            counted = self.whole(self._counter.count_tools(given), name)
            self._findings.require(
                counted > size and given == tools,
                "tools",
                expected=f"more than the {size} tokens of a plain tool, with {name}; the same definitions",
                seen=f"{counted}" if given == tools else "definitions that were changed",
                advice="Count names, descriptions and schemas of all tools; change none.",
            )

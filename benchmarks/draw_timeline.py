"""Draw ``docs/images/timeline.svg``: the size of each request in the conversation of ``refold demo``.

    python benchmarks/draw_timeline.py [--out FOLDER]

``timeline.svg`` is for light pages and ``timeline-dark.svg`` for dark ones. The background is transparent. The
same version of matplotlib writes the same bytes. The figures that are drawn are also in the description of the SVG.
"""

# The types that come with matplotlib leave open what keyword arguments are.
# pyright: reportUnknownMemberType=false

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import refold
from refold.infrastructure.cli.demo_session import demo_conversation
from refold.infrastructure.palette import PALETTE, SERIES, TEXT, Theme, shade_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = Path(__file__).parents[1] / "docs" / "images"
PICTURES: Mapping[Theme, str] = {"light": "timeline.svg", "dark": "timeline-dark.svg"}
WINDOW = 48_000
"""The window of ``refold demo``."""


class Step(NamedTuple):
    """One request, and what was decided to make it fit."""

    message: int
    """The position of the answer that it asked for."""
    tokens: int
    whole: int
    """Tokens of the same request with the full history."""
    compacted: bool
    offloaded: bool


class Timeline(NamedTuple):
    """What is drawn."""

    messages: int
    limit: int
    """Tokens that no request may exceed."""
    trigger: int
    """Tokens from which on a request is made smaller."""
    steps: tuple[Step, ...]

    @property
    def sent(self) -> int:
        """Tokens of all requests."""
        return sum(step.tokens for step in self.steps)

    @property
    def whole(self) -> int:
        """Tokens of all requests with the full history."""
        return sum(step.whole for step in self.steps)

    def described(self) -> str:
        """The same as one line of JSON."""
        return json.dumps(
            {
                "messages": self.messages,
                "limit": self.limit,
                "trigger": self.trigger,
                "requests": [[step.message, step.tokens] for step in self.steps],
                "compacted": [step.message for step in self.steps if step.compacted],
                "offloaded": [step.message for step in self.steps if step.offloaded],
                "tokens_sent": self.sent,
                "tokens_without_compaction": self.whole,
            },
            separators=(",", ":"),
        )


def play() -> Timeline:
    """Play the demo's conversation through the library, in memory."""
    recorded = demo_conversation()
    steps: list[Step] = []
    limit = trigger = history = 0
    with refold.open(
        ":memory:", window=WINDOW, summariser="extractive", background=False
    ) as memory:
        conversation = memory.conversation(recorded.thread_id)
        for position, message in enumerate(recorded.messages):
            if message.message.role == "assistant":
                before = conversation.version
                context = conversation.context(tools=recorded.tools)
                limit, trigger = context.budget.limit, context.budget.trigger
                names = set(_names(conversation.export("events"), before, context.version))
                steps.append(
                    Step(
                        message=position,
                        tokens=context.tokens,
                        whole=history + context.budget.fixed,
                        compacted="compaction_performed" in names,
                        offloaded="tool_content_offloaded" in names,
                    )
                )
            appended = conversation.append_recorded([message])
            history += sum(one.tokens for one in appended.messages)
    return Timeline(len(recorded.messages), limit, trigger, tuple(steps))


def _names(events: Iterator[dict[str, Any]], after: int, to: int) -> Iterator[str]:
    return (event["name"] for event in events if after < event["version"] <= to)


class _Colours(NamedTuple):
    """Colours of one picture, hexadecimal."""

    text: str
    request: str
    summary: str
    tool: str

    @classmethod
    def on(cls, theme: Theme) -> "_Colours":
        inks = (TEXT, SERIES[0], PALETTE["summary"], PALETTE["tool"])
        return cls(*(shade_for(theme, ink) for ink in inks))


def draw(timeline: Timeline, path: Path, theme: Theme) -> None:
    """Draw the timeline into an SVG file."""
    import matplotlib as mpl

    colours = _Colours.on(theme)
    inked = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor")
    settings: Any = {
        "svg.hashsalt": "refold",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
        "font.size": 11,
        **dict.fromkeys(inked, colours.text),
    }
    with mpl.rc_context(settings):
        about: dict[str, Any] = {"Date": None, "Description": timeline.described()}
        _figure(timeline, colours).savefig(path, format="svg", metadata=about, transparent=True)


def _figure(timeline: Timeline, colours: _Colours) -> "Figure":
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    figure = Figure(figsize=(9.6, 4.2), dpi=100)
    axes = figure.add_axes((0.075, 0.13, 0.91, 0.72))
    _draw_requests(axes, timeline, colours)
    _draw_limits(axes, timeline, colours)
    axes.set_xlim(0, timeline.messages)
    axes.set_ylim(0, WINDOW * 1.06)
    axes.set_xlabel("message of the conversation (refold demo)")
    axes.yaxis.set_major_locator(MultipleLocator(10_000))
    axes.yaxis.set_major_formatter(FuncFormatter(_thousands))
    axes.tick_params(length=0)
    axes.grid(visible=True, axis="y", color=colours.text, alpha=0.16, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.text(
        0.012,
        0.945,
        f"Tokens of each request: {timeline.sent:,} in all, {timeline.whole:,} with the full history",
        fontsize=12,
        weight="bold",
    )
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.005, 0.985), ncols=4, frameon=False, fontsize=10,
        handlelength=1.8, columnspacing=1.6,
    )  # fmt: skip
    return figure


def _draw_requests(axes: "Axes", timeline: Timeline, colours: _Colours) -> None:
    places = [step.message for step in timeline.steps]
    sizes = [step.tokens for step in timeline.steps]
    axes.plot(
        places, [step.whole for step in timeline.steps], color=colours.text, linewidth=1.3,
        linestyle=(0, (4, 2)), label="full history",
    )  # fmt: skip
    axes.fill_between(places, sizes, color=colours.request, alpha=0.12, linewidth=0)
    axes.plot(places, sizes, color=colours.request, linewidth=1.8, label="request with refold")
    for deed, marker, colour, label in (
        ("compacted", "v", colours.summary, "old messages summarised"),
        ("offloaded", "s", colours.tool, "tool output offloaded"),
    ):
        there = [step for step in timeline.steps if getattr(step, deed)]
        axes.plot(
            [step.message for step in there], [step.tokens for step in there], color=colour,
            linestyle="none", marker=marker, markersize=8 if marker == "v" else 5,
            markeredgewidth=0, label=label, zorder=4,
        )  # fmt: skip


def _draw_limits(axes: "Axes", timeline: Timeline, colours: _Colours) -> None:
    for tokens, label in (
        (WINDOW, f"window of the model: {WINDOW:,}"),
        (timeline.limit, f"budget of a request: {timeline.limit:,}"),
    ):
        axes.axhline(tokens, color=colours.text, linewidth=1.1, alpha=0.6, zorder=1)
        axes.text(timeline.messages, tokens + 900, label, ha="right", fontsize=10)
    axes.text(
        next(step.message for step in timeline.steps if step.whole > WINDOW) + 3,
        timeline.limit + 4_800,
        f"full history: on to {timeline.steps[-1].whole:,} tokens",
        fontsize=10,
    )


def _thousands(tokens: float, _: int | None = None) -> str:
    return f"{tokens:,.0f}"


def main() -> None:
    """Draw the pictures of the README, here or into another folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=FOLDER, help="a folder")
    folder, timeline = parser.parse_args().out, play()
    for theme, name in PICTURES.items():
        draw(timeline, folder / name, theme)


if __name__ == "__main__":
    main()

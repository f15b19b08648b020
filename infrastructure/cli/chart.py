"""Draw a chart of a simulation: the size of each request over time, one line per policy."""

# matplotlib's type hints leave keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from refold.application.lab.simulating import Deed, Simulated, Simulation
from refold.domain.errors import InvalidSetting
from refold.domain.text_cuts import beginning
from refold.infrastructure.files.private_files import new_file, refuse
from refold.infrastructure.palette import (
    DARK_GROUND,
    LIGHT_GROUND,
    RULE,
    SERIES,
    TEXT,
    Theme,
    shade_for,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

ENDINGS = (".png", ".svg")


Dashes = tuple[float, tuple[float, ...]]

_DASHES: Sequence[Dashes] = (
    (0, ()),
    (0, (6, 2)),
    (0, (1.2, 1.2)),
    (0, (7, 2, 1.5, 2)),
    (0, (3, 3)),
    (0, (10, 2, 1.5, 2, 1.5, 2)),
)
"""Lines of the policies, which have the colours of ``SERIES`` in this order."""
MOST_POLICIES = min(len(_DASHES), len(SERIES))
"""Maximum number of policies. More lines are not distinguishable."""


class _Mark(NamedTuple):
    """Marker of a decision."""

    marker: str
    size: int
    label: str
    height: float | None = None
    """Place in the row of the policy below the chart, from -0.5 to 0.5, or None for a mark on its line."""


_MARKS: Mapping[Deed, _Mark] = {
    "compaction": _Mark("v", 7, "compaction"),
    "failure": _Mark("x", 7, "compaction failed"),
    "offload": _Mark("s", 4, "tool content offloaded", 0.22),
    "condense": _Mark("o", 4, "older results condensed", -0.22),
}
_SINGLE_STEPS = 60
"""Number of requests up to which each is drawn as a separate dot."""
_ROOM = 1.2
"""Height of the chart, in limits, above which the line without compaction is cut off."""


def check_chart(path: Path, *, replace: bool = False) -> None:
    """Refuse a chart that cannot be drawn, before the simulation runs.

    Raises:
        InvalidSetting: the file name has an unknown extension, or matplotlib is missing.
        TargetExists: the path exists, and it is not a file or ``replace`` is false.
    """
    if path.suffix.lower() not in ENDINGS:
        raise InvalidSetting(f"chart {path}: its name must end in {' or '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise InvalidSetting(f"chart {path}: there is no folder {path.parent}")
    if find_spec("matplotlib") is None:
        raise InvalidSetting(
            "a chart needs matplotlib, which is not installed: pip install 'refold[chart]'"
        )
    refuse(path, replace=replace)


def draw_chart(
    simulation: Simulation, path: Path, *, theme: Theme = "light", replace: bool = False
) -> None:
    """Draw the simulation into a PNG or SVG file, depending on the extension.

    Raises:
        TargetExists: the path exists, and it is not a file or ``replace`` is false.
    """
    import matplotlib as mpl

    with mpl.rc_context(_settings(theme)), new_file(path, replace=replace) as made:
        _Chart(simulation, theme).figure().savefig(made, format=path.suffix.lower()[1:])


def _settings(theme: Theme) -> Any:
    ground = LIGHT_GROUND if theme == "light" else DARK_GROUND
    text, rule = shade_for(theme, TEXT), shade_for(theme, RULE)
    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    return {
        **dict.fromkeys(inked, text),
        **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), ground),
        "grid.color": rule,
        "grid.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
    }


def _thousands(tokens: float, _: int | None = None) -> str:
    return f"{tokens:,.0f}"


def _title(simulation: Simulation) -> str:
    name = _drawable(simulation.thread_id, "a conversation", 60)
    return f"Size of each request: {name}, {simulation.messages:,} messages"


def _drawable(text: str, otherwise: str, most: int) -> str:
    """Return a name in characters that the chart's font has, shortened to ``most``."""
    shown = beginning(text, most)
    drawable = shown.isprintable() and all(c < "\u0250" or c == "…" for c in shown)
    return shown if drawable else otherwise


class _Chart:
    """A chart of request sizes, with a row for each policy that has the decisions about tool content."""

    def __init__(self, simulation: Simulation, theme: Theme) -> None:
        self._simulation = simulation
        self._policies = tuple(zip(simulation.policies, SERIES, _DASHES, strict=False))
        self._theme: Theme = theme
        self._text = shade_for(theme, TEXT)

    def figure(self) -> "Figure":
        """Draw everything."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator

        figure = Figure(figsize=(11, 6.6), dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        below = any(mark.height is not None for mark in self._marks().values())
        heights = (20, 1 + len(self._policies)) if below else (1,)
        axes = figure.subplots(len(heights), sharex=True, height_ratios=heights, squeeze=False)[
            :, 0
        ]
        self._draw_sizes(axes[0])
        if below:
            self._draw_rows(axes[1])
        axes[-1].set_xlabel("message of the recording")
        axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
        self._draw_legend(figure)
        return figure

    def _draw_sizes(self, axes: "Axes") -> None:
        from matplotlib.ticker import FuncFormatter

        self._draw_whole(axes)
        for policy, ink, dashes in self._policies:
            self._draw_policy(axes, policy, shade_for(self._theme, ink), dashes)
        for limit in dict.fromkeys(policy.limit for policy in self._simulation.policies):
            axes.axhline(limit, color=self._text, linewidth=1.2, zorder=1)
        axes.set_ylabel("size of the request, tokens")
        axes.set_xlim(left=0, right=max(1, self._simulation.messages) * 1.01)
        axes.yaxis.set_major_formatter(FuncFormatter(_thousands))
        axes.grid(visible=True)
        axes.set_title(_title(self._simulation), loc="left", fontsize=11, parse_math=False)

    def _draw_whole(self, axes: "Axes") -> None:
        """Draw the requests without compaction, as far as they fit, and choose the height of the chart."""
        steps = self._simulation.policies[0].steps
        whole = [step.whole for step in steps]
        axes.plot(
            [step.index for step in steps], whole, color=self._text, linestyle=(0, (2, 3)),
            linewidth=1.1, alpha=0.75, zorder=1,
        )  # fmt: skip
        sizes = [p.limit for p in self._simulation.policies]
        sizes += [step.tokens for p in self._simulation.policies for step in p.steps]
        top = min(max((*whole, *sizes, 1)) * 1.04, max((*sizes, 1)) * _ROOM)
        axes.set_ylim(0, top)
        if whole and max(whole) > top:
            leaves = next(step.index for step in steps if step.whole > top)
            axes.annotate(
                f" without compaction: up to {max(whole):,}", (leaves, top), va="top", fontsize=9,
                xytext=(2, -3), textcoords="offset points",
            )  # fmt: skip

    def _draw_policy(self, axes: "Axes", policy: Simulated, colour: str, dashes: Dashes) -> None:
        places = [step.index for step in policy.steps]
        sizes = [step.tokens for step in policy.steps]
        dot = "." if len(places) <= _SINGLE_STEPS else ""
        axes.plot(
            places, sizes, color=colour, linestyle=dashes, linewidth=1.5, marker=dot, zorder=3
        )
        if policy.trigger < policy.limit:
            axes.axhline(
                policy.trigger, color=colour, linestyle=":", linewidth=1.1, alpha=0.8, zorder=2
            )
        for deed, mark in _MARKS.items():
            there = [step for step in policy.steps if deed in step.deeds and mark.height is None]
            axes.plot(
                [step.index for step in there], [step.tokens for step in there], color=colour,
                linestyle="none", marker=mark.marker, markersize=mark.size, markeredgewidth=1.3,
                zorder=4,
            )  # fmt: skip

    def _draw_rows(self, axes: "Axes") -> None:
        """Draw the frequent decisions below the chart, where they hide neither lines nor each other."""
        for row, (policy, ink, _) in enumerate(self._policies):
            for deed, mark in _MARKS.items():
                if mark.height is not None:
                    places = [step.index for step in policy.steps if deed in step.deeds]
                    axes.plot(
                        places, [row - mark.height] * len(places), marker=mark.marker,
                        color=shade_for(self._theme, ink), linestyle="none", markersize=mark.size,
                        markerfacecolor="none", markeredgewidth=1.1,
                    )  # fmt: skip
        axes.set_ylim(len(self._policies) - 0.4, -0.6)
        axes.set_yticks(range(len(self._policies)))
        names = [_name(policy, row, 12) for row, (policy, _, _) in enumerate(self._policies, 1)]
        axes.set_yticklabels(names, fontsize=9, parse_math=False)
        for label, (_, ink, _) in zip(axes.get_yticklabels(), self._policies, strict=True):
            label.set_color(shade_for(self._theme, ink))
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=True, axis="x")

    def _marks(self) -> Mapping[Deed, _Mark]:
        """Return the marks of the decisions that were made."""
        steps = (step for policy in self._simulation.policies for step in policy.steps)
        done = {deed for step in steps for deed in step.deeds}
        return {deed: mark for deed, mark in _MARKS.items() if deed in done}

    def _draw_legend(self, figure: "Figure") -> None:
        legend = figure.legend(
            handles=[*self._handles()], loc="outside lower left", ncols=3, frameon=False,
            fontsize=9, handlelength=3.2,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)

    def _handles(self) -> "Iterator[Line2D]":
        from matplotlib.lines import Line2D

        line = partial(Line2D, [], [])
        for number, (policy, ink, dashes) in enumerate(self._policies, 1):
            name = _name(policy, number, 30)
            label = f"{name}: {policy.compactions:,} × compacted, {policy.tokens_sent:,} tokens"
            cost = f"{policy.cost:,.2f} {_drawable(self._simulation.currency, '', 12)}".rstrip()
            yield line(
                color=shade_for(self._theme, ink), linestyle=dashes, label=f"{label}, {cost}"
            )
        whole = sum(step.whole for step in self._simulation.policies[0].steps)
        yield line(
            color=self._text, linestyle=(0, (2, 3)), linewidth=1.1,
            label=f"without compaction: {whole:,} tokens",
        )  # fmt: skip
        yield line(color=self._text, linewidth=1.2, label="limit of a request")
        yield line(color=self._text, linestyle=":", label="trigger of a compaction")
        for mark in self._marks().values():
            face = self._text if mark.height is None else "none"
            yield line(
                color=self._text, linestyle="none", marker=mark.marker, markersize=mark.size,
                markerfacecolor=face, label=mark.label,
            )  # fmt: skip


def _name(policy: Simulated, number: int, most: int) -> str:
    # matplotlib leaves labels with a leading underscore out of the legend.
    return _drawable(policy.name.lstrip("_"), f"policy {number}", most)

"""Draw a chart of a simulation: the size of each request over time, one line per policy."""

# matplotlib's type hints leave keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from refold.application.lab.simulating import Deed, Simulated, Simulation
from refold.domain.errors import InvalidSetting
from refold.domain.text_cuts import beginning
from refold.infrastructure.files.private_files import new_file, refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENDINGS = (".png", ".svg")


class _Look(NamedTuple):
    """Line style of a policy: distinct in colour, brightness and dashes."""

    colour: str
    dashes: tuple[float, tuple[float, ...]]


_LOOKS = (
    _Look("#08306b", (0, ())),
    _Look("#e6550d", (0, (6, 2))),
    _Look("#4eb3a0", (0, (1.2, 1.2))),
    _Look("#88419d", (0, (7, 2, 1.5, 2))),
    _Look("#6baed6", (0, (3, 3))),
    _Look("#8c6d1f", (0, (10, 2, 1.5, 2, 1.5, 2))),
)
MOST_POLICIES = len(_LOOKS)
"""Maximum number of policies. More lines are not distinguishable."""


class _Mark(NamedTuple):
    """Marker of a decision. Several may be on one request, and each must be visible."""

    marker: str
    size: int
    filled: bool
    label: str


_MARKS: dict[Deed, _Mark] = {
    "compaction": _Mark("v", 7, True, "compaction"),
    "failure": _Mark("x", 7, True, "compaction failed"),
    "offload": _Mark("s", 10, False, "tool content offloaded"),
    "condense": _Mark("o", 14, False, "older results condensed"),
}
_SINGLE_STEPS = 60
"""Number of requests up to which each is drawn as a separate dot."""


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


def draw_chart(simulation: Simulation, path: Path, *, replace: bool = False) -> None:
    """Draw the simulation into a PNG or SVG file, depending on the extension.

    Raises:
        TargetExists: the path exists, and it is not a file or ``replace`` is false.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    figure = Figure(figsize=(11, 6.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for policy, look in zip(simulation.policies, _LOOKS, strict=False):
        _draw_policy(axes, policy, look)
    _draw_limits(axes, simulation.policies)
    axes.set_xlabel("message of the recording")
    axes.set_ylabel("size of the request, tokens")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0, right=max(1, simulation.messages) * 1.01)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(_thousands))
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_title(_title(simulation), loc="left", fontsize=11, parse_math=False)
    _draw_legends(axes, simulation)
    with new_file(path, replace=replace) as made:
        figure.savefig(made, format=path.suffix.lower()[1:])


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


def _draw_policy(axes: "Axes", policy: Simulated, look: _Look) -> None:
    places = [step.index for step in policy.steps]
    sizes = [step.tokens for step in policy.steps]
    dot = "." if len(places) <= _SINGLE_STEPS else ""
    axes.plot(
        places, sizes, color=look.colour, linestyle=look.dashes, linewidth=1.5, marker=dot, zorder=3
    )
    for deed, mark in _MARKS.items():
        there = [step for step in policy.steps if deed in step.deeds]
        axes.plot(
            [step.index for step in there],
            [step.tokens for step in there],
            color=look.colour,
            linestyle="none",
            marker=mark.marker,
            markersize=mark.size,
            markerfacecolor=look.colour if mark.filled else "none",
            markeredgewidth=1.3,
            zorder=4,
        )


def _draw_limits(axes: "Axes", policies: Sequence[Simulated]) -> None:
    """Draw the limit of requests in black, and each trigger in the colour of its policy."""
    for limit in dict.fromkeys(policy.limit for policy in policies):
        axes.axhline(limit, color="black", linewidth=1.2, zorder=1)
    for policy, look in zip(policies, _LOOKS, strict=False):
        if policy.trigger < policy.limit:
            axes.axhline(
                policy.trigger, color=look.colour, linestyle=":", linewidth=1.1, alpha=0.8, zorder=2
            )


def _draw_legends(axes: "Axes", simulation: Simulation) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=look.colour, linestyle=look.dashes, label=_label(policy, number))
        for number, (policy, look) in enumerate(zip(simulation.policies, _LOOKS, strict=False), 1)
    ]
    done = {deed for policy in simulation.policies for step in policy.steps for deed in step.deeds}
    for deed, mark in _MARKS.items():
        if deed in done:
            face = "black" if mark.filled else "none"
            handles.append(
                Line2D([], [], color="black", linestyle="none", marker=mark.marker,
                       markersize=mark.size, markerfacecolor=face, label=mark.label)
            )  # fmt: skip
    handles.append(Line2D([], [], color="black", linewidth=1.2, label="limit of a request"))
    handles.append(Line2D([], [], color="#555555", linestyle=":", label="trigger of a compaction"))
    legend = axes.figure.legend(
        handles=handles,
        loc="outside lower left",
        ncols=3,
        frameon=False,
        fontsize=9,
        handlelength=3.2,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _label(policy: Simulated, number: int) -> str:
    # matplotlib leaves labels with a leading underscore out of the legend.
    name = _drawable(policy.name.lstrip("_"), f"policy {number}", 30)
    return f"{name}: {policy.compactions:,} compactions, {policy.tokens_sent:,} tokens sent"

"""The commands in groups, as ``refold --help`` lists them; the module of each is imported when it is run."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from .options import VERBOSE, Verbose

_HERE = __name__.rpartition(".")[0]


class Entry(NamedTuple):
    """Where a command is, and what the list of commands says of it."""

    module: str
    function: str
    help: str
    """The first sentence of the function's docstring."""


GROUPS: Mapping[str, Mapping[str, Entry]] = {
    "Start": {
        "demo": Entry(
            "demo_command",
            "demo",
            "Play a shipped conversation: compactions, restarts, damage and repair.",
        ),
        "import": Entry("import_command", "import_files", "Import recorded conversations."),
        "play": Entry(
            "play_command",
            "play",
            "Play a recorded conversation: render the context before each answer, compact when due.",
        ),
        "simulate": Entry(
            "simulate_command",
            "simulate",
            "Play a recorded conversation under several policies and compare what it costs and keeps.",
        ),
    },
    "Look": {
        "list": Entry(
            "list_commands",
            "list_conversations",
            "List the conversations, the latest activity first.",
        ),
        "show": Entry(
            "show_command",
            "show",
            "Show the original messages of a conversation, compacted or not.",
        ),
        "context": Entry(
            "context_commands",
            "context",
            "Show the request that an agent would send next, without changing anything.",
        ),
        "explain": Entry(
            "context_commands",
            "explain",
            "Explain why the model sees each message as it does: full, offloaded, summarised, pinned …",
        ),
        "summaries": Entry(
            "list_commands",
            "summaries",
            "List all summaries that were ever made of a conversation.",
        ),
        "diff": Entry(
            "fork_commands", "diff", "Show what became of the request between two versions."
        ),
        "stats": Entry(
            "list_commands",
            "stats",
            "Show how large the log is: by conversation, by kind of event, by file.",
        ),
    },
    "Find": {
        "recall": Entry(
            "recall_commands", "recall", "Find what was said in a conversation, compacted or not."
        ),
        "search": Entry(
            "recall_commands", "search", "Find what was said in any conversation, whoever it is of."
        ),
        "query": Entry(
            "record_commands",
            "query",
            "Show the original records of a conversation, by range, text or id.",
        ),
        "read": Entry(
            "context_commands",
            "read",
            "Read back an original message, whatever was compacted or offloaded since.",
        ),
        "expand": Entry(
            "record_commands",
            "expand",
            "Show what a summary stands for: its text, and the original messages behind it.",
        ),
        "topics": Entry(
            "record_commands",
            "topics",
            "List what the messages that a summary stands for are about, the most important first.",
        ),
        "notes": Entry(
            "record_commands",
            "notes",
            "Show the durable notes that were taken before messages left the context.",
        ),
        "search-notes": Entry(
            "record_commands",
            "search_notes",
            "Search MEMORY.md and memory/*.md, hand edits included; without a question say what is searched.",
        ),
    },
    "Change": {
        "compact": Entry("change_commands", "compact", "Compact a conversation now."),
        "revert": Entry("change_commands", "revert", "Undo the newest compaction."),
        "pin": Entry(
            "change_commands",
            "pin",
            "Keep a message or a text word for word, whatever is compacted.",
        ),
        "unpin": Entry("change_commands", "unpin", "Take a pin back."),
        "pins": Entry("change_commands", "pins", "Show what is kept word for word."),
        "label": Entry("change_commands", "label", "Give a conversation a name for people."),
        "fork": Entry(
            "fork_commands",
            "fork",
            "Begin a new conversation as a copy of one, as it is or as it was.",
        ),
        "erase": Entry(
            "fork_commands",
            "erase",
            "Erase messages, a conversation or all that is an owner's, with all that was made from it, "
            "for good.",
        ),
    },
    "Keep safe": {
        "verify": Entry(
            "maintenance_commands",
            "verify",
            "Check every event, and compare every read model with a fresh fold.",
        ),
        "replay": Entry(
            "maintenance_commands",
            "replay",
            "Rebuild every read model and the recall index from the log.",
        ),
        "backup": Entry(
            "maintenance_commands", "backup", "Copy the log into a file and check the copy."
        ),
        "restore": Entry(
            "maintenance_commands",
            "restore",
            "Put a backup in the place of the log, once every event of it was found whole.",
        ),
        "salvage": Entry(
            "maintenance_commands",
            "salvage",
            "Copy every intact event into a new log, and list what was lost.",
        ),
        "anchor": Entry(
            "maintenance_commands",
            "anchor",
            "Show, export or accept the anchor: what the newest event of each conversation was.",
        ),
        "export": Entry(
            "maintenance_commands",
            "export",
            "Write the original messages of a conversation, or its events, as JSON.",
        ),
        "compress": Entry(
            "maintenance_commands",
            "compress",
            "Compress what lies before the live part of each conversation; everything reads as before.",
        ),
    },
    "Connect": {
        "mcp": Entry(
            "serve_commands",
            "mcp",
            "Serve the memory to models over MCP: tools to recall and read, resources for summaries.",
        ),
        "index": Entry(
            "serve_commands",
            "index",
            "Bring the index of recall up to date, and make every vector that is missing.",
        ),
        "settings": Entry(
            "serve_commands",
            "settings",
            "Show every setting: its value, and whether argument, variable, file or default says it.",
        ),
    },
}
ENTRIES: Mapping[str, Entry] = {
    name: entry for group in GROUPS.values() for name, entry in group.items()
}


class PlainHelp(TyperCommand):
    """A command whose ``--help`` is listed without a type: newer versions of typer call it ``<bool>``."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option, named and nothing else."""
        return _untyped(super().get_help_option(ctx))


class CommandGroup(TyperGroup):
    """All commands. For a list of them nothing is imported; a command is made when it is run."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option, named and nothing else."""
        return _untyped(super().get_help_option(ctx))

    def get_params(self, ctx: Any) -> Any:
        """The options; those that take no value are listed without a type."""
        found = super().get_params(ctx)
        for param in found:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return found

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, group by group."""
        del ctx
        return list(ENTRIES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command as lists show it."""
        del ctx
        return self.commands.get(cmd_name) or _listed().get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command itself, with what is left of the arguments."""
        if args and args[0] not in ENTRIES:
            # Typer suggests names of the commands that it has, and these are made when they are run.
            alike = get_close_matches(args[0], ENTRIES, n=1)
            hint = f" Did you mean {alike[0]!r}?" if alike else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        name, listed, rest = super().resolve_command(ctx, args)
        if listed is None or name is None:
            return name, listed, rest
        if name not in self.commands:
            self.commands[name] = load(name)
        return name, self.commands[name], rest


def load(name: str) -> Any:
    """The command of this name, its module imported."""
    entry = ENTRIES[name]
    module = import_module(f"{_HERE}.{entry.module}")
    function = getattr(module, entry.function)
    epilog = getattr(module, "EXAMPLES", {}).get(name)
    made = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    made.command(name, cls=PlainHelp, epilog=epilog)(function)
    command = typer.main.get_command(made)
    command.params.extend(_shared_options())
    return command


def _listed() -> dict[str, TyperCommand]:
    return dict(_all_listed())


def _all_listed() -> Iterator[tuple[str, TyperCommand]]:
    for group, entries in GROUPS.items():
        for name, entry in entries.items():
            yield name, TyperCommand(name, help=entry.help, rich_help_panel=group)


def _shared_options() -> list[Any]:
    """Options that every command takes, besides those of its own."""
    made = typer.Typer(add_completion=False)
    made.command()(_nothing)
    return [p for p in typer.main.get_command(made).params if p.name == VERBOSE]


def _nothing(verbose: Verbose = 0) -> None:
    """Has the options of every command, and does nothing."""


def _untyped(option: Any) -> Any:
    if option is not None:
        option.metavar = ""
    return option

"""The groups of commands in ``refold --help``. The module of a command is imported when it runs."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from .options import VERBOSE, Verbose

_HERE = __name__.rpartition(".")[0]


class Entry(NamedTuple):
    """Module of a command, and its line in the list of commands."""

    module: str
    function: str
    help: str
    """First sentence of the function's docstring."""


GROUPS: Mapping[str, Mapping[str, Entry]] = {
    "Start": {
        "demo": Entry(
            "demo_command",
            "demo",
            "Play a shipped conversation: compactions, restarts, damage and repair.",
        ),
        "scan": Entry(
            "scan_command",
            "scan",
            "Show what compactions lost in the sessions of Claude Code, Codex, Gemini CLI and pi.",
        ),
        "import": Entry("import_command", "import_files", "Import recorded conversations."),
        "play": Entry(
            "play_command",
            "play",
            "Replay a recorded conversation: render the context before each answer, compact when due.",
        ),
        "simulate": Entry(
            "simulate_command",
            "simulate",
            "Replay a recorded conversation under several policies and compare what it costs and keeps.",
        ),
        "exam": Entry(
            "exam_command",
            "exam",
            "Measure what a memory still shows of recorded sessions when they use it again.",
        ),
    },
    "Look": {
        "inspect": Entry(
            "inspect_command",
            "inspect",
            "Show conversations, requests and summaries in a browser, and why each message is where it is.",
        ),
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
            "Show the next request of the agent, without changing anything.",
        ),
        "explain": Entry(
            "context_commands",
            "explain",
            "Explain how the model sees each message and why: full, offloaded, summarised, pinned …",
        ),
        "why": Entry(
            "why_command",
            "why",
            "Explain why the agent no longer knows a value: when it entered, when it left, what brings it back.",
        ),
        "facts": Entry(
            "facts_command",
            "facts",
            "Show the facts that code reads from messages: requests, rules, decisions, paths, commands, values.",
        ),
        "summaries": Entry(
            "list_commands",
            "summaries",
            "List all summaries of a conversation, including replaced ones.",
        ),
        "diff": Entry(
            "fork_commands", "diff", "Show how the request changed between two versions."
        ),
        "stats": Entry(
            "list_commands",
            "stats",
            "Show the size of the log by conversation, by event type and by file.",
        ),
    },
    "Find": {
        "recall": Entry("recall_commands", "recall", "Search a conversation, compacted or not."),
        "search": Entry("recall_commands", "search", "Search all conversations of all owners."),
        "query": Entry(
            "record_commands",
            "query",
            "Show the original records of a conversation, by range, text or id.",
        ),
        "read": Entry(
            "context_commands",
            "read",
            "Read an original message, even if it was compacted or offloaded since.",
        ),
        "expand": Entry(
            "record_commands",
            "expand",
            "Show the text of a summary and the original messages that it covers.",
        ),
        "topics": Entry(
            "record_commands",
            "topics",
            "List the topics of summarised messages, the most important first.",
        ),
        "notes": Entry(
            "record_commands",
            "notes",
            "Show the durable notes that were taken before messages left the context.",
        ),
        "search-notes": Entry(
            "record_commands",
            "search_notes",
            "Search MEMORY.md and memory/*.md, your own edits included; without a question list the files.",
        ),
    },
    "Change": {
        "compact": Entry("change_commands", "compact", "Compact a conversation now."),
        "revert": Entry("change_commands", "revert", "Revert the newest compaction."),
        "pin": Entry(
            "change_commands",
            "pin",
            "Pin a message or a text, so that it is always kept verbatim.",
        ),
        "unpin": Entry("change_commands", "unpin", "Unpin a message or a text."),
        "pins": Entry("change_commands", "pins", "List the pinned messages and texts."),
        "proposals": Entry(
            "change_commands",
            "proposals",
            "List the edits that a model asked for and that wait for a decision.",
        ),
        "allow": Entry("change_commands", "allow", "Carry out an edit that a model proposed."),
        "refuse": Entry("change_commands", "refuse", "Refuse an edit that a model proposed."),
        "label": Entry("change_commands", "label", "Give a conversation a label for people."),
        "fork": Entry(
            "fork_commands",
            "fork",
            "Copy a conversation, in its current or an earlier state.",
        ),
        "erase": Entry(
            "fork_commands",
            "erase",
            "Permanently erase messages, a conversation or all data of an owner, with everything derived "
            "from it.",
        ),
    },
    "Maintenance": {
        "verify": Entry(
            "maintenance_commands",
            "verify",
            "Check every event, and compare every read model with the log.",
        ),
        "replay": Entry(
            "maintenance_commands",
            "replay",
            "Rebuild every read model and the recall index from the log.",
        ),
        "backup": Entry(
            "maintenance_commands", "backup", "Back up the log to a file and check the copy."
        ),
        "copy": Entry(
            "server_commands",
            "copy",
            "Copy a log between files and PostgreSQL servers, and compare every event.",
        ),
        "db": Entry(
            "server_commands",
            "db_command",
            "Create or upgrade the tables of a log on a PostgreSQL server.",
        ),
        "restore": Entry(
            "maintenance_commands",
            "restore",
            "Replace the log by a backup, after checking every event of the backup.",
        ),
        "salvage": Entry(
            "maintenance_commands",
            "salvage",
            "Copy every intact event into a new log, and list what was lost.",
        ),
        "anchor": Entry(
            "maintenance_commands",
            "anchor",
            "Show, export or accept the anchor, which records the newest event of each conversation.",
        ),
        "export": Entry(
            "export_command",
            "export",
            "Export a conversation: its messages or its events as JSON, or a page of HTML.",
        ),
        "compress": Entry(
            "maintenance_commands",
            "compress",
            "Compress the events before the live part of each conversation; they read as before.",
        ),
    },
    "Connect": {
        "claude-code": Entry(
            "claude_code_command",
            "claude_code",
            "Give sessions of Claude Code a memory: install hooks and the MCP server, or remove them.",
        ),
        "mcp": Entry(
            "serve_commands",
            "mcp",
            "Serve the memory to models over MCP: tools for recall and reading, resources for summaries.",
        ),
        "index": Entry(
            "serve_commands",
            "index",
            "Update the recall index and compute all missing vectors.",
        ),
        "settings": Entry(
            "serve_commands",
            "settings",
            "Show every setting with its value and source: argument, variable, file or default.",
        ),
    },
}
ENTRIES: Mapping[str, Entry] = {
    name: entry for group in GROUPS.values() for name, entry in group.items()
}


class PlainHelp(TyperCommand):
    """A command whose help looks the same under every version of typer.

    Newer versions list ``--help`` as ``<bool>``, and put braces around arguments in the usage line.
    """

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage line after the name of the command."""
        del ctx
        return usage_of(self.params)

    def get_help_option(self, ctx: Any) -> Any:
        """Return the help option without its type."""
        return _remove_type(super().get_help_option(ctx))


class CommandGroup(TyperGroup):
    """The group of all commands. Commands are imported when they run, not when they are listed."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the help option without its type."""
        return _remove_type(super().get_help_option(ctx))

    def get_params(self, ctx: Any) -> Any:
        """Return the options. Those without a value are listed without a type."""
        found = super().get_params(ctx)
        for param in found:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return found

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the command names, group by group."""
        del ctx
        return list(ENTRIES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the list entry of a command."""
        del ctx
        return self.commands.get(cmd_name) or _listed().get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command itself and the remaining arguments."""
        if args and args[0] not in ENTRIES:
            # Typer only suggests commands that are already loaded, so the suggestion is made here.
            alike = get_close_matches(args[0], ENTRIES, n=1)
            hint = f" Did you mean {alike[0]!r}?" if alike else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        name, listed, rest = super().resolve_command(ctx, args)
        if listed is None or name is None:
            return name, listed, rest
        if name not in self.commands:
            self.commands[name] = load(name)
        return name, self.commands[name], rest


def usage_of(parameters: Iterable[Any]) -> list[str]:
    """Return the parts of a usage line: brackets show what is optional, dots what can be repeated."""
    words = ["[OPTIONS]"]
    for one in parameters:
        if one.param_type_name == "argument":
            name = (one.metavar or one.name.upper()).strip("[].…")
            shown = name if one.required else f"[{name}]"
            words.append(f"{shown}..." if one.nargs != 1 else shown)
    return words


def load(name: str) -> Any:
    """Import the module of a command and return the command."""
    entry = ENTRIES[name]
    module = import_module(f"{_HERE}.{entry.module}")
    function = getattr(module, entry.function)
    epilog = getattr(module, "EXAMPLES", {}).get(name)
    made = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    made.command(name, cls=PlainHelp, epilog=epilog)(function)
    command = typer.main.get_command(made)
    command.params.extend(_shared_options())
    # Paragraphs are wrapped to the width of the terminal, not where the source wraps them.
    parts = (command.help or "").split("\n\n")
    command.help = "\n\n".join(" ".join(part.split()) for part in parts)
    return command


def _listed() -> dict[str, TyperCommand]:
    return dict(_all_listed())


def _all_listed() -> Iterator[tuple[str, TyperCommand]]:
    for group, entries in GROUPS.items():
        for name, entry in entries.items():
            yield name, TyperCommand(name, help=entry.help, rich_help_panel=group)


def _shared_options() -> list[Any]:
    """Return the options that every command has in addition to its own."""
    made = typer.Typer(add_completion=False)
    made.command()(_nothing)
    return [p for p in typer.main.get_command(made).params if p.name == VERBOSE]


def _nothing(verbose: Verbose = 0) -> None:
    """Do nothing. The signature holds the options of every command."""


def _remove_type(option: Any) -> Any:
    if option is not None:
        option.metavar = ""
    return option

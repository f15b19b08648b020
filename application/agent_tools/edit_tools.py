"""The tools ``remember``, ``pin`` and ``forget``, with which a model edits the memory of its conversation."""

from functools import partial

from refold.application.conversation.addresses import position_in
from refold.application.conversation.stream_places import stored_messages
from refold.application.errors import ForeignAddress, InvalidAddress
from refold.domain.errors import UnknownMessage
from refold.domain.facts.cues import clean, redact
from refold.domain.quoted_text import remove_headings

from .answers import quote_name
from .arguments import ForgetArguments, PinArguments, RememberArguments
from .memory_edits import Asked, Wanted, ask_edit, find_target, fit_note
from .tool_names import FORGET, PIN, READ_OFFLOADED, REMEMBER
from .tool_scope import EditRights, Reach, Tool, ToolRefusal

REMEMBER_DESCRIPTION = """\
Note one thing that should still be known when this conversation has left your context, or in a later one: a \
decision with its reason, a lasting wish of the user, a constraint, an open task, a fact that took work to find \
out. Call it when such a thing comes up, not for what only matters now, and never for passwords or keys.
Comes back: the id of the note. Earlier messages stay readable without it."""
PIN_DESCRIPTION = f"""\
Keep a message, or a short text, word for word in every later request, also after older messages were \
summarised. Call it for the few words that must never be paraphrased: an exact order of the user, a contract, a \
format. Pins take room in every request, so pin as little as possible; {READ_OFFLOADED} reads any message again \
without a pin.
Comes back: the id of the pin."""
FORGET_DESCRIPTION = """\
Take back a pin or a remembered note by its id, or erase a message of this conversation by its address or \
position. A pin or a note that is wrong or outdated: forget it, then make the right one. An erased message is \
gone for good, with all that was copied or made from it, for everybody: do that only where the user asks for it, \
or for a secret that should not have been written.
Comes back: what was done."""
_PROPOSES = "\nThe call is a proposal: nothing changes unless the program or a person allows it. Do not wait for that."


def edit_tools(reach: Reach, rights: EditRights) -> tuple[Tool, ...]:
    """Return the tools that edit the conversation of a reach."""
    how = _PROPOSES if rights.mode == "propose" else ""
    return (
        Tool(REMEMBER, REMEMBER_DESCRIPTION + how, RememberArguments, remember, reach),
        Tool(PIN, PIN_DESCRIPTION + how, PinArguments, pin, reach),
        Tool(FORGET, FORGET_DESCRIPTION + how, ForgetArguments, forget, reach),
    )


def remember(reach: Reach, arguments: RememberArguments) -> str:
    """Note a text, or propose that.

    Raises:
        ToolRefusal: nothing is left to note.
        InvalidMessage, ConversationGone: the edit is not possible now.
        LogError: the log cannot be read or written.
    """
    text = fit_note(arguments.kind, arguments.text)
    if text is None:
        raise ToolRefusal(
            "there is nothing to note in this text: give one whole sentence that does not end in a colon."
        )
    asked = _ask(reach, Wanted("remember", text=text, kind=arguments.kind))
    match asked.outcome:
        case "done":
            return f"Remembered as {asked.edit_id}. {FORGET} with this id takes it back."
        case "known":
            return f"The same is noted already, as {asked.edit_id}."
        case _:
            return _describe_proposal(asked, "noted")


def pin(reach: Reach, arguments: PinArguments) -> str:
    """Pin a text or a message, or propose that.

    Raises:
        ToolRefusal: the message is not one of this conversation, or nothing is left to pin.
        InvalidMessage, ConversationGone: the edit is not possible now.
        LogError: the log cannot be read or written.
    """
    if arguments.message.strip():
        wanted = Wanted("pin", position=_position(reach, arguments.message))
    else:
        lines = map(clean, redact(remove_headings(arguments.text)).splitlines())
        wanted = Wanted("pin", text="\n".join(filter(None, lines)))
        if not wanted.text:
            raise ToolRefusal("there is nothing to pin in this text.")
    asked = _ask(reach, wanted)
    match asked.outcome:
        case "done":
            return f"Pinned as {asked.edit_id}. {FORGET} with this id takes it back."
        case "known":
            return f"The same is pinned already, as {asked.edit_id}."
        case _:
            return _describe_proposal(asked, "pinned")


def forget(reach: Reach, arguments: ForgetArguments) -> str:
    """Remove a pin, withdraw a note or erase a message, or propose that.

    Raises:
        ToolRefusal: it is nothing that can be forgotten here.
        InvalidMessage, ConversationGone: the edit is not possible now.
        LogError: the log cannot be read or written.
    """
    target = arguments.target.strip()
    if find_target(reach.core, _home(reach), target):
        asked, done = _ask(reach, Wanted("forget", target=target)), f"{target} is forgotten."
    else:
        position = _position(reach, target)
        asked = _ask(reach, Wanted("forget", position=position))
        done = f"Message {position} is erased, with all that was made from it."
    return done if asked.outcome in ("done", "known") else _describe_proposal(asked, "forgotten")


def _describe_proposal(asked: Asked, done: str) -> str:
    if asked.outcome == "waiting":
        return f"The same is proposed already, as {asked.edit_id}: it waits to be decided. Go on without it."
    return (
        f"Proposed as {asked.edit_id}: nothing is {done} unless the program or a person allows it. "
        "Go on without it."
    )


def _home(reach: Reach) -> str:
    if reach.home is None:
        raise ToolRefusal("these tools have no conversation of their own.")
    return reach.home


def _ask(reach: Reach, wanted: Wanted) -> Asked:
    rights = reach.edits
    assert rights is not None, "only a reach with rights has these tools"
    ask = partial(ask_edit, reach.core, _home(reach), wanted, rights.mode, rights.author)
    return rights.finish(ask)


def _position(reach: Reach, where: str) -> int:
    """Return the position of a message that is not erased.

    Raises:
        ToolRefusal: it is erased, or not a message of this conversation.
    """
    home, where = _home(reach), where.strip()
    try:
        position = position_in(home, where)
    except ForeignAddress as error:
        raise ToolRefusal(
            f"{quote_name(where, 120)} is a message of another conversation: this tool edits its own alone."
        ) from error
    except InvalidAddress as error:
        raise ToolRefusal(
            f"{quote_name(where, 80)} is neither an id that {PIN} or {REMEMBER} gave, nor an address such as "
            "refold://THREAD/POSITION, nor a position. What is only proposed cannot be forgotten."
        ) from error
    state = reach.core.log.load(home).present().state
    if not 0 <= position < state.length:
        raise UnknownMessage(position, state.length)
    found = stored_messages(reach.core, home, position, position + 1)
    if not found or found[0].erased:
        raise ToolRefusal(f"message {position} is erased or lost: nothing of it is left.")
    return position

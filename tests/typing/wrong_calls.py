"""Calls that a type checker must refuse. Each refused line says by which rule of each checker."""

import refold


def thread_ids(memory: refold.Memory) -> None:
    """An id is text; it is there."""
    memory.conversation(7)  # error: mypy[arg-type] pyright[reportArgumentType]
    memory.conversation(None)  # error: mypy[arg-type] pyright[reportArgumentType]
    memory.conversation(b"thread")  # error: mypy[arg-type] pyright[reportArgumentType]
    memory.conversation()  # error: mypy[call-arg] pyright[reportCallIssue]
    memory.conversation("thread", "user-1")  # error: mypy[call-arg] pyright[reportCallIssue]
    memory.conversation("thread", owner=7)  # error: mypy[arg-type] pyright[reportArgumentType]
    memory.erase_conversation(7)  # error: mypy[arg-type] pyright[reportArgumentType]


def appends(memory: refold.Memory) -> None:
    """Keys and authors."""
    conversation = memory.conversation("thread")
    conversation.append({"role": "user", "content": "Hi"}, key=7)  # error: mypy[arg-type] pyright[reportArgumentType]
    conversation.append({"role": "user", "content": "Hi"}, author="robot")  # error: mypy[arg-type] pyright[reportArgumentType]
    conversation.append({"role": "user", "content": "Hi"}, expected="1")  # error: mypy[call-arg] pyright[reportCallIssue]
    conversation.append()  # error: mypy[call-arg] pyright[reportCallIssue]
    conversation.add({"role": "user", "content": "Hi"})  # error: mypy[attr-defined] pyright[reportAttributeAccessIssue]


def contexts(memory: refold.Memory) -> None:
    """Parameters of a request, and what it holds."""
    conversation = memory.conversation("thread")
    context = conversation.context(position="last")  # error: mypy[arg-type] pyright[reportArgumentType]
    conversation.context(modell="claude-opus-4-5")  # error: mypy[call-arg] pyright[reportCallIssue]
    conversation.context("Be brief.")  # error: mypy[call-arg] pyright[reportCallIssue]
    conversation.compact(keep_last="all")  # error: mypy[arg-type] pyright[reportArgumentType]
    print(context.token)  # error: mypy[attr-defined] pyright[reportAttributeAccessIssue]
    context.version = 7  # error: mypy[misc] pyright[reportAttributeAccessIssue]
    context.for_anthropic(betas=7)  # error: mypy[arg-type] pyright[reportArgumentType]
    context.for_anthropic("some-beta")  # error: mypy[call-arg] pyright[reportCallIssue]


def results(memory: refold.Memory) -> None:
    """Fields that there are, as what they are."""
    conversation = memory.conversation("thread")
    stored = conversation.append({"role": "user", "content": "Hi"})
    stored.version = 8  # error: mypy[misc] pyright[reportAttributeAccessIssue]
    print(stored.position)  # error: mypy[attr-defined] pyright[reportAttributeAccessIssue]
    print(conversation.compact().outcome == "perfomed")  # error: mypy[comparison-overlap] pyright[reportUnnecessaryComparison]
    summary: str = conversation.messages()[0].summary_id  # error: mypy[assignment] pyright[reportAssignmentType]
    print(summary, conversation.read(0.5))  # error: mypy[arg-type] pyright[reportArgumentType]
    name: str = conversation.owner  # error: mypy[assignment] pyright[reportAssignmentType]
    print(name)


def context_managers(memory: refold.Memory) -> None:
    """A memory is one, and a turn; a conversation is none."""
    with memory.conversation("thread"):  # error: mypy[attr-defined] pyright[reportGeneralTypeIssues]
        pass
    with refold.aopen("agent.db"):  # error: mypy[attr-defined] pyright[reportGeneralTypeIssues]
        pass
    with memory.conversation("thread").turn(wait="long"):  # error: mypy[arg-type] pyright[reportArgumentType]
        pass
    with memory as opened:
        opened.conversatoin("thread")  # error: mypy[attr-defined] pyright[reportAttributeAccessIssue]

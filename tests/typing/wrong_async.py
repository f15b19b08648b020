"""Asynchronous programs that forget to await, or take the blocking memory for the other."""

import refold


async def forgotten(memory: refold.AsyncMemory) -> None:
    """Results that are not awaited have no fields."""
    conversation = memory.conversation("thread")
    print(conversation.context().messages)  # error: mypy[attr-defined] pyright[reportAttributeAccessIssue]
    conversation.append({"role": "user", "content": "Hi"}).version  # error: mypy[attr-defined] pyright[reportAttributeAccessIssue]
    for hit in conversation.recall("port"):  # error: mypy[attr-defined] pyright[reportGeneralTypeIssues]
        print(hit)
    memory.conversation(7)  # error: mypy[arg-type] pyright[reportArgumentType]
    await memory.conversation("thread")  # error: mypy[misc] pyright[reportGeneralTypeIssues]
    await conversation.append()  # error: mypy[call-arg] pyright[reportCallIssue]
    await conversation.recall("port", limits=3)  # error: mypy[call-arg] pyright[reportCallIssue]


async def exchanged(blocking: refold.Memory) -> None:
    """The two kinds of memory are different types."""
    await blocking.conversation("thread").context()  # error: mypy[misc] pyright[reportGeneralTypeIssues]
    async with blocking:  # error: mypy[attr-defined] pyright[reportGeneralTypeIssues]
        pass
    memory: refold.AsyncMemory = refold.open("agent.db")  # error: mypy[assignment] pyright[reportAssignmentType]
    await memory.close(wait="long")  # error: mypy[arg-type] pyright[reportArgumentType]
    async with refold.aopen("agent.db", windw=8_000):  # error: mypy[call-arg] pyright[reportCallIssue]
        pass

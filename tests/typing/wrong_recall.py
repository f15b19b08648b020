"""Options of recall, pages and tools that a type checker must refuse."""

import refold


def recall(memory: refold.Memory) -> None:
    """Names and values of options."""
    conversation = memory.conversation("thread")
    conversation.recall(7)  # error: mypy[arg-type] pyright[reportArgumentType]
    conversation.recall("port", limits=3)  # error: mypy[call-arg] pyright[reportCallIssue]
    conversation.recall("port", limit="3")  # error: mypy[arg-type] pyright[reportArgumentType]
    conversation.recall("port", mode="meaning")  # error: mypy[arg-type] pyright[reportArgumentType]
    conversation.recall("port", scope="everyone")  # error: mypy[arg-type] pyright[reportArgumentType]
    conversation.recall("port", in_context="drop")  # error: mypy[arg-type] pyright[reportArgumentType]
    conversation.recall("port", roles=7)  # error: mypy[arg-type] pyright[reportArgumentType]
    memory.search("port", thread="thread")  # error: mypy[call-arg] pyright[reportCallIssue]
    for hit in conversation.recall("port"):
        print(hit.adress)  # error: mypy[attr-defined] pyright[reportAttributeAccessIssue]
        tool: str = hit.tool  # error: mypy[assignment] pyright[reportAssignmentType]
        print(tool)
    how: refold.RecallOptions = {"mod": "vector"}  # error: mypy[typeddict-unknown-key] pyright[reportAssignmentType]
    conversation.recall("port", **how)


def pages(memory: refold.Memory) -> None:
    """The next position may be missing."""
    conversation = memory.conversation("thread")
    page = conversation.query(start="0")  # error: mypy[arg-type] pyright[reportArgumentType]
    following: int = page.next  # error: mypy[assignment] pyright[reportAssignmentType]
    print(following, page.records[0].body)  # error: mypy[attr-defined] pyright[reportAttributeAccessIssue]
    conversation.query("port")  # error: mypy[call-arg] pyright[reportCallIssue]
    conversation.expand(7)  # error: mypy[arg-type] pyright[reportArgumentType]


def tools(memory: refold.Memory) -> None:
    """Tools by their names."""
    box = memory.conversation("thread").tools(scope="everything")  # error: mypy[arg-type] pyright[reportArgumentType]
    box["recall_memory"].run("port")  # error: mypy[attr-defined] pyright[reportAttributeAccessIssue]
    box.call("recall_memory")  # error: mypy[call-arg] pyright[reportCallIssue]
    number: int = box["recall_memory"](query="port")  # error: mypy[assignment] pyright[reportAssignmentType]
    print(number, box[None])  # error: mypy[call-overload] pyright[reportArgumentType, reportCallIssue]

"""A process that appends and embeds: ``python -m tests.support.embedding_process PATH NAME COUNT``."""

import sys

import refold

from .fake_embedders import DigestEmbedder


def main(path: str, name: str, count: str) -> None:
    with refold.open(path, embedder=DigestEmbedder()) as memory:
        conversation = memory.conversation("t")
        for number in range(int(count)):
            conversation.append({"role": "user", "content": f"{name} said the {number}th thing"})
            if number % 5 == 0:
                conversation.recall(f"what did {name} say?")
        progress = memory.embed()
        assert progress is not None
        print(progress.done, progress.total, progress.error)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The shell that the agent talks to: commands answered from the files, others from the screenplay."""

import re
import shlex
from random import Random

from .logs import GENERATORS
from .testrun import run_tests
from .workspace import Refused, Workspace

BRANCH = "leases"


class Terminal:
    """Answers a command line; a text from the screenplay stands for what cannot be worked out."""

    def __init__(self, workspace: Workspace, rng: Random) -> None:
        self._files = workspace
        self._rng = rng

    def run(self, command: str, script: str, fails: bool) -> str:
        """The output. With a script it is that text, unless it only adds failures to a test run."""
        if script and not script.startswith("!"):
            if fails:
                raise Refused(script)
            return script
        made = self.generated(script)
        if made:
            return made.rstrip("\n")
        outputs = [self._one(shlex.split(one), script) for one in command.split(" && ")]
        text = "\n".join(o for o in outputs if o)
        if fails or script.startswith("!fail"):
            raise Refused(text)
        return text or "(no output)"

    def generated(self, body: str) -> str | None:
        """The text of a body like ``!worker_log 520``; None for any other body."""
        name, *numbers = body.split("\n", 1)[0].removeprefix("!").split() or [""]
        if not body.startswith("!") or name not in GENERATORS:
            return None
        return GENERATORS[name](self._rng, self._files.files, numbers)

    def _one(self, words: list[str], script: str) -> str:
        match words:
            case ["uv", "run", *rest]:
                return self._tool(rest, script)
            case ["git", *rest]:
                return self._git(rest)
            case ["cat", *paths]:
                return "\n".join(self._text(path).rstrip("\n") for path in paths)
            case ["sed", "-n", span, path]:
                first, last = re.findall(r"\d+", span)
                return "\n".join(self._text(path).splitlines()[int(first) - 1 : int(last)])
            case ["head", "-n", count, path]:
                return "\n".join(self._text(path).splitlines()[: int(count)])
            case ["tail", "-n", count, path]:
                return "\n".join(self._text(path).splitlines()[-int(count) :])
            case ["grep", "-c", pattern, path]:
                return str(sum(pattern in line for line in self._text(path).splitlines()))
            case ["grep", pattern, path]:
                return "\n".join(x for x in self._text(path).splitlines() if pattern in x)
            case ["wc", "-l", *paths]:
                return self._count_lines(paths)
            case ["ls", "-la", folder]:
                return self._list(folder.rstrip("/"))
            case ["find", folder, "-type", "f"]:
                below = "" if folder == "." else folder + "/"
                return "\n".join(f"./{p}" for p in sorted(self._files.files) if p.startswith(below))
            case ["cd" | "mkdir" | "cp" | "rm" | "mv" | "export" | "git-add", *_]:
                return ""
            case _:
                raise ValueError(f"no answer for {shlex.join(words)!r}: write it in the screenplay")

    def _tool(self, words: list[str], script: str) -> str:
        match words:
            case ["pytest", *rest]:
                return run_tests(self._files.files, self._rng, rest, script)
            case ["ruff", "check", *_]:
                return "All checks passed!"
            case ["ruff", "format", *_]:
                return f"{len(self._python())} files left unchanged"
            case ["mypy", *_]:
                own = [p for p in self._python() if p.startswith("teahouse/")]
                return f"Success: no issues found in {len(own)} source files"
            case _:
                raise ValueError(f"no answer for uv run {shlex.join(words)!r}")

    def _git(self, words: list[str]) -> str:
        match words:
            case ["add", *_]:
                return ""
            case ["commit", "-qm" | "-m" | "-am", message]:
                return self._files.commit(message, BRANCH)
            case ["status", "--short"]:
                shown = {"A": "??", "M": " M", "D": " D"}
                return "\n".join(f"{shown[m]} {p}" for m, p in self._files.changed())
            case ["log", "--oneline", count]:
                return "\n".join(f"{n} {m}" for n, m in self._files.commits[: int(count[1:])])
            case ["diff", *paths]:
                return self._files.diff(paths[-1] if paths else "")
            case _:
                raise ValueError(f"no answer for git {shlex.join(words)!r}")

    def _python(self) -> list[str]:
        return [
            path for path in self._files.files if path.endswith(".py") and not path.startswith("/")
        ]

    def _text(self, path: str) -> str:
        if path not in self._files.files:
            raise Refused(f"cat: {path}: No such file or directory")
        return self._files.files[path]

    def _count_lines(self, paths: list[str]) -> str:
        counts = [(self._text(path).count("\n"), path) for path in paths]
        if len(counts) > 1:
            counts.append((sum(n for n, _ in counts), "total"))
        return "\n".join(f"{n:>6} {path}" for n, path in counts)

    def _list(self, folder: str) -> str:
        rows = list[str]()
        for path in sorted(self._files.files):
            if path.rpartition("/")[0] == folder:
                name, size = path.rpartition("/")[2], len(self._files.files[path].encode())
                rows.append(f"-rw-r--r-- 1 dev dev {size:>7} Mar  9 18:4{size % 10} {name}")
        return f"total {len(rows) * 8}\n" + "\n".join(rows)

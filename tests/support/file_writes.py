"""Which files a process opens for writing or makes, as the system sees it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

CALLS = "open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,mknod,mknodat"
_CALL = re.compile(r"^\d+\s+(\w+)\((.*)\)\s+= (-?\d+)")
_PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
_WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TMPFILE")
_DEVICES = ("/dev/null", "/dev/tty", "/proc/")


def written(words: Sequence[str], folder: Path) -> tuple[int, list[str]]:
    """Run a module in a process of its own; how it ended, and what it wrote outside of the folder."""
    traced = folder.with_name(f"{folder.name}.trace")
    watching = f"strace -f --seccomp-bpf -qq -s 4096 -e trace={CALLS} -o".split()
    ended = subprocess.run(
        [*watching, f"{traced}", sys.executable, "-B", "-m", *words],
        cwd=Path(__file__).resolve().parents[2],
        env={**os.environ, "HOME": f"{folder}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    places = _places(traced.read_text("utf-8", "replace").splitlines())
    outside = sorted({place for place in places if not _is_inside(place, folder)})
    print(ended.stdout, ended.stderr)
    return ended.returncode, outside


def _places(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        found = _CALL.match(line)
        if found is None or int(found[3]) < 0:
            continue
        call, given = found[1], found[2]
        if call.startswith("open") and not _WRITING.search(given):
            continue
        paths = _PATH.findall(given)
        yield paths[-1] if paths else line


def _is_inside(place: str, folder: Path) -> bool:
    return Path(place).is_relative_to(folder) or place.startswith(_DEVICES)

"""A small disk that a test can fill."""

import subprocess
from pathlib import Path

import pytest


class Mounted:
    """A small disk of its own in memory, where this process may mount one."""

    def __init__(self, place: Path, options: str = "size=600k") -> None:
        self.place = place
        place.mkdir()
        self.run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place))

    def unmount(self) -> None:
        subprocess.run(["umount", "-l", str(self.place)], check=True)

    def run(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")

    def fill(self) -> Path:
        """Leave no byte free; the file that takes it all."""
        ballast = self.place / "ballast"
        with ballast.open("wb", buffering=0) as file:
            for size in (4096, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass
        return ballast

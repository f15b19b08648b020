"""A log on a network file system: one warning, with its kind and what a commit takes; never a refusal."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

import refold
from refold.infrastructure.observability.log_observer import Notice
from refold.infrastructure.sqlite import read_only as network
from refold.infrastructure.sqlite.read_only import KINDS, Mount, NetworkWarnings, network_mount

LOCAL = [Mount("/", "ext4"), Mount("/proc", "proc"), Mount("/tmp", "tmpfs")]


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "refold.log")
    return caplog


def given(monkeypatch: pytest.MonkeyPatch, table: Sequence[Mount]) -> list[Path]:
    """Have this be the table of mounts; the folders whose syncs are measured."""
    measured: list[Path] = []

    def measure(folder: Path) -> float:
        measured.append(folder)
        return 0.0123

    monkeypatch.setattr(network, "NETWORK", NetworkWarnings(lambda: table, measure))
    return measured


REMOTE = "nfs nfs4 cifs smb3 9p fuse.sshfs afs ceph glusterfs fuse.glusterfs lustre smbfs NFS4"


def ours(warnings: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines of refold. Those of asyncio may come from another test."""
    return [r.getMessage() for r in warnings.records if r.name.startswith("refold")]


@pytest.mark.parametrize("kind", REMOTE.split(" "))
def test_a_log_on_a_network_is_told_once_with_its_kind_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: pytest.LogCaptureFixture, kind: str
) -> None:
    measured = given(monkeypatch, [*LOCAL, Mount(str(tmp_path), kind)])
    for _ in range(3):
        with refold.open(tmp_path / "a.db") as memory:
            memory.conversation("t").append({"role": "user", "content": "x"})
    [told] = ours(warnings)
    assert told.startswith("log.on_network ")
    assert f"kind={kind}" in told
    assert "commit_ms=12.3" in told
    assert measured == [tmp_path.resolve()]
    with refold.open(tmp_path / "b.db"):
        assert len(ours(warnings)) == 2


def test_a_log_on_a_disk_of_this_machine_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: pytest.LogCaptureFixture
) -> None:
    measured = given(monkeypatch, [*LOCAL, Mount(str(tmp_path / "elsewhere"), "nfs4")])
    with refold.open(tmp_path / "a.db"), refold.open(":memory:"):
        assert (measured, warnings.records) == ([], [])


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ([Mount("/", "nfs4"), Mount("/data", "xfs")], None),
        ([Mount("/", "ext4"), Mount("/data", "nfs4"), Mount("/data/logs", "ext4")], None),
        ([Mount("/", "ext4"), Mount("/data/logs", "nfs4"), Mount("/data", "ext4")], "nfs4"),
        ([Mount("/data", "ext4"), Mount("/data", "ceph")], "ceph"),
        ([Mount("/data", "ceph"), Mount("/data", "ext4")], None),
        ([Mount("/", "ext4"), Mount("/data/log", "nfs")], None),
        ([Mount("/", "NTFS", "rw,remote")], "NTFS"),
        ([Mount("/", "overlay"), Mount("/data", "fuseblk")], None),
        ([], None),
    ],
)
def test_the_mount_is_the_innermost_one_and_of_those_at_one_place_the_last(
    table: list[Mount], found: str | None
) -> None:
    mount = network_mount(Path("/data/logs/a.db"), table)
    assert (mount and mount.kind) == found


def test_a_link_is_followed_to_where_the_log_lies(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    table = [Mount("/", "ext4"), Mount(str(tmp_path.resolve() / "real"), "cifs")]
    assert network_mount(tmp_path / "link" / "a.db", table)


def test_where_nothing_can_be_written_no_time_is_told(tmp_path: Path) -> None:
    told: list[Notice] = []
    warnings = NetworkWarnings(lambda: [Mount("/", "nfs")])
    warnings.look(tmp_path / "gone" / "a.db", told.append)
    assert [sorted(n.figures) for n in told] == [["kind", "mount", "path"]]
    warnings.look(tmp_path / "a.db", told.append)
    assert isinstance(told[1].figures["commit_ms"], float)
    assert list(tmp_path.iterdir()) == []


def test_the_table_of_this_machine_can_be_read() -> None:
    assert any(mount.place == "/" for mount in network.mounts())
    assert all(kind == kind.lower() for kind in KINDS)

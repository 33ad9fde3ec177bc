# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fakes of Lustre refuse what the real programs refuse."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from lab.lustre.fake import ask, disk, lnet, mmp, mounts, network, quota, state


@pytest.mark.parametrize("options", [["flock", "_netdev", "x-systemd.automount"], ["retry=5", "ro"], []])
def test_options_that_the_kernel_takes(options: list[str]) -> None:
    assert mounts.read_options(options, client=True) is not None


@pytest.mark.parametrize("options", [["flok"], ["retry=many"], ["nosvc"], ["mgssec=rot13"]])
def test_options_that_end_with_an_invalid_argument(options: list[str]) -> None:
    assert mounts.read_options(options, client=True) is None


def test_a_source_has_servers_and_their_addresses() -> None:
    assert mounts.read_source("10.0.0.1@tcp0,10.1.0.1@o2ib:10.0.0.2@tcp:/home/a/b") == (
        [["10.0.0.1@tcp", "10.1.0.1@o2ib"], ["10.0.0.2@tcp"]],
        "home",
        "a/b",
    )


@pytest.mark.parametrize("source", ["10.0.0.1@ether:/home", "10.0.0.1@tcp,:/home", "999.0.0.1@tcp:/home"])
def test_a_nid_that_cannot_be_parsed(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        mounts.read_source(source)
    assert ended.value.code == 22
    assert "Can't parse NID" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["/srv/target"], 22),
        (["--ost", "--fsname=ninechars", "--index=0", "--mgsnode=10.0.0.1@tcp", "/srv/target"], 22),
        (["--ost", "--fsname=home", "--mgsnode=10.0.0.1@tcp", "/srv/target"], 22),
        (["--ost", "--fsname=home", "--index=0", "/srv/target"], 22),
        (["--ost", "--fsname=home", "--index=0", "--mgsnode=10.0.0.1@tcp", "/does/not/exist"], 2),
    ],
)
def test_what_mkfs_does_not_format(words: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        disk.mkfs(words)
    assert ended.value.code == code
    assert "mkfs.lustre FATAL" in capsys.readouterr().err


def test_the_kernel_is_told_addresses() -> None:
    assert mounts.numeric("localhost@tcp0:10.0.0.2@tcp:/home/a") == "127.0.0.1@tcp:10.0.0.2@tcp:/home/a"
    assert mounts.numeric("/dev/sdb") == "/dev/sdb"


def test_what_is_kept_reaches_all_that_it_is_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(state, "VAR", tmp_path)
    monkeypatch.setattr(network, "manages", lambda: True)
    for value in ("ugp", "none", "ug"):
        ask.set_param(["-P", f"osd-*.home-OST*.quota_slave.enabled={value}"])
    assert network.kept("osd-ldiskfs.home-OST0003.quota_slave.enabled") == "ug"
    assert network.kept("osd-ldiskfs.home-MDT0000.quota_slave.enabled") is None
    with pytest.raises(SystemExit):
        ask.set_param(["-P", "osd-*.home-OST*.quota_slave.enabled=all"])
    assert "Invalid argument" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("e2mmpstatus") is None, reason="e2fsprogs is not installed")
def test_a_device_that_is_mounted_says_so(tmp_path: Path) -> None:
    """e2mmpstatus, which is independent, reads the mark."""
    device = tmp_path / "device"
    device.touch()
    os.truncate(device, 16 * 1024**2)
    subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", *mmp.OPTIONS, device], check=True)
    assert mmp.protected(str(device)) and not mmp.is_held(str(device))
    mmp.mark(str(device), 7)
    told = subprocess.run(["e2mmpstatus", "-i", device], capture_output=True, text=True, check=True).stdout
    assert "mmp_sequence: 0x000007" in told and f"mmp_node_name: {socket.gethostname()}" in told
    disk.write(str(device), {"name": "home-OST0000"})  # without waiting for a change of the mark
    assert disk.read(str(device)) == {"name": "home-OST0000"} and mmp.protected(str(device))


def test_a_label_tells_whether_a_target_was_ever_mounted() -> None:
    assert disk.label({"name": "home-OST0001", "separator": ":"}) == "home:OST0001"
    assert disk.label({"name": "my-fs-MDT0000", "separator": "-"}) == "my-fs-MDT0000"
    assert disk.label({"name": "MGS", "separator": "-"}) == "MGS"


def test_networks_have_one_name() -> None:
    assert [network.canonical(one) for one in ("tcp0", "tcp", "o2ib0", "tcp10")] == [
        "tcp",
        "tcp",
        "o2ib",
        "tcp10",
    ]


def test_errors_of_lnetctl_have_their_form(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        lnet.complain("add", "net", 19, "cannot add network: No such device")
    assert ended.value.code == 237
    assert "errno: -19" in capsys.readouterr().err


def test_a_project_is_inherited_from_the_nearest_folder() -> None:
    projects = {"a": 1, "a/b": 2}
    assert [quota.project_of(projects, one) for one in ("a/x", "a/b/x", "c", "a")] == [1, 2, 0, 1]


def test_programs_over_netlink_say_otherwise_that_modules_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """lnetctl 2.17.57 was seen to do so; `export` counts as done."""
    monkeypatch.setattr(state, "RUN", tmp_path)
    monkeypatch.setattr(state, "NETLINK", True)
    with pytest.raises(SystemExit) as ended:
        lnet.lnetctl(["net", "show"])
    assert ended.value.code == 234
    lnet.lnetctl(["export"])
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("failed to resolve Netlink family id") == 2

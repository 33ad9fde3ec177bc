# SPDX-License-Identifier: GPL-3.0-or-later
"""An Xid of a simulated GPU on hosts of the bench: the journal has it as a kernel's message."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator

import pytest

from lab.patience import PATIENCE

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes mounts and network namespaces: needs root"),
]
HOSTS = {"old": "bookworm", "new": "trixie"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    environment = os.environ | {
        "LAB_STATE_DIR": str(tmp_path_factory.mktemp("lab")),
        "LAB_BENCH": f"xid{os.getpid()}",
    }

    def run(*words: str, stdin: str = "") -> str:
        done = subprocess.run(
            ["lab", *words],
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=3 * PATIENCE,
            check=False,
        )
        assert not done.returncode, done.stderr
        return done.stdout.strip()

    hosts = [{"name": name, "suite": suite, "gpus": ["a30:1"]} for name, suite in HOSTS.items()]
    try:
        run("up", "--spec", "-", stdin=json.dumps({"hosts": hosts}))
        yield run
    finally:
        run("down")


def kernel_messages(lab: Callable[..., str], host: str) -> list[dict[str, str]]:
    lines = lab("exec", host, "--", "journalctl", "-k", "-o", "json", "--no-pager").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


# Two Xids, a user's forgery, and one more Xid to a journal that was restarted.
EVENTS = """
simgpu xid 0 79
simgpu xid 0 48
runuser -u nobody -- logger -p kern.crit -t kernel forged
systemctl restart systemd-journald.service
simgpu xid 0 13
test ! -e /dev/kmsg
"""


@pytest.mark.parametrize("host", HOSTS)
def test_an_xid_is_a_message_of_the_kernel(lab: Callable[..., str], host: str) -> None:
    lab("exec", host, "--", "sh", "-e", "-c", EVENTS)
    found = kernel_messages(lab, host)
    assert [message["MESSAGE"].split()[3] for message in found] == ["79,", "48,", "13,"]
    assert {(message["_TRANSPORT"], message["SYSLOG_IDENTIFIER"]) for message in found} == {
        ("kernel", "kernel")
    }
    assert found[0]["MESSAGE"].startswith("NVRM: Xid (PCI:0000:07:00): 79, ")


def test_such_a_host_still_restarts(lab: Callable[..., str]) -> None:
    lab("reset", "old")
    assert lab("exec", "old", "--", "systemctl", "is-system-running", "--wait") == "running"
    assert kernel_messages(lab, "old") == []

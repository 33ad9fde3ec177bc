"""Repositories are mounted by autofs and seen by those who started before; nobody's file is gone."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

REPOSITORIES = ("sft.cern.ch", "tools.example.org")


@pytest.mark.parametrize("name", REPOSITORIES)
def test_a_user_reads_the_repository(host, name):
    assert host.check_output("su -s /bin/sh nobody -c 'cat /cvmfs/%s/hello'", name) == f"Hello from {name}"
    mount = host.check_output(
        "findmnt --noheadings --output FSTYPE,SOURCE,OPTIONS --mountpoint /cvmfs/%s", name
    )
    assert mount.split()[:2] == ["fuse", "cvmfs2"] and " ro," in mount


def test_the_version_is_the_one_that_was_asked_for(host):
    """Debian's packages of the client need their libraries in the same version."""
    for package in ("cvmfs", "cvmfs-libs"):
        assert host.package(package).version == "2.13.2~1"


def test_both_repositories_come_through_the_proxy(host):
    log = host.check_output("journalctl -u fake -o cat")
    for name in REPOSITORIES:
        assert f"3128 GET http://127.0.0.1:8000/cvmfs/{name}/.cvmfspublished" in log


def test_the_configuration_is_what_the_client_reads(host):
    shown = host.check_output("cvmfs_config showconfig -s tools.example.org")
    assert "CVMFS_KCACHE_TIMEOUT=30 " in shown
    assert "CVMFS_HTTP_PROXY='http://127.0.0.1:3128|http://127.0.0.1:3128;DIRECT'" in shown
    assert "CVMFS_KEYS_DIR=/etc/cvmfs/keys/gpufarm/example.org" in shown
    assert host.check_output("cvmfs_config chksetup") == "OK"


def test_the_clients_outlive_a_restart_of_autofs(host):
    """Those that somebody uses; the others are unmounted."""
    said = host.check_output(
        "cd /cvmfs/sft.cern.ch; cvmfs_talk -i sft.cern.ch pid; systemctl restart autofs; cat hello;"
        " cvmfs_talk -i sft.cern.ch pid; cat /cvmfs/sft.cern.ch/hello"
    ).splitlines()
    assert said[0] == said[2] and said[1] == said[3] == "Hello from sft.cern.ch"


def test_a_notebook_sees_what_is_mounted_after_its_start(host):
    """Units with name spaces of their own: as a notebook's, and with slave propagation as a container's."""
    start = "systemd-run --quiet --unit"
    seen = host.check_output(
        f"{start} notebook --property ProtectSystem=strict --property PrivateTmp=yes sleep 300;"
        f"{start} container unshare --mount --propagation slave sleep 300;"
        "sleep 1; ls /cvmfs/data.example.org;"
        "for unit in notebook container; do"
        "  nsenter --mount --target $(systemctl show --property MainPID --value $unit)"
        "  grep --count ' /cvmfs/data.example.org .* cvmfs2 ' /proc/self/mountinfo;"
        "  systemctl stop $unit; done"
    )
    assert seen.split() == ["hello", "1", "1"]

"""The upgrade replaced the whole driver and rebooted; the fabric manager has the driver's version."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

VERSION = "580.95.05"


def test_everything_has_the_new_version(host):
    for name in ("nvidia-driver-cuda", "libcuda1", "nvidia-kernel-open-dkms", "nvidia-fabricmanager"):
        assert host.package(name).version == f"{VERSION}-1"
    status = host.check_output("dkms status nvidia")
    assert status.count(f"nvidia/{VERSION}, ") == len(status.splitlines()) == 2


def test_services_are_what_was_asked_for(host):
    assert host.service("nvidia-fabricmanager").is_enabled
    assert not host.service("nvidia-persistenced").is_enabled


def test_the_machine_was_rebooted(host):
    assert len(host.check_output("journalctl --list-boots --quiet").splitlines()) > 1
    assert not host.file("/run/gpufarm-nvidia-driver-is-new").exists

"""Munge of the site runs as before, with its key."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest


def test_munge_of_the_site_goes_on(host):
    if host.check_output("hostname") != "ctl1":
        pytest.skip("only ctl1 had munge")
    key = host.file("/etc/munge/munge.key")
    assert key.content_string.startswith("s3cret-of-the-site-")
    assert (key.user, key.mode) == ("munge", 0o600)
    munge = host.service("munge")
    assert munge.is_enabled
    assert munge.is_running
    assert "gpufarm" not in host.check_output("systemctl show --property=DropInPaths munge")
    assert "STATUS:          Success" in host.check_output("munge --no-input | unmunge")


def test_nothing_else_of_slurm_is_left(host):
    for package in ("slurmctld", "slurm-client"):
        assert not host.package(package).is_installed

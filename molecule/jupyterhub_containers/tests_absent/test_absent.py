"""Podman goes with the hub that has brought it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_podman_is_gone(host):
    assert not host.file("/usr/bin/podman").exists

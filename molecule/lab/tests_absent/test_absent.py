"""Removed hosts are gone."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_package_is_gone(host):
    assert not host.package("nginx-light").is_installed
    assert not host.socket("tcp://0.0.0.0:80").is_listening

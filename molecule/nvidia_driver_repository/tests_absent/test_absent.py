"""Packages, runfile, modules, package sources and pins are gone."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_left(host):
    assert "nvidia" not in host.check_output(
        "dpkg-query --show --showformat='${Package} ${db:Status-Status}\n'"
    )
    assert host.check_output("dkms status nvidia") == ""
    assert host.check_output("find /lib/modules -name 'nvidia.ko*'") == ""
    assert host.check_output("find /etc /var/cache/gpufarm -name '*gpufarm-n*' -o -name 'nvidia-*'") == ""
    assert not host.file("/opt/gpufarm/gpu").exists
    assert not host.file("/usr/bin/nvidia-uninstall").exists

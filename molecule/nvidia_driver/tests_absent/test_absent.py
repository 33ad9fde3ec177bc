"""Files of the role are gone; the driver, which it did not install, is not."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_absent(host):
    assert not host.file("/opt/gpufarm/gpu").exists
    assert host.check_output("simgpu status")

"""Nothing of either instance is left on the machine."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_left(host):
    for name in ("chronos", "chronos-ada"):
        assert not host.file(f"/etc/{name}").exists
        assert not host.file(f"/etc/systemd/system/{name}.service").exists
        assert not host.user(name).exists
    assert not host.file("/opt/chronos").exists

"""The GPU is whole again, and nothing is left of the role."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

MODE = "import pynvml as n; n.nvmlInit(); print(n.nvmlDeviceGetMigMode(n.nvmlDeviceGetHandleByIndex(0)))"


def test_mig_mode_is_off(host):
    assert host.check_output("/opt/gpufarm/gpu/bin/python -c %s", MODE) == "[0, 0]"


def test_nothing_is_left(host):
    for path in ("/etc/gpufarm/mig.json", "/opt/gpufarm/mig", "/etc/systemd/system/gpufarm-mig.service"):
        assert not host.file(path).exists
    assert "gpufarm-mig" not in host.check_output("systemctl list-units --all --plain --no-legend")

"""ECC mode took effect with the reboot."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

MODE = "import pynvml as n; n.nvmlInit(); print(n.nvmlDeviceGetEccMode(n.nvmlDeviceGetHandleByIndex(0)))"


def test_ecc_mode_is_in_force(host):
    assert host.check_output("/opt/gpufarm/gpu/bin/python -c %s", MODE) == "[0, 0]"

"""Two large slices, after the change and after the reboot that follows it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

COUNT = (
    "import pynvml as n; n.nvmlInit(); gpu = n.nvmlDeviceGetHandleByIndex(0);"
    "print(n.nvmlDeviceGetMigMode(gpu)[0], *(n.nvmlDeviceGetName("
    "n.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)).split()[-1] for index in range(2)))"
)


def test_two_slices_of_half_the_memory(host):
    assert host.check_output("/opt/gpufarm/gpu/bin/python -c %s", COUNT) == "1 3g.40gb 3g.40gb"


def test_the_unit_has_done_its_work(host):
    assert host.service("gpufarm-mig").is_running
    assert host.check_output("systemctl --failed --plain --no-legend") == ""

"""The role monitoring on a machine whose controller of Slurm has gone."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from harness.life import on, set_up

LOOK = "Configure | Check for a controller of Slurm"


def test_the_reader_of_slurm_goes_with_its_controller() -> None:
    host, _first = set_up("monitoring")
    there = {path for path in host.files if "slurm" in path}
    assert "/etc/systemd/system/gpufarm-slurm-metrics.timer" in there
    assert host.units["gpufarm-slurm-metrics.timer"].running
    case = on(host, "monitoring")
    again = case.with_answers({**case.answers, LOOK: {"stat": {"exists": False}}}).run("monitoring")
    assert not again.failed, again.refusal
    assert not there & {*host.files}
    assert "/opt/gpufarm/bin/gpufarm-metrics" in host.files

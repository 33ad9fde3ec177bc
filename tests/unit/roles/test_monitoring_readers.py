"""The role monitoring on a machine whose controller of Slurm, or master of Mesos, has gone."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from harness.life import on, set_up
from harness.stubs import has

LOOK = "Configure | Check for services with a reader, and for readers"
SERVICES = {
    "slurm": "/etc/systemd/system/slurmctld.service.d/gpufarm.conf",
    "mesos": "/etc/mesos-master/secrets/principals/operator",
}
TIMERS = [f"/etc/systemd/system/gpufarm-{name}-metrics.timer" for name in SERVICES]


@pytest.mark.parametrize(("service", "other"), [("slurm", "mesos"), ("mesos", "slurm")])
def test_a_reader_goes_with_its_service(service: str, other: str) -> None:
    host, _first = set_up("monitoring")
    of = {name: {path for path in host.files if f"-{name}-" in path} for name in SERVICES}
    assert set(TIMERS) <= {*host.files}
    assert all(host.units[f"gpufarm-{name}-metrics.timer"].running for name in SERVICES)
    case = on(host, "monitoring")
    again = case.with_answers({**case.answers, LOOK: has(SERVICES[other], *TIMERS)}).run("monitoring")
    assert not again.failed, again.refusal
    assert not of[service] & {*host.files}
    assert of[other] <= {*host.files}
    assert "/opt/gpufarm/bin/gpufarm-metrics" in host.files


def test_a_machine_without_these_services_has_no_task_for_readers() -> None:
    host, _first = set_up("monitoring")
    case = on(host, "monitoring")
    told = case.with_answers({**case.answers, LOOK: has()}).run("monitoring")
    assert not told.failed, told.refusal
    assert not [step.name for step in told.steps if step.name.startswith("Reader | ")]

"""Rights of the services, and their logs."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[3] / "roles" / "jupyterhub" / "README.md"
# The rows of the README's table: unit and exposure level, from 0 (safe) to 10.
STATED = re.findall(r"^\| `(jupyterhub[a-z-]*)` \| (\d+\.\d) \|", README.read_text(), re.MULTILINE)


def test_the_readme_states_all_services():
    names = ["", "-proxy", "-redirect", "-certificate", "-backup"]
    assert [name for name, _level in STATED] == [f"jupyterhub{name}" for name in names]


@pytest.mark.parametrize(("name", "level"), STATED)
def test_services_are_as_exposed_as_the_readme_says(host, name, level):
    said = host.run(f"systemd-analyze security --no-pager {name}.service").stdout
    found = re.search(r"Overall exposure level for .*: (\d+\.\d)", said)
    assert found and found[1] == level, said


@pytest.mark.parametrize("name", ["jupyterhub", "jupyterhub-proxy", "jupyterhub-redirect"])
def test_the_environment_of_a_service_is_nobody_elses(host, name):
    pid = host.check_output(f"systemctl show --property=MainPID --value {name}")
    assert "Permission denied" in host.run(f"runuser -u nobody -- cat /proc/{pid}/environ").stderr


def test_no_secret_is_seen_in_units_or_arguments(host):
    secrets = host.check_output("cat /etc/jupyterhub/secrets/*.env | cut -d = -f 2").split()
    told = host.check_output("ps -eo args; cat /etc/systemd/system/jupyterhub*; systemctl show 'jupyterhub*'")
    assert len(secrets) >= 2
    assert not [secret for secret in secrets if secret in told]


def test_logs_are_rotated(host):
    """Services log to the journal, which keeps its own bounds; the audit log is a file."""
    host.check_output("umask 077; echo '{}' >> /var/log/jupyterhub/audit.jsonl")
    host.run_expect([0], "logrotate --force /etc/logrotate.d/jupyterhub")
    rotated = host.file("/var/log/jupyterhub/audit.jsonl.1.gz")
    assert rotated.exists and rotated.mode == 0o600

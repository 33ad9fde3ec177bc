"""The user's instance has its new options and no old ones; the other has not been touched."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_options_follow_the_change(host):
    options = host.file("/etc/chronos-ada/secrets/options").content_string
    assert "--disable_after_failures 1\n" in options and "mesos_task_mem" not in options
    assert "--mesos_task_mem 512\n" in host.file("/etc/chronos/secrets/options").content_string


def test_what_other_settings_needed_is_gone_and_what_the_site_gave_is_not(host):
    found = host.check_output("find /etc/chronos-ada -type f -printf '%P\\n' | sort").split()
    assert found == ["environment", "secrets/environment", "secrets/http_password", "secrets/options"]
    assert host.file("/srv/tls/c1.key").exists
    assert host.file("/etc/chronos/secrets/keystore.p12").exists


def test_only_the_changed_instance_was_restarted(host):
    started = {
        name: int(
            host.check_output("systemctl show --property ExecMainStartTimestampMonotonic --value %s", name)
        )
        for name in ("chronos", "chronos-ada")
    }
    changed = int(host.check_output("stat --format %Y /etc/chronos-ada/secrets/options"))
    boot = int(host.check_output("date +%s")) - float(host.check_output("cut -d' ' -f1 /proc/uptime"))
    assert boot + started["chronos"] / 1e6 < changed <= boot + started["chronos-ada"] / 1e6 + 2


def test_nothing_is_left_of_what_was_refused(host):
    for name in ("chronos-ben", "chronos-cy", "Ada"):
        assert not host.file(f"/etc/{name}").exists
        assert not host.file(f"/etc/systemd/system/{name}.service").exists

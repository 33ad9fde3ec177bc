"""Refused settings have changed nothing."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_no_file_was_touched(host):
    places = "/etc/jupyterhub /etc/systemd/system /opt/jupyterhub /var/lib/dpkg/status"
    assert (
        host.check_output(f"find {places} -newer /root/before -not -name __pycache__ -not -name '*.pyc'")
        == ""
    )


def test_the_services_were_not_touched(host):
    for unit in ("jupyterhub", "jupyterhub-proxy"):
        started = host.check_output(
            f'date --date "$(systemctl show --property=ActiveEnterTimestamp --value {unit})" +%s'
        )
        assert int(started) < host.file("/root/before").mtime.timestamp()

"""Nothing runs any more; data stay unless they were asked to go."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from testinfra.host import Host


def test_programs_settings_and_units_are_gone(host: Host) -> None:
    for path in ("/etc/gpufarm-serve", "/etc/gpufarm-serve-proxy", "/opt/gpufarm-serve"):
        assert not host.file(path).exists
    assert not host.check_output("ls /etc/systemd/system | grep gpufarm-serve || true")
    assert host.run("pgrep --full gpufarm-serve").rc == 1


def test_data_stay_with_their_accounts_unless_asked(host: Host) -> None:
    kept = host.check_output("hostname") == "paas12"
    assert host.file("/var/lib/gpufarm-serve/serve.db").exists == kept
    assert host.file("/var/lib/gpufarm-serve-worker/ssh/id_ed25519").exists == kept
    assert host.user("gpufarm-serve-worker").exists == kept

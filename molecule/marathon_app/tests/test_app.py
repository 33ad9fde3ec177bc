"""Marathon has the app with all of its variables, and their values are to be seen nowhere else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

SECRET = "a value that nobody sees"
APP = (
    "curl --silent --cacert /opt/fake/tls.crt --user 'ada:a password of the bench'"
    " https://m1:8443/v2/apps//ada/web"
)


def test_marathon_has_it_and_it_runs(host):
    app = json.loads(host.check_output(APP))["app"]
    assert (app["mem"], app["tasksRunning"], app["env"]["TOKEN"]) == (256, 1, SECRET)


def test_secrets_are_in_no_log_of_the_machine(host):
    seen = host.check_output("journalctl --boot")
    assert "gpufarm.cluster.marathon_app" in seen
    for secret in (SECRET, "a password of the bench"):
        assert secret not in seen

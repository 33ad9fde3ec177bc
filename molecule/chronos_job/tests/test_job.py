"""Chronos has the job with all of its variables, and their values are to be seen nowhere else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

SECRET = "a value that nobody sees"
JOBS = (
    "curl --silent --cacert /opt/fake/tls.crt --user 'ada:a password of the bench'"
    " https://c1:8444/v1/scheduler/jobs"
)


def test_chronos_has_it(host):
    [job] = json.loads(host.check_output(JOBS))
    assert (job["name"], job["mem"]) == ("ada.night", 256)
    assert {"name": "TOKEN", "value": SECRET} in job["environmentVariables"]


def test_secrets_are_in_no_log_of_the_machine(host):
    seen = host.check_output("journalctl --boot")
    assert "gpufarm.cluster.chronos_job" in seen
    for secret in (SECRET, "a password of the bench"):
        assert secret not in seen

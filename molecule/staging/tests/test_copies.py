"""The copies of a job, on each release of Debian, as Slurm runs them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

STAGING = "/scratch/areas/users/ben/staging"


def test_data_come_in_and_go_out(host):
    host.check_output("su --login ben --command 'bash --login -i -c true'")
    item = {"name": "data", "place": {"store": "bulk", "path": "ben/data"}}
    out = {"name": "data", "place": {"store": "bulk", "path": "ben/kept"}}
    declared = json.dumps({"inputs": [item], "outputs": [out], "replace": True, "always": False})
    host.check_output(f"runuser -u ben -- mkdir -p -m 0700 {STAGING}/7/.gpufarm")
    host.check_output(f"printf %s | runuser -u ben -- tee {STAGING}/7/.gpufarm/declared.json", declared)
    host.check_output("echo data | runuser -u ben -- tee '/bulk/ben/data'")
    host.check_output("runuser -u ben -- gpufarm-stage in 7")
    assert host.file(f"{STAGING}/7/data").content_string == "data\n"
    host.check_output("runuser -u ben -- gpufarm-stage out 7")
    assert host.file("/bulk/ben/kept").content_string == "data\n" and not host.file(f"{STAGING}/7").exists


def test_a_store_that_is_away_is_not_written_to(host):
    submit = "runuser -u ben -- gpufarm-submit --input bulk/ben/data /dev/null"
    told = host.run(f"unshare --mount sh -c 'umount /bulk && {submit}'")
    assert told.rc == 1 and "the store bulk is not mounted at /bulk" in told.stderr


def test_users_change_no_settings(host):
    assert host.run("runuser -u ben -- sh -c 'echo >>/etc/gpufarm/staging.json'").rc != 0
    assert host.file("/etc/gpufarm/staging.json").mode == 0o644

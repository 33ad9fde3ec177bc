"""slurmdbd answers, keeps its settings to itself, and its database is reached by nobody else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

ASK = "env SLURM_CONF=/etc/slurm/gpufarm-accounting.conf"


def test_it_answers(host):
    assert "Administrator" in host.check_output(f"{ASK} sacctmgr --noheader --parsable2 show user root")


def test_others_read_no_settings_and_reach_no_database(host):
    assert host.file("/etc/slurm/slurmdbd.conf").mode == 0o600
    assert host.file("/etc/slurm/slurmdbd.conf").user == "slurm"
    for user in ("", "--user=slurm"):
        assert host.run(f"runuser -u nobody -- mariadb {user} slurm_acct_db --execute 'show tables'").rc != 0
    assert host.socket("tcp://127.0.0.1:3306").is_listening
    assert not host.socket("tcp://0.0.0.0:3306").is_listening


def test_users_change_nothing(host):
    assert host.run(f"runuser -u nobody -- {ASK} sacctmgr -iQ add cluster other").rc != 0


def test_records_are_deleted_in_time(host):
    told = host.check_output(f"{ASK} sacctmgr show configuration")
    assert [line.split("=")[1].strip() for line in told.splitlines() if "PurgeJobAfter" in line] == [
        "24 months"
    ]

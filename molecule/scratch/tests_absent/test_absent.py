"""Nothing calls the program any more, and files of users stay."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_logins_work_and_files_stay(host):
    assert host.check_output("su --login ben --command 'echo $SCRATCH'") == ""
    assert host.file("/scratch/areas/users/ada/fresh").exists
    assert host.run("grep -r gpufarm-scratch /etc/pam.d").rc == 1


def test_jobs_run(host):
    if host.check_output("hostname") == "scratch13":
        assert host.check_output("cd / && runuser -u ada -- srun echo works") == "works"

"""The programs of notebooks are those of the hub, and only root can change them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

VENV = "/opt/jupyterhub-node"


def test_a_notebook_server_can_start(host):
    assert host.check_output(f"runuser -u nobody -- {VENV}/bin/jupyterhub-singleuser --version")


def test_a_job_without_the_hub_says_why_it_ends(host):
    # No user id of root: jobs are users'.
    done = host.run(f"echo '{{}}' | runuser -u nobody -- {VENV}/bin/python -I -m gpufarm_hub.slurm.job")
    assert done.rc != 0 and "No notebook is started: your home cannot be used on this machine" in done.stderr


def test_nobody_else_can_change_the_programs(host):
    assert host.check_output("find %s ! -user root -o -perm /022 ! -type l | head", VENV) == ""

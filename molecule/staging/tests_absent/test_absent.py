"""The commands are gone, and data of users stay."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_data_stay(host):
    assert not host.exists("gpufarm-submit")
    assert host.file("/bulk/ben/kept").exists


def test_jobs_run(host):
    if host.check_output("hostname") == "staging13":
        said = host.check_output("cd / && runuser -u ada -- srun sh -c 'echo ${GPUFARM_STAGE:-none}'")
        assert said == "none"

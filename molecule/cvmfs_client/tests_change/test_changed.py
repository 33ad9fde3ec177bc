"""The files are those of the last successful run, and the repositories are there."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_files_follow_the_change(host):
    default = host.file("/etc/cvmfs/default.local").content_string
    assert "CVMFS_HTTP_PROXY='http://127.0.0.1:3129'\n" in default
    assert "CVMFS_NFILES='65536'\n" in default


def test_repositories_answer(host):
    assert host.check_output("cvmfs_config probe").count("OK") == 2

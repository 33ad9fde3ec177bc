"""Programs run on, over any network."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_no_network_is_set_any_more(host):
    assert "tcp_if_include" not in host.check_output("grep -v '^#' /etc/openmpi/openmpi-mca-params.conf")
    assert not host.file("/etc/nccl.conf").exists
    assert not host.file("/etc/gpufarm/slurm/health.d").exists
    assert not host.file("/etc/gpufarm/slurm/task_prolog.d").exists
    assert "SLURM" not in host.file("/etc/environment").content_string

"""The kernel holds users to what they may have."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest


def log_in(host, name, command):
    return host.run(f"ssh -n -o BatchMode=yes {name}@127.0.0.1 %s", command)


@pytest.mark.parametrize(("name", "fits"), [("ada", False), ("bob", True)])
def test_the_kernel_limits_each_user(host, name, fits):
    done = log_in(host, name, "head --bytes 16M /dev/zero > big; stat --format %s big; rm big")
    assert (done.stdout == f"{16 << 20}\n") is fits, done
    assert ("Disk quota exceeded" in done.stderr) is not fits


def test_the_kernel_limits_a_unit_that_runs_as_a_user(host):
    """As notebooks are started."""
    host.check_output("gpufarm-home ada")
    write = "head --bytes 16M /dev/zero > big; rm big"
    done = host.run(
        "systemd-run --quiet --wait --pipe --uid ada --working-directory /srv/home/ada sh -c %s", write
    )
    assert "Disk quota exceeded" in done.stderr, done


def test_the_kernel_limits_the_number_of_files(host):
    done = log_in(host, "carol", "mkdir many; cd many; seq 200 | xargs touch; ls | wc --lines")
    assert 0 < int(done.stdout) < 100
    assert "Disk quota exceeded" in done.stderr


def test_the_disk_of_this_label_is_mounted_and_counts(host):
    source, options = host.check_output("findmnt --noheadings --output SOURCE,OPTIONS /srv/home").split()
    assert source == "/dev/loop0"
    assert "usrquota" in options.split(",")

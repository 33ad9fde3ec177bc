"""The changed project is as its new file says, and a container that had been ended by hand runs again."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def names(host, *more):
    label = "label=com.docker.compose.project"
    command = ["docker", "ps", *more, "--filter", label, "--format", "'{{.Names}} {{.Ports}}'"]
    return host.check_output(" ".join(command)).replace("_", "-").splitlines()


def test_only_the_server_is_left(host):
    found = [line for line in names(host, "--all") if line.startswith("tracking")]
    assert found == ["tracking-web-1 127.0.0.1:8081->81/tcp"]


def test_the_volume_stays(host):
    assert host.check_output("docker volume ls --quiet --filter name=tracking_kept") == "tracking_kept"


def test_the_other_one_is_back(host):
    found = [line.split()[0] for line in names(host) if line.startswith("beside")]
    assert sorted(found) == ["beside-web-1", "beside-web-2"]


def test_the_fetched_one_runs(host):
    assert [line.split()[0] for line in names(host) if line.startswith("fetched")] == ["fetched-web-1"]

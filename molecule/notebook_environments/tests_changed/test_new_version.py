"""A new version of an environment: packages of users come along, and nothing of a running kernel goes."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

HAS = "import importlib.util as u; print(u.find_spec('humanize') is not None, u.find_spec('jax') is not None)"


def test_only_what_is_offered_and_what_was_in_use_is_left(host):
    assert host.check_output("ls /opt/gpufarm/environments") == "scientific"
    assert len(host.check_output("ls /opt/gpufarm/environments/scientific").split()) == 2
    told = json.loads(host.file("/etc/gpufarm/environments.json").content_string)["environments"]
    assert [one["name"] for one in told] == ["scientific"]
    assert host.run("find /etc/gpufarm -name kernel.json -o -name start.sh").stdout == ""


def test_packages_of_a_user_follow_to_the_new_version(cell, eventually):
    eventually(lambda: cell("ada", HAS).stdout.strip() == "True True")

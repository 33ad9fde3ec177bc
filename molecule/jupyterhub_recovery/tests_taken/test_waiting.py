"""Homes are there and accounts are not: nobody gets a home, or the number of one, by chance."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from lab.visitor import Refused


@pytest.fixture(autouse=True)
def new_machine(hostname):
    if hostname != "new13":
        pytest.skip("that machine is lost")


def owners(host):
    return host.check_output("stat --format '%n %u %g %Z' /home/alice /home/alice/thesis.txt /home/bob")


def test_a_home_that_waits_is_refused_and_left_as_it_is(host, visit):
    before = owners(host)
    with pytest.raises(Refused, match="There is a home /home/alice of the number 1001, which no account has"):
        visit("alice").spawn()
    assert not host.user("alice").exists
    assert owners(host) == before


def test_who_comes_first_gets_no_number_of_a_home_that_waits(host, visit):
    carol = visit("carol")
    carol.spawn()
    assert host.user("carol").uid == 1002
    assert "PermissionError" in carol.execute(
        "try: open('/home/alice/thesis.txt')\nexcept OSError as error: print(type(error).__name__)"
    )
    carol.stop()


def test_numbers_that_somebody_else_has_are_refused_before_any_change(host):
    """As on a machine whose administrator was quicker: mallory has alice's number, bob has another one."""
    host.check_output("useradd --uid 1001 mallory && useradd --uid 1500 bob")
    before = (owners(host), host.check_output("getent passwd; sha256sum /etc/jupyterhub/secrets/*"))
    said = host.run(
        "/opt/jupyterhub/bin/gpufarm-hub-backup /etc/jupyterhub/settings.json restore /root/hub.tar.gz"
    )
    assert said.rc == 1
    for sentence in (
        "The user alice had the number 1001, which is that of the user mallory here.",
        "The group alice had the number 1001, which is that of the group mallory here.",
        "The user bob had the number 1000 and has 1500 here.",
        "give these accounts of this machine other numbers",
    ):
        assert sentence in said.stderr
    assert (owners(host), host.check_output("getent passwd; sha256sum /etc/jupyterhub/secrets/*")) == before
    host.check_output("userdel mallory && userdel bob")

"""Accounts with a home elsewhere than the role shared_home gives."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home.elsewhere import sentences

PASSWD = """\
root:x:0:0:root:/root:/bin/bash
ada:x:2001:2001::/home/ada:/bin/bash
ben:x:2002:2002::/srv/home/ben:/bin/bash
bob:x:2003:2003::/srv/home/:/bin/bash
eve:x:2004:2004:E\u2028ve:/home/eve:/bin/bash
damaged
"""


def test_an_account_that_was_there_before_the_homes_is_told() -> None:
    assert sentences(PASSWD, ["ada", "ben", "nobody"], "/srv/home") == [
        "The home of the account ada stays /home/ada, which is not in /srv/home with those of others; run"
        " 'usermod --home /srv/home/ada ada' while nobody uses the account, and copy its files."
    ]


@pytest.mark.parametrize(
    ("folder", "names"),
    [("/srv/home", ["ben"]), ("/srv/home/", ["ben"]), ("/home", ["ada"]), ("/srv/home", [])],
)
def test_nothing_is_told_of_accounts_with_the_homes(folder: str, names: list[str]) -> None:
    assert sentences(PASSWD, names, folder) == []


def test_a_real_name_of_any_kind_hides_no_home() -> None:
    assert len(sentences(PASSWD, ["eve"], "/srv/home")) == 1


def test_a_home_that_is_the_folder_itself_is_none() -> None:
    assert len(sentences(PASSWD, ["bob"], "/srv/home")) == 1

"""Folders of the site in notebooks, and the group that new files get."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from lab.visitor import Refused

# Where the folders of vars/hub.yml are on the machine, and in notebooks.
READ_ONLY = {"/srv/data": "/srv/data", "/srv/software": "/software"}
WRITABLE = {"/srv/scratch": "/srv/scratch", "/srv/ours": "/data"}


def test_folders_are_written_to_only_where_the_site_says_so(host, shell):
    run = shell()
    for target in READ_ONLY.values():
        assert "Read-only file system" in run(f"touch {target}/x")
    for source, target in WRITABLE.items():
        assert run(f"touch {target}/x && echo written") == "written"
        assert host.file(f"{source}/x").user == "alice"


def test_what_is_mounted_later_is_seen(host, shell):
    run = shell()
    for source, target in {**READ_ONLY, **WRITABLE}.items():
        late = f"{source}/late"
        host.check_output(f"mkdir -p {late} && mount -t tmpfs late {late} && touch {late}/seen")
        try:
            assert run(f"ls {target}/late") == "seen"
        finally:
            host.check_output(f"umount {late}")
        assert run(f"ls {target}/late") == ""


def test_a_folder_for_a_group_is_hidden_from_others(host, shell):
    host.check_output("echo ours >/srv/theirs/secret")
    member, other = shell("bob"), shell("alice")
    look = "cat /theirs/secret; cat /srv/theirs/secret; cat /site/theirs/secret"
    assert member(look).split() == ["ours"] * 3
    assert "ours" not in other(look)
    assert other("ls /srv/theirs /site/theirs").count("Permission denied") == 2


def test_a_folder_is_seen_by_who_has_ticked_it(visit, shell, host):
    host.check_output("touch /srv/asked/seen")
    assert "seen" not in shell()("ls /asked")
    visit("alice").stop()
    assert shell(mounts=["/asked"])("ls /asked") == "seen"


def test_new_files_get_the_group_that_was_chosen(host, visit, shell):
    assert shell(group="mlfiles")("touch $HOME/shared && id --group --name") == "mlfiles"
    assert (host.file("/home/alice/shared").user, host.file("/home/alice/shared").group) == (
        "alice",
        "mlfiles",
    )
    visit("alice").stop()
    assert shell()("touch $HOME/own && id --group --name") == "alice"
    assert host.file("/home/alice/own").group == "alice"


@pytest.mark.usefixtures("one_machine")
@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"group": "mladmins"}, "The group mladmins is not offered to you"),
        ({"group": "root"}, "The group root is not offered to you"),
        ({"mounts": ["/srv/theirs"]}, "The folder /srv/theirs is not offered to you"),
        ({"mounts": ["/asked", "/etc"]}, "The folder /etc is not offered to you"),
    ],
)
def test_what_is_not_offered_is_refused(visit, fields, sentence):
    alice = visit("alice")
    with pytest.raises(Refused, match=sentence) as no:
        alice.spawn(**fields)
    assert no.value.status == 400
    assert not alice.running()

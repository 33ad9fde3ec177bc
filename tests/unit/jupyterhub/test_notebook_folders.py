"""Which folders of the machine notebooks see, in units and in general."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from gpufarm_hub.spawning import mounts, systemd_spawner
from gpufarm_hub.spawning.mounts import Bind, MountError

OFFERS = mounts.read(
    [
        {"source": "/cvmfs"},
        {"source": "/srv/ours", "target": "/data", "read_only": False, "groups": ["staff"]},
        {"source": "/srv/asked", "optional": True},
        {"source": "/srv/rare", "optional": True, "groups": ["staff"]},
    ]
)


def test_each_sees_what_is_for_their_groups_and_what_they_chose() -> None:
    assert mounts.choose(OFFERS, [], []) == [Bind("/cvmfs", "/cvmfs")]
    chosen = mounts.choose(OFFERS, ["staff"], ["/srv/asked"])
    assert [bind.target for bind in chosen] == ["/cvmfs", "/data", "/srv/asked"]
    assert mounts.choices(OFFERS, []) == ["/srv/asked"]
    assert mounts.choices(OFFERS, ["staff"]) == ["/srv/asked", "/srv/rare"]


@pytest.mark.parametrize("wanted", [["/srv/rare"], ["/etc"], ["/cvmfs"], [["/srv/asked"]]])
def test_what_is_not_offered_is_refused(wanted: list[object]) -> None:
    with pytest.raises(MountError, match="is not offered to you"):
        mounts.choose(OFFERS, [], wanted)


@pytest.mark.parametrize("wanted", ["/srv/asked", None, {"/srv/asked": 1}])
def test_folders_are_a_list(wanted: object) -> None:
    with pytest.raises(MountError, match="must be given as a list"):
        mounts.choose(OFFERS, [], wanted)


def test_a_unit_hides_what_is_for_others() -> None:
    seen = mounts.choose(OFFERS, [], [])
    assert mounts.hidden(OFFERS, seen) == ["/srv/ours", "/srv/rare"]
    properties = systemd_spawner.properties_of(seen, mounts.hidden(OFFERS, seen), "1G", 2 << 30)
    assert properties["InaccessiblePaths"][1:] == ["-/srv/ours", "-/srv/rare"]
    assert properties["BindPaths"] == properties["ReadWritePaths"] == []
    assert properties["BindReadOnlyPaths"] == ["-/proc/driver"]


def test_what_is_for_others_is_hidden_inside_of_folders_that_are_seen_as_well() -> None:
    offers = mounts.read(
        [
            {"source": "/srv/", "target": "/site"},
            {"source": "/srv", "target": "/writable/", "read_only": False},
            {"source": "/srv/staff", "target": "/staff", "groups": ["staff"]},
            {"source": "/srvice", "groups": ["staff"]},
        ]
    )
    seen = mounts.choose(offers, [], [])
    hidden = mounts.hidden(offers, seen)
    assert hidden == ["/srv/staff", "/srvice"]
    assert mounts.within(hidden, seen) == ["/site/staff", "/writable/staff"]
    seen = mounts.choose(offers, ["staff"], [])
    assert mounts.within(mounts.hidden(offers, seen), seen) == []


def test_a_unit_binds_what_has_another_path_and_writes_where_it_may() -> None:
    binds = [Bind("/a b", "/c"), Bind("/d", "/e", read_only=False), Bind("/f", "/f"), Bind("/g", "/g", False)]
    properties = systemd_spawner.properties_of(binds, [], "1G", 2 << 30)
    assert properties["BindReadOnlyPaths"][1:] == ['"/a b:/c"']
    assert properties["BindPaths"] == ["/d:/e"]
    assert properties["ReadWritePaths"] == ["/g"]


def test_a_unit_writes_into_memory_of_its_own_beside_the_home() -> None:
    properties = systemd_spawner.properties_of([], [], "1G", 2 << 30)
    assert properties["TemporaryFileSystem"] == [
        "/tmp:mode=1777,nosuid,size=1G",
        "/var/tmp:mode=1777,nosuid,size=1G",
        "/dev/shm:mode=1777,nosuid,size=2147483648",
    ]
    assert properties["PrivateIPC"] == "yes" and properties["ProtectSystem"] == "strict"

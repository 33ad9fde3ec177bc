# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instances of the fakes take over from one another what there is, not what they knew once."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lab.chronos import server as chronos
from lab.marathon import options
from lab.marathon import server as marathon
from lab.marathon.store import Memory, ZooKeeper


@pytest.mark.parametrize("kind", [marathon, chronos])
def test_an_instance_that_leads_again_reads_what_was_done_meanwhile(kind: Any) -> None:
    store = Memory("a")
    flags = kind.flags() if kind is marathon else kind.flags(False)
    values = options.parse([], flags)
    more = () if kind is marathon else (False,)
    first, second = (kind.Api(store, name, values, *more) for name in "ab")
    first.tick()
    store.name = "b"
    first.tick()
    second.tick()
    done = second.lead().data
    done["framework"] = "what was done"
    store.save(done)
    store.name = "a"
    first.tick()
    assert first.lead().data["framework"] == "what was done"


class Node:
    """A client of ZooKeeper that knows members of the election."""

    def __init__(self, members: dict[str, str]) -> None:
        self.members = members

    def get_children(self, _path: str) -> list[str]:
        return list(self.members)

    def get(self, path: str) -> tuple[bytes, None]:
        return self.members[path.rpartition("/")[2]].encode(), None


def test_the_place_of_a_predecessor_with_the_same_name_is_not_ones_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "kazoo", ModuleType("kazoo"))
    monkeypatch.setitem(sys.modules, "kazoo.exceptions", SimpleNamespace(NoNodeError=KeyError))
    store = ZooKeeper.__new__(ZooKeeper)
    store.path, store.name, store.member = "/marathon", "m1:8443", "member_3"
    store.client = Node({"member_1": "m1:8443", "member_2": "m2:8443", "member_3": "m1:8443"})
    assert store.leader() == ""
    del store.client.members["member_1"]
    assert store.leader() == "m2:8443"
    del store.client.members["member_2"]
    assert store.leader() == "m1:8443"

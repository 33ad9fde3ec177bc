# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of Lustre are read as mount.lustre reads them, and what it would refuse is refused."""

from __future__ import annotations

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import nid
from hypothesis import given
from hypothesis import strategies as st

networks = st.builds(
    lambda kind, number: f"{kind}{number or ''}",
    st.sampled_from(["tcp", "o2ib", "efa", "kfi", "gni"]),
    st.integers(0, 65535),
)
addresses = st.ip_addresses(v=4).map(str)
nids = st.builds(nid.Nid, addresses, networks)
names = st.from_regex(r"[-_A-Za-z0-9]{1,8}", fullmatch=True)
folders = st.lists(st.from_regex(r"[A-Za-z0-9_+-]{1,8}", fullmatch=True), max_size=3).map("/".join)
devices = st.builds(
    nid.Device,
    st.lists(st.lists(nids, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3).map(tuple),
    names,
    folders,
)


@given(devices)
def test_a_device_survives_being_written(device: nid.Device) -> None:
    assert nid.parse_device(str(device)) == device
    assert nid.is_device(str(device))


@given(st.text())
def test_any_text_is_a_device_or_is_refused_with_a_reason(text: str) -> None:
    try:
        device = nid.parse_device(text)
    except nid.AddressError as error:
        assert str(error)
    else:
        assert nid.parse_device(str(device)) == device


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("tcp", "tcp"), ("tcp0", "tcp"), ("tcp01", "tcp1"), ("o2ib", "o2ib"), ("o2ib12", "o2ib12")],
)
def test_networks_have_one_name(text: str, canonical: str) -> None:
    assert nid.parse_network(text) == canonical


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("10.0.0.1:/home", "names no network"),
        ("10.0.0.256@tcp:/home", "no valid IPv4 address"),
        ("10.0.0@tcp:/home", "no IPv4 address before the @"),
        ("10.0.0.1@tcp99999:/home", "is no network"),
        ("10.0.0.1@ethernet:/home", "is no network"),
        ("mgs_1@tcp:/home", "no IPv4 address before the @"),
        ("fe80::1@tcp:/home", "names no network"),
        ("10.0.0.1@tcp", "names no file system"),
        ("10.0.0.1@tcp:/", "a name has 1 to 8"),
        ("10.0.0.1@tcp:/ninechars", "a name has 1 to 8"),
        ("10.0.0.1@tcp:/home/../etc", "leaves the file system"),
        ("10.0.0.1@tcp:/home/a b", "other than plain characters"),
        ("10.0.0.1@tcp,:/home", "names no network"),
        ("mgs1.example.org@tcp:/home", "in place of names"),
        ("mgs1@tcp:/home", "in place of names"),
        ("12@tcp:/home", "in place of names"),
    ],
)
def test_what_cannot_be_mounted(text: str, words: str) -> None:
    with pytest.raises(nid.AddressError, match=words):
        nid.parse_device(text)


@pytest.mark.parametrize(
    "source", ["10.0.0.1:/export", "//server/share", "tmpfs", "/dev/sda1", "user@host:/path", ""]
)
def test_other_file_systems_are_none_of_lustre(source: str) -> None:
    assert not nid.is_device(source)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("mgs1:mgs2:/home", "10.0.0.1@tcp:mgs2@tcp:/home"),  # mount.lustre(8): tcp where nothing is said
        ("mgs1@o2ib1,10.0.0.9:/home/a", "10.0.0.1@o2ib1,10.0.0.9@tcp:/home/a"),
        ("mgs-2.example.org@tcp0:/home", "mgs-2.example.org@tcp:/home"),
    ],
)
def test_names_of_hosts_become_their_addresses_where_these_are_known(text: str, written: str) -> None:
    device = nid.parse_device(text, {"mgs1": "10.0.0.1"})
    assert str(device) == written
    assert [one.address for one in device.nids if one.is_name] == [
        one.partition("@")[0] for one in written.partition(":/")[0].split(":") if one.startswith("mgs")
    ]


@pytest.mark.parametrize("text", ["mgs_1:/home", "-mgs:/home", ":/home", "10.0.0:/home", "10.0.0.256:/home"])
def test_what_is_neither_a_name_nor_an_address(text: str) -> None:
    with pytest.raises(nid.AddressError, match=r"neither an IPv4 address nor|no valid IPv4"):
        nid.parse_device(text, {})

"""Texts of the kernel and of programs about RDMA adapters."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._fabric import parse
from hypothesis import given
from hypothesis import strategies as st

WORDS = st.text("abcdefghijklmnopqrstuvwxyz_0123456789", min_size=1)


@pytest.mark.parametrize(
    ("text", "word"),
    [("4: ACTIVE", "ACTIVE"), ("1: DOWN\n", "DOWN"), ("5: LinkUp", "LinkUp"), ("odd", "odd"), ("", "")],
)
def test_a_state_is_its_word(text: str, word: str) -> None:
    assert parse.state(text) == word


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("100 Gb/sec (4X EDR)", 100.0),
        ("2.5 Gb/sec (1X SDR)\n", 2.5),
        ("", 0.0),
        ("fast", 0.0),
        ("1..5 Gb/sec", 0.0),
    ],
)
def test_a_rate_is_a_number_of_gigabits(text: str, number: float) -> None:
    assert parse.rate(text) == number


@given(st.integers(0, 10**6), WORDS)
def test_any_rate_is_read_back(number: int, kind: str) -> None:
    assert parse.rate(f"{number} Gb/sec ({kind})") == number


@given(st.text())
def test_no_text_makes_a_rate_or_a_state_fail(text: str) -> None:
    assert parse.rate(text) >= 0
    assert parse.state(text) in text.strip() or text.strip() == ""


def test_errors_are_counters_of_errors_that_are_not_zero() -> None:
    counters = {
        "symbol_error": "3",
        "port_rcv_errors": "0",
        "link_downed": "1",
        "port_xmit_discards": "2",
        "rx_icrc_encapsulated_errors": "7",
        "out_of_sequence": "4",
        "port_rcv_data": "123456",
        "sent_pkts": "9",
        "retry_exceeded_err": "N/A",
    }
    assert parse.errors(counters) == {
        "link_downed": 1,
        "out_of_sequence": 4,
        "port_xmit_discards": 2,
        "rx_icrc_encapsulated_errors": 7,
        "symbol_error": 3,
    }


@given(st.dictionaries(WORDS, st.one_of(st.integers(0, 99).map(str), st.text())))
def test_errors_are_among_the_counters(counters: dict[str, str]) -> None:
    assert all(
        number > 0 and int(counters[name]) == number for name, number in parse.errors(counters).items()
    )


def test_addresses_have_the_lengths_of_their_prefixes() -> None:
    links = [
        {"ifname": "ib0", "addr_info": [{"local": "10.1.2.3", "prefixlen": 16}]},
        {"ifname": "eth1", "addr_info": []},
        {},
    ]
    assert parse.addresses(links) == {"ib0": ["10.1.2.3/16"], "eth1": []}


# Shortened output of ucx_info 1.18.1 on a machine with soft RoCE.
TOLD = """#
# Memory domain: tcp
#     Component: tcp
#
#      Transport: tcp
#         Device: eth1
#           Type: network
#  System device: <unknown>
#
#      Transport: rc_verbs
#         Device: compute:1
#           Type: network
#
#      Transport: ud_verbs
#         Device: compute:1
"""


def test_transports_have_the_devices_that_follow_them() -> None:
    assert parse.transports(TOLD) == {"tcp": ["eth1"], "rc_verbs": ["compute:1"], "ud_verbs": ["compute:1"]}


@given(st.dictionaries(WORDS, st.lists(WORDS, min_size=1)))
def test_any_transports_are_read_back(wanted: dict[str, list[str]]) -> None:
    printed = "".join(
        f"#      Transport: {transport}\n" + "".join(f"#         Device: {device}\n#\n" for device in devices)
        for transport, devices in wanted.items()
    )
    assert parse.transports(printed) == wanted


@given(st.text())
def test_no_text_makes_transports_fail(text: str) -> None:
    assert all(devices for devices in parse.transports(text).values())

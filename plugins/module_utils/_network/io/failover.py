# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take the links of a bond down in turn, and look whether it goes on."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from .. import machine
from . import read
from .read import NetworkError, run

# A timer of systemd puts a link up again, should this process be killed.
SECONDS_DOWN = 60
# Links of real hardware need a few seconds to agree on their speed, and LACP three more.
SECONDS_TO_CHANGE = 30
SECONDS_TO_RETURN = 60


def attempt(bond: str, members: Sequence[str], gateways: Sequence[str]) -> None:
    """Take each link of a bond down and put it up again.

    Args:
        bond: the bond.
        members: its members.
        gateways: addresses that answer to ping over the bond, also while a link is down.

    Raises:
        NetworkError: the bond has no second link, or data does not go over the others; all are up again.
    """
    if len(members) < 2:
        raise NetworkError(f"{bond} has one link, so nothing can take its place; give it a second one.")
    for member in members:
        with _down(member):
            _until(
                SECONDS_TO_CHANGE,
                f"{bond} does not carry on without {member}; check its other links and the switch.",
                partial(_carries, bond, without=member),
            )
            for gateway in gateways:
                _until(
                    SECONDS_TO_CHANGE,
                    f"{gateway} does not answer over {bond} without {member}; check the switch.",
                    partial(_answers, gateway),
                )
        _until(
            SECONDS_TO_RETURN,
            f"{member} does not carry data for {bond} again; check the link and the switch.",
            partial(_is_back, bond, member),
        )


@contextlib.contextmanager
def _down(member: str) -> Iterator[None]:
    unit = f"gpufarm-network-up-{member}"
    up = ("ip", "link", "set", "dev", member, "up")
    run("systemd-run", "--quiet", "--collect", f"--unit={unit}", f"--on-active={SECONDS_DOWN}s", *up)
    try:
        run("ip", "link", "set", "dev", member, "down")
        yield
    finally:
        run(*up)
        with contextlib.suppress(NetworkError):
            run("systemctl", "stop", f"{unit}.timer")


def _until(seconds: float, problem: str, condition: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise NetworkError(problem)
        time.sleep(0.3)


def _state(bond: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    links = machine.by_name(read.links())
    members = {
        name: link["linkinfo"]["info_slave_data"]
        for name, link in links.items()
        if link.get("master") == bond
    }
    return {**links[bond]["linkinfo"]["info_data"], "operstate": links[bond]["operstate"]}, members


def _carries(bond: str, without: str) -> bool:
    state, members = _state(bond)
    active = [name for name, one in members.items() if one["state"] == "ACTIVE" and one["mii_status"] == "UP"]
    partner = state.get("ad_info", {}).get("partner_mac", "")
    return bool(
        state["operstate"] == "UP" and active and without not in active and partner != machine.NO_PARTNER
    )


def _is_back(bond: str, member: str) -> bool:
    state, members = _state(bond)
    aggregator = state.get("ad_info", {}).get("aggregator")
    return members[member]["mii_status"] == "UP" and members[member].get("ad_aggregator_id") == aggregator


def _answers(gateway: str) -> bool:
    with contextlib.suppress(NetworkError):
        run("ping", "-n", "-q", "-c", "2", "-W", "2", gateway)
        return True
    return False

# SPDX-License-Identifier: GPL-3.0-or-later
"""Raise the walls around notebooks: ``python -m gpufarm_hub.spawning.barrier up SETTINGS``, or ``down``.

`up` writes what the units of notebooks' namespaces load before each notebook, and loads it. The kernel must
forward packets for notebooks to reach anything, and another firewall of the machine must let pass what these
rules have checked.
"""

from __future__ import annotations

import json
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from gpufarm_hub import files

from . import walls
from .walls import Bridge, Walls

FOLDER = Path("/run/jupyterhub-walls")
RULES = FOLDER / "rules.nft"
NAMES = FOLDER / "resolv.conf"  # there if notebooks need another one than the machine

RESOLV_CONF = Path("/etc/resolv.conf")
# systemd-resolved writes the name servers that it asks there, and its own address into the machine's file.
RESOLVED = Path("/run/systemd/resolve/resolv.conf")
FORWARD = Path("/proc/sys/net/ipv4/ip_forward")

# Of an older hub, which closed the metadata services of clouds to users instead of notebooks.
FORMER = "inet jupyterhub_metadata"

OURS = f"{walls.NAMESPACE}+"  # the interfaces of notebooks, as iptables and firewalld name them


class BarrierError(Exception):
    """The walls cannot be raised; the text is for the administrator."""


def up(settings: Path) -> None:
    """Raise the walls.

    Args:
        settings: those of the role, as JSON.

    Raises:
        BarrierError: with the reason.
    """
    wanted = json.loads(settings.read_text(encoding="utf-8"))["walls"]
    bridges = tuple(Bridge(**bridge) for bridge in wanted["bridges"])
    FOLDER.mkdir(mode=0o755, exist_ok=True)
    text = walls.rules(
        Walls(
            subnet=wanted["subnet"],
            bridges=bridges,
            callers=(pwd.getpwnam(wanted["proxy_account"]).pw_uid,),
            attached=attached(_run("ip", "-json", "-4", "route", "show", "scope", "link"), bridges),
            networks=tuple(wanted["networks"]),
            internet=wanted["internet"],
        )
    )
    files.replace(RULES, text.encode())
    _write_names(walls.hub_address(wanted["subnet"]))
    _run("nft", "--file", str(RULES))
    FORWARD.write_text("1\n", encoding="ascii")
    _let_pass(wanted=True)


def down() -> None:
    """Take the walls away.

    Raises:
        BarrierError: with the reason.
    """
    for table in (walls.TABLE, FORMER):
        _run("nft", f"table {table}; delete table {table}")
    _let_pass(wanted=False)
    shutil.rmtree(FOLDER, ignore_errors=True)


def attached(routes: str, bridges: Iterable[Bridge]) -> tuple[str, ...]:
    """Return the networks that the machine is in, without those of notebooks.

    Args:
        routes: what ``ip -json -4 route show scope link`` prints.
        bridges: networks of notebooks.
    """
    ours = {bridge.interface for bridge in bridges}
    found = (
        route["dst"]
        for route in json.loads(routes or "[]")
        if route["dev"] not in ours and not route["dev"].startswith(walls.NAMESPACE)
    )
    return tuple(network for network in found if network != "default")


def names() -> Path | None:
    """Return the resolv.conf(5) that a notebook needs; None for that of the machine."""
    return NAMES if NAMES.exists() else None


def _write_names(hub: str) -> None:
    text = RESOLV_CONF.read_text(encoding="utf-8") if RESOLV_CONF.exists() else ""
    changed = walls.resolv_conf(text, hub)
    if changed == text:
        NAMES.unlink(missing_ok=True)
        return
    if RESOLVED.exists():
        changed = RESOLVED.read_text(encoding="utf-8")
    files.replace(NAMES, changed.encode(), mode=0o644)


def _let_pass(wanted: bool) -> None:
    """Have other firewalls let pass what the rules have checked, or no longer."""
    for is_there, add, remove in _passages():
        if _succeeds(is_there) != wanted:
            _run(*(add if wanted else remove))


def _passages() -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Yield the commands that ask for a passage, make it and close it, for each firewall that would drop."""
    if shutil.which("iptables"):  # in its chain Docker and ufw drop what they do not know
        for direction in ("--in-interface", "--out-interface"):
            rule = ["FORWARD", direction, OURS, "--jump", "ACCEPT"]
            check, insert, delete = (
                ["iptables", "--wait", action, *rule] for action in ("--check", "--insert", "--delete")
            )
            yield check, insert, delete
    if shutil.which("firewall-cmd") and _succeeds(["firewall-cmd", "--state"]):
        for lifetime in ("--timeout=0", "--permanent"):
            query, add, remove = (
                ["firewall-cmd", lifetime, "--zone=trusted", f"--{action}-interface={OURS}"]
                for action in ("query", "add", "remove")
            )
            yield query, add, remove


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _run(*command: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise BarrierError(f"{command[0]} refused the walls around notebooks: {done.stderr.strip()}")
    return done.stdout


def main() -> None:
    """Run the program."""
    try:
        if sys.argv[1] == "up":
            up(Path(sys.argv[2]))
        else:
            down()
    except BarrierError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

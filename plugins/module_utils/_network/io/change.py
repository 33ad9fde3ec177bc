# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change of the network that is taken back unless it is confirmed.

The former files are kept in a file of their own before anything changes. While that is there, a timer, and
the next boot, put them back. Confirming removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..._host.io.files import replace_file
from .. import files as own
from . import read
from .read import NetworkError, run

PROGRAM = "/opt/gpufarm/bin/gpufarm-network"
STATE = Path("/var/lib/gpufarm/network")
PENDING = STATE / "unconfirmed.json"
# MTU in bytes of interfaces before they got another one: networkd would leave them that.
FORMER_MTU = STATE / "mtu.json"
DEADLINE, CHANGE = "gpufarm-network-deadline", "gpufarm-network-change"
# Ansible gets its answer before the network changes.
HEAD_START = 2


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Keep other processes that change the network out."""
    STATE.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (STATE / "lock").open("w", encoding="ascii") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def written() -> dict[str, str]:
    """Return the files of the role by name."""
    found = Path(own.FOLDER).glob(f"{own.PREFIX}*")
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(found)}


def _load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return loaded


def start(wanted: Mapping[str, str], seconds: int) -> None:
    """Begin to change the network; it goes back after a while unless that is confirmed.

    Args:
        wanted: files of the role by name.
        seconds: how long to wait for the confirmation.

    Raises:
        NetworkError: another change is not confirmed yet, or no timer can be started; nothing is changed.
        OSError: a file cannot be written.
    """
    with locked():
        if PENDING.exists():
            raise NetworkError(
                "The network of this machine was changed, and that is not confirmed yet: it goes back by "
                "itself; run again then, in a few minutes."
            )
        former = written()
        mtus = {link["ifname"]: link["mtu"] for link in read.links()}
        new = [name for name in _with_mtu(wanted) if name in mtus and name not in _with_mtu(former)]
        kept = {**{name: mtus[name] for name in new}, **_load(FORMER_MTU)}
        replace_file(FORMER_MTU, json.dumps(kept), 0o600)
        pending = {"former": former, "wanted": dict(wanted), "applied": False}
        # First, or a run that is killed here would leave a change that never goes back, and no other would
        # be possible. Without a change this timer does nothing.
        _later(DEADLINE, HEAD_START + seconds, "restore")
        replace_file(PENDING, json.dumps(pending), 0o600)
        _settle(STATE)
        try:
            _later(CHANGE, HEAD_START, "apply")
        except NetworkError:
            PENDING.unlink()
            raise


def _later(unit: str, seconds: int, step: str) -> None:
    # The timer of a former change still runs if the machine went back before it, and units may have failed.
    with contextlib.suppress(NetworkError):
        run("systemctl", "stop", f"{unit}.timer")
    for kind in ("timer", "service"):
        with contextlib.suppress(NetworkError):
            run("systemctl", "reset-failed", f"{unit}.{kind}")
    run(
        "systemd-run",
        "--quiet",
        "--collect",
        f"--unit={unit}",
        f"--on-active={seconds}s",
        *(["--property=Restart=on-failure", "--property=RestartSec=10"] if step == "restore" else []),
        "--timer-property=AccuracySec=1s",
        PROGRAM,
        step,
    )


def apply() -> None:
    """Make the change that has begun.

    Raises:
        NetworkError: a program fails; the timer puts the former files back.
        OSError: a file cannot be written, likewise.
    """
    with locked():
        pending = _load(PENDING)
        if pending:
            _put(pending["wanted"])
            replace_file(PENDING, json.dumps({**pending, "applied": True}), 0o600)


def restore() -> bool:
    """Put the former files back unless the change is confirmed; return whether that was so.

    Raises:
        NetworkError: a program fails; the next boot tries again.
        OSError: a file cannot be written, likewise.
    """
    with locked():
        pending = _load(PENDING)
        if pending:
            _put(pending["former"])
            PENDING.unlink()
            _settle(STATE)
        return bool(pending)


def confirm() -> None:
    """Keep the change.

    Raises:
        NetworkError: there is none to confirm, or it is not made yet.
    """
    with locked():
        pending = _load(PENDING)
        if not pending:
            raise NetworkError("The change was not confirmed in time; the former configuration is back.")
        if not pending["applied"]:
            raise NetworkError("The change is not made yet; the former configuration comes back by itself.")
        PENDING.unlink()
        _settle(STATE)
    # A timer that has fired in the meantime finds nothing to put back.
    with contextlib.suppress(NetworkError):
        run("systemctl", "stop", f"{DEADLINE}.timer")


def _with_mtu(files: Mapping[str, str]) -> list[str]:
    """Return the names of interfaces to which files give an MTU."""
    return [
        own.value(text, "Match", "Name") for text in files.values() if own.value(text, "Link", "MTUBytes")
    ]


def _put(files: Mapping[str, str]) -> None:
    """Have these files of the role and no others, and let networkd use them, if it runs.

    Raises:
        NetworkError: programs fail; all that could be done is done.
    """
    before = written()
    for name in before.keys() - files.keys():
        Path(own.FOLDER, name).unlink()
    for name, text in files.items():
        if before.get(name) != text:
            replace_file(Path(own.FOLDER, name), text, 0o644)
    _settle(Path(own.FOLDER))
    # At boot networkd reads them later.
    if read.is_active("systemd-networkd.service"):
        _use(before, files)


def _settle(folder: Path) -> None:
    """Have the names in a folder outlast a power cut, as the order of changes in two folders matters."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _use(before: Mapping[str, str], files: Mapping[str, str]) -> None:
    problems = []

    def attempt(*words: str) -> None:
        try:
            run(*words)
        except NetworkError as error:
            problems.append(str(error))

    # networkd changes no device that is there, and takes no member out of a bond. A VLAN goes with its bond.
    for name, text in before.items():
        device, member = own.value(text, "NetDev", "Name"), own.value(text, "Match", "Name")
        former, next_bond = (own.value(one, "Network", "Bond") for one in (text, files.get(name, "")))
        if device and files.get(name) != text and _is_there(device):
            attempt("ip", "link", "delete", "dev", device)
        elif former != next_bond and _is_there(member):
            attempt("ip", "link", "set", "dev", member, "nomaster")
    # It configures interfaces anew whose files differ. To do that twice takes the links of a bond away that
    # has just got them, and networkd (252) then gives it up.
    attempt("networkctl", "reload")
    same = {own.value(text, "Match", "Name") for name, text in files.items() if before.get(name) == text} - {
        ""
    }
    for name in sorted(filter(_is_there, same)):
        attempt("networkctl", "reconfigure", name)
    for name, mtu in _load(FORMER_MTU).items():
        if _is_there(name) and name not in _with_mtu(files):
            attempt("ip", "link", "set", "dev", name, "mtu", str(mtu))
    if problems:
        raise NetworkError(" ".join(problems))


def _is_there(name: str) -> bool:
    return Path("/sys/class/net", name).exists()

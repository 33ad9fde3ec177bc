# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems and settings of slurmrestd that result from the settings of the role slurm_rest. No I/O.

Sources: slurmrestd(8) and slurm.conf(5) of Slurm 24.11.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from . import joining, tokens

ROLE = "slurm_rest"
# RFC 1123, 2.1; an address is one as well.
HOST = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?|[0-9a-f:]+")
# Options of the controller's slurm.conf by which a client finds and understands the daemons.
TAKEN = (
    "AccountingStorageHost",
    "AccountingStoragePort",
    "AccountingStorageType",
    "AuthType",
    "ClusterName",
    "CommunicationParameters",
    "SlurmUser",
    "SlurmctldHost",
    "SlurmctldPort",
)
DATABASE = "accounting_storage/slurmdbd"
# The newest of Slurm 24.11, where no program can be asked yet.
OLDEST_VERSION = "v0.0.42"


def plan(
    settings: Mapping[str, Any],
    machines: Mapping[str, Mapping[str, Any]],
    current: str | None = None,
    parsers: str = "",
) -> dict[str, Any]:
    """Return what the settings result in.

    Args:
        settings: variables of the role without its name; also `found`, the controllers that the inventory
            has, and `public_host`, the name or address under which users reach the machine.
        machines: this machine and the first controller, as `joining.problems` takes them.
        current: the slurm.conf of the first controller; None if it is not needed, empty if it has none.
        parsers: what `slurmrestd -d list` prints.

    Returns:
        `problems`, a sentence each; `url`, the address of the service; `version`, the newest version of the
        interface; and of the slurm.conf `lines`, those of the file for slurmrestd, and `plugins`, the parts
        of the interface.
    """
    text = current or ""
    return {
        "problems": [
            *joining.problems(ROLE, settings, machines),
            *_address(settings),
            *([] if current is None else _controller(settings, text)),
        ],
        "url": _url(settings["public_host"], settings["port"]),
        "version": _newest(parsers),
        "lines": _lines(text),
        "plugins": [
            "slurmctld",
            *(["slurmdbd"] if DATABASE in _values(text, "AccountingStorageType") else []),
        ],
    }


def _address(settings: Mapping[str, Any]) -> Iterator[str]:
    if not HOST.fullmatch(settings["public_host"]):
        yield (
            f"{ROLE}_public_host is {settings['public_host']!r}, no name of a machine in lower case; correct"
            " it."
        )
    if not 0 < settings["port"] < 65536:
        yield f"{ROLE}_port is {settings['port']}, which is no port; give a number from 1 to 65535."
    files = (settings["certificate_file"], settings["certificate_key_file"])
    if settings["certificate_type"] == "provided" and not all(files):
        yield (
            f"{ROLE}_certificate_type is provided, so {ROLE}_certificate_file and"
            f" {ROLE}_certificate_key_file must both be given."
        )


def _controller(settings: Mapping[str, Any], text: str) -> Iterator[str]:
    """Yield a sentence if the first controller cannot be served."""
    first = next(iter(settings["found"]), "The controller")
    if not text:
        yield f"{first} has no /etc/slurm/slurm.conf; run the role slurm_controller there first."
    elif not any(tokens.TYPE in value.split(",") for value in _values(text, "AuthAltTypes")):
        yield (
            f"{first} gives users no tokens, without which nobody could use the service; set"
            " slurm_controller_tokens and run the role slurm_controller there first."
        )


def _url(host: str, port: int) -> str:
    return f"https://{f'[{host}]' if ':' in host else host}" + (f":{port}" if port != 443 else "")


def _newest(parsers: str) -> str:
    found = re.findall(r"data_parser/(v\d+\.\d+\.\d+)", parsers)
    return max(found, key=lambda one: [int(part) for part in one[1:].split(".")], default=OLDEST_VERSION)


def _lines(text: str) -> list[str]:
    """Return the lines of a slurm.conf that a client needs; names of options have any case."""
    taken = {name.lower() for name in TAKEN}
    return [line.strip() for line in text.splitlines() if line.partition("=")[0].strip().lower() in taken]


def _values(text: str, name: str) -> list[str]:
    parts = (line.partition("=") for line in text.splitlines())
    return [value.strip() for option, _equals, value in parts if option.strip().lower() == name.lower()]

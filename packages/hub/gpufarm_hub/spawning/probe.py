# SPDX-License-Identifier: GPL-3.0-or-later
"""Try the walls of this machine from inside: ``python -m gpufarm_hub.spawning.probe SETTINGS``.

It runs a program in a network like that of a notebook, which must reach the hub and nothing else of the
machine.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from . import addresses, walls

PATIENCE = 3  # seconds in which a packet that is not refused is answered


def targets(hub_url: str, proxy_api_url: str, public_url: str, subnet: str) -> tuple[str, list[str]]:
    """Return what a notebook must reach, and what it must not reach; each as host and port.

    Args:
        hub_url: where the hub is.
        proxy_api_url: where the proxy takes orders.
        public_url: where the proxy is.
        subnet: network of the notebooks.
    """
    machine, public = walls.hub_address(subnet), urlsplit(public_url)
    ports = [urlsplit(hub_url).port, urlsplit(proxy_api_url).port, public.port or 443]
    closed = [f"{machine}:{port}" for port in ports]
    return urlsplit(hub_url).netloc, [*closed, urlsplit(proxy_api_url).netloc, "169.254.169.254:80"]


def problems(wanted: str, unwanted: list[str]) -> list[str]:
    """Return what is wrong, seen from here; each a sentence."""
    found = [f"a notebook reaches {target}." for target in unwanted if _is_reached(target)]
    return found if _is_reached(wanted) else [*found, f"a notebook does not reach the hub at {wanted}."]


def _is_reached(target: str) -> bool:
    host, _colon, port = target.rpartition(":")
    try:
        socket.create_connection((host, int(port)), PATIENCE).close()
    except OSError:
        return False
    return True


def _run_inside(settings: dict[str, str], subnet: str) -> str:
    wanted, unwanted = targets(settings["hub_url"], settings["proxy_api_url"], settings["public_url"], subnet)
    network = walls.network_of(addresses.of_probe(subnet))
    lists = {name: value if isinstance(value, list) else [value] for name, value in network.items()}
    properties = [f"--property={name}={one}" for name, values in lists.items() for one in values]
    command = [
        *("systemd-run", "--quiet", "--wait", "--pipe", "--collect", "--property=User=nobody"),
        *properties,
        *(sys.executable, "-m", "gpufarm_hub.spawning.probe", "inside", wanted, *unwanted),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


def main() -> None:
    """Run the program."""
    if sys.argv[1] == "inside":
        found = problems(sys.argv[2], sys.argv[3:])
        if found:
            sys.exit("\n".join(found))
        return
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    told = _run_inside(settings, settings["walls"]["subnet"])
    if told:
        sys.exit(f"The walls around notebooks do not hold: {told.strip()}")


if __name__ == "__main__":
    main()

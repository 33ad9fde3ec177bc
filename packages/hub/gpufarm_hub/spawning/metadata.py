# SPDX-License-Identifier: GPL-3.0-or-later
"""Metadata services of clouds, which tell a machine its secrets and notebooks nothing.

``python -m gpufarm_hub.spawning.metadata`` closes them to the users of all notebooks that run: after a
firewall has begun by deleting all rules.
"""

from __future__ import annotations

import json
import pwd
import subprocess
import sys
from collections.abc import Iterable

from . import units

# RFC 3927, where most clouds have it; Alibaba Cloud; Azure's wire server, which has a machine's certificates.
IPV4 = ("169.254.0.0/16", "100.100.100.200", "168.63.129.16")
# Amazon EC2; Google Compute Engine; OpenStack Nova.
IPV6 = ("fd00:ec2::254", "fd20:ce::254", "fe80::a9fe:a9fe")

TABLE = "inet jupyterhub_metadata"
NFT = "/usr/sbin/nft"


def refused() -> list[str]:
    """Return statements for a chain of `nft` that refuse what goes to a metadata service.

    Several clouds have their name servers at the same addresses, so these stay open.
    """
    ipv4, ipv6 = (f"{{ {', '.join(addresses)} }}" for addresses in (IPV4, IPV6))
    names = "meta l4proto { tcp, udp } th dport 53 accept"
    return [
        f"ip daddr {ipv4} {names}",
        f"ip daddr {ipv4} reject",
        f"ip6 daddr {ipv6} {names}",
        f"ip6 daddr {ipv6} reject",
    ]


def rules(uids: Iterable[int]) -> str:
    """Return commands of `nft`, in one line, that close the services to more users.

    Who has begun to refuse a user goes on with it until the machine's next start: another notebook of the
    same user may run.

    Args:
        uids: of the users.
    """
    # What the kernel sends by itself, such as answers to what is refused, belongs to no user.
    commands = [
        f"add table {TABLE}",
        f"add set {TABLE} users {{ typeof meta skuid; }}",
        f"add chain {TABLE} output {{ type filter hook output priority filter - 5; policy accept; }}",
        f"add chain {TABLE} to_metadata",
        f"flush chain {TABLE} output",
        f"flush chain {TABLE} to_metadata",
        *(f"add rule {TABLE} to_metadata {statement}" for statement in refused()),
        f"add rule {TABLE} output meta skuid @users jump to_metadata",
        *(f"add element {TABLE} users {{ {uid} }}" for uid in sorted(set(uids))),
    ]
    return "; ".join(commands)


def before_start(uid: int) -> str:
    """Return the program that a unit runs before its notebook (systemd.service(5), ExecStartPre=).

    systemd runs it as root, in the folder and with the environment of the notebook: `nft` looks at neither.

    Args:
        uid: of the notebook's user.
    """
    return f"+{NFT} {json.dumps(rules([*users(), uid]))}"


def users() -> list[int]:
    """Return the user ids of the users whose notebooks run.

    Raises:
        EngineError: systemd did not answer.
    """
    found = []
    for unit in units.running():
        try:
            found.append(pwd.getpwnam(units.owner_of(unit).partition("/")[0]).pw_uid)
        except KeyError:  # an account that was removed; no new process can have it
            continue
    return found


def main() -> None:
    """Run the program."""
    done = subprocess.run([NFT, rules(users())], check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"the rules for packets of notebooks were refused: {done.stderr.strip()}")


if __name__ == "__main__":
    main()

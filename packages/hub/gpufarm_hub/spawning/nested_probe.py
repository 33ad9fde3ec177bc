# SPDX-License-Identifier: GPL-3.0-or-later
"""Start a container as a notebook would: ``python -m gpufarm_hub.spawning.nested_probe PODMAN``.

The unit has the sandbox of a notebook that may start containers, and an account without rights. The container
borrows the machine's `/usr`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import nested, systemd_spawner

HOME = "/tmp/home"  # noqa: S108 - in the unit's own /tmp
SIZE = 64 * 2**20  # bytes for temporary files
INSIDE = """
mkdir -p "$HOME" /tmp/root/usr
for one in bin lib lib64; do ln -s "usr/$one" "/tmp/root/$one"; done
set -- "$1" run --rm --volume /usr:/usr:ro --rootfs /tmp/root /usr/bin/true
exec "$0" -I -m gpufarm_hub.spawning.sealed "$@"
"""


def command(podman: str) -> list[str]:
    """Return the command that starts the unit.

    Args:
        podman: path of Podman.
    """
    properties: Mapping[str, str | Sequence[str]] = {
        **systemd_spawner.properties_of([], [], str(SIZE), SIZE),
        **nested.LOOSENED,
        "PrivateNetwork": "yes",
        "User": "nobody",
    }
    lists = {name: [value] if isinstance(value, str) else value for name, value in properties.items()}
    emptied = [f"/dev/null:{path}" for path in nested.EMPTIED if Path(path).exists()]
    lists["BindReadOnlyPaths"] = [*lists["BindReadOnlyPaths"], *emptied]
    variables = {**nested.environment(), "HOME": HOME}
    return [
        *("systemd-run", "--quiet", "--wait", "--pipe", "--collect"),
        *(f"--property={name}={one}" for name, values in lists.items() for one in values),
        *(f"--setenv={name}={value}" for name, value in variables.items()),
        *("/bin/sh", "-ec", INSIDE, sys.executable, podman),
    ]


def main() -> None:
    """Run the program."""
    done = subprocess.run(command(sys.argv[1]), check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"No container starts in a notebook: {(done.stdout + done.stderr).strip()}")


if __name__ == "__main__":
    main()

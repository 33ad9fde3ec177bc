"""The record drops the package source of a role that takes its packages from elsewhere."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.dropped import dropped
from harness.cases import DRIVER
from harness.host import Host
from harness.life import on
from harness.stubs import APT_KEY_FINGERPRINT, said

NVIDIA = {
    "file": "/etc/apt/sources.list.d/gpufarm-nvidia.sources",
    "key_file": "/etc/apt/keyrings/gpufarm-nvidia.asc",
    "key_url": "https://mirror.example.org/nvidia.asc",
    "key_fingerprint": APT_KEY_FINGERPRINT,
    "content": "Types: deb\n",
}
ANSWERS = {
    "gpufarm.cluster.nvidia_driver_plan": {**DRIVER, "plan": {**DRIVER["plan"], "repository": NVIDIA}},
    # It runs already: nothing is recorded before a reboot.
    "gpufarm.cluster.nvidia_driver_build": {
        "version": "570.133.20",
        "loaded_version": "570.133.20",
        "nouveau_loaded": False,
        "modules": [],
    },
    "Service | Check whether the driver is new since the last boot": {"stat": {"exists": False}},
    "Validate | List the installed packages of DCGM": said(
        "installed\tdatacenter-gpu-manager-4-core\t1:4.5.3-1\n"
        "installed\tdatacenter-gpu-manager-4-cuda12\t1:4.5.3-1\n"
        "installed\tdatacenter-gpu-manager-exporter\t4.8.2-1\n"
    ),
}


def made(role: str, host: Host, source: str) -> list[str]:
    """Return the paths that the role records with a source."""
    one = on(host, role).with_answers(ANSWERS).run(role, {f"{role}_source": source})
    assert not one.failed, one.refusal
    return list(host.made[role]["paths"])


@pytest.mark.parametrize(
    ("role", "before", "now"),
    [
        ("dcgm", "repository", "preinstalled"),
        ("fabric", "repository", "distribution"),
        ("nvidia_driver", "nvidia", "distribution"),
    ],
)
def test_the_source_and_its_key_go(role: str, before: str, now: str) -> None:
    host = Host()
    recorded = {"paths": dict.fromkeys(made(role, host, before), "-")}
    gone = set(dropped(recorded, {"paths": made(role, host, now)}, []).files)
    name = role.replace("_driver", "").replace("_", "-")
    assert {
        f"/etc/apt/sources.list.d/gpufarm-{name}.sources",
        f"/etc/apt/keyrings/gpufarm-{name}.asc",
    } <= gone
    assert not [path for path in gone if name not in path]
    assert not {*made(role, host, before)} ^ recorded["paths"].keys()

"""A login session of a user whose account the machine knows itself opens no GPU; everything else it does."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

NODES = ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"]
OTHERS = ["/dev/null", "/dev/ptmx", "/dev/fuse", "/dev/urandom"]
HUB = "/opt/jupyterhub/bin/python"


def test_a_session_opens_no_gpu(host):
    host.run("useradd --create-home carol")
    uid = host.check_output("id --user carol")

    def refused(nodes: list[str]) -> list[str]:
        run = f"systemd-run --quiet --wait --pipe --slice=user-{uid}.slice --uid={uid}"
        tried = {node: host.run(f"{run} sh -c 'exec 3< {node}'").stderr for node in nodes}
        # No driver is behind the nodes of simulated GPUs: one that may be opened is said not to be there.
        return [node for node, said in tried.items() if "not permitted" in said or "denied" in said]

    assert refused(NODES + OTHERS) == []
    host.check_output(f"{HUB} -c 'from gpufarm_hub.sharing import sessions as s; s.close({uid})'")
    assert refused(NODES + OTHERS) == NODES
    host.check_output(f"{HUB} -m gpufarm_hub.sharing.sessions")
    assert refused(NODES + OTHERS) == []
    assert not host.file(f"/etc/systemd/system.control/user-{uid}.slice.d").exists

"""A site set up from an inventory alone serves its users."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import subprocess
from pathlib import Path

from testinfra.host import Host

from lab.selfcheck import check
from lab.visitor import trust


def test_a_user_runs_python_on_one_of_the_slices(host: Host) -> None:
    done = subprocess.run(["lab", "status", "--json"], capture_output=True, text=True, check=True)
    bench = json.loads(done.stdout)
    address = next(entry["address"] for entry in bench["hosts"] if entry["name"] == "gpu1")
    password = json.loads(Path(bench["iam"]["users_file"]).read_text())["alice"]["password"]
    authorities = trust(
        host.file("/etc/jupyterhub/tls/ca.crt").content_string, Path(bench["iam"]["ca_file"]).read_text()
    )
    proof = check(f"https://{address}:8888", authorities, "alice", password, say=print)
    assert proof.free == {"3g.40gb": 1, "2g.20gb": 2}

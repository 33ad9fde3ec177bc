"""A site set up from an inventory alone serves its users."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from typing import Any

from testinfra.host import Host

from lab.selfcheck import check
from lab.visitor import trust


def test_a_user_runs_python_on_one_of_the_slices(
    host: Host, bench: dict[str, Any], facts: dict[str, Any], passwords: dict[str, str]
) -> None:
    authorities = trust(
        host.file("/etc/jupyterhub/tls/ca.crt").content_string, Path(bench["iam"]["ca_file"]).read_text()
    )
    proof = check(f"https://{facts['address']}:8888", authorities, "alice", passwords["alice"], say=print)
    assert proof.free == {"3g.40gb": 1, "2g.20gb": 2}

"""The nodes of a cluster that can run notebooks."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest
from gpufarm_hub.slurm import client, cluster


def node(name: str, **values: Any) -> dict[str, Any]:
    known = {"name": name, "address": "10.77.0.12", "partitions": ["gpu"], "active_features": ["notebooks"]}
    return {**known, "state": ["IDLE"], "gres": "gpu:a30:1", "gres_used": "gpu:a30:0", **values}


def test_only_nodes_of_the_partition_with_the_programs_of_notebooks_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = [
        node("gpu1"),
        node("gpu2", active_features=["fast", "notebooks"]),
        node("bare", active_features=[]),
        node("old", active_features=["notebooks-old"]),
        node("other", partitions=["long"]),
    ]
    said = {"sinfo": "gpu*|4:00:00\nlong|infinite\n", "scontrol": json.dumps({"nodes": nodes})}
    monkeypatch.setattr(client, "run", lambda command: said[command[0]])
    cluster._shared.cache_clear()
    assert [one.name for one in cluster.read("").nodes] == ["gpu1", "gpu2"]
    cluster._shared.cache_clear()

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of modinfo about Lustre's module becomes facts about a kernel."""

from __future__ import annotations

import shutil

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed
from ansible_collections.gpufarm.cluster.plugins.modules import lustre_info


def test_kernels_tell_the_version_of_their_module_and_what_it_was_built_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built = {"6.1.0-1": "6.1.0-1", "6.1.0-2": "6.1.0-1"}

    def modinfo(words: list[str], _seconds: float) -> timed.Answer:
        _program, _k, release, _f, field, _name = words
        if release not in built:
            return timed.Answer(1, "", "not found")
        said = {"version": "2.15.8", "vermagic": f"{built[release]} SMP preempt mod_unload modversions"}
        return timed.Answer(0, said[field] + "\n", "")

    monkeypatch.setattr(timed, "run", modinfo)
    monkeypatch.setattr(shutil, "which", lambda _name, path="": "/usr/sbin/modinfo")
    found = lustre_info.read_kernels(["6.1.0-1", "6.1.0-2", "6.1.0-3"], 5)
    assert [(one["version"], one["built_for"], one["fits"]) for one in found] == [
        ("2.15.8", "6.1.0-1", True),
        ("2.15.8", "6.1.0-1", False),
        ("", "", False),
    ]

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of modinfo and lnetctl becomes facts about kernels and LNet."""

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
        _program, _k, release, _f, field, name = words
        if release not in built or name not in ("lustre", "ksocklnd", "ib_core"):
            return timed.Answer(1, "", "not found")
        if field == "filename":
            folder = "kernel/drivers/infiniband/core" if release == "6.1.0-1" else "updates/dkms"
            return timed.Answer(0, f"/lib/modules/{release}/{folder}/ib_core.ko\n", "")
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
    assert [(one["drivers"], one["infiniband"]) for one in found] == [
        (["ksocklnd"], "kernel"),
        ([], "other"),
        ([], ""),
    ]


@pytest.mark.parametrize(
    ("answer", "running", "answers"),
    [
        (timed.Answer(0, "net:\n", ""), True, True),
        (timed.Answer(234, "", "Writer error: failed to resolve Netlink family id"), False, True),
        (timed.Answer(234, "", "Writer error: Operation not permitted"), False, False),
        (timed.Answer(None, "", ""), False, False),
    ],
)
def test_lnet_answers_when_it_tells_how_it_is_or_that_it_is_down(
    answer: timed.Answer, running: bool, answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed, "run", lambda _words, _seconds: answer)
    monkeypatch.setattr(shutil, "which", lambda _name, path="": "/usr/sbin/lnetctl")
    told = lustre_info.read_lnet(5)
    assert (told["running"], told["answers"]) == (running, answers)

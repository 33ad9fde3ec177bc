"""Roles refuse distributions on which they cannot install their packages, before anything changes."""

from __future__ import annotations

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._distributions import (
    SUPPORTED,
    WITHOUT_PACKAGES,
    problems,
    releases,
)
from harness import CASES
from harness.specs import options
from harness.stubs import DEBIAN

OTHERS = {
    "Rocky": {
        "distribution": "Rocky",
        "distribution_version": "9.4",
        "os_family": "RedHat",
        "pkg_mgr": "dnf",
    },
    "Debian": {"distribution": "Debian", "distribution_version": "11.9"},
}
EVERY_ROLE = pytest.mark.parametrize("role", sorted(SUPPORTED))


def answers(name: str) -> dict[str, dict[str, dict[str, object]]]:
    return {"ansible.builtin.setup": {"ansible_facts": {**DEBIAN, **OTHERS[name]}}}


@EVERY_ROLE
@pytest.mark.parametrize("name", OTHERS)
def test_a_distribution_without_the_packages_is_refused(role: str, name: str) -> None:
    # The first choice comes with packages.
    choice = options(role)[f"{role}_source"]["choices"][0] if role in WITHOUT_PACKAGES else ""
    run = CASES[role].with_answers(answers(name)).run(role, {f"{role}_source": choice} if choice else {})
    assert run.failed
    assert (
        f"host1 has {name} {OTHERS[name]['distribution_version']}, and the role {role} installs"
        in run.refusal
    )
    assert f"packages on {releases(role)};" in run.refusal
    assert not [call for call in run.calls if not call.asks]


@pytest.mark.parametrize("role", sorted({*CASES} - {*SUPPORTED}))
def test_roles_without_packages_do_not_care(role: str) -> None:
    run = CASES[role].with_answers(answers("Rocky")).run(role)
    assert "installs packages on" not in run.refusal


@pytest.mark.parametrize(
    ("name", "version", "fine"),
    [
        ("Debian", "12", True),
        ("Debian", "12.11", True),
        ("Debian", "13", True),
        ("Debian", "forky/sid", True),
        ("Debian", "9.13", False),
        ("Ubuntu", "22.04", True),
        ("Ubuntu", "20.04", False),
        ("CentOS", "9", False),
    ],
)
def test_the_oldest_release_counts(name: str, version: str, fine: bool) -> None:
    told = problems("zookeeper", "zk1", {"distribution": name, "distribution_version": version})
    assert (
        not told
        if fine
        else told
        == [
            f"zk1 has {name} {version}, and the role zookeeper installs packages on Debian 12 or later and "
            "Ubuntu 22.04 or later; choose another machine."
        ]
    )

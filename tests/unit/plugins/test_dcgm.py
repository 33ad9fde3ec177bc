"""Settings of DCGM and its exporter become packages and a list of metrics."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import csv
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._dcgm.plan import plan
from hypothesis import given
from hypothesis import strategies as st

SETTINGS: dict[str, Any] = {
    "source": "repository",
    "version": "",
    "exporter_version": "",
    "apt_url": "https://mirror.example.org/cuda",
    "apt_suite": "/",
    "apt_key_url": "https://mirror.example.org/cuda.asc",
    "apt_key_fingerprint": "0" * 40,
    "metrics": [],
    "port": 9400,
    "readers": [],
}
CUDA = [f"datacenter-gpu-manager-4-cuda{major}" for major in (11, 12, 13)]
OFFERED = {
    **{name: ["1:4.6.0-1", "1:4.5.3-1"] for name in ("datacenter-gpu-manager-4-core", *CUDA)},
    "datacenter-gpu-manager-exporter": ["4.8.3-1", "4.8.2-1"],
}
INSTALLED = (
    "installed\tdatacenter-gpu-manager-4-core\t1:4.5.3-1\n"
    "installed\tdatacenter-gpu-manager-exporter\t4.8.2-1\n"
)


def told(version: str) -> str:
    return f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Tue Apr  8 12:41:17 UTC 2025\n"


def planned(driver: str | None = told("570.133.20"), packages: str = "", **settings: Any) -> dict[str, Any]:
    machine = {"driver": driver, "packages": packages}
    return plan({**SETTINGS, **settings}, "host1", machine, OFFERED)


@pytest.mark.parametrize(
    ("version", "major"),
    [
        ("450.36.06", 11),
        ("515.105.01", 11),
        ("525.60.13", 12),
        ("575.57.08", 12),
        ("580.65.06", 13),
        ("610.43.02", 13),
    ],
)
def test_the_diagnostics_are_those_for_the_cuda_of_the_driver(version: str, major: int) -> None:
    assert planned(told(version))["packages"] == [
        "datacenter-gpu-manager-4-core=1:4.6.0-1",
        "datacenter-gpu-manager-exporter=4.8.3-1",
        f"datacenter-gpu-manager-4-cuda{major}=1:4.6.0-1",
    ]


def test_before_the_driver_is_there_the_source_is_judged_all_the_same() -> None:
    assert planned(None)["problems"] == []
    assert len(planned(None, version="1:9-1")["problems"]) == 1
    assert planned("")["problems"] != []


def test_an_installed_version_stays_until_another_one_is_wanted() -> None:
    assert planned(packages=INSTALLED)["packages"] == [
        "datacenter-gpu-manager-4-core=1:4.5.3-1",
        "datacenter-gpu-manager-exporter=4.8.2-1",
        "datacenter-gpu-manager-4-cuda12=1:4.5.3-1",
    ]
    assert (
        "datacenter-gpu-manager-4-core=1:4.6.0-1"
        in planned(packages=INSTALLED, version="1:4.6.0-1")["packages"]
    )


def test_packages_that_somebody_else_installed_will_do() -> None:
    assert planned(packages=INSTALLED, source="preinstalled", apt_url="")["problems"] == []
    given = {"version": "1:4.5.3-1", "exporter_version": "4.8.2-1"}
    assert planned(packages=INSTALLED, source="preinstalled", **given)["problems"] == []


def test_a_list_of_its_own_replaces_that_of_the_package() -> None:
    assert planned()["collectors"] == "/etc/dcgm-exporter/default-counters.csv"
    assert planned()["counters"] == {}
    own = planned(metrics=[{"field": "DCGM_FI_DEV_FB_USED", "help": "Memory (in MiB), in use."}])
    assert own["collectors"] == "/etc/gpufarm/dcgm/counters.csv"
    assert own["counters"] == {"counters.csv": 'DCGM_FI_DEV_FB_USED,gauge,"Memory (in MiB), in use."\n'}


@given(st.lists(st.text(), min_size=1, max_size=3))
def test_each_metric_is_one_line_of_three_fields_or_refused(texts: list[str]) -> None:
    fields = [f"DCGM_FI_DEV_{number}" for number, _text in enumerate(texts)]
    metrics = [
        {"field": field, "type": "label", "help": text} for field, text in zip(fields, texts, strict=True)
    ]
    found = planned(metrics=metrics)
    if found["problems"]:
        return
    lines = found["counters"]["counters.csv"].splitlines()
    assert list(csv.reader(lines)) == [
        [field, "label", text.strip()] for field, text in zip(fields, texts, strict=True)
    ]

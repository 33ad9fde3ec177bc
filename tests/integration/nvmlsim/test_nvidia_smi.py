# SPDX-License-Identifier: GPL-3.0-or-later
"""The real nvidia-smi on simulated GPUs. Expected output comes from NVIDIA's MIG user guide and published
listings show of real ones, or what simgpu set."""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from machine import Machine

ALL_MODELS = (
    *("a30", "a100-40gb", "a100-80gb", "h100-80gb", "h100-94gb", "h100-96gb", "h200-141gb", "b200-180gb"),
    *("rtx-pro-6000", "v100-32gb", "t4"),
)

# The guide's listing of an A100, section "Creating GPU Instances".
A100_PLACEMENTS = """\
GPU  0 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1
GPU  0 Profile ID 20 Placements: {0,1,2,3,4,5,6}:1
GPU  0 Profile ID 15 Placements: {0,2,4,6}:2
GPU  0 Profile ID 14 Placements: {0,2,4}:2
GPU  0 Profile ID  9 Placements: {0,4}:4
GPU  0 Profile ID  5 Placement : {0}:4
GPU  0 Profile ID  0 Placement : {0}:8
"""


def smi_on(machine: Machine, smi: Path, *words: object, code: int = 0, **environment: str) -> str:
    """Run nvidia-smi and return what it prints; it must end with this exit status."""
    done = machine.run(smi, *words, **environment)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def query(machine: Machine, smi: Path, *fields: str) -> list[list[str]]:
    text = smi_on(machine, smi, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
    return [[cell.strip() for cell in row] for row in csv.reader(text.splitlines())]


def xml(machine: Machine, smi: Path) -> list[ET.Element]:
    """Return the elements of the GPUs."""
    return ET.fromstring(smi_on(machine, smi, "-q", "-x")).findall("gpu")


# ---- what there is ----


def test_it_lists_gpus_and_slices(machine: Machine, smi: Path) -> None:
    machine.simgpu("init", "a100-80gb", "t4")
    smi_on(machine, smi, "-i", 0, "-mig", 1)
    smi_on(machine, smi, "mig", "-i", 0, "-cgi", "9,19", "-C")
    state = machine.status()
    printed = re.findall(r"UUID: ((?:GPU|MIG)-[0-9a-f-]{36})\)", smi_on(machine, smi, "-L"))
    big, small = (piece["uuid"] for piece in state["slices"])
    assert printed == [state["gpus"][0]["uuid"], big, small, state["gpus"][1]["uuid"]]


def test_it_describes_every_model(machine: Machine, smi: Path) -> None:
    machine.simgpu("init", *ALL_MODELS)
    elements = xml(machine, smi)
    assert [element.findtext("product_name") for element in elements] == [
        *("NVIDIA A30", "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"),
        *("NVIDIA H100 NVL", "NVIDIA GH200 480GB", "NVIDIA H200", "NVIDIA B200"),
        *("NVIDIA RTX PRO 6000 Blackwell Server Edition", "Tesla V100-SXM2-32GB", "Tesla T4"),
    ]
    modes = [element.findtext("mig_mode/current_mig") for element in elements]
    assert modes == ["Disabled"] * 9 + ["N/A"] * 2
    rows = [element.findtext("remapped_rows/remapped_row_unc") for element in elements]
    assert rows == ["0"] * 9 + [None] * 2
    pages = [element.findtext("retired_pages/double_bit_retirement/retired_count") for element in elements]
    assert pages == ["N/A"] * 9 + ["0"] * 2
    text = smi_on(machine, smi, "-q")
    assert text.count("Product Name") == len(ALL_MODELS)


def test_its_table_has_slices_and_processes(machine: Machine, smi: Path) -> None:
    machine.simgpu("init", "a100-80gb", "h200-141gb")
    smi_on(machine, smi, "-i", 0, "-mig", 1)
    smi_on(machine, smi, "mig", "-i", 0, "-cgi", "9,14", "-C")
    slice_ = machine.status()["slices"][0]
    on_slice = machine.simgpu("process", "start", "--slice", slice_["uuid"], "--memory", 500).strip()
    on_gpu = machine.simgpu("process", "start", "--gpu", 1, "--memory", 700).strip()
    table = smi_on(machine, smi)
    rows = re.findall(r"\| +(\d) +(\S+) +(\S+) +(\d+) +C +\S+ +(\d+)MiB \|", table)
    assert rows == [
        ("0", str(slice_["gi"]), str(slice_["ci"]), on_slice, "500"),
        ("1", "N/A", "N/A", on_gpu, "700"),
    ]
    assert re.search(r"\|  0 +2   0   0  \| +512MiB / 40192MiB +\| 42 ", table)
    apps = smi_on(machine, smi, "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
    assert apps.split("\n")[:2] == [f"{on_slice}, 500", f"{on_gpu}, 700"]


# ---- health ----


def test_it_shows_the_health_that_was_set(machine: Machine, smi: Path) -> None:
    machine.simgpu("init", "a100-80gb", "t4")
    machine.simgpu("set", 0, "temperature=91", "power=390000", "ecc_uncorrected=3", "sram_uncorrected=1")
    machine.simgpu("set", 0, "throttle=hw_slowdown,hw_thermal_slowdown", "pcie_width=8", "persistence=1")
    machine.simgpu("set", 0, "remapped_uncorrected=2", "remap_pending=1", "remap_failure=1")
    machine.simgpu("set", 1, "retired_double=4", "retired_pending=1", "ecc_pending=off")
    asked = (
        "temperature.gpu",
        "power.draw",
        "ecc.errors.uncorrected.volatile.total",
        "pcie.link.width.current",
    )
    assert query(machine, smi, *asked, "persistence_mode")[0] == ["91", "390.00", "4", "8", "Enabled"]
    assert query(
        machine, smi, "clocks_throttle_reasons.hw_thermal_slowdown", "clocks_throttle_reasons.active"
    )[0] == ["Active", "0x0000000000000048"]
    assert query(
        machine, smi, "retired_pages.double_bit.count", "retired_pages.pending", "ecc.mode.pending"
    ) == [
        ["[N/A]", "[N/A]", "Enabled"],
        ["4", "Yes", "Disabled"],
    ]
    a100, t4 = xml(machine, smi)
    rows = [a100.findtext(f"remapped_rows/remapped_row_{name}") for name in ("unc", "pending", "failure")]
    assert rows == ["2", "Yes", "Yes"]
    assert a100.findtext("temperature/gpu_temp_slow_threshold") == "89 C"
    assert t4.findtext("temperature/gpu_temp_max_threshold") == "96 C"


def test_it_shows_links(machine: Machine, smi: Path) -> None:
    machine.simgpu("init", "v100-32gb")
    machine.simgpu("set", 0, "nvlink_down=4", "nvlink_crc=7")
    links = re.findall(r"Link (\d): (.*)", smi_on(machine, smi, "nvlink", "-s"))
    assert dict(links) == {str(link): "<inactive>" if link == 4 else "25.781 GB/s" for link in range(6)}
    errors = re.findall(r"Link (\d): CRC Errors: (\d+)", smi_on(machine, smi, "nvlink", "-e"))
    assert dict(errors) == {str(link): "0" if link else "7" for link in range(6) if link != 4}


# ---- MIG ----


def test_profiles_and_placements_are_the_guides(machine: Machine, smi: Path) -> None:
    machine.simgpu("init", "a100-80gb")
    smi_on(machine, smi, "-mig", 1)
    listed = re.findall(r"MIG (\S+) +(\d+) +(\d)/(\d) ", smi_on(machine, smi, "mig", "-lgip"))
    assert listed == [
        ("1g.10gb", "19", "7", "7"),
        ("1g.10gb+me", "20", "1", "1"),
        ("1g.20gb", "15", "4", "4"),
        ("2g.20gb", "14", "3", "3"),
        ("3g.40gb", "9", "2", "2"),
        ("4g.40gb", "5", "1", "1"),
        ("7g.80gb", "0", "1", "1"),
    ]
    assert smi_on(machine, smi, "mig", "-lgipp") == A100_PLACEMENTS


def test_the_guides_second_example_ends_as_in_the_guide(machine: Machine, smi: Path) -> None:
    """Section "Creating GPU Instances": the order of creation decides whether four profiles fit."""
    machine.simgpu("init", "a100-80gb")
    smi_on(machine, smi, "-mig", 1)
    text = smi_on(machine, smi, "mig", "-cgi", "19,19,14,9", code=23)
    assert text.count("Successfully created GPU instance") == 3
    assert "using profile 9: Insufficient Resources" in text
    smi_on(machine, smi, "mig", "-dgi")
    smi_on(machine, smi, "mig", "-cgi", "9,19,14,19", "-C")
    placed = re.findall(r"MIG (\S+) +(\d+) +\d+ +(\d:\d) ", smi_on(machine, smi, "mig", "-lgi"))
    assert sorted(placed) == [
        ("1g.10gb", "19", "0:1"),
        ("1g.10gb", "19", "1:1"),
        ("2g.20gb", "14", "2:2"),
        ("3g.40gb", "9", "4:4"),
    ]


def test_what_is_in_use_is_not_destroyed(machine: Machine, smi: Path) -> None:
    machine.simgpu("init", "h100-80gb")
    smi_on(machine, smi, "-mig", 1)
    smi_on(machine, smi, "mig", "-cgi", "9", "-C")
    assert len(re.findall(r"MIG 3g.40gb +2 +0 +0:3", smi_on(machine, smi, "mig", "-lci"))) == 1
    pid = machine.simgpu("process", "start", "--slice", machine.status()["slices"][0]["uuid"]).strip()
    assert "In use by another client" in smi_on(machine, smi, "mig", "-dgi", code=19)
    assert "In use by another client" in smi_on(machine, smi, "mig", "-dci", code=19)
    machine.simgpu("process", "stop", pid)
    smi_on(machine, smi, "mig", "-dci")
    smi_on(machine, smi, "mig", "-dgi")
    assert machine.status()["slices"] == []


def test_a_busy_gpu_changes_its_mode_later(machine: Machine, smi: Path) -> None:
    machine.simgpu("init", "a100-80gb")
    machine.simgpu("set", 0, "clients=1")
    assert "MIG mode is in pending enable state" in smi_on(machine, smi, "-mig", 1)
    assert query(machine, smi, "mig.mode.current", "mig.mode.pending") == [["Disabled", "Enabled"]]


@pytest.mark.parametrize("model", [model for model in ALL_MODELS if model not in ("v100-32gb", "t4")])
def test_every_model_is_filled_with_its_smallest_profile(machine: Machine, smi: Path, model: str) -> None:
    machine.simgpu("init", model)
    smi_on(machine, smi, "-mig", 1)
    name, profile, count = re.findall(r"MIG (1g\.\S+) +(\d+) +\d/(\d)", smi_on(machine, smi, "mig", "-lgip"))[
        0
    ]
    smi_on(machine, smi, "mig", "-cgi", ",".join([profile] * int(count)), "-C")
    assert len(re.findall(rf"MIG {re.escape(name)} +Device", smi_on(machine, smi, "-L"))) == int(count)
    assert re.search(rf"{re.escape(name)} +{profile} +0/{count} ", smi_on(machine, smi, "mig", "-lgip"))


# ---- what can be wrong ----


def test_a_driver_that_is_not_there_or_another(machine: Machine, smi: Path) -> None:
    machine.simgpu("init", "a30")
    machine.simgpu("driver", "unload")
    assert "couldn't communicate with the NVIDIA driver" in smi_on(machine, smi, code=9)
    machine.simgpu("driver", "load")
    machine.simgpu("set", "host", "kernel_driver=535.261.03")
    assert "Driver/library version mismatch" in smi_on(machine, smi, code=18)


def test_a_lost_gpu(machine: Machine, smi: Path) -> None:
    machine.simgpu("init", "a30:2")
    machine.simgpu("set", 1, "lost=1")
    assert "GPU is lost" in smi_on(machine, smi, code=15)


def test_an_ordinary_user(machine: Machine, smi: Path) -> None:
    machine.simgpu("init", "a30")
    smi_on(machine, smi, "-L", NVMLSIM_UID="1000")
    assert "Insufficient Permissions" in smi_on(machine, smi, "-mig", 1, code=4, NVMLSIM_UID="1000")

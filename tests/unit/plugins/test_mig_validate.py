"""Partitions that GPUs cannot hold are refused before anything is installed."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import parse_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import offers, session
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.guarded import Calls
from ansible_collections.gpufarm.cluster.plugins.modules import mig_validate
from simulated_machine import Machine

Make = Callable[..., Machine]
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(make_machine: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the module on a machine with some GPUs; returns its result."""

    def run_module(models: tuple[str, ...], **arguments: Any) -> dict[str, Any]:
        make_machine(*models)
        monkeypatch.setattr(offers, "LIBRARY", os.environ["NVMLSIM_LIBRARY"])
        with patch_module_args(arguments), pytest.raises(SystemExit):
            mig_validate.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return run_module


@pytest.mark.parametrize("model", ["a30", "a100-80gb", "h100-80gb", "rtx-pro-6000", "t4"])
def test_gpus_are_those_that_the_binding_tells(
    make_machine: Make, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    make_machine(model, model)
    monkeypatch.setattr(offers, "LIBRARY", os.environ["NVMLSIM_LIBRARY"])
    with session.session() as nvml:
        told = nvml.gpus()
    found = offers.empty_gpus(Calls()).gpus
    for name in ("index", "uuid", "name", "serial", "pci_address", "memory_mib", "mig_capable", "profiles"):
        assert [getattr(gpu, name) for gpu in found] == [getattr(gpu, name) for gpu in told], name


@pytest.mark.parametrize("flavor", ["7x 1g.10gb MIG GPUs", "2x 3g.40gb", "None", "disabled"])
def test_what_fits_is_not_refused(run: Run, flavor: str) -> None:
    told = run(("a100-80gb",), flavor=flavor)
    told.pop("warnings", None)  # Ansible keeps those of modules that ran before in this process
    assert told == {
        "changed": False,
        "unchecked": "",
        "invocation": {
            "module_args": {
                "call_timeout": 30.0,
                "equivalents": False,
                "flavor": flavor,
                "gpus": ["all"],
                "layout": None,
            }
        },
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"flavor": "8x 1g.10gb"}, "the profile 1g.10gb fits on it at most 7x; '7x 1g.10gb' would fit."),
        ({"flavor": "2x 4g.40gb"}, "fits on it at most 1x"),
        ({"flavor": "1x 1g.11gb"}, "has no MIG profile 1g.11gb: it offers"),
        ({"layout": [{"profile": "3g.40gb", "start": 3}]}, "has no place for 3g.40gb at 3"),
        ({"flavor": "1x 1g.10gb", "gpus": ["7"]}, "'7' names no GPU of this machine"),
        ({"flavor": "many"}, "The MIG flavor 'many' is not understood"),
    ],
)
def test_what_cannot_fit_is_refused(run: Run, arguments: dict[str, Any], words: str) -> None:
    result = run(("a100-80gb",), **arguments)
    assert result["failed"] and words in result["msg"]


def test_all_gpus_are_told_at_once(run: Run) -> None:
    result = run(("a100-80gb", "a30"), flavor="9x 1g", equivalents=True)
    assert [line[:6] for line in result["msg"].splitlines()] == ["GPU 0 ", "GPU 1 "]


def test_a_gpu_without_mig_is_refused(run: Run) -> None:
    assert (
        "(Tesla T4, " in (said := run(("t4",), flavor="7x 1g.10gb")["msg"])
        and "cannot be partitioned" in said
    )


def test_a_driver_that_manages_no_gpu_may_be_replaced(run: Run) -> None:
    later = run((), flavor="7x 1g.10gb")
    assert (
        later["unchecked"] == "whether '7x 1g.10gb' fits on the GPUs is checked after the driver is installed"
    )


def test_without_a_driver_it_is_left_for_later(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "LIBRARY", "libno-such-library.so.1")
    assert offers.empty_gpus(Calls()).gpus == ()


@pytest.mark.parametrize("content", [b"", b"no library" * 100], ids=["empty", "text"])
def test_a_broken_library_is_no_missing_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    library = tmp_path / "libnvidia-ml.so.1"
    library.write_bytes(content)
    monkeypatch.setattr(offers, "LIBRARY", str(library))
    told = mig_validate.check(parse_flavor("7x 1g.10gb"), ["all"], False, 30)
    assert told.startswith("whether '7x 1g.10gb' fits on the GPUs could not be checked: The library of the")
    assert str(library) in told and "install the driver again" in told

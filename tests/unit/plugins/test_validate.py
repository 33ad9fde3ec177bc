"""GPUs are compared with what is declared about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils import _gpu_validate
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import FlavorError, parse_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import apply
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.plan import plan_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import readings as nvml_readings
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import session
from simulated_machine import Machine

Make = Callable[..., Machine]


def read() -> _gpu_validate.Found:
    with session.session() as nvml:
        gpus = nvml.gpus()
        reader = nvml_readings.Reader()
        answers = {gpu.uuid: reader.gpu(reader.open(gpu.uuid)) for gpu in gpus}
    readings = {uuid: values for uuid, (values, _failures) in answers.items()}
    return _gpu_validate.Found("550.54.15", "12.4", "open", gpus, readings)


def partition(flavor: str) -> None:
    with session.session() as nvml:
        apply.apply(nvml, [plan_flavor(nvml.gpus()[0], parse_flavor(flavor))])


def violations(found: _gpu_validate.Found, **declared: Any) -> list[str]:
    return _gpu_validate.violations(_gpu_validate.compare(_gpu_validate.Expected(**declared), found), "error")


def test_what_is_as_declared_passes(make_machine: Make) -> None:
    make_machine("a100-80gb", "a100-80gb").simgpu("set", 0, "persistence=1")
    found = read()
    limit = found.readings[found.gpus[0].uuid]["power_limit_mw"] // 1000
    assert (
        violations(
            found,
            count=2,
            driver_version="550.54",
            cuda_version="12.2",
            kernel_module="open",
            model="a100",
            memory_mib=80000,
            vbios=found.readings[found.gpus[0].uuid]["vbios"],
            mig_enabled=False,
            mig_flavor="disabled",
            ecc=True,
            compute_mode="default",
            power_limit_watts=limit,
            pcie_width=16,
            nvlinks=12,
            idle=True,
        )
        == []
    )


def test_all_violations_are_told_at_once(make_machine: Make) -> None:
    machine = make_machine("a100-80gb")
    machine.simgpu("set", 0, "pcie_width=8", "ecc=off", "persistence=0", "nvlink_down=1,2")
    machine.simgpu("process", "start", "--gpu", 0, "--memory", 100, "--pid", 4242)
    expected = _gpu_validate.Expected(
        count=2,
        driver_version="560",
        cuda_version="12.10",
        kernel_module="proprietary",
        model="H100",
        memory_mib=90000,
        vbios="1",
        mig_flavor="7x 1g.10gb",
        ecc=True,
        persistence=True,
        compute_mode="prohibited",
        power_limit_watts=1,
        pcie_width=16,
        nvlinks=12,
        idle=True,
    )
    checks = _gpu_validate.compare(expected, read(), lenient=["persistence"])
    assert [check.name for check in checks if check.ok] == []
    assert len(checks) == 15
    assert _gpu_validate.violations(checks, "warning")[0].endswith("persistence mode off, on declared")
    assert any("PID 4242" in words for words in _gpu_validate.violations(checks, "error"))


@pytest.mark.parametrize(
    ("held", "declared", "ok"),
    [
        ("2x 3g.40gb", "2x 3g.40gb", True),
        ("2x 3g.40gb", "2x 3g", True),
        ("2x 3g.40gb", "1x 3g.40gb", False),
        ("1x 3g.40gb", "2x 3g.40gb", False),
        ("2x 3g.40gb", "disabled", False),
        ("2x 3g.40gb", "None", True),
        ("3x 1c.3g.40gb", "3x 1c.3g.40gb", True),
        ("3x 1c.3g.40gb", "1x 3g.40gb", False),
        ("disabled", "1x 7g.80gb", False),
    ],
)
def test_partitions_are_compared(make_machine: Make, held: str, declared: str, ok: bool) -> None:
    make_machine("a100-80gb")
    partition(held)
    assert (violations(read(), mig_flavor=declared) == []) == ok


def test_a_flavor_that_cannot_be_read_is_an_error(make_machine: Make) -> None:
    make_machine("a100-80gb")
    with pytest.raises(FlavorError):
        violations(read(), mig_flavor="some slices")


def test_what_a_gpu_does_not_tell_is_a_violation_when_it_is_declared(make_machine: Make) -> None:
    make_machine("t4")
    assert violations(read(), nvlinks=1)
    found = read()
    found.readings[found.gpus[0].uuid].pop("ecc_mode", None)  # type: ignore[attr-defined]
    assert "not told" in violations(found, ecc=True)[0]


@pytest.mark.parametrize(
    ("older", "newer"), [("535.261", "550.54.15"), ("12.4", "12.10"), ("550", "550.1"), ("9.9", "10")]
)
def test_versions_are_compared_as_numbers(older: str, newer: str) -> None:
    assert _gpu_validate.version_key(older) < _gpu_validate.version_key(newer)

"""Errors of GPUs in the kernel's log, which users must not be able to forge."""

from __future__ import annotations

import json

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._health import xids
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.kernel_log import (
    grade,
    parse_journal,
    parse_message,
)
from hypothesis import given
from hypothesis import strategies as st


def graded(message: str, overrides: dict[str, str] | None = None) -> str:
    event = parse_message(message, 0)
    assert event is not None
    return grade(event, overrides or {}).status


@pytest.mark.parametrize(
    ("message", "kind", "code", "address"),
    [
        (
            "NVRM: Xid (PCI:0000:07:00): 79, pid='<unknown>', GPU has fallen off the bus.",
            "XID",
            79,
            "0000:07:00",
        ),
        ("NVRM: Xid (0000:07:00): 31, Ch 00000002", "XID", 31, "0000:07:00"),
        ("NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 00", "XID", 149, "0018:01:00"),
        ("NVRM: Xid (PCI:00000000:C1:00): 94, Contained", "XID", 94, "0000:c1:00"),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM",
            "SXid",
            20034,
            "0000:c1:00",
        ),
    ],
)
def test_errors_are_read(message: str, kind: str, code: int, address: str) -> None:
    event = parse_message(message, 5)
    assert event is not None
    assert (event.kind, event.code, event.address, event.time) == (kind, code, address, 5)


@pytest.mark.parametrize(
    "message",
    [
        "usb 1-1: product 'NVRM: Xid (PCI:0000:07:00): 79, x'",
        "NVRM: GPU at PCI:0000:07:00: GPU-1",
        "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Severity 1 Engine instance 30",
        "",
    ],
)
def test_other_lines_are_passed_over(message: str) -> None:
    assert parse_message(message, 0) is None


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        ("13, Graphics Exception", "ok"),
        ("63, Row Remapper", "ok"),
        ("48, DBE", "critical"),
        ("79, off the bus", "critical"),
        ("142, x", "warning"),
        ("9999, of the future", "warning"),
        ("145, RLW_CTRL Nonfatal XC0", "warning"),
        ("145, RLW_CTRL Fatal XC0", "critical"),
    ],
)
def test_errors_are_graded(rest: str, status: str) -> None:
    assert graded(f"NVRM: Xid (PCI:0000:07:00): {rest}") == status


def test_switch_errors_are_graded_by_what_the_line_says() -> None:
    line = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, {}, Link 30"
    assert graded(line.format("Fatal")) == "critical"
    assert graded(line.format("Non-fatal")) == "warning"


def test_a_site_grades_otherwise() -> None:
    assert graded("NVRM: Xid (PCI:0000:07:00): 13, x", {"13": "critical"}) == "critical"


def test_the_journal_is_read() -> None:
    line = "NVRM: Xid (PCI:0000:07:00): 79, x"
    entries = [
        {"MESSAGE": "Linux version 6.1", "__MONOTONIC_TIMESTAMP": "1"},
        {"MESSAGE": line, "__MONOTONIC_TIMESTAMP": "2"},
        {"MESSAGE": list(f"{line} \x1b".encode()), "__MONOTONIC_TIMESTAMP": "3"},
        {"MESSAGE": None, "__MONOTONIC_TIMESTAMP": "4"},
    ]
    assert [event.time for event in parse_journal(map(json.dumps, entries))] == [2, 3]


def test_the_table_names_each_code_once_with_an_action_that_is_explained() -> None:
    rows = [line.split() for line in xids.TABLE.strip().splitlines()]
    assert len({code for code, _action, _name in rows}) == len(rows) == 109
    assert all(f"    {action} " in (xids.__doc__ or "") for _code, action, _name in rows)


@given(st.text())
def test_any_text_is_survived(text: str) -> None:
    parse_message(text, 0)
    parse_message(f"NVRM: Xid (PCI:0000:07:00): 79{text}", 0)

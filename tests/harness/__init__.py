"""Runs a role in this process, without a host: real ansible-core, and stubs for what modules do on hosts."""

from harness.cases import CASES, Case
from harness.recording import Call, Step
from harness.run import Run, run_role

__all__ = ["CASES", "Call", "Case", "Run", "Step", "run_role"]

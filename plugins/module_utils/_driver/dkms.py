# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse output and logs of DKMS (Dynamic Kernel Module Support)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# "name/version, kernel, architecture: state (remarks)" of dkms 3, "name, version, kernel, ..." of dkms 2; a
# module that is only added has no kernel.
STATUS = re.compile(
    r"^(?P<name>[^,/:\s]+)(?:/|, )(?P<version>[^,:\s]+)(?:, (?P<kernel>[^,:\s]+), [^,:\s]+)?: ?(?P<state>\w+)"
)
COMPILER_ERROR = re.compile(r"\b(?:fatal )?error: |^ERROR: modpost: |: undefined reference to ")
OTHER_ERROR = re.compile(r"^make.*\*\*\* |: command not found$|: No such file or directory$", re.IGNORECASE)


@dataclass(frozen=True, order=True)
class Build:
    """One line of `dkms status`; `kernel` is empty for a module that is not built for any."""

    name: str
    version: str
    kernel: str
    state: str


def parse_status(text: str) -> list[Build]:
    """Return the lines of `dkms status` that speak of a module."""
    found = (STATUS.match(line.strip()) for line in text.splitlines())
    return [
        Build(one["name"], one["version"], one["kernel"] or "", one["state"].lower()) for one in found if one
    ]


def missing(builds: Iterable[Build], name: str, version: str, kernels: Iterable[str]) -> list[str]:
    """Return the kernels that a version of a module is not installed for, in the order given."""
    there = {
        one.kernel for one in builds if (one.name, one.version, one.state) == (name, version, "installed")
    }
    return [kernel for kernel in kernels if kernel not in there]


def first_error(log: str) -> str:
    """Return the line of a build log that tells why the build failed, empty when none does.

    The compiler's first error comes before the linker's, and before what make says of both.
    """
    lines = [line.strip() for line in log.splitlines()]
    for pattern in (COMPILER_ERROR, OTHER_ERROR):
        for line in lines:
            if pattern.search(line):
                return line
    return ""

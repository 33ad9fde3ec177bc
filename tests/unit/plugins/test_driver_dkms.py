"""Output and logs of DKMS are parsed."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.gpufarm.cluster.plugins.module_utils._driver.dkms import (
    Build,
    first_error,
    missing,
    parse_status,
)
from hypothesis import given
from hypothesis import strategies as st

# dkms 3.0.10 (Debian 12), 3.2 (Debian 13), and 2.8 (Enterprise Linux 8)
STATUS = """\
nvidia-current/535.309.01, 6.1.0-56-amd64, x86_64: installed
nvidia-current/535.309.01, 6.1.0-44-amd64, x86_64: built
nvidia/570.133.20, 6.12.107+deb13-amd64, x86_64: installed (Original modules exist)
nvidia, 535.54.03, 4.18.0-55.el8.x86_64, x86_64: installed (WARNING! Diff between built and installed module!)
nvidia-current-open/550.163.01: added
Error! Could not locate dkms.conf file.
"""
# Error of the open kernel modules of Debian 13 on a kernel that is too new for them, shortened.
LOG = """\
DKMS (dkms-3.2.2) make.log for nvidia-current-open/550.163.01 for kernel 6.12.107+deb13-amd64 (x86_64)
  CC [M]  nvidia/nv-pci.o
nvidia/nv-pci.c: In function 'nv_resize_pcie_bars':
nvidia/nv-pci.c:237:9: error: too few arguments to function 'pci_resize_resource'
  237 |     r = pci_resize_resource(pci_dev, NV_GPU_BAR1, requested_size);
make[4]: *** [scripts/Makefile.build:229: nvidia/nv-pci.o] Error 1
make: *** [Makefile:85: modules] Error 2
"""


def test_status_of_several_releases_of_dkms() -> None:
    assert parse_status(STATUS) == [
        Build("nvidia-current", "535.309.01", "6.1.0-56-amd64", "installed"),
        Build("nvidia-current", "535.309.01", "6.1.0-44-amd64", "built"),
        Build("nvidia", "570.133.20", "6.12.107+deb13-amd64", "installed"),
        Build("nvidia", "535.54.03", "4.18.0-55.el8.x86_64", "installed"),
        Build("nvidia-current-open", "550.163.01", "", "added"),
    ]


def test_what_is_only_built_is_missing() -> None:
    kernels = ["6.1.0-44-amd64", "6.1.0-56-amd64", "6.1.0-60-amd64"]
    assert missing(parse_status(STATUS), "nvidia-current", "535.309.01", kernels) == [kernels[0], kernels[2]]
    assert missing(parse_status(STATUS), "nvidia-current", "535.1", kernels) == kernels


def test_the_compiler_speaks_before_make() -> None:
    assert first_error(LOG) == (
        "nvidia/nv-pci.c:237:9: error: too few arguments to function 'pci_resize_resource'"
    )
    assert first_error("CC x\nmake[1]: *** No rule to make target 'modules'.  Stop.\n") == (
        "make[1]: *** No rule to make target 'modules'.  Stop."
    )
    assert first_error('ERROR: modpost: "symbol" undefined!') == 'ERROR: modpost: "symbol" undefined!'
    assert first_error("all is well\nnothing to see\n") == ""


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert all(build.name and build.version for build in parse_status(text))
    assert first_error(text) in text

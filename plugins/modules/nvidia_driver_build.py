#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: kernel modules of a driver, built by DKMS for given kernels."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_driver_build
short_description: Build the kernel modules of the NVIDIA driver for given kernels
version_added: 0.1.0
description:
  - Has DKMS build and install a module for the kernels that it is missing for, and tells for every kernel
    which version is there and who signed it.
  - Or has DKMS build the module of a package that is not installed, in a folder of its own, to see whether it
    can be built. Nothing on the machine is replaced.
  - A build that fails is an error with the compiler's first line about it.
attributes:
  check_mode:
    support: full
    description: Tells for which kernels modules would be built. A package is not tried.
  diff_mode:
    support: none
    description: The kernels that are built for are returned in RV(built).
  idempotent:
    support: full
    description: A second run builds nothing, unless O(package) is given.
options:
  name:
    description: Name under which DKMS knows the module. Needed without O(package).
    type: str
  version:
    description: Version of the driver, NVIDIA's or a package's; if empty, the newest that DKMS knows.
    type: str
    default: ""
  kernels:
    description: Releases of the kernels.
    type: list
    elements: str
    required: true
  package:
    description: A package of apt that carries the source of the module, with its version, such as
      V(nvidia-kernel-dkms=550.163.01-2). It is downloaded and built for a try.
    type: str
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Build for a kernel that will boot
  gpufarm.cluster.nvidia_driver_build:
    name: nvidia-current
    kernels: [6.1.0-44-amd64]

- name: See whether another version can be built
  gpufarm.cluster.nvidia_driver_build:
    package: nvidia-kernel-dkms=550.163.01-2
    kernels: [6.1.0-44-amd64]
"""

RETURN = r"""
built:
  description: Kernels that modules were built for.
  returned: success
  type: list
  elements: str
version:
  description: Version of the module.
  returned: success
  type: str
modules:
  description: For each kernel the C(kernel), and C(version) and C(signer) of the module; the signer is empty
    if it is not signed.
  returned: success
  type: list
  elements: dict
loaded_version:
  description: Version of the module that is loaded, empty when none is.
  returned: when O(name) is given
  type: str
nouveau_loaded:
  description: Whether the kernel's own driver for the GPUs is loaded.
  returned: when O(name) is given
  type: bool
"""

import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver import (
    dkms as driver_dkms,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver import (
    version as driver_version,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver.io import machine

TREE = Path("/var/lib/dkms")
SCRATCH = Path("/var/tmp")  # noqa: S108 - a build takes gigabytes, and /tmp may lie in memory


class Dkms:
    """DKMS, with the folders that it keeps builds and sources in."""

    def __init__(self, module: AnsibleModule, tree: Path, sources: Path) -> None:
        self.module = module
        self.tree = tree
        self.options = [] if tree == TREE else ["--dkmstree", str(tree), "--sourcetree", str(sources)]

    def status(self) -> list[driver_dkms.Build]:
        """Return what DKMS has built."""
        code, printed, complaint = self.module.run_command(["dkms", *self.options, "status"])
        if code:
            self.module.fail_json(msg=f"'dkms status' failed with exit status {code}: {complaint.strip()}")
        return driver_dkms.parse_status(printed)

    def run(self, action: str, name: str, version: str, kernel: str) -> None:
        """Build, or build and install; end the module with the reason when that fails."""
        words = ["dkms", *self.options, action, "-m", name, "-v", version, "-k", kernel]
        code, printed, complaint = self.module.run_command(words)
        if code:
            log = self.tree / name / version / "build" / "make.log"
            text = log.read_text(errors="replace").replace(f"{log.parent}/", "") if log.exists() else ""
            reason = (
                driver_dkms.first_error(text)
                or driver_dkms.first_error(complaint)
                or (complaint or printed).strip()
            )
            self.module.fail_json(
                msg=f"The kernel modules of the NVIDIA driver {version} cannot be built for the kernel"
                f" {kernel}: {reason}; choose a version that supports this kernel, or another kernel in"
                " nvidia_driver_kernels.",
                log=text[-4000:],
            )


def module_of(module: AnsibleModule, kernel: str) -> dict[str, str]:
    """Return version and signer of the module that a kernel would load."""
    found = {"kernel": kernel}
    for key, wanted in (("version", "version"), ("signer", "signer")):
        # Debian calls the module nvidia-current, and lets it answer to the name nvidia by an alias at run
        # time only.
        for name in ("nvidia", "nvidia-current"):
            code, printed, _complaint = module.run_command(["modinfo", "-k", kernel, "-F", wanted, name])
            found[key] = printed.strip() if not code else ""
            if not code:
                break
    return found


def try_package(module: AnsibleModule, package: str, kernels: list[str]) -> str:
    """Build the module of a package for kernels, and leave nothing behind; return its version."""
    with tempfile.TemporaryDirectory(prefix="gpufarm-driver-", dir=SCRATCH) as name:
        folder = Path(name)
        for words in (["apt-get", "-qq", "download", package], ["sh", "-c", "dpkg-deb --extract ./*.deb ."]):
            code, _printed, complaint = module.run_command(words, cwd=name)
            if code:
                module.fail_json(
                    msg=f"The package {package} cannot be downloaded for a try: {complaint.strip()}"
                )
        sources = folder / "usr/src"
        found = [one.parent.name for one in sources.glob("*/dkms.conf")]
        if len(found) != 1:
            module.fail_json(
                msg=f"The package {package} carries no source of a kernel module: choose another version."
            )
        dkms_name, _dash, version = found[0].rpartition("-")
        (folder / "tree").mkdir()
        dkms = Dkms(module, folder / "tree", sources)
        for kernel in kernels:
            dkms.run("build", dkms_name, version, kernel)
    return version


def install(module: AnsibleModule, name: str, version: str, kernels: list[str]) -> dict[str, Any]:
    """Have the module built and installed for the kernels that it is missing for."""
    dkms = Dkms(module, TREE, Path("/usr/src"))
    builds = dkms.status()
    version = driver_version.upstream(version) or driver_version.newest(
        one.version for one in builds if one.name == name
    )
    if not any((one.name, one.version) == (name, version) for one in builds):
        module.fail_json(
            msg=f"DKMS knows no module {name} {version} on this machine: install the package that carries"
            " its source."
        )
    missing = driver_dkms.missing(builds, name, version, kernels)
    if not module.check_mode:
        for kernel in missing:
            dkms.run("install", name, version, kernel)
        left = driver_dkms.missing(dkms.status(), name, version, kernels)
        if left:
            module.fail_json(
                msg=f"DKMS says that {name} {version} is not installed for the kernel {', '.join(left)}:"
                " look into"
                f" {TREE / name} and run again."
            )
    return {
        "changed": bool(missing),
        "built": missing,
        "version": version,
        "modules": [module_of(module, kernel) for kernel in kernels],
        "loaded_version": machine.loaded_version(Path("/")),
        "nouveau_loaded": machine.nouveau_loaded(Path("/")),
    }


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str"},
            "version": {"type": "str", "default": ""},
            "kernels": {"type": "list", "elements": "str", "required": True},
            "package": {"type": "str"},
        },
        required_one_of=[("name", "package")],
        supports_check_mode=True,
    )
    kernels = module.params["kernels"]
    if module.params["package"]:
        version = "" if module.check_mode else try_package(module, module.params["package"], kernels)
        module.exit_json(changed=False, built=[], version=version, modules=[])
    module.exit_json(**install(module, module.params["name"], module.params["version"], kernels))


if __name__ == "__main__":
    main()

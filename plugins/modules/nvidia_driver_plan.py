#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: what must be done so that a machine has an NVIDIA driver."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_driver_plan
short_description: Plan the installation of an NVIDIA driver
version_added: 0.1.0
description:
  - Reads the distribution, the kernels, the GPUs, the state of Secure Boot and the installed packages of a
    machine, and tells what must be done so that it has the driver that is requested.
  - Settings that cannot work are refused with a sentence that says why. Nothing is changed.
  - The role P(gpufarm.cluster.nvidia_driver#role) carries the plan out.
attributes:
  check_mode:
    support: full
    description: The module reads only.
  diff_mode:
    support: none
    description: The module reads only.
  idempotent:
    support: full
    description: The module reads only.
options:
  source:
    description: Where the driver comes from.
    type: str
    choices: [distribution, nvidia, runfile]
    required: true
  version:
    description: Version of the driver, a branch such as V(570), or empty for any version.
    type: str
    default: ""
  upgrade:
    description: Whether an installed driver may be replaced by another version.
    type: bool
    default: false
  kernels:
    description: Kernel releases to build for; if empty, the installed ones.
    type: list
    elements: str
    default: []
  kernel_modules:
    description: Which kernel modules are requested.
    type: str
    choices: [auto, open, proprietary]
    default: auto
  persistence:
    description: Whether the persistence daemon is requested.
    type: bool
    default: true
  fabric_manager:
    description: Whether the fabric manager is requested; V(auto) when there are NVSwitches on the bus.
    type: str
    choices: [auto, present, absent]
    default: auto
  repository_url:
    description: Folder with NVIDIA's repositories, one for each distribution.
    type: str
    default: https://developer.download.nvidia.com/compute/cuda/repos
  repository_key_fingerprint:
    description: Fingerprint of the key that signs the repository; if empty, that of NVIDIA's.
    type: str
    default: ""
  signing_certificate:
    description: Certificate of the key that DKMS signs modules with; if empty, where the distribution keeps
      it.
    type: str
    default: ""
  settled:
    description: Whether the package sources are configured, so that a version that they do not offer is an
      error.
    type: bool
    default: false
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Plan a driver
  gpufarm.cluster.nvidia_driver_plan:
    source: nvidia
    version: "570"
  register: driver

- name: Show what would be installed
  ansible.builtin.debug:
    var: driver.plan.install
"""

RETURN = r"""
plan:
  description: The planned changes.
  returned: success
  type: dict
  contains:
    manager:
      description: Package manager, C(apt) or C(dnf).
      type: str
    kernel_modules:
      description: Which kernel modules are installed, C(open) or C(proprietary).
      type: str
    dkms:
      description: Name under which DKMS knows the kernel modules.
      type: str
    version:
      description: Version to install, as the package manager writes it; empty while it cannot be known.
      type: str
    installed_version:
      description: Version that is installed; empty when none is.
      type: str
    kernels:
      description: Kernels to build for.
      type: list
      elements: str
    left_out:
      description: Installed kernels that cannot be built for, as their headers are gone.
      type: list
      elements: str
    change:
      description: Whether anything is to be installed.
      type: bool
    repository:
      description: NVIDIA's repository, as C(file), C(content), C(key_url), C(key_file) and
        C(key_fingerprint); empty for other sources.
      type: dict
    components:
      description: Sources of the components of the distribution that are needed and missing, on the mirrors
        that the machine uses, as C(file) and C(content); empty for dnf and for a runfile.
      type: dict
    prerequisites:
      description: Packages that must be there to build kernel modules.
      type: list
      elements: str
    install:
      description: Packages for the package manager to install.
      type: list
      elements: str
    replaced:
      description: Packages that make room for others.
      type: list
      elements: str
    files:
      description: Files to write, with their contents.
      type: dict
    commands:
      description: Commands to run where no module of Ansible does.
      type: list
      elements: list
    services:
      description: Units to enable.
      type: list
      elements: str
    disabled:
      description: Units that are there and must not run.
      type: list
      elements: str
    trial:
      description: Package, with version, whose modules are built for a try before anything is replaced; empty
        for none.
      type: str
machine:
  description: Facts about the machine that the plan is based on.
  returned: success
  type: dict
  contains:
    secure_boot:
      description: Whether the kernel refuses unsigned modules.
      type: bool
    loaded_version:
      description: Version of the module that is loaded, empty when none is.
      type: str
    nouveau_loaded:
      description: Whether the kernel's own driver for the GPUs is loaded.
      type: bool
    gpus:
      description: The GPUs of NVIDIA on the PCI bus.
      type: list
      elements: str
"""

import platform
import re
from dataclasses import asdict
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.facts.system.distribution import DistributionFactCollector
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver import (
    dkms,
    gpu,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver import (
    packages as driver_packages,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver import (
    plan as driver_plan,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver import (
    version as driver_version,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver.io import machine as driver_machine

ROOT = Path("/")
RUNFILE_UNINSTALLER = ROOT / "usr/bin/nvidia-uninstall"


class Reader:
    """Asks the package manager and DKMS of this machine."""

    def __init__(self, module: AnsibleModule, manager: str) -> None:
        self.module = module
        self.manager = manager

    def run(self, *words: str, may_fail: bool = False) -> str:
        """Return what a command prints; end the module when it fails."""
        code, printed, complaint = self.module.run_command(list(words), environ_update={"LC_ALL": "C.UTF-8"})
        if code and not may_fail:
            self.module.fail_json(
                msg=f"'{' '.join(words)}' failed with exit status {code}: {complaint.strip()}"
            )
        return printed

    def packages(self) -> dict[str, str]:
        """Return the versions of the installed packages by name."""
        if self.manager == "dnf":
            listing = self.run(
                "rpm", "-qa", "--queryformat", "installed %{NAME} %{EPOCHNUM}:%{VERSION}-%{RELEASE}\\n"
            )
        else:
            listing = self.run("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\\n")
        found = (line.split() for line in listing.splitlines())
        return {words[1]: words[2] for words in found if len(words) == 3 and words[0] == "installed"}

    def offered(self, name: str) -> tuple[str, ...]:
        """Return the versions of a package that the package sources offer, the newest first."""
        if self.manager == "dnf":
            words = ("dnf", "-q", "repoquery", "--showduplicates", "--queryformat", "%{evr}", name)
            return tuple(reversed(self.run(*words, may_fail=True).split()))
        found = re.findall(r"(?m)^ *(\S+) \| (\S+) \|", self.run("apt-cache", "madison", name, may_fail=True))
        return tuple(version for package, version in found if package == name)

    def sources(self, where: driver_packages.Distribution) -> tuple[str, ...]:
        """Return the sources of the distribution that apt uses, merged from all its files, one a line."""
        if self.manager == "dnf":
            return ()
        origin = driver_packages.ARCHIVES[where.name.split()[0]]["origin"]
        words = ("--format", "$(REPO_URI) $(RELEASE) $(COMPONENT) $(SOURCESENTRY)")
        listing = self.run("apt-get", "indextargets", *words, "Created-By: Packages", f"Origin: {origin}")
        return tuple(listing.splitlines())

    def with_headers(self, kernels: list[str]) -> frozenset[str]:
        """Return the kernels whose headers are installed or offered."""
        there = {one for one in kernels if (ROOT / "lib/modules" / one / "build").exists()}
        missing = [one for one in kernels if one not in there]
        if missing and self.manager == "dnf":
            offered = self.run(
                "dnf", "-q", "repoquery", *(f"kernel-devel-{one}" for one in missing), may_fail=True
            )
            there.update(one for one in missing if one in offered)
        elif missing:
            names = [f"linux-headers-{one}" for one in missing]
            shown = self.run("apt-cache", "show", "--no-all-versions", *names, may_fail=True)
            offered_names = set(re.findall(r"(?m)^Package: (\S+)$", shown))
            there.update(one for one in missing if f"linux-headers-{one}" in offered_names)
        return frozenset(there)

    def runfile_version(self) -> str:
        """Return the version of the driver that a runfile installed, empty when none did."""
        if not RUNFILE_UNINSTALLER.exists():
            return ""
        builds = dkms.parse_status(self.run("dkms", "status", "nvidia"))
        return driver_version.newest(one.version for one in builds) or "unknown"


def read_machine(module: AnsibleModule, request: driver_plan.Request) -> driver_plan.Machine:
    """Return what this machine is."""
    facts = DistributionFactCollector().collect(module=module, collected_facts={"ansible_system": "Linux"})
    where = driver_packages.distribution(facts["distribution"], facts["distribution_version"])
    reader = Reader(module, where.manager)
    packages = reader.packages()
    installed = {name: version for name, version in packages.items() if driver_packages.NAME.fullmatch(name)}
    running = platform.release()
    kernels = driver_machine.installed_kernels(ROOT)
    asked = list(request.kernels) or kernels or [running]
    certificate = request.signing_certificate or driver_packages.signing_certificate(where)
    offered = {}
    if request.source != "runfile":
        branch = driver_version.branch(request.version)
        leading = driver_packages.packages(where, request.source, "proprietary", branch).driver[0]
        offered = {leading: reader.offered(leading)}
    return driver_plan.Machine(
        distribution=facts["distribution"],
        version=facts["distribution_version"],
        architecture=platform.machine(),
        running=running,
        kernels=tuple(kernels),
        with_headers=reader.with_headers(asked),
        images=tuple(name for name in packages if name.startswith("linux-image-")),
        devices=tuple(driver_machine.pci_devices(ROOT)),
        installed=installed,
        offered=offered,
        sources=reader.sources(where) if request.source != "runfile" else (),
        runfile_version=reader.runfile_version(),
        secure_boot=driver_machine.secure_boot(ROOT),
        key_enrolled=driver_machine.key_enrolled(ROOT, certificate),
    )


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "source": {"type": "str", "choices": ["distribution", "nvidia", "runfile"], "required": True},
            "version": {"type": "str", "default": ""},
            "upgrade": {"type": "bool", "default": False},
            "kernels": {"type": "list", "elements": "str", "default": []},
            "kernel_modules": {"type": "str", "choices": ["auto", "open", "proprietary"], "default": "auto"},
            "persistence": {"type": "bool", "default": True},
            "fabric_manager": {"type": "str", "choices": ["auto", "present", "absent"], "default": "auto"},
            "repository_url": {"type": "str", "default": driver_packages.NVIDIA_REPOSITORIES},
            "repository_key_fingerprint": {"type": "str", "default": "", "no_log": False},
            "signing_certificate": {"type": "str", "default": "", "no_log": False},
            "settled": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    requests = dict(module.params, kernels=tuple(module.params["kernels"]))
    settled = requests.pop("settled")
    request = driver_plan.Request(**requests)
    try:
        machine = read_machine(module, request)
        plan = driver_plan.driver_plan(machine, request)
    except (driver_version.DriverError, OSError) as error:
        module.fail_json(msg=str(error))
    if settled and not plan.version:
        module.fail_json(
            msg=f"The package sources of this machine offer no package {plan.install[0]}: check"
            " nvidia_driver_source and"
            " the package sources, run 'apt-get update' or 'dnf makecache' and read what it says."
        )
    module.exit_json(
        changed=False,
        plan=asdict(plan),
        machine={
            "secure_boot": machine.secure_boot,
            "loaded_version": driver_machine.loaded_version(ROOT),
            "nouveau_loaded": driver_machine.nouveau_loaded(ROOT),
            "gpus": [str(one) for one in gpu.gpus(machine.devices)],
        },
    )


if __name__ == "__main__":
    main()

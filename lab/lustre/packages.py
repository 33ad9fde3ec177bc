#!/usr/bin/python3
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make fakes of the packages of Lustre and a signed package source.

usage: python3 -m lab.lustre.packages FOLDER KERNEL...    (in the folder that holds `lab`)

In FOLDER: `www/apt` the package source with its `key.asc`, `fingerprint` of its key.
Modules are made for the kernels.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from lab.cvmfs.packages import package, run, sign, write

# The second has drivers of networks in packages of their own (debian/repackage-multiple-lnds.sh).
VERSION, NEXT = "2.15.8", "2.17.0"
HERE = Path(__file__).resolve().parent
PROGRAMS = {
    "client": (
        "sbin/mount.lustre",
        "sbin/lnetctl",
        "sbin/lctl",
        "bin/lfs",
        "sbin/lustre_rmmod",
        "sbin/lustre-fake",
    ),
    "server": ("sbin/mkfs.lustre", "sbin/tunefs.lustre"),
}
MODULES = {"client": ("lnet", "lustre"), "server": ("lnet", "lustre", "osd_ldiskfs")}
DRIVERS = {"socklnd": "ksocklnd", "in-kernel-o2iblnd": "ko2iblnd"}
# lustre/scripts/systemd/lnet.service.in. Modules that cannot be loaded have no /proc/sys/lnet: hence the
# other condition, and the other modprobe.
SERVICE = """\
[Unit]
Description=lnet management
Requires=network-online.target
After=network-online.target openibd.service rdma.service opa.service
ConditionPathExists=!/run/lustre-fake/loaded

[Service]
Type=oneshot
RemainAfterExit=true
ExecStart=/usr/sbin/lustre-fake modprobe lnet
ExecStart=/usr/sbin/lnetctl lnet configure
ExecStart=/usr/sbin/lnetctl import /etc/lnet.conf
ExecStop=/usr/sbin/lustre_rmmod ptlrpc
ExecStop=/usr/sbin/lnetctl lnet unconfigure
ExecStop=/usr/sbin/lustre_rmmod libcfs ldiskfs

[Install]
WantedBy=multi-user.target
"""
DKMS = """\
PACKAGE_NAME="lustre-client-modules"
PACKAGE_VERSION="{version}"
MAKE[0]="make -C ${{kernel_source_dir}} M=${{dkms_tree}}/${{PACKAGE_NAME}}/${{PACKAGE_VERSION}}/build"
BUILT_MODULE_NAME[0]="lnet"
DEST_MODULE_LOCATION[0]="/updates"
BUILT_MODULE_NAME[1]="lustre"
DEST_MODULE_LOCATION[1]="/updates"
BUILT_MODULE_NAME[2]="ksocklnd"
DEST_MODULE_LOCATION[2]="/updates"
BUILT_MODULE_NAME[3]="ko2iblnd"
DEST_MODULE_LOCATION[3]="/updates"
AUTOINSTALL="yes"
"""
SOURCE = """\
#include <linux/module.h>
MODULE_DESCRIPTION("fake");
MODULE_VERSION("{version}");
MODULE_LICENSE("GPL");
"""
# debian/lustre-client-modules-dkms.postinst: for the running kernel only, and a build that fails is no error
DKMS_POSTINST = """\
#!/bin/sh
set -e
module="-m lustre-client-modules -v {version}"
dkms add $module
dkms build $module && dkms install $module --force || true
"""
# debian/lustre-client-utils.conffiles
LNET = (
    "# net:\n#     - net type: tcp\n#       local NI(s):\n#         - interfaces:\n#               0: eth0\n"
)
DKMS_PRERM = """\
#!/bin/sh
dkms remove -m lustre-client-modules -v {version} --all || true
"""


def utilities(work: Path, out: Path, kind: str, version: str) -> None:
    root = work / f"{kind}-utils-{version}"
    folder = "usr/lib/lustre-fake"
    shutil.copytree(HERE / "fake", root / folder / "fake", ignore=shutil.ignore_patterns("__pycache__"))
    write(root / folder / "version", version)
    program = root / folder / "programs.py"
    shutil.move(root / folder / "fake/programs.py", program)
    program.chmod(0o755)
    for path in root.rglob("fake/*"):
        path.chmod(0o644)
    for name in PROGRAMS["client"] + (PROGRAMS["server"] if kind == "server" else ()):
        link = root / "usr" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"/{folder}/programs.py")
    write(root / "lib/systemd/system/lnet.service", SERVICE)
    write(root / "etc/lnet.conf", LNET)
    other = "lustre-server-utils" if kind == "client" else "lustre-client-utils"
    package(
        root,
        out,
        f"lustre-{kind}-utils",
        f"{version}-1",
        Depends="python3, python3-yaml, python3-fusepy, kmod, e2fsprogs, iproute2",
        Conflicts=other,
    )


def modules(work: Path, out: Path, kind: str, version: str, kernel: str) -> None:
    together = MODULES[kind] + (tuple(DRIVERS.values()) if version == VERSION else ())
    name = f"lustre-{kind}-modules-{kernel}"
    module_package(work, out, name, version, kernel, together, Provides=f"lustre-{kind}-modules")


def drivers(work: Path, out: Path, version: str, kernel: str) -> None:
    for name, module in DRIVERS.items():
        start = f"lustre-lnet-module-{name}"
        module_package(work, out, f"{start}-{kernel}", version, kernel, (module,), Provides=start)


def module_package(
    work: Path, out: Path, package_name: str, version: str, kernel: str, names: tuple[str, ...], **fields: str
) -> None:
    """Make files that modinfo and depmod read as modules; nothing can load them."""
    root = work / f"{package_name}-{version}"
    for name in names:
        parts = [f"version={version}", f"name={name}", f"vermagic={kernel} SMP preempt mod_unload "]
        text = work / "modinfo"
        text.write_bytes(b"\0".join(part.encode() for part in parts) + b"\0")
        module = root / "lib/modules" / kernel / "updates/lustre" / f"{name}.ko"
        module.parent.mkdir(parents=True, exist_ok=True)
        run(
            "objcopy",
            "-I",
            "binary",
            "-O",
            "elf64-x86-64",
            "--rename-section",
            ".data=.modinfo",
            text,
            module,
        )
    for script in ("postinst", "postrm"):
        write(root / "DEBIAN" / script, f"#!/bin/sh\nset -e\ndepmod {kernel}\n", 0o755)
    package(root, out, package_name, f"{version}-1", Depends="kmod", **fields)


def dkms(work: Path, out: Path, version: str) -> None:
    root = work / f"dkms-{version}"
    source = root / "usr/src" / f"lustre-client-modules-{version}"
    write(source / "dkms.conf", DKMS.format(version=version))
    names = (*MODULES["client"], *DRIVERS.values())
    write(source / "Makefile", f"obj-m := {' '.join(f'{name}.o' for name in names)}\n")
    for name in names:
        write(source / f"{name}.c", SOURCE.format(version=version))
    write(root / "DEBIAN/postinst", DKMS_POSTINST.format(version=version), 0o755)
    write(root / "DEBIAN/prerm", DKMS_PRERM.format(version=version), 0o755)
    package(
        root,
        out,
        "lustre-client-modules-dkms",
        f"{version}-1",
        Depends="dkms",
        Provides="lustre-client-modules",
    )


def main(folder: Path, kernels: list[str]) -> None:
    work, apt = folder / "work", folder / "www/apt"
    shutil.rmtree(folder, ignore_errors=True)
    apt.mkdir(parents=True)
    work.mkdir()
    for version in (VERSION, NEXT):
        for kind in PROGRAMS:
            utilities(work, apt, kind, version)
            for kernel in kernels:
                modules(work, apt, kind, version, kernel)
        dkms(work, apt, version)
    for kernel in kernels:
        drivers(work, apt, NEXT, kernel)
    sign(folder, apt)
    shutil.rmtree(work)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

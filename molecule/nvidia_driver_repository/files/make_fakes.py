#!/usr/bin/python3
"""Make fakes of NVIDIA's packages and runfile: a signed repository, with modules of a few lines.

usage: make_fakes.py FOLDER REPOSITORY KEY_FILE    (the repository's folder in it, and the name of the key)
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

OLD, NEW, BROKEN, LATER = "570.133.20", "570.148.08", "575.57.08", "580.95.05"
RUNFILE = "580.82.07"
SERVICE = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
# NVML says that no driver is loaded, as it does before the reboot.
LIBRARY = "int nvmlInit_v2(void) { return 9; }\nint nvmlInitWithFlags(unsigned flags) { return 9; }\n"
MODULE = """\
#include <linux/module.h>
static int __init start(void) {{ return {start}; }}
module_init(start);
MODULE_VERSION("{version}");
MODULE_LICENSE("GPL");
"""
DKMS = """\
PACKAGE_NAME="nvidia"
PACKAGE_VERSION="{version}"
BUILT_MODULE_NAME[0]="nvidia"
DEST_MODULE_LOCATION[0]="/updates/dkms"
AUTOINSTALL="yes"
MAKE[0]="make -C ${{kernel_source_dir}} M=${{dkms_tree}}/${{PACKAGE_NAME}}/${{PACKAGE_VERSION}}/build modules"
CLEAN="true"
"""
POSTINST = """\
#!/bin/sh
[ "$1" != configure ] || exec /usr/lib/dkms/common.postinst nvidia {version} "" amd64 "$2"
"""
PRERM = "#!/bin/sh\nset -e\ndkms remove -m nvidia -v {version} --all || true\n"
RUN = """\
#!/bin/sh
# A fake of the installer of the driver {version}.
set -e
for option; do
  case $option in --kernel-name=*) kernel=${{option#*=}} ;; --uninstall) remove=yes ;; esac
done
if [ -n "$remove" ]; then
  dkms remove -m nvidia -v {version} --all
  rm -rf /usr/src/nvidia-{version} /usr/bin/nvidia-uninstall /usr/bin/nvidia-persistenced
  rm -f /usr/local/lib/libnvidia-ml.so.1
else
  cp -r {source} /usr/src/nvidia-{version}
  cp {library} /usr/local/lib/libnvidia-ml.so.1
  ldconfig
  printf '#!/bin/sh\\nexec sh %s --uninstall\\n' "$0" > /usr/bin/nvidia-uninstall
  printf '#!/bin/sh\\nsleep infinity &\\n' > /usr/bin/nvidia-persistenced
  chmod 755 /usr/bin/nvidia-uninstall /usr/bin/nvidia-persistenced
  dkms install -m nvidia -v {version} -k "$kernel"
fi
"""


def run(*words: str | Path, cwd: Path | None = None) -> str:
    return subprocess.run(words, check=True, cwd=cwd, text=True, stdout=subprocess.PIPE).stdout


def source(folder: Path, version: str) -> None:
    folder.mkdir(parents=True)
    (folder / "dkms.conf").write_text(DKMS.format(version=version))
    (folder / "Makefile").write_text("obj-m := nvidia.o\n")
    start = "a_function_that_this_kernel_lacks()" if version == BROKEN else "0"
    (folder / "nvidia.c").write_text(MODULE.format(version=version, start=start))


def package(work: Path, out: Path, name: str, version: str, **fields: str) -> None:
    """Pack the folder of a package, which may have files already."""
    root = work / f"{name}_{version}"
    control = root / "DEBIAN"
    control.mkdir(parents=True, exist_ok=True)
    text = f"Package: {name}\nVersion: {version}-1\nArchitecture: amd64\n"
    text += "Maintainer: Fake <none@example.org>\n"
    text += "".join(f"{key}: {value}\n" for key, value in fields.items()) + "Description: fake\n"
    (control / "control").write_text(text)
    run("dpkg-deb", "--root-owner-group", "-Znone", "--build", root, out)


def packages(work: Path, out: Path, library: Path, version: str) -> None:
    same = f"(= {version}-1)"
    for kind, other in (("open-", ""), ("", "open-")):
        name = f"nvidia-kernel-{kind}dkms"
        root = work / f"{name}_{version}"
        source(root / f"usr/src/nvidia-{version}", version)
        (root / "DEBIAN").mkdir()
        for script, text in (("postinst", POSTINST), ("prerm", PRERM)):
            (root / "DEBIAN" / script).write_text(text.format(version=version))
            (root / "DEBIAN" / script).chmod(0o755)
        package(work, out, name, version, Depends="dkms", Conflicts=f"nvidia-kernel-{other}dkms")
    place = work / f"libnvidia-ml1_{version}/usr/lib/x86_64-linux-gnu"
    place.mkdir(parents=True)
    shutil.copy(library, place)
    package(work, out, "libnvidia-ml1", version)
    package(work, out, "libcuda1", version)
    kernel = f"nvidia-kernel-open-dkms {same} | nvidia-kernel-dkms {same}"
    package(
        work, out, "nvidia-driver-cuda", version, Depends=f"libcuda1 {same}, libnvidia-ml1 {same}, {kernel}"
    )
    # From branch 580 its name is without the branch. That two branches conflict is an inference: they have
    # the same files.
    branch = int(version.split(".")[0])
    fabric = "nvidia-fabricmanager" + (f"-{branch}" if branch < 580 else "")
    alone = {"Provides": "nvidia-fabricmanager", "Conflicts": "nvidia-fabricmanager"}
    for name, fields in (("nvidia-persistenced", {}), (fabric, alone)):
        units = work / f"{name}_{version}/lib/systemd/system"
        units.mkdir(parents=True)
        (units / f"{name.rstrip('-0123456789')}.service").write_text(SERVICE)
        package(work, out, name, version, **fields)


def main(folder: Path, repository: str, key_file: str) -> None:
    work, out = folder / "work", folder / repository
    out.mkdir(parents=True)
    work.mkdir()
    library = work / "libnvidia-ml.so.1"
    (work / "library.c").write_text(LIBRARY)
    run("gcc", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", library, work / "library.c")
    for version in (OLD, NEW, BROKEN, LATER):
        packages(work, out, library, version)
    home = folder / "gnupg"
    home.mkdir(mode=0o700)
    gpg = (
        "gpg",
        "--homedir",
        str(home),
        "--batch",
        "--yes",
        "--pinentry-mode",
        "loopback",
        "--passphrase",
        "",
    )
    run(*gpg, "--quick-generate-key", "Fake <none@example.org>", "rsa3072", "sign", "never")
    listing = run(*gpg, "--with-colons", "--fingerprint")
    (folder / "fingerprint").write_text(
        next(line.split(":")[9] for line in listing.splitlines() if line[:3] == "fpr")
    )
    (out / "Packages").write_text(run("apt-ftparchive", "packages", ".", cwd=out))
    (out / "Release").write_text(run("apt-ftparchive", "release", ".", cwd=out))
    run(*gpg, "--clearsign", "--output", str(out / "InRelease"), str(out / "Release"))
    run(*gpg, "--armor", "--output", str(out / key_file), "--export")
    source(work / "runfile", RUNFILE)
    (folder / "driver.run").write_text(RUN.format(version=RUNFILE, source=work / "runfile", library=library))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])

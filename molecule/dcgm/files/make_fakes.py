#!/usr/bin/python3
"""Make fakes of the packages of DCGM and its exporter, in a signed package source.

Names, fields, files and scripts are those of NVIDIA's sources: DCGM 4.5.3, cmake/packaging.cmake,
config-files and scripts/deb; dcgm-exporter 4.8.2, Makefile and packaging. How the exporter's package is made
is not among them: its fields and the place of its files are inferred from the archive that the Makefile
packs.

usage: make_fakes.py FOLDER
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = Path(__file__).parent
# Each version of DCGM with that of the exporter which belongs to it.
VERSIONS = {"4.5.2": "4.8.1", "4.5.3": "4.8.2"}
UNIT = """\
[Unit]
{head}

[Service]
User=root
PrivateTmp=false
{service}
Restart=on-abort

[Install]
{install}WantedBy=multi-user.target
"""
# As DCGM holds the driver, MIG mode cannot be switched while it runs; the simulated driver is told so.
HOLD = "ExecStartPost=simgpu set 0 clients=1\nExecStopPost=simgpu set 0 clients=0\n"
ENGINE = UNIT.format(
    head="After=nvidia-gpu-reset.target\nWants=nvidia-gpu-reset.target",
    service="Environment=DCGM_HOME_DIR=/var/log/nvidia-dcgm\n"
    f"ExecStart=/usr/bin/nv-hostengine -n --service-account nvidia-dcgm\n{HOLD}",
    install="Alias=dcgm.service\n",
)
LOG = "append:/var/log/dcgm-exporter.log"
EXPORTER = UNIT.format(
    head="Wants=nvidia-dcgm.service\nAfter=nvidia-dcgm.service",
    service=f"StandardOutput={LOG}\nStandardError={LOG}\n"
    "ExecStart=/usr/bin/dcgm-exporter -f /etc/dcgm-exporter/default-counters.csv",
    install="",
)
# A part of the list that the exporter comes with.
COUNTERS = """\
# DCGM FIELD, Prometheus metric type, help message
DCGM_FI_DEV_GPU_TEMP,    gauge, Temperature.
DCGM_FI_DEV_FB_USED, gauge, Memory in use.
DCGM_FI_DRIVER_VERSION,        label, Driver Version
DCGM_FI_PROF_GR_ENGINE_ACTIVE,   gauge, Part of the time in which the engine is active.
"""
# The account may be there already.
POSTINST = """\
#!/bin/sh
useradd -Urs /usr/sbin/nologin nvidia-dcgm || [ $? = 9 ] || exit 1
set -e
mkdir -p /var/log/nvidia-dcgm
chown nvidia-dcgm:nvidia-dcgm /var/log/nvidia-dcgm
chmod 755 /var/log/nvidia-dcgm
"""


def run(*words: str | Path, cwd: Path | None = None) -> str:
    return subprocess.run(words, check=True, cwd=cwd, text=True, stdout=subprocess.PIPE).stdout


def package(out: Path, name: str, version: str, files: dict[str, str], **fields: str) -> None:
    """Pack files by their paths; those of DEBIAN and of a folder `bin` can be run."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        control = "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in fields.items())
        head = (
            f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: Fake <none@example.org>\n"
        )
        files = {"DEBIAN/control": f"{head}{control}Description: fake\n", **files}
        for path, text in files.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755 if file.parent.name == "bin" or path == "DEBIAN/postinst" else 0o644)
        root.chmod(0o755)
        run("dpkg-deb", "--root-owner-group", "-Znone", "--build", root, out)


def program(name: str, version: str) -> str:
    return (PROGRAMS / name).read_text().replace("@VERSION@", version)


def main(out: Path) -> None:
    os.umask(0o022)
    out.mkdir()
    for dcgm, exporter in VERSIONS.items():
        version = f"1:{dcgm}-1"
        core = "datacenter-gpu-manager-4-core"
        files = {
            "DEBIAN/postinst": POSTINST,
            "usr/bin/dcgmi": program("dcgmi", dcgm),
            "usr/bin/nv-hostengine": program("nv-hostengine", dcgm),
            "usr/lib/systemd/system/nvidia-dcgm.service": ENGINE,
        }
        package(
            out,
            core,
            version,
            files,
            Pre_Depends="passwd, login",
            Depends="libc6 (>= 2.27), lshw",
            Conflicts="datacenter-gpu-manager",
        )
        for cuda in ("11", "12"):
            package(
                out,
                f"datacenter-gpu-manager-4-cuda{cuda}",
                version,
                {f"usr/bin/dcgmproftester{cuda}": "#!/bin/sh\n"},
                Depends=f"{core} (= {version})",
                Provides=f"datacenter-gpu-manager-4 (= {version})",
                Recommends="libnuma1",
            )
        files = {
            "DEBIAN/conffiles": "/etc/dcgm-exporter/default-counters.csv\n",
            "etc/dcgm-exporter/default-counters.csv": COUNTERS,
            "lib/systemd/system/nvidia-dcgm-exporter.service": EXPORTER,
            "usr/bin/dcgm-exporter": program("dcgm-exporter", exporter),
        }
        package(out, "datacenter-gpu-manager-exporter", f"{exporter}-1", files, Depends=core)
    with tempfile.TemporaryDirectory() as home:
        gpg = ("gpg", "--homedir", home, "--batch", "--quiet", "--passphrase", "")
        run(*gpg, "--quick-generate-key", "Fake <none@example.org>", "rsa3072", "sign", "never")
        (out / "Packages").write_text(run("apt-ftparchive", "packages", ".", cwd=out))
        (out / "Release").write_text(run("apt-ftparchive", "release", ".", cwd=out))
        run(*gpg, "--clearsign", "--output", out / "InRelease", out / "Release")
        run(*gpg, "--armor", "--output", out / "key.asc", "--export")
        listing = run(*gpg, "--with-colons", "--fingerprint")
        run("gpgconf", "--homedir", home, "--kill", "all")
    # Of the major version before, which is one package; it is not in the source.
    package(out, "datacenter-gpu-manager", "1:3.3.9", {"usr/bin/dcgmi": "#!/bin/sh\n"})
    (out / "datacenter-gpu-manager_3.3.9_amd64.deb").chmod(0o644)
    (out / "fingerprint").write_text(
        next(line.split(":")[9] for line in listing.splitlines() if line[:3] == "fpr")
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))

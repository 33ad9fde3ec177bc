#!/usr/bin/python3
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make fakes of the packages of the CernVM-FS client, a signed package source, and repositories.

usage: packages.py FOLDER CLIENT    (where everything goes, and client.py)

In FOLDER: `www/apt` the package source with its `key.asc`, `www/cvmfs/REPOSITORY` what a server has,
`fingerprint` of the key of the packages, `example.org.pub` the key of the repositories of a site.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

VERSION, NEXT = "2.13.2", "2.13.3"
URL = "http://127.0.0.1:8000/cvmfs/@fqrn@"
# Repositories and the domain whose key signs them; the packages know the first domain only.
REPOSITORIES = {
    "sft.cern.ch": "cern.ch",
    "cvmfs-config.cern.ch": "cern.ch",
    "tools.example.org": "example.org",
    "data.example.org": "example.org",
}
DEFAULT = """\
# Don't edit here.  Create /etc/cvmfs/default.local.
CVMFS_CACHE_BASE=/var/lib/cvmfs
CVMFS_QUOTA_LIMIT=4000
CVMFS_TIMEOUT=5
CVMFS_TIMEOUT_DIRECT=10
CVMFS_STRICT_MOUNT=no
CVMFS_NFILES=131072
CVMFS_SHARED_CACHE=yes
CVMFS_CHECK_PERMISSIONS=yes
CVMFS_KEYS_DIR=/etc/cvmfs/keys
readonly CVMFS_USER=cvmfs
readonly CVMFS_MOUNT_DIR=/cvmfs
readonly CVMFS_RELOAD_SOCKETS=/var/run/cvmfs
"""
DOMAIN = f"""\
CVMFS_SERVER_URL="{URL}"
CVMFS_KEYS_DIR=/etc/cvmfs/keys/cern.ch
"""
MAP = """\
#!/bin/sh
case $1 in *.*) echo "-fstype=cvmfs :$1" ;; *) exit 1 ;; esac
"""
POSTINST = """\
#!/bin/sh
set -e
mkdir -p /cvmfs
getent passwd cvmfs > /dev/null || adduser --system --group --no-create-home --home /cvmfs cvmfs > /dev/null
"""
PROGRAMS = ("sbin/mount.cvmfs", "bin/cvmfs2", "bin/cvmfs_config", "bin/cvmfs_talk", "bin/cvmfs-fake")


def run(*words: str | Path, cwd: Path | None = None) -> str:
    return subprocess.run(words, check=True, cwd=cwd, text=True, stdout=subprocess.PIPE).stdout


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def package(root: Path, out: Path, name: str, version: str, **fields: str) -> None:
    """Pack the folder of a package, which may have files already."""
    text = f"Package: {name}\nVersion: {version}\nArchitecture: all\n"
    text += "Maintainer: Fake <none@example.org>\n"
    text += "".join(f"{key}: {value}\n" for key, value in fields.items()) + "Description: fake\n"
    write(root / "DEBIAN/control", text)
    configuration = sorted(path for path in (root / "etc").rglob("*") if path.is_file())
    listed = "".join(f"/{path.relative_to(root)}\n" for path in configuration)
    if listed:
        write(root / "DEBIAN/conffiles", listed)
    run("dpkg-deb", "--root-owner-group", "-Znone", "--build", root, out)


def packages(work: Path, out: Path, client: Path, key: Path) -> None:
    for version in (VERSION, NEXT):
        root = work / f"cvmfs_{version}"
        write(root / "usr/lib/cvmfs-fake/client.py", client.read_text(), 0o755)
        for program in PROGRAMS:
            link = root / "usr" / program
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to("/usr/lib/cvmfs-fake/client.py")
        write(root / "etc/cvmfs/default.conf", DEFAULT)
        write(root / "etc/auto.cvmfs", MAP, 0o755)
        write(root / "DEBIAN/postinst", POSTINST, 0o755)
        package(work / f"libs_{version}", out, "cvmfs-libs", f"{version}~1")
        needs = f"cvmfs-config-default | cvmfs-config, adduser, autofs, cvmfs-libs (= {version}~1)"
        package(root, out, "cvmfs", f"{version}~1", Depends=f"{needs}, python3, squashfuse")
    known = {"Provides": "cvmfs-config", "Conflicts": "cvmfs-config"}
    package(work / "none", out, "cvmfs-config-none", "1.1-1", **known)
    root = work / "default"
    write(root / "etc/cvmfs/domain.d/cern.ch.conf", DOMAIN)
    write(root / "etc/cvmfs/keys/cern.ch/cern.ch.pub", key.read_text())
    package(root, out, "cvmfs-config-default", "2.2-1", **known)


def sign(folder: Path, out: Path) -> None:
    home = folder / "gnupg"
    home.mkdir(mode=0o700)
    gpg = [
        "gpg",
        "--homedir",
        str(home),
        "--batch",
        "--yes",
        "--pinentry-mode",
        "loopback",
        "--passphrase",
        "",
    ]
    run(*gpg, "--quick-generate-key", "Fake <none@example.org>", "rsa3072", "sign", "never")
    listing = run(*gpg, "--with-colons", "--fingerprint")
    fingerprint = next(line.split(":")[9] for line in listing.splitlines() if line[:3] == "fpr")
    (folder / "fingerprint").write_text(fingerprint)
    (out / "Packages").write_text(run("apt-ftparchive", "packages", ".", cwd=out))
    (out / "Release").write_text(run("apt-ftparchive", "release", ".", cwd=out))
    run(*gpg, "--clearsign", "--output", str(out / "InRelease"), str(out / "Release"))
    run(*gpg, "--armor", "--output", str(out / "key.asc"), "--export")


def key_of(folder: Path, domain: str) -> Path:
    """Make the public key of a domain."""
    private, public = folder / f"{domain}.key", folder / f"{domain}.pub"
    run("openssl", "genpkey", "-algorithm", "RSA", "-out", private)
    run("openssl", "pkey", "-in", private, "-pubout", "-out", public)
    return public


def publish(work: Path, out: Path, repository: str, key: Path) -> None:
    content = work / repository
    write(content / "hello", f"Hello from {repository}\n")
    if repository == "cvmfs-config.cern.ch":
        write(content / "etc/cvmfs/default.conf", "CVMFS_CONFIG_REPO_DEFAULT_ENV=1\n")
    out.mkdir(parents=True)
    run("mksquashfs", content, out / "content.squashfs", "-quiet", "-no-progress")
    published = {"revision": 42, "key": hashlib.sha256(key.read_bytes()).hexdigest()}
    (out / ".cvmfspublished").write_text(json.dumps(published))


def main(folder: Path, client: Path) -> None:
    work, apt = folder / "work", folder / "www/apt"
    shutil.rmtree(folder, ignore_errors=True)
    apt.mkdir(parents=True)
    work.mkdir()
    keys = {domain: key_of(folder, domain) for domain in set(REPOSITORIES.values())}
    packages(work, apt, client, keys["cern.ch"])
    sign(folder, apt)
    for repository, domain in REPOSITORIES.items():
        publish(work, folder / "www/cvmfs" / repository, repository, keys[domain])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

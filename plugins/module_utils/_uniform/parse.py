# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of a machine, from what the kernel and programs tell about it. No I/O."""

from __future__ import annotations

import re

from .._mounts.table import parse

# Arguments of the kernel that name a disk or an image of this machine.
_OWN = ("BOOT_IMAGE=", "initrd=", "root=", "resume=", "rd.luks.uuid=", "rd.md.uuid=", "ip=", "BOOTIF=")
# File systems of a network; their sources are no paths.
_REMOTE = re.compile(r"nfs4?|lustre|cifs|smb3|ceph|beegfs|gpfs|9p|fuse\..*")
_PASSING = re.compile(r"/(run|proc|sys|dev|var/lib/(docker|containers|kubelet))(/.*)?")
# Options of a mount that have an address or a number of this machine.
_OF_MACHINE = re.compile(r"(clientaddr|mountport|fd|pgrp|pipe_ino|timeout)=.*")
# Accounts whose numbers have to be the same on all machines, beside those of people.
_SHARED_ACCOUNTS = ("munge", "slurm")
_FIRST_PERSON, _LAST_PERSON = 1000, 60000


def processors(cpuinfo: str) -> dict[str, str]:
    """Return model, microcode and flags, from a text such as /proc/cpuinfo (proc(5)).

    A flag that is missing on one machine may have been switched off in its BIOS.
    """
    found: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, separator, value = line.partition(":")
        if separator and key.strip() in ("model name", "microcode", "flags"):
            found.setdefault(key.strip(), value.strip())
    flags = {f"processor.flag.{flag}": "yes" for flag in found.pop("flags", "").split()}
    return {**{f"processor.{name.replace(' name', '')}": value for name, value in found.items()}, **flags}


def memory(meminfo: str) -> dict[str, int]:
    """Return memory and swap in MiB, and the number of huge pages, as /proc/meminfo has them (proc(5))."""
    numbers = {key: int(value) for key, value in re.findall(r"^(\w+):\s+(\d+)", meminfo, re.MULTILINE)}
    return {
        name: number
        for name, number in (
            ("memory.mib", numbers.get("MemTotal", 0) // 1024),
            ("memory.swap_mib", numbers.get("SwapTotal", 0) // 1024),
            ("memory.huge_pages", numbers.get("HugePages_Total", 0)),
        )
        if number
    }


def command_line(text: str) -> str:
    """Return the arguments of the kernel without those that name a disk or address of the machine."""
    return " ".join(word for word in text.split() if not word.startswith(_OWN))


def chosen(text: str) -> str:
    """Return the choice that is in brackets, as in ``always [madvise] never``; the text if there is none."""
    found = re.search(r"\[([^]]+)\]", text)
    return found[1] if found else text.strip()


def mounts(mountinfo: str) -> dict[str, str]:
    """Return kind, source and options of the mounts of disks and networks, from a text such as
    /proc/self/mountinfo (proc(5)).
    """
    found = {}
    for path, mount in parse(mountinfo).items():
        if _PASSING.fullmatch(path) or not (mount.source.startswith("/") or _REMOTE.fullmatch(mount.kind)):
            continue
        options = sorted({option for option in mount.options if not _OF_MACHINE.fullmatch(option)})
        found[f"mount.{path}"] = f"{mount.kind} {mount.source} {','.join(options)}"
    return found


def packages(printed: str) -> dict[str, str]:
    """Return the versions of installed packages.

    Args:
        printed: by dpkg-query, for each the abbreviated status, name, architecture and version between tabs.
    """
    fields = (line.split("\t") for line in printed.splitlines())
    return {
        f"package.{name}:{architecture}": version
        for status, name, architecture, version in fields
        if status.startswith("ii")
    }


def enabled(printed: str) -> dict[str, str]:
    """Return the units that begin at boot, as ``systemctl list-unit-files --state=enabled`` prints them."""
    return {f"unit.{line.split()[0]}": "enabled" for line in printed.splitlines() if line.strip()}


def failed(printed: str) -> dict[str, str]:
    """Return the units that have failed, as ``systemctl list-units --state=failed --plain`` prints them."""
    return {f"failed.{line.split()[0]}": "failed" for line in printed.splitlines() if line.strip()}


def accounts(passwd: str) -> dict[str, str]:
    """Return numbers of the accounts that machines share, from a text such as /etc/passwd (passwd(5))."""
    found = {}
    for line in passwd.splitlines():
        name, *fields = line.split(":")
        if len(fields) < 3 or not fields[1].isdecimal():
            continue
        if name in _SHARED_ACCOUNTS or _FIRST_PERSON <= int(fields[1]) < _LAST_PERSON:
            found[f"account.{name}"] = f"{fields[1]}:{fields[2]}"
    return found


def limits(service: str, text: str) -> dict[str, str]:
    """Return the limits of a process, from a text such as /proc/PID/limits (proc(5)), as ``soft hard``."""
    found = re.findall(r"^(Max [a-z ]+?)\s{2,}(\S+)\s+(\S+)", text, re.MULTILINE)
    return {f"limit.{service}.{name[4:].replace(' ', '_')}": f"{soft} {hard}" for name, soft, hard in found}


def distribution(os_release: str) -> dict[str, str]:
    """Return the name of the distribution, from a text such as /etc/os-release (os-release(5))."""
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', os_release, re.MULTILINE)
    return {"system.distribution": found[1]} if found else {}

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Lustre installation as data: servers, targets, pools, quotas, and what each server has to do. No I/O.

Sources: mkfs.lustre(8); Lustre Operations Manual, "Configuring a Lustre File System", "Configuring
Failover in a Lustre File System", "Managing File System I/O" (pools) and "Configuring and Managing Quotas".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .._mounts.table import unit_name
from .lnet import declared, to_yaml
from .lnet import problems as lnet_problems
from .machine import (
    SERVED,
    addresses_of,
    interface_problems,
    machine_source_problems,
    name_problems,
    owner_problems,
)
from .nid import AddressError, is_file_system, parse_nid
from .options import module_lines, module_problems
from .packages import choose, source_problems

PREFIX = "lustre_server_"
MARK = "# Written by gpufarm.cluster.lustre_server; changes are lost."
MOST_TARGETS = 0xFFFF  # lustre/include/uapi/linux/lustre/lustre_idl.h: an index has 16 bits
LONGEST_POOL = 15  # lustre_user.h, LOV_MAXPOOLNAME
QUOTAS = ("none", "u", "g", "p", "ug", "up", "gp", "ugp")
DEVICE = re.compile(r"/dev(/[A-Za-z0-9_.:+@-]+)+|/(?!dev/)([A-Za-z0-9_.+-]+/)*[A-Za-z0-9_.+-]+")


class Target(NamedTuple):
    """One target: where it is, and what mkfs.lustre has to be told of it.

    `hosts` are the names of the servers that can serve it, the usual one first; `file_system` is empty for a
    management target of its own; `mgs` says whether the management target is part of it.
    """

    name: str
    kind: str
    file_system: str
    number: int | None
    device: str
    hosts: list[str]
    mgs: bool
    size_mb: int

    @property
    def path(self) -> str:
        """Where it is mounted."""
        return f"/lustre/{self.name.lower()}"


def problems(settings: Mapping[str, Any], host: str) -> list[str]:
    """Return what is wrong with settings, one sentence each.

    Args:
        settings: the role's variables without ``lustre_server_``.
        host: name of the machine in the inventory.
    """
    return [" ".join(one.split()) for one in _problems(settings, host)]


def targets(settings: Mapping[str, Any]) -> list[Target]:
    """Return all targets of settings that problems() has nothing against, the management target first."""
    found: list[Target] = []
    for system in settings["file_systems"]:
        for one in system["targets"]:
            number = int(one["index"])
            found.append(
                Target(
                    f"{system['name']}-{one['kind'].upper()}{number:04x}",
                    one["kind"],
                    system["name"],
                    number,
                    one["device"],
                    [str(name) for name in one["servers"]],
                    _same_device(one, settings["mgs"]),
                    int(one.get("size_mb", 0)),
                )
            )
    mgs = settings["mgs"]
    if mgs and not any(one.mgs for one in found):
        servers = [str(name) for name in mgs["servers"]]
        found.append(Target("MGS", "mgs", "", None, mgs["device"], servers, True, int(mgs.get("size_mb", 0))))
    order = {"mgs": 0, "mdt": 1, "ost": 2}
    return sorted(found, key=lambda one: (not one.mgs, order[one.kind], one.file_system, one.number or 0))


def _same_device(one: Mapping[str, Any], mgs: Mapping[str, Any]) -> bool:
    return bool(mgs) and (one["device"], list(one["servers"])) == (mgs["device"], list(mgs["servers"]))


def plan(
    settings: Mapping[str, Any],
    host: str,
    names: Mapping[str, Sequence[str]] | None = None,
    elsewhere: Sequence[str] = (),
    machine: Mapping[str, Any] | None = None,
    offered: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Return what a server has to do.

    Args:
        settings: the role's variables without ``lustre_server_``.
        host: name of the machine in the inventory.
        names: what the module lustre_info tells of the names of hosts in them. A target has addresses in
            place of these.
        elsewhere: targets that another server has mounted.
        machine: what the module lustre_info returns; without it only the settings are checked.
        offered: versions in the package source, the newest first, by package.

    Returns:
        ``problems``, each a sentence; if there are none, ``targets``: what the module lustre_target takes
        for each target that the server usually serves; ``names``: hosts to look up; ``units``: texts of
        units by name; ``first``: the unit of the management target; ``started``: units to start, in their
        order; ``standby``: units of targets that it serves when another server fails; ``mounts``: as the
        module mount_validate takes them; ``lnet``: text of ``/etc/lnet.conf``; ``modprobe``: text of the
        file with parameters of modules; ``pools``: targets by pool; ``quotas``: kinds by file system; and
        ``packages`` with their ``version``, if those that are offered are known.
    """
    wrong = problems(settings, host) or (machine_problems(settings, machine, host) if machine else [])
    chosen: dict[str, Any] = {}
    if machine and offered is not None and not wrong:
        wrong, chosen = choose("server", settings, offered, machine["kernels"])
    if wrong:
        return {"problems": wrong}
    every = targets(settings)
    usual = [one for one in every if one.hosts[0] == host]
    served = [one for one in usual if one.name not in elsewhere]
    spare = [one for one in every if host in one.hosts and one not in served]
    addresses = addresses_of(names or {})
    lnet = declared(settings["networks"], settings["routes"], settings["peers"], settings["lnet"])
    return {
        "problems": [],
        **chosen,
        "targets": [_formatted(one, settings, addresses) for one in usual],
        "names": _names(settings),
        "units": {
            **{unit_name(one.path, "mount"): _unit(one, settings) for one in served + spare},
            SERVED: f"{MARK}\n[Unit]\nDescription=Lustre targets of this machine\n",
        },
        "first": [unit_name(one.path, "mount") for one in served if one.mgs],
        "started": [unit_name(one.path, "mount") for one in served],
        "standby": [unit_name(one.path, "mount") for one in spare],
        "mounts": [{"path": one.path, "source": one.device} for one in served],
        "lnet": f"{MARK}\n{to_yaml(lnet)}",
        "modprobe": f"{MARK}\n{module_lines(settings['module_parameters'])}",
        "pools": _pools(settings),
        "quotas": {one["name"]: one["quota"] for one in settings["file_systems"] if one.get("quota")},
    }


def _pools(settings: Mapping[str, Any]) -> dict[str, list[str]]:
    return {
        f"{system['name']}.{pool}": [f"{system['name']}-OST{int(index):04x}" for index in indexes]
        for system in settings["file_systems"]
        for pool, indexes in (system.get("pools") or {}).items()
    }


def _names(settings: Mapping[str, Any]) -> list[str]:
    nids = [parse_nid(str(nid), {}) for listed in settings["nids"].values() for nid in listed]
    return sorted({nid.address for nid in nids if nid.is_name})


def _formatted(one: Target, settings: Mapping[str, Any], addresses: Mapping[str, str]) -> dict[str, Any]:
    mgs = settings["mgs"]

    def nids(name: str) -> str:
        return ",".join(str(parse_nid(str(nid), addresses)) for nid in settings["nids"][name])

    return {
        "device": one.device,
        "kind": one.kind,
        "mgs": one.mgs,
        "file_system": one.file_system,
        "index": one.number,
        # The one that is on the same device needs no address of itself.
        "mgs_nodes": [] if one.mgs else [nids(name) for name in mgs["servers"]],
        # mkfs.lustre(8), --servicenode: all servers alike; a single one needs none.
        "service_nodes": [nids(name) for name in one.hosts] if len(one.hosts) > 1 else [],
        "size_mb": one.size_mb,
        "name": one.name,
    }


def _unit(one: Target, settings: Mapping[str, Any]) -> str:
    # Lustre Operations Manual, "Mounting a Lustre File System": first the management target, then the others.
    after = "lnet.service"
    if not one.mgs and any(other.mgs and other.hosts[0] == one.hosts[0] for other in targets(settings)):
        first = next(other for other in targets(settings) if other.mgs)
        after += f" {unit_name(first.path, 'mount')}"
    return (
        f"{MARK}\n[Unit]\nDescription=Lustre target {one.name}\nRequires=lnet.service\nAfter={after}\n"
        f"Before={SERVED}\n\n[Mount]\nWhat={one.device}\nWhere={one.path}\nType=lustre\nOptions=_netdev\n"
        f"TimeoutSec={int(settings['mount_timeout'])}\n\n[Install]\nWantedBy=multi-user.target\n"
    )


def _problems(settings: Mapping[str, Any], host: str) -> Iterator[str]:
    if not settings["file_systems"] and not settings["mgs"]:
        return
    yield from _server_problems(settings, host)
    yield from _mgs_problems(settings)
    names: list[str] = []
    devices: list[Any] = []
    for system in settings["file_systems"]:
        yield from _system_problems(system, settings, names, devices)
    if settings["mgs"].get("device"):
        devices += [
            (str(name), settings["mgs"]["device"])
            for name in settings["mgs"].get("servers", [])
            if not any(
                _same_device(one, settings["mgs"])
                for system in settings["file_systems"]
                for one in system.get("targets", [])
                if "device" in one and "servers" in one
            )
        ]
    for server, device in sorted({one for one in devices if devices.count(one) > 1}):
        yield (
            f"lustre_server_file_systems uses {device} on {server} twice; give each target a device of"
            " its own."
        )
    yield from lnet_problems(
        PREFIX, settings["networks"], settings["routes"], settings["peers"], settings["lnet"]
    )
    yield from module_problems(PREFIX, settings["module_parameters"])
    for device in settings["format"]:
        if not DEVICE.fullmatch(str(device)):
            yield f"lustre_server_format has '{device}', which is no path of a device."
    if int(settings["mount_timeout"]) < 1:
        yield f"lustre_server_mount_timeout is {settings['mount_timeout']}; give 1 second or more."
    yield from source_problems(PREFIX, settings)


def _server_problems(settings: Mapping[str, Any], host: str) -> Iterator[str]:
    for name, nids in settings["nids"].items():
        if not isinstance(nids, list) or not nids:
            yield f"lustre_server_nids has {name} without a NID; list its NIDs."
            continue
        for nid in nids:
            try:
                parse_nid(str(nid), {})
            except AddressError as error:
                yield f"lustre_server_nids has a NID of {name} that cannot be used: {error}."
    if host not in settings["nids"]:
        yield (
            f"lustre_server_nids does not name {host}; add its NIDs, or run the role on those that it names"
            " only."
        )
    if not settings["networks"]:
        yield (
            "lustre_server_networks is empty; name the network and an interface in it, such as"
            " {name: o2ib, interfaces: [ib0]}."
        )


def _mgs_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    mgs = settings["mgs"]
    if not mgs:
        yield "lustre_server_mgs is empty; name the device and the servers of the management target."
        return
    unknown = sorted(set(mgs) - {"device", "servers", "size_mb"})
    if unknown:
        yield f"lustre_server_mgs has '{unknown[0]}'; it has device and servers."
    yield from _place_problems("lustre_server_mgs", mgs, settings)


def _place_problems(where: str, one: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[str]:
    device = str(one.get("device", ""))
    if not DEVICE.fullmatch(device) or re.search(r"/\.\.?(/|$)", device):
        yield (
            f"{where} has the device '{device}'; give its path, such as"
            " /dev/disk/by-id/wwn-0x5000c500a1b2c3d4."
        )
    servers = one.get("servers")
    if not isinstance(servers, list) or not servers:
        yield f"{where} names no servers of {device}; list them, the usual one first."
        return
    for name in servers:
        if name not in settings["nids"]:
            yield (
                f"{where} has {device} on the server '{name}', which lustre_server_nids does not name;"
                " correct one of them."
            )
    if len(set(servers)) < len(servers):
        yield f"{where} names a server of {device} twice."
    if one.get("size_mb") is not None and not re.fullmatch("[1-9][0-9]{0,8}", str(one["size_mb"])):
        yield f"{where} has size_mb '{one['size_mb']}' of {device}, where a number of MB belongs."


def _system_problems(
    system: Mapping[str, Any], settings: Mapping[str, Any], names: list[str], devices: list[Any]
) -> Iterator[str]:
    where = "lustre_server_file_systems"
    name = str(system.get("name", ""))
    unknown = sorted(set(system) - {"name", "targets", "pools", "quota"})
    if unknown:
        yield f"{where} has '{unknown[0]}'; a file system has name, targets, pools and quota."
    if not is_file_system(name):
        yield f"{where} has the name '{name}'; give 1 to 8 letters, digits, - and _."
    if name in names:
        yield f"{where} names {name} twice."
    names.append(name)
    if system.get("quota") and system["quota"] not in QUOTAS:
        yield f"{where} has the quota '{system['quota']}' of {name}; it is one of {', '.join(QUOTAS)}."
    there: list[Any] = []
    for one in system.get("targets") or []:
        wrong = sorted(set(one) - {"kind", "index", "device", "servers", "size_mb"})
        if wrong:
            yield (
                f"{where} has '{wrong[0]}' in a target of {name}; a target has kind, index, device and"
                " servers."
            )
        kind, index = one.get("kind"), str(one.get("index", ""))
        if kind not in ("mdt", "ost"):
            yield f"{where} has a target of {name} of the kind '{kind}'; it is mdt or ost."
        if not re.fullmatch("[0-9]{1,5}", index) or int(index) > MOST_TARGETS:
            yield f"{where} has the index '{index}' in {name}; give a number from 0 to {MOST_TARGETS}."
        else:
            there.append((kind, int(index)))
        yield from _place_problems(where, one, settings)
        servers = one.get("servers")
        devices += [
            (str(server), one.get("device")) for server in (servers if isinstance(servers, list) else [])
        ]
    for kind, number in sorted({one for one in there if there.count(one) > 1}, key=str):
        yield f"{where} has the {kind} {number} of {name} twice; number them apart."
    # Without the first of the metadata targets nothing can be mounted.
    if ("mdt", 0) not in there:
        yield f"{where} has no mdt with the index 0 in {name}; add it."
    if not any(kind == "ost" for kind, _index in there):
        yield f"{where} has no ost in {name}; add one."
    for pool, indexes in (system.get("pools") or {}).items():
        if not re.fullmatch(f"[-_A-Za-z0-9]{{1,{LONGEST_POOL}}}", str(pool)):
            yield (
                f"{where} has the pool '{pool}' in {name}; give up to {LONGEST_POOL} letters, digits, -"
                " and _."
            )
        for index in indexes:
            if not str(index).isdigit() or ("ost", int(index)) not in there:
                yield (
                    f"{where} has the ost {index} in the pool {pool}, but {name} has no ost {index};"
                    " remove it from the pool."
                )


def machine_problems(settings: Mapping[str, Any], machine: Mapping[str, Any], host: str) -> list[str]:
    """Return what a machine does not allow, one sentence each.

    Args:
        settings: the role's variables without ``lustre_server_``, which problems() has nothing against.
        machine: what the module lustre_info returns.
        host: name of the machine in the inventory.
    """
    wrong = list(owner_problems("lustre_server", settings["source"], machine, host))
    wrong += machine_source_problems(PREFIX, settings, machine, host)
    wrong += name_problems("lustre_server_nids", _names(settings), machine["names"], host)
    wrong += interface_problems(PREFIX, settings["networks"], machine, host)
    known = machine["interfaces"]
    own = {
        address
        for network in settings["networks"]
        for interface in network["interfaces"]
        for address in known.get(interface, {"addresses": []})["addresses"]
    }
    addresses = addresses_of(machine["names"])
    for nid in settings["nids"][host]:
        address = parse_nid(str(nid), addresses).address
        if own and re.fullmatch("[0-9.]+", address) and address not in own:
            wrong.append(
                f"lustre_server_nids has {nid} of {host}, whose interfaces in lustre_server_networks have"
                f" {' and '.join(sorted(own))}; correct one of them."
            )
    return wrong


def signature_problem(device: str, signature: Mapping[str, str], host: str) -> str:
    """Return why a device that is to be formatted is not empty; an empty text when it is.

    Args:
        device: its path.
        signature: what ``blkid --probe`` found: TYPE, PTTYPE, LABEL.
        host: name of the machine, for people.
    """
    found = []
    if signature.get("PTTYPE"):
        found.append(f"a partition table ({signature['PTTYPE']})")
    if signature.get("TYPE"):
        kind = signature["TYPE"]
        words = {
            "LVM2_member": "a physical volume of LVM",
            "linux_raid_member": "a part of a RAID",
            "crypto_LUKS": "an encrypted device",
            "swap": "swap",
        }.get(kind, f"a file system of type {kind}")
        found.append(words + (f" labelled {signature['LABEL']}" if signature.get("LABEL") else ""))
    if not found:
        return ""
    return (
        f"{device} on {host} holds {' and '.join(found)}, and only an empty device is formatted; name"
        f" another, or look at what is on it and empty it yourself with 'wipefs --all {device}'."
    )


def parse_blkid(text: str) -> dict[str, str]:
    """Return what ``blkid --probe --output export`` prints."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def mkfs_words(target: Mapping[str, Any]) -> list[str]:
    """Return the arguments of mkfs.lustre, without the program.

    Args:
        target: as plan() gives it.
    """
    words = ["--mgs"] if target["mgs"] else []
    if target["kind"] != "mgs":
        words += [
            f"--{target['kind']}",
            f"--fsname={target['file_system']}",
            f"--index={target['index']}",
        ]
    words += [f"--mgsnode={node}" for node in target["mgs_nodes"]]
    words += [f"--servicenode={node}" for node in target["service_nodes"]]
    if target["size_mb"]:
        words.append(f"--device-size={target['size_mb'] * 1024}")
    return [*words, target["device"]]


def differences(target: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Return how a formatted device differs from a target, each a part of a sentence.

    Args:
        target: as plan() gives it.
        found: what parse_target() returns.
    """
    kinds = sorted(({"mgs"} if target["mgs"] else set()) | {target["kind"]})
    wrong = []
    if found["name"] != target["name"]:
        wrong.append(f"it is {found['name']}")
    if sorted(found["kinds"]) != kinds:
        wrong.append(f"it is of the kind {'+'.join(sorted(found['kinds']))}")
    for words, key, option in (
        ("management", "mgs_nodes", "mgsnode"),
        ("service", "service_nodes", "servicenode"),
    ):
        have = sorted(node for text in found[option] for node in text.split(":"))
        if have != sorted(target[key]):
            wrong.append(f"its {words} nodes are {' and '.join(have) or 'none'}")
    return wrong


def quota_changes(wanted: Mapping[str, str], enforced: Mapping[str, str]) -> list[list[str]]:
    """Return the commands of lctl that make targets enforce quotas.

    The management target keeps what ``set_param -P`` sets, and tells all that it is for; ``conf_param`` is
    deprecated (lctl-conf_param(8); source of Lustre, lustre/tests/sanity-quota.sh, set_ost_qtype).

    Args:
        wanted: kinds by file system.
        enforced: kinds by target, of those that are known.
    """
    words = []
    for name, kinds in wanted.items():
        for kind in ("ost", "mdt"):
            start = f"{name}-{kind.upper()}"
            if any(sorted(have) != sorted(kinds) for one, have in enforced.items() if one.startswith(start)):
                pattern = f"osd-*.{start}*.quota_slave.enabled"
                words.append(["set_param", "-P", f"{pattern}={kinds}"])
    return words


def pool_changes(
    wanted: Mapping[str, Sequence[str]], current: Mapping[str, Sequence[str]]
) -> list[list[str]]:
    """Return the commands of lctl that make pools what is wanted; pools and members of others stay."""
    words: list[list[str]] = []
    for pool, members in wanted.items():
        if pool not in current:
            words.append(["pool_new", pool])
        new = [one for one in members if one not in current.get(pool, [])]
        if new:
            words.append(["pool_add", pool, *new])
    return words

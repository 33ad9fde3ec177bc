# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files, units, mounts and problems that result from the settings of a Lustre client. No I/O.

Sources: mount.lustre(8); Lustre Operations Manual, "Mounting a Lustre File System on Client Nodes";
systemd.mount(5), systemd.automount(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
from .nid import AddressError, Device, parse_device
from .options import (
    OptionError,
    check_mount_options,
    check_tunables,
    module_lines,
    module_problems,
)
from .packages import choose, source_problems

PREFIX = "lustre_client_"
MARK = "# Written by gpufarm.cluster.lustre_client; changes are lost."
PARAMETERS_UNIT = "gpufarm-lustre-parameters.service"
# Where a file system would hide the machine's own files.
SYSTEM = re.compile("/|/(bin|boot|dev|etc|lib|lib64|proc|root|run|sbin|sys|usr|var|tmp)")


def problems(settings: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with settings, one sentence each."""
    return [" ".join(one.split()) for one in _problems(settings)]


def plan(
    settings: Mapping[str, Any],
    names: Mapping[str, Sequence[str]] | None = None,
    machine: Mapping[str, Any] | None = None,
    host: str = "the machine",
    offered: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Return what settings come to.

    Args:
        settings: the role's variables without ``lustre_client_``.
        names: what the module lustre_info tells of the names of hosts in them. A mount has addresses in place
            of these, as the kernel shows it so, and a boot need not wait for a name server.
        machine: what the module lustre_info returns; without it only the settings are checked.
        host: name of the machine, for people.
        offered: versions in the package source, the newest first, by package.

    Returns:
        ``problems``, each a sentence; if there are none, ``units``: texts of units by name;
        ``mount_units``: those that mount; ``automounts``: names that the units that mount on demand have,
        or would have, by path; ``started``: the units to start; ``lnet``: text of ``/etc/lnet.conf``;
        ``modprobe``: text of the file with parameters of modules; ``mounts`` and ``places`` as the module
        mount_validate takes them; ``servers``: addresses that must take connections, a list for each mount;
        ``names``: hosts to look up; ``interfaces``: names by network; and ``packages`` with their
        ``version``, if those that are offered are known.
    """
    wrong = problems(settings) or list(machine_problems(settings, machine, host) if machine else ())
    chosen: dict[str, Any] = {}
    if machine and offered is not None and not wrong:
        wrong, chosen = choose("client", settings, offered, machine["kernels"])
    if wrong:
        return {"problems": wrong}
    given = [parse_device(str(one["source"]), {}) for one in settings["file_systems"]]
    devices = _devices(settings, names or {})
    units = dict(_units(settings, devices))
    automounts = [name for name in units if name.endswith(".automount")]
    mounts = [name for name in units if name.endswith(".mount")]
    lnet = declared(settings["networks"], settings["routes"], settings["peers"], settings["lnet"])
    points = [
        {"path": one["path"], "source": str(device)} for one, device in zip(settings["file_systems"], devices)
    ]
    return {
        "problems": [],
        **chosen,
        "units": units,
        "mount_units": mounts,
        "automounts": {one["path"]: unit_name(one["path"], "automount") for one in settings["file_systems"]},
        "started": automounts or mounts,
        "lnet": f"{MARK}\n{to_yaml(lnet)}",
        "modprobe": f"{MARK}\n{module_lines(settings['module_parameters'])}",
        "mounts": points,
        "places": [{**one, "state": "possible"} for one in points]
        if not automounts
        else [{"path": one["path"], "types": ["autofs"], "state": "possible"} for one in points],
        "servers": [_addresses(device, settings) for device in devices],
        "names": sorted({nid.address for device in given for nid in device.nids if nid.is_name}),
        "interfaces": {name: list(interfaces) for name, interfaces in lnet.networks.items()},
    }


def _devices(settings: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> list[Device]:
    addresses = addresses_of(names)
    return [parse_device(str(one["source"]), addresses) for one in settings["file_systems"]]


def machine_problems(settings: Mapping[str, Any], machine: Mapping[str, Any], host: str) -> Iterator[str]:
    """Yield what a machine does not allow, one sentence each.

    Args:
        settings: the role's variables without ``lustre_client_``, which problems() has nothing against.
        machine: what the module lustre_info returns.
        host: name of the machine, for people.
    """
    yield from owner_problems("lustre_client", settings["source"], machine, host)
    yield from machine_source_problems(PREFIX, settings, machine, host)
    yield from interface_problems(PREFIX, settings["networks"], machine, host)
    wanted = plan(settings)["names"]
    unknown = list(name_problems("lustre_client_file_systems", wanted, machine["names"], host))
    yield from unknown
    mounted = {one["path"]: one["source"] for one in machine["mounts"]}
    devices = _devices(settings, machine["names"])
    for one, device in zip(settings["file_systems"], devices):
        if mounted.get(one["path"]) == str(device):
            continue
        if one["path"] in mounted:
            yield (
                f"{one['path']} on {host} is mounted from {mounted[one['path']]}, where {device} is wanted;"
                " unmount it first, or name another path in lustre_client_file_systems."
            )
        why = [machine["servers"].get(address, "") for address in _addresses(device, settings)]
        if why and all(why) and not unknown:
            yield (
                f"No server of {device} answers at port 988 from {host} ({'; '.join(dict.fromkeys(why))});"
                " check the addresses in lustre_client_file_systems, the servers, and the firewalls between."
            )


def _addresses(device: Device, settings: Mapping[str, Any]) -> list[str]:
    """Return addresses of servers in the networks of the machine itself that TCP reaches."""
    local = declared(settings["networks"], [], [], {}).networks
    return [nid.address for nid in device.nids if nid.network.startswith("tcp") and nid.network in local]


def _problems(settings: Mapping[str, Any]) -> Iterator[str]:
    devices: list[Device] = []
    for one in settings["file_systems"]:
        yield from _file_system_problems(one, settings["mount_options"], devices)
    yield from _place_problems(settings["file_systems"])
    yield from lnet_problems(
        PREFIX, settings["networks"], settings["routes"], settings["peers"], settings["lnet"]
    )
    if settings["file_systems"] and not settings["networks"]:
        yield (
            "lustre_client_networks is empty; name the network of the servers and an interface in it, such as"
            " {name: tcp, interfaces: [eth0]}."
        )
    elif not list(lnet_problems("", settings["networks"], settings["routes"], [], {})):
        yield from _reach_problems(devices, settings)
    yield from _parameter_problems(settings)
    yield from _other_problems(settings)


def _file_system_problems(
    one: Mapping[str, Any], common: Sequence[str], devices: list[Device]
) -> Iterator[str]:
    unknown = sorted(set(one) - {"source", "path", "options"})
    if unknown:
        yield f"lustre_client_file_systems has '{unknown[0]}'; a file system has source, path and options."
    try:
        devices.append(parse_device(str(one.get("source", "")), {}))
    except AddressError as error:
        yield f"lustre_client_file_systems has a source that cannot be mounted: {error}."
    path = str(one.get("path", ""))
    if not re.fullmatch(r"(/[A-Za-z0-9_.+-]+)+", path) or re.search(r"/\.\.?(/|$)", path):
        yield f"lustre_client_file_systems has the path '{path}'; give an absolute one of plain characters."
    elif SYSTEM.fullmatch(path):
        yield f"lustre_client_file_systems has the path {path}, which is the machine's own; choose another."
    options = one.get("options", common)
    if not isinstance(options, list):
        yield f"lustre_client_file_systems has options for {path} that are no list; write [noatime, flock]."
        return
    try:
        check_mount_options([str(option) for option in options])
    except OptionError as error:
        yield f"The mount at {path} has {error}."


def _place_problems(file_systems: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    paths = [str(one.get("path", "")) for one in file_systems]
    for path in sorted({path for path in paths if paths.count(path) > 1}):
        yield f"lustre_client_file_systems has the path {path} twice; choose another for one of them."


def _reach_problems(devices: Sequence[Device], settings: Mapping[str, Any]) -> Iterator[str]:
    lnet = declared(settings["networks"], settings["routes"], [], {})
    reached = set(lnet.networks) | {network for network, _gateway in lnet.routes}
    for device in devices:
        networks = sorted({nid.network for nid in device.nids})
        if not reached & set(networks):
            yield (
                f"{device} is in {' and '.join(networks)}, and lustre_client_networks has"
                f" {' and '.join(sorted(reached))}; add an interface in that network, or a route to"
                " lustre_client_routes."
            )


def _parameter_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    try:
        check_tunables(settings["parameters"])
    except OptionError as error:
        yield f"lustre_client_parameters has {error}."
    yield from module_problems(PREFIX, settings["module_parameters"])


def _other_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    if int(settings["mount_timeout"]) < 1:
        yield f"lustre_client_mount_timeout is {settings['mount_timeout']}; give 1 second or more."
    for unit in settings["consumers"]:
        if not re.fullmatch(r"[A-Za-z0-9:_.\\@-]+\.(service|socket|target|timer|path|slice)", str(unit)):
            yield (
                f"lustre_client_consumers has '{unit}', which is no name of a unit such as"
                " jupyterhub.service."
            )
    for kernel in settings["kernels"]:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+~-]*", str(kernel)):
            yield f"lustre_client_kernels has '{kernel}', which is no release of a kernel; see 'uname -r'."
    if settings["source"] == "server" and settings["module_parameters"]:
        yield (
            "lustre_client_module_parameters is for clients alone, and lustre_client_source is server; move"
            " it to lustre_server_module_parameters."
        )
    if settings["file_systems"]:
        yield from source_problems(PREFIX, settings)


def _units(settings: Mapping[str, Any], devices: Sequence[Device]) -> Iterator[Any]:
    consumers = [*settings["consumers"], PARAMETERS_UNIT] if settings["parameters"] else settings["consumers"]
    names = []
    served = " " + SERVED if settings["source"] == "server" else ""
    for number, one in enumerate(settings["file_systems"]):
        device, path = devices[number], one["path"]
        given = [str(option) for option in one.get("options", settings["mount_options"])]
        options = ["_netdev", *(option for option in given if option != "_netdev")]
        names.append(unit_name(path, "mount"))
        install = "" if settings["automount"] else "\n[Install]\nWantedBy=remote-fs.target\n"
        # A mount that comes before LNet would start it with the networks of its modules, and lnet.service
        # would then do nothing (lnet.service, ConditionPathExists).
        yield (
            names[-1],
            f"{MARK}\n[Unit]\nDescription=Lustre file system {device.file_system}\nRequires=lnet.service\n"
            f"Wants=network-online.target{served}\nAfter=lnet.service network-online.target{served}\n"
            f"{_before(consumers)}\n[Mount]\nWhat={device}\nWhere={path}\nType=lustre\n"
            f"Options={','.join(options)}\nTimeoutSec={int(settings['mount_timeout'])}\n{install}",
        )
        if settings["automount"]:
            # Before local-fs.target as all automounts (systemd.automount(5)), and so before LNet: who looks
            # earlier waits for the mount, which is after it.
            yield (
                unit_name(path, "automount"),
                f"{MARK}\n[Unit]\nDescription=Lustre file system {device.file_system}, mounted on demand\n"
                f"{_before(settings['consumers'])}\n[Automount]\nWhere={path}\n\n"
                "[Install]\nWantedBy=remote-fs.target\n",
            )
    if settings["parameters"]:
        # lctl set_param ends with an error where a file system is not mounted yet, hence the dash.
        lines = [
            f"ExecStart=-/usr/sbin/lctl set_param {name}={_literal(value)}\n"
            for name, value in sorted(settings["parameters"].items())
        ]
        yield (
            PARAMETERS_UNIT,
            (
                f"{MARK}\n[Unit]\nDescription=Tunables of the Lustre client\nAfter={' '.join(names)}\n\n"
                f"[Service]\nType=oneshot\n{''.join(lines)}\n[Install]\nWantedBy={' '.join(names)}\n"
            ),
        )


def _before(consumers: Sequence[str]) -> str:
    return f"Before={' '.join(consumers)}\n" if consumers else ""


def _literal(value: Any) -> str:
    text = str(int(value)) if isinstance(value, bool) else str(value)
    return text.replace("%", "%%")  # systemd.unit(5), "Specifiers"

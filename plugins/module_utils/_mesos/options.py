# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of Mesos as a site gives them: what is wrong with them, and the environment file that they come to.
No I/O.

Mesos reads `MESOS_<NAME>` of its environment and ignores unknown ones without a word, so names and values are
checked here (docs/configuration.md; 3rdparty/stout/include/stout/flags; the grammar of each type in
stout/duration.hpp, bytes.hpp).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from .._framework.settings import image_problems
from . import flags

APACHE, CLUSTERD = "apache", "clusterd"
KNOWN = {"master": flags.MASTER, "agent": flags.AGENT}
OLD_NAMES = {"master": flags.MASTER_OLD_NAMES, "agent": flags.AGENT_OLD_NAMES}
OF_CLUSTERD = {"master": flags.MASTER_CLUSTERD, "agent": flags.AGENT_CLUSTERD}

# Structured values that may carry logins to registries, variables of tasks, or parameters of modules.
CONFIDENTIAL = ("default_container_info", "docker_config", "executor_environment_variables", "modules")

FORMS = {
    "bool": ("true or false", r"true|false"),
    "int": ("a whole number", r"-?[0-9]+"),
    "uint": ("a whole number, not negative", r"[0-9]+"),
    "port": ("a port", r"[0-9]{1,5}"),
    "double": ("a number", r"-?[0-9]+(\.[0-9]+)?"),
    "duration": (
        "a duration such as 30secs, 5mins or 1days",
        r"[0-9]+(\.[0-9]+)?(ns|us|ms|secs|mins|hrs|days|weeks)",
    ),
    "bytes": ("an amount such as 64MB or 2GB", r"[0-9]+(B|KB|MB|GB|TB)"),
    "path": ("an absolute path", r"(file://)?/.+"),
}

# docs/authorization.md: actions and the field that names what they are done to.
ACL_ACTIONS = {
    "roles": (
        "register_frameworks reserve_resources create_volumes resize_volumes get_quotas update_quotas "
        "view_roles "
        "update_weights create_block_disks destroy_block_disks create_mount_disks destroy_mount_disks "
        "destroy_raw_disks"
    ),
    "users": (
        "run_tasks view_frameworks view_tasks view_executors access_sandboxes view_containers "
        "launch_nested_containers_as_user launch_nested_containers_under_parent_with_user "
        "launch_nested_container_sessions_as_user launch_nested_container_sessions_under_parent_with_user "
        "attach_containers_input attach_containers_output kill_nested_containers wait_nested_containers "
        "remove_nested_containers launch_standalone_containers kill_standalone_containers "
        "wait_standalone_containers "
        "remove_standalone_containers view_standalone_containers"
    ),
    "agents": "register_agents drain_agents deactivate_agents reactivate_agents mark_agents_gone",
    "machines": (
        "update_maintenance_schedules get_maintenance_schedules start_maintenances stop_maintenances "
        "get_maintenance_statuses"
    ),
    "resource_providers": "mark_resource_providers_gone modify_resource_provider_configs "
    "view_resource_providers",
    "framework_principals": "teardown_frameworks",
    "reserver_principals": "unreserve_resources",
    "creator_principals": "destroy_volumes",
    "paths": "get_endpoints",
    "logs": "access_mesos_logs",
    "flags": "view_flags",
    "level": "set_log_level",
    "images": "prune_images",
}
ACL_FIELDS = {action: field for field, actions in ACL_ACTIONS.items() for action in actions.split()}


def known(program: str, build: str) -> dict[str, str]:
    """Return the options of `master` or `agent` in a build, with the kinds of their values."""
    return {**KNOWN[program], **(OF_CLUSTERD[program] if build == CLUSTERD else {})}


def problems(program: str, build: str, options: Mapping[str, Any], own: Mapping[str, str]) -> Iterator[str]:
    """Tell what is wrong with options.

    Args:
        program: `master` or `agent`.
        build: `apache` or `clusterd`.
        options: by name.
        own: options that have a variable of their own, and its name.
    """
    where = f"mesos_{program}_flags"
    names = known(program, build)
    for name, value in options.items():
        if name in own:
            yield f"{where} has {name}; set {own[name]} in its place."
        elif name in OLD_NAMES[program]:
            yield f"{where} has {name}, whose name is {OLD_NAMES[program][name]} now; use that."
        elif name not in names:
            near = get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]}?" if near else "see the configuration of Mesos."
            yield f"{where} has {name}, which the {program} of Mesos 1.11 does not know; {hint}"
        else:
            problem = value_problem(names[name], value)
            if problem:
                yield f"{where}.{name} {problem}."


def value_problem(kind: str, value: Any) -> str:
    """Return what is wrong with a value of a kind, an empty text when nothing is."""
    if kind == "json":
        if isinstance(value, (dict, list)):
            return ""
        return (
            ""
            if re.fullmatch(FORMS["path"][1], str(value))
            else "is neither a map or list nor an absolute path"
        )
    if isinstance(value, (dict, list)) and kind != "list":
        return "is no plain value"
    text = plain(value)
    if re.search(r"[\x00-\x1f\x7f\"'\\\\`]", text) or text != text.strip():
        return "has quotes, backslashes or blanks around it; write it to a file and name that"
    if kind in FORMS and not re.fullmatch(FORMS[kind][1], text):
        return f"is '{text}', and has to be {FORMS[kind][0]}"
    if kind == "port" and not 0 < int(text) < 65536:
        return f"is {text}, and a port is a number from 1 to 65535"
    return ""


def plain(value: Any) -> str:
    """Return a value as Mesos reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(plain(one) for one in value)
    return str(value)


class Rendered(NamedTuple):
    """Options as plain texts by their names, and by file name what structured values go to: files that
    everybody may read, and files that only the program may."""

    texts: dict[str, str]
    files: dict[str, str]
    secret_files: dict[str, str]


def rendered(program: str, build: str, options: Mapping[str, Any], folder: str) -> Rendered:
    """Return options as Mesos reads them.

    Args:
        program: `master` or `agent`.
        build: `apache` or `clusterd`.
        options: by name, None for those that are not set.
        folder: where the files will be, the secret ones in `secrets` below it.
    """
    found = Rendered({}, {}, {})
    for name, value in options.items():
        if value is None:
            continue
        if known(program, build)[name] == "json" and isinstance(value, (dict, list)):
            files = found.secret_files if name in CONFIDENTIAL else found.files
            files[f"{name}.json"] = json.dumps(value, indent=2, sort_keys=True) + "\n"
            value = _structured(folder, name)
        found.texts[name] = plain(value)
    return found


def unwanted(program: str, folder: str, found: Rendered, settings: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what a role writes with other settings, as the module C(paths) removes it.

    Args:
        program: `master` or `agent`.
        folder: that of the configuration.
        found: what is written with these settings.
        settings: the role's variables without its name.
    """
    names = [name for name, kind in KNOWN[program].items() if kind == "json"]
    written = {**found.files, **found.secret_files}
    paths = [_structured(folder, name) for name in names if f"{name}.json" not in written]
    if settings["tls"] == "none":
        paths += [f"{folder}/{name}" for name in ("tls.pem", "secrets/tls.key", "ca.pem")]
    return [{"path": path, "state": "absent"} for path in paths]


def _structured(folder: str, name: str) -> str:
    return f"{folder}{'/secrets' if name in CONFIDENTIAL else ''}/{name}.json"


def environment(options: Mapping[str, str], libprocess: Mapping[str, str]) -> str:
    """Return an environment file, in which nothing needs quotes."""
    lines = {**{f"MESOS_{name.upper()}": value for name, value in options.items()}, **libprocess}
    return "# Written by gpufarm.cluster; changes are lost.\n" + "".join(
        f"{name}={value}\n" for name, value in sorted(lines.items())
    )


def tls(settings: Mapping[str, Any], certificate: str, key: str, authority: str) -> dict[str, str]:
    """Return the environment that makes Mesos encrypt and verify (docs/ssl.md); nothing without TLS."""
    if settings["tls"] == "none":
        return {}
    return {
        "LIBPROCESS_SSL_ENABLED": "true",
        "LIBPROCESS_SSL_CERT_FILE": certificate,
        "LIBPROCESS_SSL_KEY_FILE": key,
        "LIBPROCESS_SSL_CA_FILE": authority,
        "LIBPROCESS_SSL_VERIFY_SERVER_CERT": "true",
        "LIBPROCESS_SSL_HOSTNAME_VALIDATION_SCHEME": "openssl",
        "LIBPROCESS_SSL_SUPPORT_DOWNGRADE": "false",
        "LIBPROCESS_SSL_ENABLE_TLS_V1_3": "true",
        # the default still has RC4 and CBC
        "LIBPROCESS_SSL_CIPHERS": "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
        "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
    }


def framework_tls(settings: Mapping[str, Any], folder: str) -> dict[str, str]:
    """Return the same for the libmesos of a framework, whose certificate and key are in a folder."""
    wanted = {"tls": "provided" if settings["mesos_tls_certificate"] else "none"}
    return tls(wanted, *(f"{folder}/libmesos.{what}" for what in ("pem", "key", "ca")))


def common_problems(program: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Tell what is wrong with the settings that both roles have."""
    prefix = f"mesos_{program}"
    if settings["source"] == "image":
        yield from image_problems(prefix, settings["image"])
    elif settings["source"] != "preinstalled":
        if not re.fullmatch(r"(https?|file)://\S+|/\S+", settings["url"]):
            yield (
                f"{prefix}_url is '{settings['url']}', which is no address; give the URL of the"
                f" {settings['source']} at your mirror."
            )
        if not re.fullmatch(r"sha(256|384|512):[0-9a-fA-F]{64,128}", settings["checksum"]):
            yield (
                f"{prefix}_checksum is no checksum such as sha256:...; take it from the publisher of the"
                f" {settings['source']}."
            )
    servers = settings["zookeeper"]
    if not servers:
        yield f"{prefix}_zookeeper is empty; give the servers of ZooKeeper, each as HOST:PORT."
    for server in servers:
        if not re.fullmatch(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}", server):
            yield f"{prefix}_zookeeper has '{server}'; give each server as HOST:PORT."
    for server in sorted({one for one in servers if servers.count(one) > 1}):
        yield f"{prefix}_zookeeper has {server} twice; name each server once."
    if not re.fullmatch(r"(/[A-Za-z0-9_.-]+)+", settings["zookeeper_path"]):
        yield f"{prefix}_zookeeper_path is '{settings['zookeeper_path']}', which is no path such as /mesos."
    if not 1 <= int(settings["port"]) <= 65535:
        yield f"{prefix}_port is {settings['port']}, and a port is a number from 1 to 65535."
    if not re.fullmatch(r"(/[\w.+@-]+)+", settings["work_directory"]):
        yield f"{prefix}_work_directory is '{settings['work_directory']}', which is no plain absolute path."
    if re.match(r"/(tmp|var/tmp|run|dev/shm)(/|$)", settings["work_directory"]):
        yield (
            f"{prefix}_work_directory is {settings['work_directory']}, which the system empties; choose"
            " a folder that stays."
        )
    if settings["tls"] == "provided":
        for what in ("certificate", "key", "ca"):
            path = settings[f"tls_{what}"]
            if not re.fullmatch(r"(/[\w.+@-]+)+", path):
                yield (
                    f"{prefix}_tls_{what} is '{path}'; give the path of the file on the machine, or set"
                    f" {prefix}_tls to none where nobody else reaches the network."
                )


def acl_problems(acls: Mapping[str, Any]) -> Iterator[str]:
    """Tell what is wrong with access rules, of which Mesos ignores the unknown."""
    for action, rules in acls.items():
        if action == "permissive":
            if not isinstance(rules, bool):
                yield f"mesos_master_acls.permissive is '{rules}', and has to be true or false."
            continue
        field = ACL_FIELDS.get(action)
        if field is None:
            near = get_close_matches(action, ACL_FIELDS, 1)
            hint = f"did you mean {near[0]}?" if near else "see the documentation, Authorization."
            yield f"mesos_master_acls has the action {action}, which Mesos would ignore; {hint}"
            continue
        if not isinstance(rules, list):
            yield f"mesos_master_acls.{action} is no list of rules."
            continue
        for rule in rules:
            if not isinstance(rule, Mapping) or set(rule) != {"principals", field}:
                yield f"A rule of mesos_master_acls.{action} needs principals and {field}, and nothing else."
            elif not all(_is_entity(rule[name]) for name in rule):
                yield (
                    f"A rule of mesos_master_acls.{action} has something other than {{values: [...]}},"
                    " {type: ANY} or {type: NONE}."
                )


def _is_entity(entity: Any) -> bool:
    if not isinstance(entity, Mapping) or len(entity) != 1:
        return False
    if "values" in entity:
        values: list[Any] = entity["values"]
        return isinstance(values, list) and bool(values) and all(isinstance(one, str) for one in values)
    return entity.get("type") in ("ANY", "NONE")

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
from difflib import get_close_matches
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple

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


def known(program: str, build: str) -> Dict[str, str]:
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
    where = "mesos_%s_flags" % program
    names = known(program, build)
    for name, value in options.items():
        if name in own:
            yield "%s has %s; set %s in its place." % (where, name, own[name])
        elif name in OLD_NAMES[program]:
            yield "%s has %s, whose name is %s now; use that." % (where, name, OLD_NAMES[program][name])
        elif name not in names:
            near = get_close_matches(name, names, 1)
            hint = "did you mean %s?" % near[0] if near else "see the configuration of Mesos."
            yield "%s has %s, which the %s of Mesos 1.11 does not know; %s" % (where, name, program, hint)
        else:
            problem = value_problem(names[name], value)
            if problem:
                yield "%s.%s %s." % (where, name, problem)


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
        return "is '%s', and has to be %s" % (text, FORMS[kind][0])
    if kind == "port" and not 0 < int(text) < 65536:
        return "is %s, and a port is a number from 1 to 65535" % text
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

    texts: Dict[str, str]
    files: Dict[str, str]
    secret_files: Dict[str, str]


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
            files["%s.json" % name] = json.dumps(value, indent=2, sort_keys=True) + "\n"
            value = _structured(folder, name)
        found.texts[name] = plain(value)
    return found


def unwanted(program: str, folder: str, found: Rendered, settings: Mapping[str, Any]) -> List[Dict[str, str]]:
    """Return what a role writes with other settings, as the module C(paths) removes it.

    Args:
        program: `master` or `agent`.
        folder: that of the configuration.
        found: what is written with these settings.
        settings: the role's variables without its name.
    """
    names = [name for name, kind in KNOWN[program].items() if kind == "json"]
    written = {**found.files, **found.secret_files}
    paths = [_structured(folder, name) for name in names if "%s.json" % name not in written]
    if settings["tls"] == "none":
        paths += ["%s/%s" % (folder, name) for name in ("tls.pem", "secrets/tls.key", "ca.pem")]
    return [{"path": path, "state": "absent"} for path in paths]


def _structured(folder: str, name: str) -> str:
    return "%s%s/%s.json" % (folder, "/secrets" if name in CONFIDENTIAL else "", name)


def environment(options: Mapping[str, str], libprocess: Mapping[str, str]) -> str:
    """Return an environment file, in which nothing needs quotes."""
    lines = {**{"MESOS_%s" % name.upper(): value for name, value in options.items()}, **libprocess}
    return "# Written by gpufarm.cluster; changes are lost.\n" + "".join(
        "%s=%s\n" % pair for pair in sorted(lines.items())
    )


def tls(settings: Mapping[str, Any], certificate: str, key: str, authority: str) -> Dict[str, str]:
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


def framework_tls(settings: Mapping[str, Any], folder: str) -> Dict[str, str]:
    """Return the same for the libmesos of a framework, whose certificate and key are in a folder."""
    wanted = {"tls": "provided" if settings["mesos_tls_certificate"] else "none"}
    return tls(wanted, *("%s/libmesos.%s" % (folder, what) for what in ("pem", "key", "ca")))


def common_problems(program: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Tell what is wrong with the settings that both roles have."""
    prefix = "mesos_%s" % program
    if settings["source"] == "image":
        yield from image_problems(prefix, settings["image"])
    elif settings["source"] != "preinstalled":
        if not re.fullmatch(r"(https?|file)://\S+|/\S+", settings["url"]):
            yield "%s_url is '%s', which is no address; give the URL of the %s at your mirror." % (
                prefix,
                settings["url"],
                settings["source"],
            )
        if not re.fullmatch(r"sha(256|384|512):[0-9a-fA-F]{64,128}", settings["checksum"]):
            yield "%s_checksum is no checksum such as sha256:...; take it from whoever made the %s." % (
                prefix,
                settings["source"],
            )
    servers = settings["zookeeper"]
    if not servers:
        yield "%s_zookeeper is empty; give the servers of ZooKeeper, each as HOST:PORT." % prefix
    for server in servers:
        if not re.fullmatch(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}", server):
            yield "%s_zookeeper has '%s'; give each server as HOST:PORT." % (prefix, server)
    for server in sorted({one for one in servers if servers.count(one) > 1}):
        yield "%s_zookeeper has %s twice; name each server once." % (prefix, server)
    if not re.fullmatch(r"(/[A-Za-z0-9_.-]+)+", settings["zookeeper_path"]):
        yield "%s_zookeeper_path is '%s', which is no path such as /mesos." % (
            prefix,
            settings["zookeeper_path"],
        )
    if not 1 <= int(settings["port"]) <= 65535:
        yield "%s_port is %s, and a port is a number from 1 to 65535." % (prefix, settings["port"])
    if not re.fullmatch(r"(/[\w.+@-]+)+", settings["work_directory"]):
        yield "%s_work_directory is '%s', which is no plain absolute path." % (
            prefix,
            settings["work_directory"],
        )
    if re.match(r"/(tmp|var/tmp|run|dev/shm)(/|$)", settings["work_directory"]):
        yield "%s_work_directory is %s, which the system empties; choose a folder that stays." % (
            prefix,
            settings["work_directory"],
        )
    if settings["tls"] == "provided":
        for what in ("certificate", "key", "ca"):
            path = settings["tls_%s" % what]
            if not re.fullmatch(r"(/[\w.+@-]+)+", path):
                yield (
                    "%s_tls_%s is '%s'; give the path of the file on the machine, or set %s_tls to none "
                    "where "
                    "nobody else reaches the network."
                ) % (prefix, what, path, prefix)


def acl_problems(acls: Mapping[str, Any]) -> Iterator[str]:
    """Tell what is wrong with access rules, of which Mesos ignores the unknown."""
    for action, rules in acls.items():
        if action == "permissive":
            if not isinstance(rules, bool):
                yield "mesos_master_acls.permissive is '%s', and has to be true or false." % rules
            continue
        field = ACL_FIELDS.get(action)
        if field is None:
            near = get_close_matches(action, ACL_FIELDS, 1)
            hint = "did you mean %s?" % near[0] if near else "see the documentation, Authorization."
            yield "mesos_master_acls has the action %s, which Mesos would ignore; %s" % (action, hint)
            continue
        if not isinstance(rules, list):
            yield "mesos_master_acls.%s is no list of rules." % action
            continue
        for rule in rules:
            if not isinstance(rule, Mapping) or set(rule) != {"principals", field}:
                yield "A rule of mesos_master_acls.%s needs principals and %s, and nothing else." % (
                    action,
                    field,
                )
            elif not all(_is_entity(rule[name]) for name in rule):
                yield (
                    "A rule of mesos_master_acls.%s has something other than {values: [...]}, {type: ANY} or "
                    "{type: NONE}."
                ) % action


def _is_entity(entity: Any) -> bool:
    if not isinstance(entity, Mapping) or len(entity) != 1:
        return False
    if "values" in entity:
        values: List[Any] = entity["values"]
        return isinstance(values, list) and bool(values) and all(isinstance(one, str) for one in values)
    return entity.get("type") in ("ANY", "NONE")

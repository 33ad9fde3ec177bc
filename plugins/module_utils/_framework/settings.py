# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the roles marathon and chronos check alike: where the program comes from, addresses, certificate,
logins. No I/O."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Mapping

from .flags import CREDENTIALS, PLAIN

HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
MASTER = re.compile(r"zk://([^@/\s]+@)?[^@/\s]+(/[\w.-]+)+|https?://[^@/\s]+/?")
# RFC 7617: a user's name has no colon.
USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def source_problems(role: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with where the program comes from."""
    if settings["source"] == "archive":
        if not re.match(r"(https?|file)://\S+$", settings["archive_url"]):
            yield (
                "%s_archive_url is '%s'; give the address of the archive on a mirror of yours, as its makers"
                " serve none any more." % (role, settings["archive_url"])
            )
        if not re.fullmatch(r"sha256:[0-9a-f]{64}", settings["archive_checksum"]):
            yield "%s_archive_checksum is '%s'; give sha256: and 64 hexadecimal digits." % (
                role,
                settings["archive_checksum"],
            )
        if not re.fullmatch(r"[0-9][0-9A-Za-z._-]*", settings["version"]):
            yield "%s_version is '%s'; give the version of the archive." % (role, settings["version"])
    else:
        yield from image_problems(role, settings["image"])


def image_problems(role: str, image: str) -> Iterator[str]:
    """Yield what is wrong with the name of a container image."""
    if not re.fullmatch(r"[A-Za-z0-9./:_-]+(@sha256:[0-9a-f]{64})?", image):
        yield (
            "%s_image is '%s'; give a name with @sha256: and its digest, or the name of an image that is on"
            " the machine." % (role, image)
        )


def address_problems(role: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with names, ports and the address of the masters."""
    if not MASTER.fullmatch(settings["mesos_master"]):
        yield "%s_mesos_master is '%s'; give the address of the masters, such as %s." % (
            role,
            CREDENTIALS.sub("//...@", settings["mesos_master"]),
            "zk://zk1:2181,zk2:2181,zk3:2181/mesos",
        )
    if not HOST.fullmatch(settings["host"]) or settings["host"].startswith("localhost"):
        yield (
            "The machine's name is '%s', by which the others cannot reach it; set %s_hostname."
            % (settings["host"], role)
        )
    if not 1 <= int(settings["port"]) <= 65535:
        yield "%s_port is %s; give a port from 1 to 65535." % (role, settings["port"])
    if settings["listen_address"] and not re.fullmatch(r"[0-9A-Fa-f.:]+", settings["listen_address"]):
        yield "%s_listen_address is '%s'; give an IP address of the machine." % (
            role,
            settings["listen_address"],
        )


def ensembles(settings: Mapping[str, Any]) -> List[List[str]]:
    """Return the servers of the ZooKeepers that masters and the framework's own state are in."""
    found: List[List[str]] = []
    for address in (settings["mesos_master"], settings["zookeeper"]):
        servers = re.sub("^zk://([^@/]*@)?", "", address).partition("/")[0].split(",")
        if not address.startswith("http") and servers not in found:
            found.append(servers)
    return found


def duplicate_problems(role: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield servers of ZooKeeper that are named twice."""
    for servers in ensembles(settings):
        for server in sorted({one for one in servers if servers.count(one) > 1}):
            yield "The addresses for %s have the ZooKeeper %s twice; name each server once." % (role, server)


def certificate_problems(role: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the certificate, and with who may log in."""
    files = [bool(settings[name]) for name in ("certificate_file", "certificate_key_file")]
    if settings["certificate_type"] == "provided" and not all(files) and settings["tls"]:
        yield (
            "%s_certificate_type is provided; give %s_certificate_file and %s_certificate_key_file as well."
            % (role, role, role)
        )
    if settings["certificate_type"] != "provided" and any(files):
        yield "%s_certificate_file is set and is not used; set %s_certificate_type to provided." % (
            role,
            role,
        )
    if not settings["tls"] and settings["listen_address"] not in ("127.0.0.1", "::1"):
        yield (
            "%s_tls is off, and passwords would go over the network as they are; leave it on, or set"
            " %s_listen_address to 127.0.0.1." % (role, role)
        )
    if not USER.fullmatch(settings["http_user"]):
        yield "%s_http_user is '%s'; give a name of letters, digits, '_', '.' and '-'." % (
            role,
            settings["http_user"],
        )
    password = settings["http_password"]
    if password and (not PLAIN.fullmatch(password) or len(password) < 12 or " " in password):
        yield (
            "%s_http_password is too short, or has blanks, quotes or backslashes; give 12 characters or more."
            % role
        )


def mesos_login_problems(role: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with how the framework logs in to the masters."""
    if bool(settings["mesos_principal"]) != bool(settings["mesos_secret"]):
        yield "%s_mesos_principal and %s_mesos_secret belong together; give both or neither." % (role, role)
    if settings["mesos_principal"] and not re.fullmatch(r"[\w.@-]+", settings["mesos_principal"]):
        yield "%s_mesos_principal is '%s'; give a name without blanks." % (role, settings["mesos_principal"])
    # apache/mesos, docs/roles.md, "Role names"
    if not re.fullmatch(r"\*|[^\s/.*-][^\s/*]*", settings["mesos_role"]):
        yield "%s_mesos_role is '%s'; give * or a name without blanks, '/' and '*'." % (
            role,
            settings["mesos_role"],
        )


def mesos_tls_problems(role: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with what the framework's libmesos encrypts with."""
    paths = [settings["mesos_tls_%s" % what] for what in ("certificate", "key", "ca")]
    if any(paths) and not all(paths):
        yield (
            "%s_mesos_tls_certificate, %s_mesos_tls_key and %s_mesos_tls_ca belong together; give all or"
            " none." % (role, role, role)
        )
    for path in paths:
        if path and not re.fullmatch(r"(/[\w.+@-]+)+", path):
            yield "%s_mesos_tls has '%s'; give the path of a file on the machine." % (role, path)


def environment_problems(role: str, environment: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with variables of the environment."""
    for name, value in environment.items():
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", str(name)):
            yield "%s_environment has '%s', which is no name of a variable." % (role, name)
        elif str(name).startswith(
            ("MARATHON_", "CHRONOS_", "MESOSPHERE_", "JAVA_OPTS", "JVM_OPTS", "JAVA_HOME")
        ):
            yield "%s_environment sets %s, which the role sets; use %s_flags or the variable for it." % (
                role,
                name,
                role,
            )
        elif not PLAIN.fullmatch(str(value)):
            yield "%s_environment sets %s to %r; give a text without quotes and backslashes." % (
                role,
                name,
                value,
            )


def jvm_problems(role: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with how Java is started."""
    if not PLAIN.fullmatch(settings["jvm_options"]):
        yield "%s_jvm_options is %r; give options such as -Xmx512m, without quotes and backslashes." % (
            role,
            settings["jvm_options"],
        )
    for name in ("java_home", "libmesos"):
        if settings[name] and not re.fullmatch(r"(/[A-Za-z0-9_@%+=,.-]+)+", settings[name]):
            yield "%s_%s is '%s'; give an absolute path." % (role, name, settings[name])


def unwanted(folder: str, settings: Mapping[str, Any]) -> List[Dict[str, str]]:
    """Return what a role writes with other settings, as the module C(paths) removes it.

    Args:
        folder: that of the configuration.
        settings: the role's variables without its name.
    """
    names = []
    if not settings["tls"]:
        names += [
            "secrets/%s" % name for name in ("cert.pem", "key.pem", "keystore_password", "keystore.p12")
        ]
    if not settings["tls"] or (
        settings["certificate_type"] == "provided" and not settings["certificate_ca_file"]
    ):
        names.append("ca.pem")
    if not settings["mesos_principal"]:
        names.append("secrets/mesos_secret")
    if not settings["mesos_tls_certificate"]:
        names += ["secrets/libmesos.%s" % what for what in ("pem", "key", "ca")]
    return [{"path": "%s/%s" % (folder, name), "state": "absent"} for name in names]


def lines(variables: Mapping[str, Any]) -> str:
    """Return a file of variables as systemd and Docker read it alike."""
    return "".join("%s=%s\n" % (name, value) for name, value in sorted(variables.items()))

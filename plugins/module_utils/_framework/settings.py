# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that the roles marathon and chronos share: source of the program, addresses, certificate,
logins. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

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
                f"{role}_archive_url is '{settings['archive_url']}'; give the address of the archive on a"
                " mirror of yours, as its makers serve none any more."
            )
        if not re.fullmatch(r"sha256:[0-9a-f]{64}", settings["archive_checksum"]):
            yield (
                f"{role}_archive_checksum is '{settings['archive_checksum']}'; give sha256: and 64"
                " hexadecimal digits."
            )
        if not re.fullmatch(r"[0-9][0-9A-Za-z._-]*", settings["version"]):
            yield f"{role}_version is '{settings['version']}'; give the version of the archive."
    else:
        yield from image_problems(role, settings["image"])


def image_problems(role: str, image: str) -> Iterator[str]:
    """Yield what is wrong with the name of a container image."""
    if not re.fullmatch(r"[A-Za-z0-9./:_-]+(@sha256:[0-9a-f]{64})?", image):
        yield (
            f"{role}_image is '{image}'; give a name with @sha256: and its digest, or the name of an image"
            " that is on the machine."
        )


def address_problems(role: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with names, ports and the address of the masters."""
    if not MASTER.fullmatch(settings["mesos_master"]):
        yield (
            f"{role}_mesos_master is '{CREDENTIALS.sub('//...@', settings['mesos_master'])}'; give the"
            " address of the masters, such as zk://zk1:2181,zk2:2181,zk3:2181/mesos."
        )
    if not HOST.fullmatch(settings["host"]) or settings["host"].startswith("localhost"):
        yield (
            f"The machine's name is '{settings['host']}', by which the others cannot reach it; set"
            f" {role}_hostname."
        )
    if not 1 <= int(settings["port"]) <= 65535:
        yield f"{role}_port is {settings['port']}; give a port from 1 to 65535."
    if settings["listen_address"] and not re.fullmatch(r"[0-9A-Fa-f.:]+", settings["listen_address"]):
        yield f"{role}_listen_address is '{settings['listen_address']}'; give an IP address of the machine."


def ensembles(settings: Mapping[str, Any]) -> list[list[str]]:
    """Return the servers of the ZooKeepers that masters and the framework's own state are in."""
    found: list[list[str]] = []
    for address in (settings["mesos_master"], settings["zookeeper"]):
        servers = re.sub("^zk://([^@/]*@)?", "", address).partition("/")[0].split(",")
        if not address.startswith("http") and servers not in found:
            found.append(servers)
    return found


def duplicate_problems(role: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield servers of ZooKeeper that are named twice."""
    for servers in ensembles(settings):
        for server in sorted({one for one in servers if servers.count(one) > 1}):
            yield f"The addresses for {role} have the ZooKeeper {server} twice; name each server once."


def certificate_problems(role: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield problems of the certificate and of the logins."""
    files = [bool(settings[name]) for name in ("certificate_file", "certificate_key_file")]
    if settings["certificate_type"] == "provided" and not all(files) and settings["tls"]:
        yield (
            f"{role}_certificate_type is provided; give {role}_certificate_file and"
            f" {role}_certificate_key_file as well."
        )
    if settings["certificate_type"] != "provided" and any(files):
        yield f"{role}_certificate_file is set and is not used; set {role}_certificate_type to provided."
    if not settings["tls"] and settings["listen_address"] not in ("127.0.0.1", "::1"):
        yield (
            f"{role}_tls is off, and passwords would go over the network as they are; leave it on, or set"
            f" {role}_listen_address to 127.0.0.1."
        )
    if not USER.fullmatch(settings["http_user"]):
        yield (
            f"{role}_http_user is '{settings['http_user']}'; give a name of letters, digits, '_', '.'"
            " and '-'."
        )
    password = settings["http_password"]
    if password and (not PLAIN.fullmatch(password) or len(password) < 12 or " " in password):
        yield (
            f"{role}_http_password is too short, or has blanks, quotes or backslashes; give 12 characters or"
            " more."
        )


def mesos_login_problems(role: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with how the framework logs in to the masters."""
    if bool(settings["mesos_principal"]) != bool(settings["mesos_secret"]):
        yield f"{role}_mesos_principal and {role}_mesos_secret belong together; give both or neither."
    if settings["mesos_principal"] and not re.fullmatch(r"[\w.@-]+", settings["mesos_principal"]):
        yield f"{role}_mesos_principal is '{settings['mesos_principal']}'; give a name without blanks."
    # apache/mesos, docs/roles.md, "Role names"
    if not re.fullmatch(r"\*|[^\s/.*-][^\s/*]*", settings["mesos_role"]):
        yield (
            f"{role}_mesos_role is '{settings['mesos_role']}'; give * or a name without blanks, '/' and '*'."
        )


def mesos_tls_problems(role: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with what the framework's libmesos encrypts with."""
    paths = [settings[f"mesos_tls_{what}"] for what in ("certificate", "key", "ca")]
    if any(paths) and not all(paths):
        yield (
            f"{role}_mesos_tls_certificate, {role}_mesos_tls_key and {role}_mesos_tls_ca belong together;"
            " give all or none."
        )
    for path in paths:
        if path and not re.fullmatch(r"(/[\w.+@-]+)+", path):
            yield f"{role}_mesos_tls has '{path}'; give the path of a file on the machine."


def environment_problems(role: str, environment: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with variables of the environment."""
    for name, value in environment.items():
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", str(name)):
            yield f"{role}_environment has '{name}', which is no name of a variable."
        elif str(name).startswith(
            ("MARATHON_", "CHRONOS_", "MESOSPHERE_", "JAVA_OPTS", "JVM_OPTS", "JAVA_HOME")
        ):
            yield (
                f"{role}_environment sets {name}, which the role sets; use {role}_flags or the variable"
                " for it."
            )
        elif not PLAIN.fullmatch(str(value)):
            yield f"{role}_environment sets {name} to {value!r}; give a text without quotes and backslashes."


def jvm_problems(role: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with how Java is started."""
    if not PLAIN.fullmatch(settings["jvm_options"]):
        yield (
            f"{role}_jvm_options is {settings['jvm_options']!r}; give options such as -Xmx512m, without"
            " quotes and backslashes."
        )
    for name in ("java_home", "libmesos"):
        if settings[name] and not re.fullmatch(r"(/[A-Za-z0-9_@%+=,.-]+)+", settings[name]):
            yield f"{role}_{name} is '{settings[name]}'; give an absolute path."


def unwanted(folder: str, settings: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what a role writes with other settings, as the module C(paths) removes it.

    Args:
        folder: that of the configuration.
        settings: the role's variables without its name.
    """
    names = []
    if not settings["tls"]:
        names += [f"secrets/{name}" for name in ("cert.pem", "key.pem", "keystore_password", "keystore.p12")]
    if not settings["tls"] or (
        settings["certificate_type"] == "provided" and not settings["certificate_ca_file"]
    ):
        names.append("ca.pem")
    if not settings["mesos_principal"]:
        names.append("secrets/mesos_secret")
    if not settings["mesos_tls_certificate"]:
        names += [f"secrets/libmesos.{what}" for what in ("pem", "key", "ca")]
    return [{"path": f"{folder}/{name}", "state": "absent"} for name in names]


def lines(variables: Mapping[str, Any]) -> str:
    """Return a file of variables as systemd and Docker read it alike."""
    return "".join(f"{name}={value}\n" for name, value in sorted(variables.items()))

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the role sssd: what is wrong with them, and the configuration that they result in. No I/O.

Source: sssd.conf(5), sssd-ldap(5), sssd-simple(5) of SSSD 2.8 and 2.10.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .entries import FIRST_NUMBER, escaped

AUTHORITY = "/etc/sssd/gpufarm-ca.pem"
# The first line of the configuration, by which the role knows its own.
MARK = "# Written by the role gpufarm.cluster.sssd; a run replaces changes."
# Groups that give rights on machines: a group of the directory with such a name would give its members these
# rights (sudoers(5) compares names), also where a package makes the local group later.
POWERFUL = frozenset(
    {
        *(
            "adm",
            "admin",
            "disk",
            "docker",
            "incus",
            "incus-admin",
            "kmem",
            "kvm",
            "libvirt",
            "lxd",
            "netdev",
        ),
        *("podman", "render", "root", "shadow", "staff", "sudo", "systemd-journal", "tty", "video", "wheel"),
    }
)
# A scheme, a host or an address, a port.
_SERVER = re.compile(r"ldaps?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?")
# RFC 4514, without what ends a base in sssd-ldap(5), which is `base?scope?filter`.
_PART = r"[A-Za-z0-9.-]+=([^?,\\]|\\[^?])+"
_NAME = re.compile(rf"{_PART}(, *{_PART})*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def plan(settings: Mapping[str, Any], groups: Iterable[str] | None = None) -> dict[str, Any]:
    """Return what the settings result in on a machine.

    Args:
        settings: the variables of the role without its name.
        groups: names of the machine's own groups; None to check the settings alone.

    Returns:
        `problems`, each a sentence; `mark`, the line by which the role knows its own ``sssd.conf``, and
        `authority`, the path of the authority's certificate on the machine. If there are no problems, also
        `configuration`, the text of ``sssd.conf``, which has the password of the bind account.
    """
    passed_over = {*POWERFUL, *(groups or ())}
    problems = [*_wrong(settings), *_lost(settings["login_groups"], passed_over)]
    planned = {"problems": problems, "mark": MARK, "authority": AUTHORITY}
    if problems:
        return planned
    authority = AUTHORITY if settings["ca_file"] else ""
    return {**planned, "configuration": _configuration(settings, authority, passed_over)}


def _wrong(settings: Mapping[str, Any]) -> Iterator[str]:
    if not settings["servers"]:
        yield "sssd_servers is empty; give the servers of the directory, such as [ldaps://ldap.example.org]."
    for server in settings["servers"]:
        if not _SERVER.fullmatch(server):
            yield (
                f"sssd_servers has {server!r}; give each server as ldaps://ldap.example.org, or as "
                "ldap://ldap.example.org to begin with StartTLS."
            )
    for name in ("user_base", "group_base", "bind_dn"):
        value = settings[name]
        if not value and name == "bind_dn":
            continue
        if not _NAME.fullmatch(value) or _CONTROL.search(value):
            yield (
                f"sssd_{name} is {value!r}, which is no distinguished name; give one such as "
                "ou=people,dc=example,dc=org."
            )
    if bool(settings["bind_dn"]) != bool(settings["bind_password"]):
        yield (
            "Only one of sssd_bind_dn and sssd_bind_password is given; give both, or none to ask the "
            "directory without logging in."
        )
    password = settings["bind_password"]
    if _CONTROL.search(password) or password != password.strip():
        yield (
            "sssd_bind_password begins or ends with a blank or has a control character, which SSSD does not "
            "read; change the password."
        )
    for group in settings["login_groups"]:
        if not group.strip() or "," in group or group != group.strip() or _CONTROL.search(group):
            yield f"sssd_login_groups has {group!r}; give each group as an entry of its own, without commas."
    home = settings["home_folder"]
    if home and not re.fullmatch(r"(/[A-Za-z0-9_.-]+)+", home):
        yield f"sssd_home_folder is {home!r}, which is no plain absolute path; give one such as /home."


def _lost(login_groups: Iterable[str], passed_over: Iterable[str]) -> Iterator[str]:
    """Yield groups for logins that the filter of groups leaves out; it compares without case (RFC 4519)."""
    names = {name.lower() for name in passed_over}
    for group in login_groups:
        if group.lower() in names:
            yield (
                f"sssd_login_groups has {group!r}, a name for groups of the machine, so the directory's "
                "group is passed over; give its members a group with another name."
            )


def _configuration(settings: Mapping[str, Any], authority: str, names: Iterable[str]) -> str:
    """Return the text of ``sssd.conf``; its sockets start the responders, so it names no services."""
    refused = "".join(f"(cn={escaped(name)})" for name in sorted(names))
    users = f"(uidNumber>={FIRST_NUMBER})"
    groups = f"(&(gidNumber>={FIRST_NUMBER})(!(|{refused})))"
    domain = {
        "id_provider": "ldap",
        "auth_provider": "ldap",
        "chpass_provider": "none",
        "sudo_provider": "none",
        "autofs_provider": "none",
        **_access(settings["login_groups"]),
        "ldap_uri": ", ".join(settings["servers"]),
        "ldap_id_use_start_tls": "true",
        "ldap_tls_reqcert": "demand",
        "ldap_tls_cacert": authority,
        "ldap_schema": settings["schema"],
        "ldap_user_search_base": f"{settings['user_base']}?subtree?{users}",
        "ldap_group_search_base": f"{settings['group_base']}?subtree?{groups}",
        "ldap_default_bind_dn": settings["bind_dn"],
        "ldap_default_authtok": settings["bind_password"],
        "min_id": str(FIRST_NUMBER),
        "default_shell": "/bin/bash",
        "override_homedir": f"{settings['home_folder']}/%u" if settings["home_folder"] else "",
    }
    sections = {"sssd": {"domains": "directory"}, "nss": {}, "pam": {}, "domain/directory": domain}
    lines = [MARK]
    for section, options in sections.items():
        lines += ["", f"[{section}]", *(f"{name} = {value}" for name, value in options.items() if value)]
        # On an error the log would get all that was found before, the password among it.
        lines.append("debug_backtrace_enabled = false")
    return "\n".join([*lines, ""])


def _access(groups: Iterable[str]) -> dict[str, str]:
    """Return who may log in; an empty list of `simple` would allow everybody (sssd-simple(5))."""
    names = ", ".join(groups)
    return (
        {"access_provider": "simple", "simple_allow_groups": names} if names else {"access_provider": "deny"}
    )

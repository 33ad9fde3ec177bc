# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of users to the cluster: a container with SSH, or a notebook. No I/O.

Checked, compared with the user's quota and with what is free, and written as an app of Marathon.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ._ssh.keys import KeyProblem, parse_keys

KINDS = ("ssh", "notebook")
# Marathon, "Application Groups"; the owner is a name of an account and of a role of Mesos as well.
OWNER = re.compile(r"[a-z][a-z0-9-]{0,30}[a-z0-9]|[a-z]")
# Accounts that machines have for themselves: those of Debian's base-passwd, systemd, and services of agents.
SYSTEM = re.compile(
    r"backup|bin|chronos|cvmfs|daemon|games|irc|list|lp|mail|man|marathon|mesos|messagebus|munge|news|nobody"
    r"|polkitd|prometheus|proxy|slurm|sshd|sssd|sync|sys|systemd-.*|uucp|www-data|zookeeper"
)
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?")
# distribution/reference (github.com/distribution/reference, regexp.go), without names in capitals.
IMAGE = re.compile(
    r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(@sha256:[0-9a-f]{64})?"
)
# PEP 508: names, extras and versions; no addresses and no options of pip.
LIBRARY = re.compile(
    r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(\[[A-Za-z0-9._,-]+\])?((==|>=|<=|~=|!=|<|>)[A-Za-z0-9.*+!-]+)?"
)
PATH = re.compile(r"(/[A-Za-z0-9._-]+)+")
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9a-fA-F:]+")
# TOSCA Simple Profile 1.3, section 3.3.6.4: units of scalar-unit.size.
BYTES = {"MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30, "TB": 10**12, "TiB": 2**40}
# The types of the TOSCA library have it too.
SIZE_PATTERN = f"[0-9]+([.][0-9]+)? *({'|'.join(BYTES)})"
SHORTEST_PASSWORD = 12  # characters; users who may read apps can read its hash
WORDS = {"cpus": "CPUs", "mem": "MiB of memory", "disk": "MiB of disk", "gpus": "GPUs"}
HOST_KEY = "GPUFARM_HOST_KEY"  # variable of the app's environment
# Both run as the owner, without rights of root, and end when what they run ends.
# PEP 668: the Python of a distribution takes packages only when told so; in a home they break nothing.
_PIP = (
    "PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --user --no-input --quiet --disable-pip-version-check"
    " -- {} || exit 1\n"
)
# A session does not get the image's variables by itself, and would find no libraries of GPUs.
_SSH = """\
umask 077
command -v sshd >/dev/null || { echo "The image needs openssh-server." >&2; exit 1; }
keys=$(mktemp -d) || exit 1
printf '%s\\n' "$GPUFARM_HOST_KEY" >"$keys/host_key" || exit 1
printf '%s\\n' "$GPUFARM_SSH_KEYS" >"$keys/authorized_keys" || exit 1
unset GPUFARM_HOST_KEY
exec "$(command -v sshd)" -D -e -f /dev/null -p "$PORT0" -h "$keys/host_key" -o PidFile=none -o UsePAM=no \\
-o PasswordAuthentication=no -o KbdInteractiveAuthentication=no -o StrictModes=no \\
-o "AuthorizedKeysFile=$keys/authorized_keys" \\
-o "SetEnv=PATH=\\"$PATH\\" LD_LIBRARY_PATH=\\"${LD_LIBRARY_PATH-}\\""
"""
_NOTEBOOK = """\
umask 077
command -v jupyter >/dev/null || { echo "The image needs jupyterlab." >&2; exit 1; }
settings=$(mktemp -d) || exit 1
cat >"$settings/jupyter_server_config.py" <<'END'
import os

c = get_config()
c.PasswordIdentityProvider.hashed_password = os.environ.pop("GPUFARM_PASSWORD_HASH")
c.PasswordIdentityProvider.password_required = True
c.IdentityProvider.token = ""
c.ServerApp.base_url = os.environ["GPUFARM_PATH"] + "/"
c.ServerApp.ip = "0.0.0.0"
c.ServerApp.port = int(os.environ["PORT0"])
c.ServerApp.port_retries = 0
c.ServerApp.open_browser = False
c.ServerApp.trust_xheaders = True
c.ServerApp.root_dir = os.environ["HOME"]
END
cd "$HOME" && exec jupyter lab --config="$settings/jupyter_server_config.py"
"""


def mebibytes(size: str) -> int:
    """Return a size with its unit, such as ``4 GB``, in MiB, as Mesos counts.

    Raises:
        ValueError: it has no such form.
    """
    match = re.fullmatch(SIZE_PATTERN, size.strip())
    if not match:
        raise ValueError(size)
    unit = match[2]
    return -(-int(float(match[0].removesuffix(unit)) * BYTES[unit]) // 2**20)


def problems(request: Mapping[str, Any]) -> list[str]:
    """Return everything that is wrong with a request, one sentence each.

    Args:
        request: the variables of the role without ``container_request_``.
    """
    return [*_names(request), *_amounts(request), *_access(request)]


def _names(request: Mapping[str, Any]) -> Iterator[str]:
    if request["kind"] not in KINDS:
        yield f"container_request_kind is {request['kind']!r}; choose ssh or notebook."
    if request["owner"] == "root":
        yield "container_request_owner is root, and containers never run as root; name the user's account."
    elif not OWNER.fullmatch(request["owner"]):
        yield f"container_request_owner is {request['owner']!r}, no account; use small letters and digits."
    elif SYSTEM.fullmatch(request["owner"]):
        yield (
            f"container_request_owner is {request['owner']}, an account of the system; name the user's"
            " account."
        )
    if not NAME.fullmatch(request["name"]):
        yield f"container_request_name is {request['name']!r}; use small letters, digits and dashes."
    if not IMAGE.fullmatch(request["image"]):
        yield f"container_request_image is {request['image']!r}; name an image, such as example.org/lab:1.2."
    for library in request["libraries"]:
        if not LIBRARY.fullmatch(library):
            yield f"container_request_libraries has {library!r}; name Python packages, such as torch==2.5.1."
    if not PATH.fullmatch(request["home_root"]) or ".." in request["home_root"].split("/"):
        yield f"container_request_home_root is {request['home_root']!r}; give a folder, such as /home."
    if not HOST.fullmatch(request["gateway"]):
        yield "container_request_gateway is no name of a machine; name the gateway that leads to apps."


def _amounts(request: Mapping[str, Any]) -> Iterator[str]:
    if not 0.1 <= request["cpus"] <= 1024:
        yield f"container_request_cpus is {request['cpus']}; ask for 0.1 to 1024."
    if not 0 <= request["gpus"] <= 64:
        yield f"container_request_gpus is {request['gpus']}; ask for 0 to 64 whole GPUs."
    for name, least in (("memory", 128), ("disk", 0)):
        try:
            if mebibytes(request[name]) < least:
                yield f"container_request_{name} is {request[name]}; ask for {least} MiB at least."
        except ValueError:
            yield f"container_request_{name} is {request[name]!r}; give a number with its unit, such as 4 GB."


def _access(request: Mapping[str, Any]) -> Iterator[str]:
    if request["kind"] == "ssh":
        # A server that does not run as root cannot read the passwords of the machine (sshd, auth-passwd.c).
        if request["password"]:
            yield "container_request_password is set, but SSH takes keys only; give a key, or take notebook."
        if not request["ssh_keys"].strip():
            yield "container_request_ssh_keys is empty; give a public key, as SSH takes no passwords here."
        try:
            parse_keys(request["ssh_keys"])
        except KeyProblem as error:
            yield f"A key of container_request_ssh_keys {error}."
    elif len(request["password"]) < SHORTEST_PASSWORD:
        yield f"container_request_password is missing or short; give {SHORTEST_PASSWORD} characters or more."


def wanted(request: Mapping[str, Any]) -> dict[str, float]:
    """Return what a request takes of the cluster, by resource as Mesos names them."""
    return {
        "cpus": request["cpus"],
        "mem": mebibytes(request["memory"]),
        "disk": mebibytes(request["disk"]),
        "gpus": request["gpus"],
    }


def shortages(
    request: Mapping[str, Any],
    cluster: Mapping[str, Any],
    held: Mapping[str, float],
) -> list[str]:
    """Tell why a request could not start, one sentence for each resource; nothing if it can.

    Args:
        request: the variables of the role without ``container_request_``.
        cluster: what the module ``mesos_info`` returns; its quotas and agents are looked at.
        held: what the app of an earlier request of this name has already, by resource.
    """
    amounts = {name: amount for name, amount in wanted(request).items() if amount > 0}
    found = list(_over_quota(request["owner"], amounts, cluster["quotas"], held))
    return found or list(_not_free(amounts, cluster["agents"], held))


def _over_quota(
    owner: str, amounts: Mapping[str, float], quotas: Sequence[Mapping[str, Any]], held: Mapping[str, float]
) -> Iterator[str]:
    quota = next((one for one in quotas if one["role"] == owner), {})
    for name, amount in amounts.items():
        limit = quota.get("limits", {}).get(name)
        used = max(quota.get("consumed", {}).get(name, 0) - held.get(name, 0), 0)
        if limit is not None and used + amount > limit + 1e-6:
            yield (
                f"The quota of {owner} is {limit:g} {WORDS[name]}, {used:g} are in use, and {amount:g} are "
                "asked for; ask for less, end something, or have the quota raised."
            )


def _not_free(
    amounts: Mapping[str, float], agents: Sequence[Mapping[str, Any]], held: Mapping[str, float]
) -> Iterator[str]:
    """A container runs on one machine, so what is free on several does not add up.

    Marathon frees the resources of the earlier container before it starts the new one, and picks the machine.
    So an update is refused only if no machine could ever run it.
    """
    active = [agent for agent in agents if agent["state"] == "active"]
    rooms = [
        {
            name: agent["resources"].get(name, 0) - (0 if held else agent["allocated"].get(name, 0))
            for name in amounts
        }
        for agent in active
    ]
    if any(all(room[name] + 1e-6 >= amount for name, amount in amounts.items()) for room in rooms):
        return
    short = False
    for name, amount in amounts.items():
        best = max((room[name] for room in rooms), default=0)
        if best + 1e-6 < amount:
            short = True
            what = f"{amount:g} {WORDS[name]} free"
            yield f"No machine of the cluster has {what}; the most is {best:g}. Ask for less, or later."
    if not short:
        asked = " and ".join(f"{amount:g} {WORDS[name]}" for name, amount in amounts.items())
        yield f"No machine of the cluster has {asked} free at the same time. Ask for less, or later."


def app_id(request: Mapping[str, Any]) -> str:
    """Return the id of the request's app: the owner is its group, and so its role with Mesos."""
    return f"/{request['owner']}/{request['name']}"


def app(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the app of a valid request, in Marathon's words and without secrets.

    Args:
        request: the variables of the role without ``container_request_``.
    """
    owner, path = request["owner"], app_id(request)
    notebook = request["kind"] == "notebook"
    home = f"{request['home_root']}/{owner}"
    pip = _PIP.format(" ".join(f"'{one}'" for one in request["libraries"])) if request["libraries"] else ""
    labels = {"HAPROXY_GROUP": "external", "created_by": owner}
    labels |= {"HAPROXY_0_PATH": path} if notebook else {"HAPROXY_0_MODE": "tcp"}
    check = {"protocol": "MESOS_HTTP", "path": f"{path}/api"} if notebook else {"protocol": "MESOS_TCP"}
    env = {"HOME": home, "USER": owner, "GPUFARM_NAME": request["name"], "GPUFARM_PATH": path}
    if not notebook:
        env["GPUFARM_SSH_KEYS"] = request["ssh_keys"].strip()
    amounts = wanted(request)
    return {
        "id": path,
        "cmd": f'export PATH="$HOME/.local/bin:$PATH:/usr/sbin"\n{pip}{_NOTEBOOK if notebook else _SSH}',
        # Never root: the home is the real one, and files there get the rights of the container's user.
        "user": owner,
        "cpus": float(amounts["cpus"]),
        "mem": int(amounts["mem"]),
        "disk": int(amounts["disk"]),
        "gpus": int(amounts["gpus"]),
        "instances": 1,
        "container": {
            "type": "MESOS",
            "docker": {"image": request["image"]},
            "volumes": [
                {"hostPath": home, "containerPath": home, "mode": "RW"},
                # The image does not know the account.
                {"hostPath": "/etc/passwd", "containerPath": "/etc/passwd", "mode": "RO"},
                {"hostPath": "/etc/group", "containerPath": "/etc/group", "mode": "RO"},
            ],
        },
        "networks": [{"mode": "host"}],
        "portDefinitions": [{"port": 0, "name": "notebook" if notebook else "ssh", "protocol": "tcp"}],
        "env": env,
        "labels": labels,
        "healthChecks": [
            {
                **check,
                "portIndex": 0,
                "gracePeriodSeconds": 600,
                "intervalSeconds": 10,
                "maxConsecutiveFailures": 6,
            }
        ],
        # One GPU cannot be held twice, so the old container goes before the new one comes.
        "upgradeStrategy": {"minimumHealthCapacity": 0, "maximumOverCapacity": 0},
        # When its machine is lost, it starts on another one after a minute.
        "unreachableStrategy": {"inactiveAfterSeconds": 60, "expungeAfterSeconds": 120},
    }


def held_by(apps: Sequence[Mapping[str, Any]], path: str) -> dict[str, float]:
    """Return what an app holds by now, by resource; nothing if there is none.

    Args:
        apps: as the module ``marathon_info`` returns them.
        path: id of the app.
    """
    found = next((one for one in apps if one["id"] == path), None)
    return (
        {} if found is None else {name: (found.get(name) or 0) * found.get("instances", 1) for name in WORDS}
    )


def password_hash(password: str, path: str) -> str:
    """Return a password in the form that Jupyter keeps (jupyter_server/auth/security.py, ``passwd_check``).

    Args:
        password: as the user types it.
        path: id of the app. The salt comes of it, so that the same request repeated is the same app.
    """
    salt = hashlib.sha256(path.encode()).hexdigest()[:32]
    return f"sha512:{salt}:{hashlib.sha512((password + salt).encode()).hexdigest()}"


def plan(
    request: Mapping[str, Any],
    cluster: Mapping[str, Any] | None = None,
    apps: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return what becomes of a request.

    Args:
        request: the variables of the role without ``container_request_``.
        cluster: what the module ``mesos_info`` returns; empty before it was asked.
        apps: those of ``marathon_info``.

    Returns:
        ``problems`` of the request itself, and without any ``shortages``, ``app`` and ``secret_env``.
    """
    wrong = problems(request)
    if wrong:
        return {"problems": wrong, "shortages": [], "app": {}, "secret_env": {}}
    path = app_id(request)
    notebook = request["kind"] == "notebook"
    return {
        "problems": [],
        "shortages": shortages(request, cluster, held_by(apps, path)) if cluster else [],
        "app": app(request),
        "secret_env": {"GPUFARM_PASSWORD_HASH": password_hash(request["password"], path)} if notebook else {},
    }

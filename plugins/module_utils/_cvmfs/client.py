# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files, units, mounts and problems that result from the settings of a CernVM-FS client. No I/O.

Sources: CernVM-FS documentation, "Client Configuration" (cpt-configure) and "Quick Start"; systemd.mount(5),
systemd.automount(5), systemd.unit(5), "String Escaping for Inclusion in Unit Names".
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .._mounts.table import unit_name
from . import servers
from .parameters import ParameterError, is_repository, proxies_problem, read_value

ROOT = "/cvmfs"
CONFIGURATION = "/etc/cvmfs"
KEYS = "keys/gpufarm"  # below CONFIGURATION; all in it is the role's
MARK = "# Written by gpufarm.cluster.cvmfs_client; changes are lost."
# `fuse` and this source are how a mounted repository shows (mount/mount.cvmfs.cc, "fsname=cvmfs2").
FUSE, SOURCE = "fuse", "cvmfs2"
# _netdev waits for the network and nodev is what the documentation mounts with ("Mounting"); mount.cvmfs adds
# the rest itself.
MOUNT_OPTIONS = ("_netdev", "nodev")

# Parameters that have a variable of the role, which is therefore the one way to set them for all.
OWN = {
    "CVMFS_ALIEN_CACHE": "alien_cache",
    "CVMFS_CACHE_BASE": "cache_base",
    "CVMFS_CLIENT_PROFILE": "profile",
    "CVMFS_CONFIG_REPOSITORY": "config_repository",
    "CVMFS_HTTP_PROXY": "proxies",
    "CVMFS_QUOTA_LIMIT": "quota",
    "CVMFS_REPOSITORIES": "repositories",
}
# Parameters that mean nothing, or harm, in the file of a domain or a repository.
GLOBAL = ("CVMFS_CLIENT_PROFILE", "CVMFS_CONFIG_REPOSITORY", "CVMFS_DEFAULT_DOMAIN", "CVMFS_REPOSITORIES")


def read_repositories(request: str) -> list[str]:
    """Return the names of repositories, each once, in their order.

    Args:
        request: names separated by blanks or commas.
    """
    return list(dict.fromkeys(name for name in re.split(r"[\s,]+", request) if name))


def domain_of(repository: str) -> str:
    """Return the domain of a repository: its name without the first label (mount/config.sh)."""
    return repository.partition(".")[2]


def problems(settings: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with settings, one sentence each.

    Args:
        settings: the role's variables without ``cvmfs_client_``.
    """
    found = [
        *_repository_problems(settings),
        *_network_problems(settings),
        *_cache_problems(settings),
        *_key_problems(settings),
        *_parameter_problems(settings),
    ]
    found = found or list(_unknown_problems(settings))
    # A value may have lines of its own.
    return [" ".join(one.split()) for one in [*found, *_package_problems(settings)]]


def plan(
    settings: Mapping[str, Any], machine: Mapping[str, Any] | None = None, host: str = ""
) -> dict[str, Any]:
    """Return what settings come to.

    Args:
        settings: the role's variables without ``cvmfs_client_``.
        machine: what the module cvmfs_info returns about servers and proxies; without it only the settings
            are checked.
        host: name of the machine, for people.

    Returns:
        ``problems``, each a sentence; if there are none, ``repositories``: names; ``files``: texts by path
        below ``/etc/cvmfs``; ``units``: texts of units by name; ``started``: the units to start;
        ``places``: where mounts will be, and ``mounts``: the mounts there must be then, both as the module
        mount_validate takes them; ``servers``: the ways to those whose servers are known; ``proxy_hosts``:
        hosts of proxies; ``key_paths``: paths of keys that must be on the machine.
    """
    wrong = problems(settings) or list(servers.problems(machine, host) if machine else ())
    if wrong:
        return {"problems": wrong}
    repositories = read_repositories(settings["repositories"])
    by_units = settings["mount"] != "autofs"
    first = [settings["config_repository"]] if by_units and settings["config_repository"] else []
    mounted = list(dict.fromkeys(first + repositories))
    units = dict(_units(settings, mounted)) if by_units else {}
    started = [name for name in units if name.endswith(".automount")] or list(units)
    whole = {"path": ROOT, "types": ["autofs"], "propagation": "shared"}
    each = [_mount(name) for name in mounted]
    # An automount of systemd shows as autofs until somebody looks.
    taken = [FUSE, "autofs"] if settings["mount"] == "systemd-automount" else [FUSE]
    places = [{"path": one["path"], "types": taken, "state": "possible"} for one in each]
    return {
        "problems": [],
        "repositories": repositories,
        "files": dict(_files(settings, repositories)),
        "units": units,
        "started": started,
        "places": [{"path": ROOT, "state": "unmounted"}, *places]
        if by_units
        else [{"path": ROOT, "types": ["autofs"], "state": "possible"}],
        "mounts": each if by_units else [whole, *each],
        "servers": [server._asdict() for server in _servers(settings, repositories)],
        "proxy_hosts": _proxy_hosts(settings),
        "key_paths": sorted(set(_key_paths(settings))),
    }


def _mount(repository: str) -> dict[str, Any]:
    return {
        "path": f"{ROOT}/{repository}",
        "types": [FUSE],
        "source": SOURCE,
        "propagation": "shared",
    }


def _repository_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    for name in read_repositories(settings["repositories"]):
        if not is_repository(name):
            yield (
                f"cvmfs_client_repositories names '{name}', which is no repository: write it in full, such as"
                " sft.cern.ch."
            )
    name = settings["config_repository"]
    if name and not is_repository(name):
        yield (
            f"cvmfs_client_config_repository is '{name}', which is no repository: write it in full, such as"
            " cvmfs-config.cern.ch."
        )


def _network_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    proxies = settings["proxies"]
    if not proxies and settings["profile"] != "single":
        yield (
            "cvmfs_client_proxies is empty, and the client mounts nothing then: name your proxies, or DIRECT"
            " for none."
        )
    wrong = proxies_problem(proxies) if proxies else ""
    if wrong:
        yield f"cvmfs_client_proxies {wrong}."
    for variable, least in (("idle_timeout", 0), ("probe_timeout", 1)):
        if int(settings[variable]) < least:
            yield f"cvmfs_client_{variable} is {settings[variable]}; give {least} seconds or more."


def _cache_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    for variable in ("cache_base", "alien_cache"):
        path = settings[variable]
        if variable == "alien_cache" and not path:
            continue
        if not re.fullmatch(r"(/[A-Za-z0-9_@%+=,.-]+)+", path) or re.search(r"/\.\.?(/|$)", path):
            yield (
                f"cvmfs_client_{variable} is '{path}'; give an absolute path below / of plain characters,"
                " such as /var/lib/cvmfs."
            )
    quota, alien = int(settings["quota"]), settings["alien_cache"]
    # "Alien Cache": it requires CVMFS_QUOTA_LIMIT=-1.
    if alien and quota != -1:
        yield f"cvmfs_client_quota is {quota}, and nobody cleans cvmfs_client_alien_cache; set it to -1."
    if alien and (alien + "/").startswith(settings["cache_base"] + "/"):
        yield (f"cvmfs_client_alien_cache '{alien}' lies in cvmfs_client_cache_base; choose another folder.")
    # Less than 1000 is what chksetup warns of (cvmfs/cvmfs_config, "Check quota limit").
    if not alien and quota < 1000:
        yield f"cvmfs_client_quota is {quota}; give 1000 MB or more."


def _key_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, text in settings["keys"].items():
        domain, _slash, file = str(name).partition("/")
        if not is_repository(domain) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*\.pub", file):
            yield f"cvmfs_client_keys has '{name}'; write DOMAIN/NAME.pub, such as example.org/our.pub."
        found = re.fullmatch(
            r"-----BEGIN PUBLIC KEY-----\s+([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----\s*", str(text)
        )
        try:
            key = base64.b64decode("".join(found[1].split()), validate=True) if found else b""
        except binascii.Error:
            key = b""
        if not key.startswith(b"\x30"):  # an ASN.1 SEQUENCE, as every key of this form is (RFC 5280, 4.1)
            yield (
                f"cvmfs_client_keys has '{name}', whose text is no public key in PEM; it begins with"
                " '-----BEGIN PUBLIC KEY-----'."
            )


def _parameter_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings["parameters"].items():
        if name in OWN:
            yield f"cvmfs_client_parameters has {name}; set cvmfs_client_{OWN[name]} in its place."
        else:
            yield from _value_problems("cvmfs_client_parameters", name, value)
    mounted = [*read_repositories(settings["repositories"]), settings["config_repository"]]
    for variable in ("domains", "repository_parameters"):
        for name, parameters in settings[variable].items():
            if not is_repository(str(name)):
                yield f"cvmfs_client_{variable} has '{name}', which is no name; write it in full."
            elif variable == "repository_parameters" and name not in mounted:
                yield (
                    f"cvmfs_client_repository_parameters has '{name}', which is not among"
                    " cvmfs_client_repositories; add it there, or correct the name."
                )
            if not isinstance(parameters, Mapping):
                yield f"cvmfs_client_{variable} has '{name}' without parameters; give them by name."
                continue
            for parameter, value in parameters.items():
                if parameter in GLOBAL:
                    yield (
                        f"cvmfs_client_{variable} sets {parameter} for {name}, which holds for all or for"
                        " none; leave it out."
                    )
                else:
                    yield from _value_problems(f"cvmfs_client_{variable} of {name}", parameter, value)


def _value_problems(where: str, name: str, value: Any) -> Iterator[str]:
    try:
        read_value(name, value)
    except ParameterError as error:
        yield f"{where}: {error}."


def _unknown_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield which repositories have servers or keys that nobody will know."""
    others = settings["config_repository"] or settings["source"] == "preinstalled" or _configures(settings)
    for repository in read_repositories(settings["repositories"]):
        url = _setting(settings, repository, "CVMFS_SERVER_URL")
        if not url and not others:
            yield (
                f"cvmfs_client_repositories names {repository}, whose servers are unknown: set"
                f" CVMFS_SERVER_URL of {domain_of(repository)} in cvmfs_client_domains, or add a package that"
                " configures it."
            )
        if url and not _key(settings, repository):
            yield (
                f"The key of {repository} is missing: add it to cvmfs_client_keys as"
                f" {domain_of(repository)}/NAME.pub, or name its folder with CVMFS_KEYS_DIR."
            )


def _configures(settings: Mapping[str, Any]) -> bool:
    return any(
        name.startswith("cvmfs-config-") and name != "cvmfs-config-none" for name in settings["packages"]
    )


def _package_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    if settings["source"] != "repository":
        return
    packages = settings["packages"]
    if "cvmfs" not in packages:
        yield "cvmfs_client_packages lacks cvmfs; add it, or set cvmfs_client_source to preinstalled."
    for variable, pattern, example in (
        ("version", r"([0-9][0-9A-Za-z.+~-]*)?", "2.13"),
        ("apt_url", r"(https?|file)://\S+|file:/\S+", "http://cvmrepo.s3.cern.ch/cvmrepo/apt"),
        ("apt_suite", r"[A-Za-z0-9./-]*", "bookworm-prod"),
        ("apt_key_fingerprint", "[0-9A-Fa-f]{40}", "40 hexadecimal digits without spaces"),
    ):
        if not re.fullmatch(pattern, settings[variable]):
            yield f"cvmfs_client_{variable} is '{settings[variable]}'; write it like {example}."
    for name in packages:
        if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name):
            yield f"cvmfs_client_packages has '{name}', which is no name of a package."


def _setting(settings: Mapping[str, Any], repository: str, name: str) -> str:
    """Return a parameter of a repository as the settings give it; empty when they do not."""
    own = settings["repository_parameters"].get(repository, {})
    of_domain = settings["domains"].get(domain_of(repository), {})
    return str(own.get(name, of_domain.get(name, settings["parameters"].get(name, ""))))


def _has_keys(settings: Mapping[str, Any], domain: str) -> bool:
    return any(name.startswith(domain + "/") for name in settings["keys"])


def _key(settings: Mapping[str, Any], repository: str) -> str:
    """Return where the keys of a repository are; empty when the settings do not tell."""
    named = _setting(settings, repository, "CVMFS_KEYS_DIR") or _setting(
        settings, repository, "CVMFS_PUBLIC_KEY"
    )
    if not named and _has_keys(settings, domain_of(repository)):
        return f"{CONFIGURATION}/{KEYS}/{domain_of(repository)}"
    return named


def _key_paths(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of keys that the settings name and do not hold."""
    groups = [
        settings["parameters"],
        *settings["domains"].values(),
        *settings["repository_parameters"].values(),
    ]
    for parameters in groups:
        for name in ("CVMFS_KEYS_DIR", "CVMFS_PUBLIC_KEY"):
            for path in str(parameters.get(name, "")).split(":"):
                if path and not path.startswith(f"{CONFIGURATION}/{KEYS}/"):
                    yield path


def _lines(parameters: Mapping[str, Any]) -> str:
    written = [f"{name}='{read_value(name, value)}'\n" for name, value in parameters.items()]
    return f"{MARK}\n{''.join(written)}"


def _files(settings: Mapping[str, Any], repositories: list[str]) -> Iterator[tuple[str, str]]:
    default: dict[str, Any] = {"CVMFS_REPOSITORIES": ",".join(repositories)} if repositories else {}
    for name, variable in (
        ("CVMFS_HTTP_PROXY", "proxies"),
        ("CVMFS_CLIENT_PROFILE", "profile"),
        ("CVMFS_CACHE_BASE", "cache_base"),
        ("CVMFS_QUOTA_LIMIT", "quota"),
        ("CVMFS_ALIEN_CACHE", "alien_cache"),
    ):
        if settings[variable] != "":
            default[name] = settings[variable]
    if settings["alien_cache"]:
        default["CVMFS_SHARED_CACHE"] = "no"  # "Alien Cache"
    yield "default.local", _lines({**default, **dict(sorted(settings["parameters"].items()))})
    if settings["config_repository"]:
        # Nowhere else is it heeded (cvmfs/cvmfs_config, "Check CVMFS_CONFIG_REPOSITORY").
        yield (
            "default.d/90-gpufarm.conf",
            _lines({"CVMFS_CONFIG_REPOSITORY": settings["config_repository"]}),
        )
    for domain in sorted({*settings["domains"], *(name.partition("/")[0] for name in settings["keys"])}):
        own = dict(sorted(settings["domains"].get(domain, {}).items()))
        if _has_keys(settings, domain) and not {"CVMFS_KEYS_DIR", "CVMFS_PUBLIC_KEY"} & own.keys():
            own["CVMFS_KEYS_DIR"] = f"{CONFIGURATION}/{KEYS}/{domain}"
        yield f"domain.d/{domain}.local", _lines(own)
    for repository, parameters in sorted(settings["repository_parameters"].items()):
        yield f"config.d/{repository}.local", _lines(dict(sorted(parameters.items())))
    for name, text in sorted(settings["keys"].items()):
        yield f"{KEYS}/{name}", text.strip() + "\n"


def _units(settings: Mapping[str, Any], mounted: list[str]) -> Iterator[tuple[str, str]]:
    automatic = settings["mount"] == "systemd-automount"
    for repository in mounted:
        path = f"{ROOT}/{repository}"
        first = settings["config_repository"]
        needs = f"RequiresMountsFor={ROOT}/{first}\n" if first and first != repository else ""
        wanted = "[Install]\nWantedBy=remote-fs.target\n"
        yield (
            unit_name(path, "mount"),
            f"{MARK}\n[Unit]\nDescription=CernVM-FS repository {repository}\nWants=network-online.target\n"
            f"After=network-online.target\n{needs}\n[Mount]\nWhat={repository}\nWhere={path}\nType=cvmfs\n"
            f"Options={','.join(MOUNT_OPTIONS)}\nTimeoutSec={int(settings['probe_timeout'])}\n"
            + ("" if automatic else f"\n{wanted}"),
        )
        if automatic:
            yield (
                unit_name(path, "automount"),
                (
                    f"{MARK}\n[Unit]\nDescription=CernVM-FS repository {repository}, mounted on demand\n\n"
                    f"[Automount]\nWhere={path}\nTimeoutIdleSec={int(settings['idle_timeout'])}\n\n{wanted}"
                ),
            )


def _servers(settings: Mapping[str, Any], repositories: list[str]) -> Iterator[servers.Server]:
    """Yield the ways to the repositories whose servers the settings name, or are known without them."""
    for repository in repositories:
        urls = _setting(settings, repository, "CVMFS_SERVER_URL") or _public(settings, repository)
        proxies = [_setting(settings, repository, "CVMFS_HTTP_PROXY") or settings["proxies"]]
        proxies.append(_setting(settings, repository, "CVMFS_FALLBACK_PROXY"))
        yield from servers.ways(repository, urls, servers.read_proxies(proxies))


def _public(settings: Mapping[str, Any], repository: str) -> str:
    """Return the servers that the default packages know; none where others may configure a repository."""
    default = settings["source"] == "repository" and "cvmfs-config-default" in settings["packages"]
    cdn = str(_setting(settings, repository, "CVMFS_USE_CDN")).lower() in ("yes", "on", "true", "1")
    if not default or cdn or settings["config_repository"]:
        return ""
    return servers.PUBLIC.get(domain_of(repository), "")


def _proxy_hosts(settings: Mapping[str, Any]) -> list[str]:
    """Return the hosts of all proxies that the settings name."""
    groups = [
        settings["parameters"],
        *settings["domains"].values(),
        *settings["repository_parameters"].values(),
    ]
    lists = [settings["proxies"]]
    lists += [
        str(parameters.get(name, ""))
        for parameters in groups
        for name in ("CVMFS_HTTP_PROXY", "CVMFS_FALLBACK_PROXY")
    ]
    hosts = [servers.host_of(proxy) for proxy in servers.read_proxies(lists)]
    return [host for host in dict.fromkeys(hosts) if host]

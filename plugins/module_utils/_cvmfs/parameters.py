# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parameters of the CernVM-FS client: their names, kinds of value and defaults, and what they are for.

Sources: CernVM-FS documentation, "Client parameters" (apx-parameters) and "Client Configuration"
(cpt-configure); source of CernVM-FS 2.12, cvmfs/mountpoint.cc, cvmfs/loader.cc, mount/default.conf.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

# Parameters that mount.cvmfs and the loader read when they mount and never again (mount/mount.cvmfs.cc;
# cvmfs/loader.cc, FuseMain): a reload does not bring them into force.
AT_MOUNT = frozenset(
    "CVMFS_" + name
    for name in (
        *("ALIEN_CACHE", "CACHE_BASE", "CACHE_REFCOUNT", "CHECK_PERMISSIONS", "CPU_AFFINITY"),
        *("FUSE3_IDLE_THREADS", "FUSE3_MAX_THREADS", "MOUNT_RW", "NFILES", "NFS_SOURCE", "OOM_SCORE_ADJ"),
        *("SHARED_CACHE", "SUID", "SYSTEMD_NOKILL", "WORKSPACE"),
    )
)

# Parameters that must not be set, and why.
REFUSED = {
    "CVMFS_USER": "the client does not allow it to be changed",
    "CVMFS_MOUNT_DIR": "the client does not allow it to be changed",
    "CVMFS_RELOAD_SOCKETS": "the client does not allow it to be changed",
    "CVMFS_CONFIG_REPO_DEFAULT_ENV": "the configuration repository sets it for itself",
    "CVMFS_LIBRARY_PATH": "it belongs into the environment of a private installation",
    "CVMFS_CWD_CACHE": "the client has dropped it",
    "CVMFS_IGNORE_SIGNATURE": "the client does not read it and always verifies signatures",
    "CVMFS_MAX_EXTERNAL_SERVERS": "the client reads CVMFS_EXTERNAL_MAX_SERVERS in its place",
}


class ParameterError(ValueError):
    """A parameter does not exist or has a wrong value; the text is one sentence for a user."""


class Parameter(NamedTuple):
    """Facts about a parameter; `default` is empty where the sources state none."""

    kind: str
    default: str
    meaning: str


# name | kind of value | default | meaning
_TABLE = """
ALIEN_CACHE | path | | folder of a cache that others manage
ALT_ROOT_PATH | bool | no | take the root catalog from its other place
AUTO_UPDATE | bool | yes | follow new revisions
AUTHZ_HELPER | path | | program that decides who may read
AUTHZ_SEARCH_PATH | path | /usr/libexec/cvmfs/authz | folder of such programs
BACKOFF_INIT | seconds | 2 | longest first pause before another try
BACKOFF_MAX | seconds | 10 | longest pause before another try
BLACKLIST | path | /etc/cvmfs/blacklist | file of keys and revisions that are not trusted
CACHE_BASE | path | /var/lib/cvmfs | folder of the cache
CACHE_PRIMARY | word | default | name of the cache manager in use
CACHE_REFCOUNT | bool | no | open an object of the cache once for all its readers
CACHE_SYMLINKS | bool | no | let the kernel remember where links point
CATALOG_WATERMARK | count | | pinned catalogs from which some are let go
CHECK_PERMISSIONS | bool | yes | heed owners and modes of files
CLAIM_OWNERSHIP | bool | yes | show files as the client's own
CLIENT_PROFILE | profile | | machine alone or cluster with a proxy
CONFIG_REPOSITORY | repository | | repository that configures the others
CONFIG_REPO_DEFAULT_ENV | text | | mark of the configuration repository
CONFIG_REPO_REQUIRED | bool | no | mount nothing without the configuration repository
CPU_AFFINITY | list | | processors on which the client runs
CWD_CACHE | bool | | no longer in use
DEBUGLOG | path | | file of a detailed log
DEFAULT_DOMAIN | domain | | domain of repositories named without one
DNS_MAX_TTL | seconds | 86400 | longest time that an address is remembered
DNS_MIN_TTL | seconds | 60 | shortest time that an address is remembered
DNS_RETRIES | count | | further tries to look an address up
DNS_ROAMING | bool | no | follow changes of name servers
DNS_SERVER | host | | name server to ask
DNS_TIMEOUT | seconds | | time to look an address up
ENFORCE_ACLS | bool | no | heed the access lists of the repository
EXTERNAL_FALLBACK_PROXY | proxies | | proxies of last resort for external data
EXTERNAL_HTTP_PROXY | proxies | | proxies for external data
EXTERNAL_MAX_SERVERS | count | | most servers of external data in use
EXTERNAL_TIMEOUT | seconds | | time for external data through a proxy
EXTERNAL_TIMEOUT_DIRECT | seconds | | time for external data without a proxy
EXTERNAL_URL | urls | | servers of external data
FAILOVER_INDEFINITELY | bool | | never give up on servers
FALLBACK_PROXY | proxies | | proxies of last resort
FOLLOW_REDIRECTS | bool | no | go where a server sends the client on
FUSE3_IDLE_THREADS | count | | idle threads that are kept
FUSE3_MAX_THREADS | count | | most threads
FUSE_NOTIFY_INVALIDATION | bool | | tell the kernel what a new revision changed
GID_MAP | path | | file that translates groups
HIDE_MAGIC_XATTRS | bool | no | hide the attributes of the client
HOST_RESET_AFTER | seconds | 1800 | time after which the first server is tried again
HTTP_PROXY | proxies | | proxies
HTTP_TRACING | bool | no | tell servers who asks
HTTP_TRACING_HEADERS | text | | further headers for servers
IGNORE_SIGNATURE | bool | no | read by nobody
INFLUX_EXTRA_FIELDS | text | | fixed fields of the measurements
INFLUX_EXTRA_TAGS | text | | fixed tags of the measurements
INFLUX_HOST | host | | receiver of measurements
INFLUX_METRIC_NAME | word | | name of the measurements
INFLUX_PORT | port | | port of the receiver
INITIAL_GENERATION | count | | first generation of inodes, for tests
INSTRUMENT_FUSE | bool | no | measure calls of the kernel
IPFAMILY_PREFER | family | | version of the Internet Protocol towards proxies
KCACHE_TIMEOUT | seconds | 60 | time that the kernel remembers names
KEYS_DIR | path | /etc/cvmfs/keys | folder of the public keys
LIBRARY_PATH | path | | folder of a private library
LOW_SPEED_LIMIT | count | 1024 | bytes per second below which a transfer has failed
MAGIC_XATTRS_VISIBILITY | word | | where the attributes of the client are shown
MAX_EXTERNAL_SERVERS | count | | read by nobody
MAX_IPADDR_PER_PROXY | count | | most addresses of one proxy in use
MAX_RETRIES | count | 1 | further tries before another server or proxy
MAX_SERVERS | count | | most servers in use
MAX_TTL | count | 0 | minutes after which a new revision is looked for
MEMCACHE_SIZE | count | 16 | MB of memory for names and attributes
MOUNT_DIR | path | /cvmfs | folder of all repositories
MOUNT_RW | bool | no | let programs open files for writing, though writing fails
NFILES | count | 131072 | most open files
NFS_INTERLEAVED_INODES | interleaving | | inodes to use among several exports
NFS_SHARED | path | | folder of inodes that several servers share
NFS_SOURCE | bool | no | let the kernel's NFS server export the mount
OOM_SCORE_ADJ | oom_score | | how readily the kernel ends the client
PAC_URLS | urls | http://wpad/wpad.dat | where proxies are announced
PROXY_RESET_AFTER | seconds | 300 | time after which the first proxies are tried again
PROXY_SHARD | bool | no | give each proxy of a group its part of the data
PROXY_SHARDING_POLICY | word | | how the parts are chosen
PROXY_TEMPLATE | word | | name that stands for the proxy when servers are sorted
PUBLIC_KEY | paths | | files of the public keys
QUOTA_LIMIT | quota | 4000 | MB from which the cache is cleaned
RELOAD_SOCKETS | path | /var/run/cvmfs | folder of the client's sockets
REPOSITORIES | repositories | | repositories that the tools look after
REPOSITORY_DATE | time | | state of that time
REPOSITORY_TAG | word | | state of that name
ROOT_HASH | hash | | state of that root catalog
SEND_INFO_HEADER | bool | no | tell servers the path
SERVER_CACHE_MODE | bool | no | work as a publisher needs it
SERVER_URL | urls | | servers
SHARED_CACHE | bool | yes | one cache for all repositories
STATFS_CACHE_TIMEOUT | seconds | 0 | time that the size is remembered
STREAMING_CACHE | bool | no | read files without keeping them
STRICT_MOUNT | bool | no | mount only what is listed
SUID | bool | no | heed setuid bits
SYSLOG_FACILITY | facility | | local facility of the system's log
SYSLOG_LEVEL | level | | how much is logged
SYSLOG_PREFIX | text | | beginning of lines in the log
SYSTEMD_NOKILL | bool | no | outlive other processes at shutdown
TALK_OWNER | word | | owner of the control socket
TALK_SOCKET | path | | control socket
TELEMETRY_RATE | telemetry | 300 | time between measurements
TELEMETRY_SEND | bool | no | send measurements
TIMEOUT | seconds | 5 | time for a request through a proxy
TIMEOUT_DIRECT | seconds | 10 | time for a request without a proxy
TRACEBUFFER | count | | size of the buffer of the trace
TRACEBUFFER_THRESHOLD | count | | filling from which the trace is written
TRACEFILE | path | | file of a trace of all calls
UID_MAP | path | | file that translates users
USER | word | cvmfs | account of the client
USE_CDN | bool | no | ask servers of a content delivery network
USE_GEOAPI | bool | no | sort servers by distance
USE_SSL_SYSTEM_CA | bool | no | trust the authorities that the system trusts
USYSLOG | path | | file in place of the system's log
WORKSPACE | path | | folder of sockets and locks
WORLD_READABLE | bool | no | let everybody read everything
XATTR_PRIVILEGED_GIDS | list | | groups that may read protected attributes
XATTR_PROTECTED_XATTRS | list | | protected attributes
"""


def _read_table() -> dict[str, Parameter]:
    found = {}
    for line in _TABLE.strip().splitlines():
        name, kind, default, meaning = (field.strip() for field in line.split("|"))
        found["CVMFS_" + name] = Parameter(kind, default, meaning)
    return found


PARAMETERS: Mapping[str, Parameter] = _read_table()

# Parameters of a named cache manager ("Advanced Cache Configuration"), where the name stands for (NAME).
_OF_CACHE = {
    "TYPE": Parameter("cache_type", "", "type of a cache manager"),
    "UPPER": Parameter("word", "", "upper layer of a tiered cache"),
    "LOWER": Parameter("word", "", "lower layer of a tiered cache"),
    "LOWER_READONLY": Parameter("bool", "no", "leave the lower layer as it is"),
    "CMDLINE": Parameter("list", "", "command of an external cache manager"),
    "LOCATOR": Parameter("text", "", "socket of an external cache manager"),
    "ALIEN": Parameter("path", "", "folder of a cache that others manage"),
    "BASE": Parameter("path", "", "folder of a cache"),
    "QUOTA_LIMIT": Parameter("quota", "", "MB from which a cache is cleaned"),
    "SHARED": Parameter("bool", "no", "one cache for all repositories"),
}
_CACHE_NAME = re.compile(r"CVMFS_CACHE_([A-Za-z0-9]+)_([A-Z_]+)")

# Characters allowed between single quotes, on one line, in a file that /bin/sh reads.
_PLAIN = re.compile(r"[\x20-\x26\x28-\x7e]*")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})+")
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])"
_PROXY = re.compile(rf"(https?)://({_HOST})(?::([0-9]+))?/?")
_URL = re.compile(r"(?:https?|file)://[A-Za-z0-9.:@_~/%+,=&?\[\]-]+")


def lookup(name: str) -> Parameter | None:
    """Return what is known of a parameter; None when it does not exist."""
    found = _CACHE_NAME.fullmatch(name)
    if found and name not in PARAMETERS:
        return _OF_CACHE.get(found[2])
    return PARAMETERS.get(name)


def nearest(name: str) -> str:
    """Return the name of the parameter that is most like a name that does not exist."""
    wanted = name.upper() if name.upper().startswith("CVMFS_") else "CVMFS_" + name.upper()
    return difflib.get_close_matches(wanted, PARAMETERS, n=1, cutoff=0.0)[0]


def is_repository(name: str) -> bool:
    """Tell whether a text can be the name of a repository in full, which has a domain."""
    return len(name) < 256 and _DOMAIN.fullmatch(name) is not None


def proxies_problem(proxies: str) -> str:
    """Tell what is wrong with a list of proxies; empty when nothing is.

    Source: "Client Configuration", "Proxy Lists".

    Args:
        proxies: groups separated by ``;``, the proxies of a group by ``|``.
    """
    for group in proxies.split(";"):
        for proxy in group.split("|"):
            if proxy in ("DIRECT", "auto"):
                continue
            found = _PROXY.fullmatch(proxy)
            if not proxy:
                return "names an empty proxy: a separator stands alone"
            if found is None:
                return f"names '{proxy}', which is no proxy: write http://HOST:PORT, DIRECT or auto"
            if not found[3] or not 0 < int(found[3]) < 65536:
                return f"names '{proxy}' without a port: write {found[1]}://{found[2]}:3128, say"
    return ""


def _bool(value: Any) -> str:
    # chksetup knows fewer words than the client (cvmfs/cvmfs_config, "Syntax check for switches").
    words = {"yes": "yes", "on": "yes", "true": "yes", "1": "yes"}
    words.update({"no": "no", "off": "no", "false": "no", "0": "no"})
    return words[str(value).lower()]


def _number(least: int, most: int = 2**31 - 1) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        number = int(str(value))
        if isinstance(value, bool) or not least <= number <= most:
            raise ValueError
        return str(number)

    return read


def _pattern(expression: str) -> Callable[[Any], str]:
    compiled = re.compile(expression)

    def read(value: Any) -> str:
        if not compiled.fullmatch(str(value)):
            raise ValueError
        return str(value)

    return read


def _proxies(value: Any) -> str:
    problem = proxies_problem(str(value))
    if problem:
        raise ParameterError(problem)
    return str(value)


def _each(separator: str, one: Callable[[str], bool]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not all(one(part) for part in str(value).split(separator)):
            raise ValueError
        return str(value)

    return read


# Syntax and parser of each kind of value.
KINDS: Mapping[str, Any] = {
    "bool": ("yes or no", _bool),
    "count": ("a number from 0", _number(0)),
    "seconds": ("a number of seconds from 0", _number(0)),
    "telemetry": ("a number of seconds from 5", _number(5)),
    "port": ("a number from 1 to 65535", _number(1, 65535)),
    "facility": ("a number from 0 to 7", _number(0, 7)),
    "level": ("1 or 2", _number(1, 2)),
    "oom_score": ("a number from -1000 to 1000", _number(-1000, 1000)),
    "quota": ("a number of MB, or -1 for no limit", _number(-1)),
    "family": ("4 or 6", _pattern("4|6")),
    "profile": ("single, or empty", _pattern("single|")),
    "cache_type": ("posix, tiered or external", _pattern("posix|tiered|external")),
    "interleaving": ("REMAINDER%COUNT, such as 0%2", _pattern("[0-9]+%[1-9][0-9]*")),
    "time": ("a time such as 2026-01-31T12:00:00Z", _pattern(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?")),
    "hash": ("a hash in hexadecimal digits", _pattern("[0-9a-f]{40}(-rmd160|-shake128)?")),
    "word": ("a word", _pattern(r"[A-Za-z0-9_.@-]+")),
    "list": ("words separated by commas", _pattern(r"[A-Za-z0-9_./=:-]+(,[A-Za-z0-9_./=:-]+)*")),
    "text": ("a text of one line without single quotes", _pattern(".*")),
    "domain": ("a domain such as example.org", _each("\n", is_repository)),
    "repository": ("the full name of a repository", _each("\n", is_repository)),
    "repositories": ("full names of repositories separated by commas", _each(",", is_repository)),
    "host": ("a host name or an address", _pattern(r"[A-Za-z0-9][A-Za-z0-9.-]*|[0-9A-Fa-f:]+")),
    "path": ("an absolute path", _pattern(r"/[A-Za-z0-9_@%+=:,./-]*")),
    "paths": (
        "absolute paths separated by colons",
        _pattern(r"/[A-Za-z0-9_@%+=,./-]*(:/[A-Za-z0-9_@%+=,./-]*)*"),
    ),
    "urls": ("addresses separated by semicolons", _each(";", lambda part: bool(_URL.fullmatch(part)))),
    "proxies": ("a list of proxies", _proxies),
}


def read_value(name: str, value: Any) -> str:
    """Return a value as it is written into a file.

    Args:
        name: the parameter.
        value: what a user wrote: a text, a number or a truth value.

    Raises:
        ParameterError: there is no such parameter, nobody may set it, or the value is of another kind. The
            text begins with the parameter's name.
    """
    parameter = lookup(name)
    if parameter is None:
        other = nearest(name)
        raise ParameterError(
            f"{name} is no parameter of the client; the nearest is {other} ({PARAMETERS[other].meaning})"
        )
    if name in REFUSED:
        raise ParameterError(f"{name} cannot be set, as {REFUSED[name]}; leave it out")
    words, read = KINDS[parameter.kind]
    try:
        written: str = read(value)
        if isinstance(value, (dict, list)) or not _PLAIN.fullmatch(written):
            raise ValueError
    except ParameterError as error:
        raise ParameterError(f"{name} {error}") from error
    except (KeyError, ValueError) as error:
        raise ParameterError(f"{name} is '{value}', and takes {words}") from error
    return written

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ways to the servers of CernVM-FS repositories, and what is wrong when none works. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

# Settings of these domains in `cvmfs-config-default` and its configuration repository: source of
# CernVM-FS, mount/domain.d; cvmfs-contrib/config-repo, etc/cvmfs/domain.d.
PUBLIC = {
    "cern.ch": "http://cvmfs-stratum-one.cern.ch/cvmfs/@fqrn@;http://cernvmfs.gridpp.rl.ac.uk/cvmfs/@fqrn@;"
    "http://cvmfs-s1bnl.opensciencegrid.org/cvmfs/@fqrn@;http://cvmfs-s1fnal.opensciencegrid.org/cvmfs/@fqrn@",
    "egi.eu": "http://cvmfs-egi.gridpp.rl.ac.uk:8000/cvmfs/@fqrn@;http://klei.nikhef.nl:8000/cvmfs/@fqrn@;"
    "http://cvmfsrepo.lcg.triumf.ca:8000/cvmfs/@fqrn@;http://cvmfsrep.grid.sinica.edu.tw:8000/cvmfs/@fqrn@",
    "opensciencegrid.org": "http://cvmfs-s1bnl.opensciencegrid.org:8000/cvmfs/@fqrn@;"
    "http://cvmfs-s1fnal.opensciencegrid.org:8000/cvmfs/@fqrn@;http://cvmfs-egi.gridpp.rl.ac.uk:8000/cvmfs/@fqrn@;"
    "http://klei.nikhef.nl:8000/cvmfs/@fqrn@",
    "eessi.io": "http://aws-eu-central-s1.eessi.science/cvmfs/@fqrn@;"
    "http://azure-us-east-s1.eessi.science/cvmfs/@fqrn@;http://ral-uk-s1.eessi.science:8000/cvmfs/@fqrn@",
}


class Server(NamedTuple):
    """One way to a repository: the address of its manifest, and the proxy, empty for none."""

    repository: str
    url: str
    proxy: str


def ways(repository: str, urls: str, proxies: Sequence[str]) -> Iterator[Server]:
    """Yield the ways to a repository in the order in which a client takes them.

    Args:
        repository: its name.
        urls: a value of ``CVMFS_SERVER_URL``.
        proxies: as addresses or ``DIRECT``.
    """
    for proxy in proxies:
        for url in urls.split(";"):
            if url.startswith("http"):
                address = url.replace("@fqrn@", repository).replace("@org@", repository.partition(".")[0])
                yield Server(
                    repository,
                    address.rstrip("/") + "/.cvmfspublished",
                    "" if proxy == "DIRECT" else proxy,
                )


def read_proxies(lists: Sequence[str]) -> list[str]:
    """Return the proxies of lists, each once; those that a network announces are not known before."""
    found = [proxy for text in lists for proxy in re.split("[|;]", text)]
    return [proxy for proxy in dict.fromkeys(found) if proxy not in ("", "auto")]


def host_of(proxy: str) -> str:
    """Return the host of a proxy."""
    return urlsplit(proxy).hostname or ""


def problems(asked: Mapping[str, Any], host: str) -> Iterator[str]:
    """Yield why repositories cannot be had, one sentence each.

    Args:
        asked: of what the module cvmfs_info returns, ``nameless`` and ``servers``.
        host: name of the machine, for people.
    """
    if asked["nameless"]:
        yield (
            f"The proxy {' and the proxy '.join(asked['nameless'])} has no address that {host} finds;"
            " correct the name in cvmfs_client_proxies, or in the parameters that name it."
        )
        return
    tried: dict[str, list[Mapping[str, Any]]] = {}
    for way in asked["servers"]:
        tried.setdefault(way["repository"], []).append(way)
    lost = {name: found for name, found in tried.items() if all(way["error"] for way in found)}
    unknown = [name for name, found in lost.items() if any(way["status"] in (404, 410) for way in found)]
    if unknown:
        yield (
            f"No server has the repository {' and '.join(unknown)}, as {host} asked"
            f" {_told(lost[unknown[0]])}; correct cvmfs_client_repositories, or CVMFS_SERVER_URL in"
            " cvmfs_client_domains."
        )
    silent = [name for name in lost if name not in unknown]
    if silent:
        yield (
            f"No server or proxy lets {host} have the repository {' and '.join(silent)}"
            f" ({_told(lost[silent[0]])}); correct cvmfs_client_proxies, or CVMFS_SERVER_URL of"
            f" {silent[0].partition('.')[2]} in cvmfs_client_domains."
        )


def _told(tried: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(
        f"{way['url']} {'through ' + way['proxy'] if way['proxy'] else 'directly'}: {way['error']}"
        for way in tried
    )

"""Refusals of the roles of storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.recording import Answer, Call
from harness.stubs import LUSTRE_MACHINE
from refused import NO_KEY, Refused

KERNEL: dict[str, Any] = {
    **{"version": "", "built_for": "", "fits": False, "headers": False, "running": False},
    **{"drivers": [], "infiniband": ""},
}


def lustre(**found: Any) -> dict[str, Answer]:
    """Result of ``lustre_info`` for a machine that differs from a new one."""
    return {"Validate | Inspect kernels, interfaces, LNet and mounts": {**LUSTRE_MACHINE, **found}}


PROXY = "http://127.0.0.1:3128"
# A repository of the site beside one of CERN.
SITE: dict[str, Any] = {
    "cvmfs_client_repositories": "sft.cern.ch tools.example.org",
    "cvmfs_client_domains": {"example.org": {"CVMFS_SERVER_URL": "http://127.0.0.1:8000/cvmfs/@fqrn@"}},
    "cvmfs_client_keys": {
        "example.org/example.org.pub": "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n"
    },
}
NO_ANSWER = (None, "[Errno 111] Connection refused")


def asked(lost: Mapping[str, tuple[int | None, str]], nameless: Sequence[str] = ()) -> dict[str, Answer]:
    """Answers of the servers of repositories to a machine without files of the role.

    Args:
        lost: repositories that cannot be had, each with the status of all answers and why.
        nameless: hosts of proxies that have no address.
    """

    def answer(call: Call) -> Mapping[str, Any]:
        ways = [(way, lost.get(way["repository"], (200, ""))) for way in call.args["servers"]]
        servers = [{**way, "status": status, "error": error} for way, (status, error) in ways]
        return {"servers": servers, "nameless": list(nameless)}

    return {
        "Validate | Check whether the client's files would change": {"changed_files": ["default.local"]},
        "Validate | Resolve the proxies and query the servers of repositories": answer,
    }


REFUSED: dict[str, list[Refused]] = {
    "cvmfs_client": [
        Refused(
            "served by autofs on host1, and cvmfs_client_mount is static; run the role",
            {"cvmfs_client_mount": "static"},
            {
                "Validate | Inspect the client and its caches": {
                    "installed": True,
                    "autofs": True,
                    "repositories": [],
                    "caches": {},
                }
            },
        ),
        Refused(
            "No server has the repository stf.cern.ch",
            {"cvmfs_client_repositories": "sft.cern.ch stf.cern.ch", "cvmfs_client_proxies": PROXY},
            asked({"stf.cern.ch": (404, "404 Not Found")}),
        ),
        Refused(
            "No server or proxy lets host1 have the repository sft.cern.ch and tools.example.org",
            {**SITE, "cvmfs_client_proxies": "http://127.0.0.1:3182"},
            asked(dict.fromkeys(("sft.cern.ch", "tools.example.org"), NO_ANSWER)),
        ),
        Refused(
            "The proxy squit.example.invalid has no address that host1 finds",
            {**SITE, "cvmfs_client_proxies": f"{PROXY}|http://squit.example.invalid:3128"},
            asked({}, nameless=["squit.example.invalid"]),
        ),
        Refused(
            "/cvmfs/tools.example.org/.cvmfspublished directly:",
            {
                **SITE,
                "cvmfs_client_repositories": "tools.example.org",
                "cvmfs_client_proxies": "DIRECT",
                "cvmfs_client_domains": {
                    "example.org": {"CVMFS_SERVER_URL": "http://127.0.0.1:8080/cvmfs/@fqrn@"}
                },
            },
            asked({"tools.example.org": NO_ANSWER}),
        ),
        Refused(
            "The key at http://127.0.0.1:8000/apt/kee.asc is refused; correct cvmfs_client_apt_key_url or"
            " cvmfs_client_apt_key_fingerprint",
            {"cvmfs_client_apt_key_url": "http://127.0.0.1:8000/apt/kee.asc"},
            NO_KEY,
        ),
        Refused(
            "has no cvmfs 2.14 for host1; it has 2.13.3~1, 2.13.2~1; correct cvmfs_client_version",
            {"cvmfs_client_version": "2.14"},
            {"gpufarm.cluster.apt_source_info": {"packages": {"cvmfs": ["2.13.3~1", "2.13.2~1"]}}},
        ),
        Refused(
            "The key /etc/cvmfs/keys/example.org is not on host1",
            {
                **SITE,
                "cvmfs_client_keys": {},
                "cvmfs_client_domains": {
                    "example.org": {
                        "CVMFS_SERVER_URL": "http://127.0.0.1:8000/cvmfs/@fqrn@",
                        "CVMFS_KEYS_DIR": "/etc/cvmfs/keys/example.org",
                    }
                },
            },
        ),
    ],
    "lustre_client": [
        Refused(
            "'10.99.0.300@tcp' has no valid IPv4 address",
            {"lustre_client_file_systems": [{"source": "10.99.0.300@tcp:/home", "path": "/lustre/home"}]},
        ),
        Refused(
            "did you mean flock",
            {
                "lustre_client_file_systems": [
                    {"source": "10.99.0.300@tcp:/home", "path": "/lustre/home"},
                    {"source": "10.99.0.10@tcp:/scratch", "path": "/scratch", "options": ["flok"]},
                ]
            },
        ),
        Refused(
            "host1 has no interface rail9",
            {"lustre_client_networks": [{"name": "tcp", "interfaces": ["eth0", "rail9"]}]},
        ),
        Refused(
            "No server of 10.98.0.99@tcp:/more answers at port 988 from host1",
            {"lustre_client_file_systems": [{"source": "10.98.0.99@tcp:/more", "path": "/more"}]},
            {
                "Validate | Query the servers": lambda call: {
                    "servers": dict.fromkeys(call.args["servers"], "Connection refused")
                }
            },
        ),
        Refused(
            "no modules of Lustre 2.15.8-1 for the kernel 6.1.0-100-amd64",
            {"lustre_client_kernels": ["6.1.0-99-amd64", "6.1.0-100-amd64"]},
            {
                **lustre(
                    kernels=[
                        {**KERNEL, "release": release} for release in ("6.1.0-99-amd64", "6.1.0-100-amd64")
                    ]
                ),
                "gpufarm.cluster.apt_source_info": {
                    "packages": {
                        "lustre-client-utils": ["2.15.8-1"],
                        "lustre-client-modules-6.1.0-99-amd64": ["2.15.8-1"],
                    }
                },
            },
        ),
        Refused(
            "have no modules of Lustre 2.14",
            {"lustre_client_source": "preinstalled", "lustre_client_version": "2.14"},
        ),
        Refused(
            "The key at http://127.0.0.1:8000/apt/kee.asc is refused; correct lustre_client_apt_key_url or"
            " lustre_client_apt_key_fingerprint",
            {"lustre_client_apt_key_url": "http://127.0.0.1:8000/apt/kee.asc"},
            NO_KEY,
        ),
        Refused(
            "lustre_client_file_systems has the host both.example.org, which has the addresses 10.99.0.10 and"
            " 10.99.0.11; write the one that is meant. lustre_client_file_systems has the host"
            " nowhere.example.org, which host1 finds no IPv4 address of; correct the name, or write the"
            " address. /etc/systemd/system/theirs.mount on host1 was not written by this role",
            {
                "lustre_client_file_systems": [
                    {"source": "nowhere.example.org@tcp:/home", "path": "/lustre/home"},
                    {"source": "both.example.org:/scratch", "path": "/theirs"},
                ]
            },
            {
                **lustre(names={"nowhere.example.org": [], "both.example.org": ["10.99.0.10", "10.99.0.11"]}),
                "Validate | Find existing units with the names of planned units": {
                    "files": [{"path": "/etc/systemd/system/theirs.mount"}]
                },
            },
        ),
        Refused(
            "set lustre_client_source to server",
            {},
            lustre(lnet={**LUSTRE_MACHINE["lnet"], "written_by": "lustre_server"}),
        ),
    ],
    "lustre_server": [
        Refused(
            "the host nowhere.example.org, which host1 finds no IPv4 address of",
            {
                "lustre_server_nids": {
                    "host1": ["host1.example.org@tcp"],
                    "host2": ["nowhere.example.org@tcp"],
                }
            },
            lustre(names={"host1.example.org": ["10.0.0.1"], "nowhere.example.org": []}),
        ),
        Refused(
            "which lustre_server_nids does not name",
            {
                "lustre_server_file_systems": [
                    {
                        "name": "toolongname",
                        "targets": [
                            {"kind": "ost", "index": 0, "device": "/srv/targets/new", "servers": ["oss9"]}
                        ],
                    }
                ]
            },
        ),
    ],
    "shared_home": [
        Refused(
            words,
            {
                "shared_home_kind": "local",
                "shared_home_path": "/etc",
                "shared_home_source": "homes",
                "shared_home_options": ["nosuid", "suid"],
                "shared_home_quota": "8 M",
            },
        )
        for words in (
            "shared_home_path is /etc, which is the system's",
            "shared_home_source is 'homes'",
            "'8 M' is no size",
            "suid is not for homes",
        )
    ],
}

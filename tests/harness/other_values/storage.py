"""Lustre, CernVM-FS and the shared home."""

from __future__ import annotations

from typing import Any

from harness.certificates import PUBLIC_PEM
from harness.recording import Answer

LOCAL = {"shared_home_kind": "local", "shared_home_source": "UUID=0a3407de-014b-458b-b5c1-848e92a327a3"}
CLUSTER = {
    "shared_home_kind": "cluster",
    "shared_home_source": "",
    "shared_home_server": "host1",
    "shared_home_clients": [["10.0.0.2"]],
}
LUSTRE = ("lustre_client", "lustre_server")
VALUES: dict[str, Any] = {
    **{f"{role}_kernels": ["6.1.0-40-amd64"] for role in LUSTRE},
    **{f"{role}_lnet": {"discovery": 0} for role in LUSTRE},
    **{f"{role}_module_parameters": {"ko2iblnd": {"peer_credits": 32}} for role in LUSTRE},
    **{
        f"{role}_networks": [{"name": "tcp", "interfaces": ["eth0"], "tunables": {"peer_credits": 9}}]
        for role in LUSTRE
    },
    **{f"{role}_peers": [["10.0.0.1@tcp", "10.0.0.2@tcp"]] for role in LUSTRE},
    **{f"{role}_routes": [{"network": "o2ib", "gateway": "10.0.0.1@tcp"}] for role in LUSTRE},
    **{f"{role}_mount_timeout": 3571 for role in LUSTRE},
    **{f"{role}_version": "2.15.8-0" for role in LUSTRE},
    "cvmfs_client_alien_cache": "/srv/alien",
    "cvmfs_client_config_repository": "cvmfs-config.cern.ch",
    "cvmfs_client_domains": {"cern.ch": {"CVMFS_USE_GEOAPI": True}},
    "cvmfs_client_keys": {"cern.ch/cern.ch.pub": PUBLIC_PEM},
    "cvmfs_client_packages": ["cvmfs", "cvmfs-config-default", "cvmfs-fuse3"],
    "cvmfs_client_parameters": {"CVMFS_MAX_RETRIES": 3},
    "cvmfs_client_proxies": "http://squid1.example.org:3128",
    "cvmfs_client_repositories": "atlas.cern.ch",
    "cvmfs_client_repository_parameters": {"sft.cern.ch": {"CVMFS_MAX_RETRIES": 3}},
    "cvmfs_client_version": "2.13",
    "lustre_client_consumers": ["other.service"],
    "lustre_client_file_systems": [{"source": "10.0.0.1@tcp:/other", "path": "/lustre/other"}],
    "lustre_client_mount_options": ["flock"],
    "lustre_client_parameters": {"osc.*.max_rpcs_in_flight": 32},
    "lustre_server_file_systems": [
        {
            "name": "other",
            "targets": [
                {"kind": "mdt", "index": 0, "device": "/dev/sdc", "servers": ["host1"]},
                {"kind": "ost", "index": 0, "device": "/dev/sdd", "servers": ["host1"]},
            ],
        }
    ],
    "lustre_server_format": ["/dev/sdd"],
    "lustre_server_mgs": {"device": "/dev/sdz", "servers": ["host1"]},
    "lustre_server_nids": {"host1": ["10.0.0.9@tcp"]},
    "shared_home_clients": [["10.0.0.3"]],
    "shared_home_options": ["noatime"],
    "shared_home_quota": "8G",
    "shared_home_user_quotas": {"ada": "9G"},
    "shared_home_server": "homes.example.org",
    "shared_home_source": "nfs.example.org:/other",
}
NEEDS: dict[str, dict[str, Any]] = {
    "cvmfs_client_alien_cache": {"cvmfs_client_quota": -1, "cvmfs_client_alien_cache": "/srv/one"},
    "cvmfs_client_idle_timeout": {"cvmfs_client_mount": "systemd-automount"},
    **dict.fromkeys(("shared_home_quota", "shared_home_quota_files", "shared_home_user_quotas"), LOCAL),
    "shared_home_clients": CLUSTER,
    "shared_home_server": {**CLUSTER, "shared_home_server": "10.0.0.1"},
}
WITH: dict[str, dict[str, Any]] = {"shared_home_kind": LOCAL}
FOUND: dict[str, dict[str, Answer]] = {
    "shared_home_clients": {
        "Export | List the exports of the server": {
            "stdout": "/srv/home  10.0.0.2(sync,wdelay)\n/srv/home  10.0.0.3(sync,wdelay)"
        }
    }
}
REFUSED: dict[str, str] = {
    "cvmfs_client_source": "cvmfs_client_source is preinstalled, and host1 has no CernVM-FS client",
    "lustre_server_nids": "lustre_server_nids",
}

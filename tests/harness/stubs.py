"""Results of modules on a fake new host, which is empty and where all started units run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from harness.recording import Answer, Call

DEBIAN = {
    "architecture": "x86_64",
    "date_time": {"epoch": "1780000000"},
    "hostname": "host1",
    "distribution": "Debian",
    "distribution_major_version": "12",
    "distribution_release": "bookworm",
    "distribution_version": "12.11",
    "fqdn": "host1.example.org",
    "kernel": "6.1.0-40-amd64",
    "os_family": "Debian",
    "pkg_mgr": "apt",
    "service_mgr": "systemd",
}
# Prefix of secrets, by which tests find them in any output.
SECRET = "secret-of-the-test-"
# A key that is in no use anywhere.
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl ada@desk"
# Result of ``mig_partition`` for a no-op.
PARTITIONED = {
    "slices": [],
    "machine": ["GPU-1"],
    "layout": [{"gpu": "GPU-1", "mig_enabled": True, "partitions": [{"profile": "1g.10gb", "start": 0}]}],
    "mapped": [],
    "reboot_required": False,
}


def _key() -> tuple[str, str]:
    """Return what has the form of an OpenPGP key, and its fingerprint (RFC 4880, 5.5.2, 6.2 and 12.2)."""
    body = b"\x04\x00\x00\x00\x00\x01"
    armor = base64.b64encode(b"\x98" + bytes([len(body)]) + body).decode()
    text = f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{armor}\n-----END PGP PUBLIC KEY BLOCK-----\n"
    return text, hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()


APT_KEY, APT_KEY_FINGERPRINT = _key()


def encoded(text: str) -> dict[str, str]:
    """Result of ``slurp`` for a file."""
    return {"content": base64.b64encode(text.encode()).decode()}


def said(text: str) -> dict[str, Any]:
    """Result of a successful command."""
    return {
        "rc": 0,
        "stdout": text,
        "stdout_lines": text.splitlines(),
        "stderr": "",
        "stderr_lines": [],
        "msg": "",
    }


def has(*paths: str) -> Callable[[Call], Mapping[str, Any]]:
    """Result of ``path_info`` if all paths exist that begin with one of these."""
    file = {"kind": "file", "mode": "0755", "owner": "root", "group": "root", "size": 1}
    return lambda call: {"found": {path: file for path in call.args["paths"] if path.startswith(paths)}}


def _zookeeper(call: Call) -> Mapping[str, Any]:
    """All servers serve; the first of several leads."""
    addresses = list(call.args["servers"])
    modes = ["standalone"] if len(addresses) == 1 else ["leader"] + ["follower"] * (len(addresses) - 1)
    servers = [
        {"address": address, "mode": mode, "reason": "", "version": "3.8.0", "connections": 1, "nodes": 5}
        for address, mode in zip(addresses, modes, strict=True)
    ]
    return {"serving": True, "problem": "", "leader": addresses[0] if addresses else "", "servers": servers}


def _secrets(call: Call) -> Mapping[str, Any]:
    """A secret by each name, which tells where it is from."""
    return {"secrets": {name: SECRET + name for name in call.args.get("names", [])}}


# A machine with Lustre's programs and modules, which uses none of them yet.
LUSTRE_MACHINE: dict[str, Any] = {
    "installed": True,
    "kernels": [
        {
            "release": DEBIAN["kernel"],
            "running": True,
            "version": "2.15.8",
            "built_for": DEBIAN["kernel"],
            "fits": True,
            "headers": True,
            "drivers": ["ksocklnd", "ko2iblnd"],
            "infiniband": "kernel",
        }
    ],
    "loaded_version": "",
    "interfaces": {"eth0": {"addresses": ["10.0.0.1"], "infiniband": False, "up": True}},
    "lnet": {"running": False, "answers": True, "written_by": "", "networks": []},
    "names": {},
    "services": {},
    "quotas": {},
    "servers": {},
    "mounts": [],
}
ALL_IS_WELL: dict[str, Answer] = {
    "ansible.builtin.apt": {"cache_updated": False},
    "ansible.builtin.command": said(""),
    "ansible.builtin.find": {"files": [], "matched": 0, "examined": 0},
    "ansible.builtin.getent": {"ansible_facts": {"getent_group": {}, "getent_passwd": {}}},
    "ansible.builtin.setup": {"ansible_facts": DEBIAN},
    "ansible.builtin.shell": said(""),
    "ansible.builtin.slurp": {"content": ""},
    "ansible.builtin.stat": {"stat": {"exists": False}},
    "ansible.builtin.systemd_service": {"status": {"ActiveState": "active", "SubState": "running"}},
    "ansible.builtin.uri": {"status": 200, "msg": "OK", "content": "", "json": {}},
    "ansible.builtin.user": {"uid": 990, "group": 990},
    "gpufarm.cluster.apt_source_info": {"packages": {}},
    "gpufarm.cluster.cdi_engines": {"engines": {}},
    "gpufarm.cluster.cdi_spec": {"devices": ["nvidia.com/gpu=all"], "path": "/run/cdi/nvidia.yaml"},
    "gpufarm.cluster.chronos_info": {"leader": "host1.example.org:8444", "jobs": []},
    "gpufarm.cluster.environment_modules": {"users": []},
    "gpufarm.cluster.environment_modules_info": {
        "silent": [],
        "missing": [],
        "rival": False,
        "tree": {"unsafe": "", "foreign": False, "shared": False, "taken": []},
        "toolkits": ["/usr/local/cuda-12.4"],
        "environments": [],
    },
    "gpufarm.cluster.gpu_info": {
        "driver": {"version": "570.133.20", "kernel_module_kind": "open"},
        "gpus": [
            {
                "uuid": "GPU-1",
                "name": "A100",
                "mig_capable": True,
                "mig_enabled": True,
                "mig_pending": True,
                "processes": [],
            }
        ],
        "slices": [],
    },
    "gpufarm.cluster.gpu_settings": {"gpus": [], "pending": [], "unreadable": []},
    "gpufarm.cluster.notebook_environments": {"kept": {}},
    "gpufarm.cluster.notebook_environments_info": {
        "versions": [],
        "python": "3.11",
        "processor": "x86_64",
        "driver": "580.95.05",
        "free": 1 << 40,
        "shared": False,
        "unsafe": "",
    },
    "gpufarm.cluster.slurm_accounts": {"commands": [], "users": {}},
    "gpufarm.cluster.listening_ports_info": {"listeners": []},
    "gpufarm.cluster.marathon_info": {
        "leader": "host1.example.org:8443",
        "version": "1.11.24",
        "features": ["gpu_resources"],
        "framework_id": "framework-1",
        "apps": [],
    },
    "gpufarm.cluster.lustre_info": LUSTRE_MACHINE,
    "gpufarm.cluster.role_record": lambda call: {
        "run": call.args.get("state", ""),
        "unchanged": False,
        "made": False,
        "done": {},
    },
    "gpufarm.cluster.lustre_target": {"formatted": [], "elsewhere": {}},
    "gpufarm.cluster.mesos_console": {"tasks": []},
    "gpufarm.cluster.mesos_info": {
        "leader": "host1",
        "version": "1.11.0",
        "agents": [],
        "quotas": [],
        "total": {},
        "free": {},
        "weights": {},
    },
    "gpufarm.cluster.mig_partition": PARTITIONED,
    "gpufarm.cluster.oidc_client": {
        "client_id": "client",
        "provider": {
            "issuer": "https://iam.example.org/",
            "authorization_endpoint": "https://iam.example.org/authorize",
            "token_endpoint": "https://iam.example.org/token",
            "userinfo_endpoint": "https://iam.example.org/userinfo",
            "end_session_endpoint": "https://iam.example.org/logout",
        },
        "scopes": ["openid"],
    },
    "gpufarm.cluster.openpgp_key_info": {"key": APT_KEY, "fetched": True},
    "gpufarm.cluster.host_program": lambda call: {"path": f"/opt/gpufarm/bin/{call.args['name']}"},
    "gpufarm.cluster.path_info": {"found": {}},
    "gpufarm.cluster.secret_files": _secrets,
    "gpufarm.cluster.shared_home_info": {
        "problems": [],
        "file_system": "nfs",
        "mounted": False,
        "exists": True,
        "answers": True,
        "units": [],
        "connected": [],
        "exports_more": False,
    },
    "gpufarm.cluster.compose_project": {"containers": {}},
    "gpufarm.cluster.text_files": {"changed_files": []},
    "gpufarm.cluster.user_accounts": {"active": ["ada"], "locked": [], "ended": []},
    "gpufarm.cluster.zookeeper_info": _zookeeper,
}

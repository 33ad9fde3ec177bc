"""Mesos, Marathon, Chronos and what ZooKeeper keeps for them."""

from __future__ import annotations

from typing import Any

from harness.cases import cluster
from harness.certificates import CERTIFICATE, KEY, OTHER_CERTIFICATE
from harness.recording import Answer

IMAGE = f"mirror.example.org/image@sha256:{'1' * 64}"
FRAMEWORKS = ("chronos", "marathon")
MESOS = ("mesos_agent", "mesos_master")
PROVIDED: dict[str, dict[str, Any]] = {
    role: {f"{role}_certificate_file": CERTIFICATE, f"{role}_certificate_key_file": KEY}
    for role in FRAMEWORKS
}
TLS: dict[str, dict[str, Any]] = {
    prefix: {
        f"{prefix}_tls_certificate": "/etc/c.pem",
        f"{prefix}_tls_key": "/etc/k.pem",
        f"{prefix}_tls_ca": "/etc/ca.pem",
    }
    for prefix in (*(f"{role}_mesos" for role in FRAMEWORKS), *MESOS)
}
LOGIN: dict[str, dict[str, Any]] = {
    role: {f"{role}_mesos_principal": "one", f"{role}_mesos_secret": "one"} for role in FRAMEWORKS
}
VALUES: dict[str, Any] = {
    **{f"{role}_certificate_file": OTHER_CERTIFICATE for role in FRAMEWORKS},
    **{f"{role}_http_password": "another-password" for role in FRAMEWORKS},
    **{f"{role}_environment": {"TZ": "Europe/Rome"} for role in FRAMEWORKS},
    **{f"{role}_image": IMAGE for role in (*FRAMEWORKS, *MESOS)},
    **{f"{role}_ready_timeout": 71931 for role in FRAMEWORKS},
    **{f"{role}_jvm_options": "-Xmx513m" for role in FRAMEWORKS},
    **{f"{role}_mesos_master": "zk://other-mesos-master:2181/mesos" for role in FRAMEWORKS},
    **{f"{role}_mesos_masters": ["host1"] for role in FRAMEWORKS},
    **{f"{role}_zookeeper_servers": ["other-zookeeper-servers"] for role in FRAMEWORKS},
    **{f"{role}_version": "1.11.1" for role in MESOS},
    **{f"{role}_zookeeper": ["other-zookeeper:2181"] for role in MESOS},
    **{f"{role}_zookeeper_path": "/other-zookeeper-path" for role in MESOS},
    "chronos_flags": {"task_epsilon": 71932},
    "chronos_image_jar": "/other.jar",
    "chronos_name": "chronos-ada",
    "chronos_version": "3.0.3",
    "chronos_zookeeper": "other-zookeeper:2181",
    "chronos_zookeeper_login": "chronos:other",
    "marathon_features": ["vips"],
    "marathon_flags": {"task_launch_timeout": 300001},
    "marathon_version": "1.11.25",
    "marathon_zookeeper": "zk://other-zookeeper:2181/marathon",
    "mesos_agent_attributes": {"gpu_model": "other-attributes"},
    "mesos_agent_flags": {"registration_backoff_factor": "71931secs"},
    "mesos_agent_gpu_devices": [1],
    "mesos_agent_isolation": ["disk/du"],
    "mesos_agent_masters": ["host2"],
    "mesos_agent_masters_port": 23481,
    "mesos_agent_mig_gpus": "refuse",
    "mesos_agent_resources": {"cpus": 4, "mem": 8192, "disk": 10000, "ports": "31000-31999"},
    "mesos_master_acls": {"permissive": True},
    "mesos_master_flags": {"allocation_interval": "71931secs"},
    "mesos_master_masters": ["host1", "host2"],
    "mesos_master_principals": ["agent", "operator", "other"],
    "mesos_master_quotas": [{"role": "other", "limits": {"gpus": 2}}],
    "mesos_master_weights": {"other": 2},
    "zookeeper_commands": ["mntr", "srvr", "conf"],
    "zookeeper_machines": ["host1", "host2"],
    "zookeeper_packages": ["libzookeeper-java", "other-jre"],
    "zookeeper_servers": [{"id": 7, "name": "host1"}],
    "zookeeper_settings": {"tickTime": 3000},
}
NEEDS: dict[str, dict[str, Any]] = {
    **{f"{role}_tls": {f"{role}_listen_address": "127.0.0.1"} for role in FRAMEWORKS},
    **{
        name: {**TLS[f"{role}_mesos"], **LOGIN[role]}
        for role in FRAMEWORKS
        for name in (*TLS[f"{role}_mesos"], *LOGIN[role])
    },
    **{
        f"{role}_{name}": {f"{role}_certificate_type": "provided", **PROVIDED[role]}
        for role in FRAMEWORKS
        for name in ("certificate_file", "certificate_key_file")
    },
    **{name: {f"{role}_tls": "provided", **TLS[role]} for role in MESOS for name in TLS[role]},
    **{
        f"{role}_image": {f"{role}_source": "image", f"{role}_image": f"one@sha256:{'2' * 64}"}
        for role in (*FRAMEWORKS, *MESOS)
    },
    "chronos_image_jar": {"chronos_source": "image", "chronos_image": f"one@sha256:{'2' * 64}"},
    "marathon_zookeeper_servers": {"marathon_zookeeper": "", "marathon_zookeeper_servers": ["zk1"]},
    "mesos_agent_drain_timeout": {"mesos_agent_state": "absent"},
    "mesos_master_build": {"mesos_master_flags": {"cleanup_log_files": 5}},
    "mesos_agent_gpu_devices": {"mesos_agent_mig_gpus": "allow", "mesos_agent_gpu_devices": [0]},
    "mesos_agent_mig_gpus": {"mesos_agent_mig_gpus": "allow", "mesos_agent_gpu_devices": [0]},
}
WITH: dict[str, dict[str, Any]] = {
    **{f"{role}_certificate_type": PROVIDED[role] for role in FRAMEWORKS},
    **{f"{role}_tls": TLS[role] for role in MESOS},
}
FOUND: dict[str, dict[str, Answer]] = {
    "mesos_agent_drain_timeout": {"Remove | Check whether the unit exists": {"stat": {"exists": True}}},
    **{
        f"mesos_agent_{name}": {"gpufarm.cluster.mesos_info": cluster(gpus=1.0)}
        for name in ("gpu_devices", "mig_gpus")
    },
}
REFUSED: dict[str, str] = {
    "mesos_agent_build": "Apache Mesos 1.11.0 cannot use them",
    "mesos_master_build": "cleanup_log_files, which the master of Mesos 1.11 does not know",
    "mesos_agent_mig_gpus": "set mesos_agent_mig_gpus to allow",
}

"""For each role the least that it runs with, and what its modules find on the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._version import VERSION

from harness.certificates import CERTIFICATE
from harness.recording import Answer, Call
from harness.run import Run, run_role
from harness.specs import roles
from harness.stubs import APT_KEY_FINGERPRINT, DEBIAN, PUBLIC_KEY, encoded, has, said

# Files of hosts that variables name; others are all that begin with /srv/other.
TLS_FILES = ("/etc/c.pem", "/etc/k.pem", "/etc/ca.pem", "/srv/other")
JAVA = has("/usr/lib/jvm/java-8/bin/java", "/usr/lib/libmesos.so", *TLS_FILES)
TRIXIE = {
    "ansible_facts": {
        **DEBIAN,
        "distribution_major_version": "13",
        "distribution_release": "trixie",
        "distribution_version": "13.1",
    }
}
CHECKSUM = f"sha256:{'0' * 64}"


def cluster(**others: float) -> dict[str, Any]:
    """Result of ``mesos_info`` for an idle cluster, with more amounts for its machines."""
    amounts = {"cpus": 32.0, "mem": 64000.0, "disk": 100000.0, **others}
    return {
        "leader": "host1",
        "version": "1.11.0",
        "agents": [
            {
                "id": f"S{number}",
                "hostname": host,
                "port": port,
                "state": "active",
                "resources": amounts,
                "allocated": {},
                "attributes": {},
            }
            for number, (host, port) in enumerate((("host1", 5051), ("other-hostname", 5052)))
        ],
        "total": amounts,
        "free": amounts,
        "quotas": [],
        "weights": {},
    }


EMPTY_CACHE = {"path": "", "exists": False, "foreign": [], "total_mb": 90000, "answers": True}
# A machine with a rail of InfiniBand and one of soft RoCE.
FABRIC = {
    "adapters": [
        {
            "name": name,
            "pci": pci,
            "parent": parent,
            "firmware": "28.43.1014",
            "guid": "0000:0000:0000:0001",
            "ports": [
                {
                    "number": 1,
                    "state": "ACTIVE",
                    "physical_state": "LinkUp",
                    "rate": 100.0,
                    "link_layer": layer,
                    "interface": interface,
                    "errors": {},
                }
            ],
        }
        for name, pci, parent, layer, interface in (
            ("mlx5_0", "0000:3b:00.0", "", "InfiniBand", "ib0"),
            ("soft", "", "eth1", "Ethernet", "eth1"),
        )
    ],
    "interfaces": [
        {"name": "eth1", "kind": "ethernet", "pci": "", "mode": "", "addresses": ["198.51.100.7/24"]},
        {
            "name": "ib0",
            "kind": "infiniband",
            "pci": "0000:3b:00.0",
            "mode": "",
            "addresses": ["192.0.2.7/24"],
        },
    ],
    "kernel": "6.12.48+deb13-amd64",
    "soft_roce": True,
    "gpudirect": {"nvidia_peermem": "absent", "gdrdrv": "absent"},
}
# Targets of Lustre that run.
SERVED = {
    "services": dict.fromkeys(
        ("MGS", "scratch-MDT0000", "scratch-OST0000", "other-MDT0000", "other-OST0000"), "UP"
    ),
    "lnet": {"networks": [{"nid": "10.0.0.1@tcp"}]},
    "quotas": {},
}
# A package source that has Lustre for the kernel of the host.
LUSTRE: dict[str, Answer] = {
    "gpufarm.cluster.apt_source_info": {
        "packages": {
            f"lustre-{kind}-{name}": ["2.15.8-1", "2.15.8-0"]
            for kind in ("client", "server")
            for name in ("utils", "modules-dkms", f"modules-{DEBIAN['kernel']}")
        }
    },
}
# A driver that can be installed from anywhere, in place of an older one that runs.
DRIVER = {
    "plan": {
        "manager": "apt",
        "kernel_modules": "open",
        "dkms": "nvidia-current",
        "version": "570.133.20",
        "installed_version": "",
        "kernels": [DEBIAN["kernel"]],
        "left_out": [],
        "change": True,
        "repository": {},
        "components": {},
        "prerequisites": ["dkms"],
        "install": ["nvidia-driver"],
        "replaced": [],
        "files": {},
        "commands": [],
        "services": [],
        "disabled": [],
        "trial": "",
    },
    "machine": {"secure_boot": False, "loaded_version": "550.163.01", "nouveau_loaded": False, "gpus": []},
}


# The slurm.conf of a controller that gives users tokens, with accounting.
CONTROLLER_WITH_TOKENS = (
    "ClusterName=gpufarm\nSlurmctldHost=host2(10.0.0.2)\nAuthAltTypes=auth/jwt\n"
    "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=host2\nNodeName=n1\n"
)


def slurm_machine(call: Call) -> Mapping[str, Any]:
    """Result of ``slurm_machine_info`` for a machine with a GPU in slices."""
    return {
        "hostname": call.host,
        "cpus": 64,
        "sockets": 2,
        "cores_per_socket": 16,
        "threads_per_core": 2,
        "memory_mib": 256000,
        "devices": [{"model": "NVIDIA A100-SXM4-80GB", "mig": True, "slices": ["1g.10gb"] * 7}],
        "features": [],
        "installed_release": "",
        "offered_release": "24.11",
        "nvml_plugin": True,
    }


@dataclass(frozen=True)
class Case:
    """Variables of a role, and what the modules that it calls answer beside what is always so."""

    variables: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Answer] = field(default_factory=dict)
    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"host1": {}})
    elsewhere: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def with_answers(self, answers: Mapping[str, Answer]) -> Case:
        """Return the case with other answers where they are given."""
        return replace(self, answers={**self.answers, **answers})

    def run(
        self,
        role: str,
        changed: Mapping[str, Any] | None = None,
        extra: Mapping[str, str] | None = None,
        check: bool = False,
        entry: str = "main",
    ) -> Run:
        """Run the role, with other variables or such of the command line where given; or only check."""
        return run_role(
            role,
            {**self.variables, **(changed or {})},
            hosts=self.hosts,
            elsewhere=self.elsewhere,
            extra=extra,
            answers=self.answers,
            check=check,
            entry=entry,
        )


_CASES = {
    "app_gateway": Case(
        {
            "app_gateway_marathon_urls": ["https://master1.example.org:8443"],
            "app_gateway_marathon_user": "gateway",
            "app_gateway_marathon_password": "password",
            "app_gateway_public_host": "apps.example.org",
        },
        {
            "Verify | Wait until the routes are read from Marathon": encoded(
                '{"failure": "", "problems": []}'
            ),
            "Verify | Request a path that no app has": {
                "status": 404,
                "content": "No app has this address.",
            },
        },
    ),
    "chronos": Case(
        {
            "chronos_mesos_master": "zk://zk1:2181,zk2:2181,zk3:2181/mesos",
            "chronos_zookeeper": "zk1:2181,zk2:2181,zk3:2181",
            "chronos_archive_url": "https://mirror.example.org/chronos-3.0.2.jar",
            "chronos_archive_checksum": CHECKSUM,
            "chronos_java_home": "/usr/lib/jvm/java-8",
        },
        {"gpufarm.cluster.path_info": JAVA},
    ),
    "chronos_job": Case(
        {
            "chronos_job_urls": ["https://master1.example.org:4443"],
            "chronos_job_mesos_urls": ["https://master1.example.org:5050"],
            "chronos_job_definition": {"name": "ada.train", "command": "python3 train.py"},
        }
    ),
    "compose_project": Case(
        {
            "compose_project_name": "tracking",
            "compose_project_definition": {"services": {"web": {"image": "tracking:1"}}},
        },
    ),
    "container_request": Case(
        {
            "container_request_owner": "ada",
            "container_request_name": "lab",
            "container_request_image": "registry.example.org/lab/torch:2.5",
            "container_request_password": "a long password",
            "container_request_gateway": "apps.example.org",
            "container_request_marathon_urls": ["https://master1.example.org:8443"],
            "container_request_mesos_urls": ["https://master1.example.org:5050"],
        },
        {
            "gpufarm.cluster.mesos_info": cluster(gpus=2.0),
            "gpufarm.cluster.marathon_app": {
                "app": {"id": "/ada/lab", "portDefinitions": [{"port": 10001}]},
                "tasks": [{"id": "1", "host": "host1", "ports": [31000], "state": "TASK_RUNNING"}],
                "deployment": "",
            },
            "gpufarm.cluster.container_host_key": {
                "secret_env": {"HOST_KEY": "key"},
                "public_key": PUBLIC_KEY,
                "fingerprint": "SHA256:0",
            },
        },
    ),
    "cvmfs_client": Case(
        {
            "cvmfs_client_repositories": "sft.cern.ch software.eessi.io",
        },
        {
            "gpufarm.cluster.apt_source_info": {
                "packages": {name: ["2.13.1~1+debian12"] for name in ("cvmfs", "cvmfs-libs")}
            },
            "gpufarm.cluster.cvmfs_info": {
                "installed": False,
                "autofs": False,
                "repositories": [],
                "caches": dict.fromkeys(("managed", "alien"), EMPTY_CACHE),
                "servers": [],
                "nameless": [],
            },
            "ansible.builtin.getent": {"ansible_facts": {"getent_passwd": {"cvmfs": ["x", "990", "990"]}}},
        },
    ),
    "dcgm": Case(
        {
            "dcgm_source": "repository",
            "dcgm_apt_url": "https://mirror.example.org/cuda",
            "dcgm_apt_key_url": "https://mirror.example.org/cuda.asc",
            "dcgm_apt_key_fingerprint": APT_KEY_FINGERPRINT,
        },
        {
            "gpufarm.cluster.apt_source_info": {
                "packages": {
                    "datacenter-gpu-manager-4-core": ["1:4.5.3-1", "1:4.5.2-1"],
                    "datacenter-gpu-manager-4-cuda12": ["1:4.5.3-1", "1:4.5.2-1"],
                    "datacenter-gpu-manager-exporter": ["4.8.2-1", "4.8.1-1"],
                }
            },
            "Validate | Read the version of the driver": encoded(
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build  (dvs)\n"
            ),
            "Verify | Query the GPUs of DCGM": said("1 GPU found (Active).\n"),
            "Verify | Query the metrics of the exporter": {
                "status": 200,
                "content": 'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1"} 30\n',
            },
        },
    ),
    "environment_modules": Case(
        {"environment_modules_modules": [{"name": "gcc", "version": "13.2", "prefix": "/opt/gcc"}]}
    ),
    "fabric": Case(
        {
            "fabric_rails": [
                {"name": "compute", "device": "ib0", "mode": "connected"},
                {"name": "soft", "device": "eth1", "type": "soft_roce", "purpose": "data"},
            ],
            "fabric_source": "repository",
            "fabric_apt_url": "https://mirror.example.org/doca",
            "fabric_apt_key_url": "https://mirror.example.org/doca.asc",
            "fabric_apt_key_fingerprint": APT_KEY_FINGERPRINT,
        },
        {
            "ansible.builtin.setup": TRIXIE,
            "gpufarm.cluster.apt_source_info": {
                "packages": {"doca-ofed": ["3.2.1-1"], "other-ofed": ["3.2.1-1"]}
            },
            "gpufarm.cluster.fabric_info": FABRIC,
            "Verify | Ask UCX for its devices, as a user": said(
                "#      Transport: rc_mlx5\n#         Device: mlx5_0:1\n"
            ),
        },
    ),
    "gpu_health": Case(
        answers={"Verify | Check the health of the GPUs": said('{"status": "ok", "summary": "All is well."}')}
    ),
    "gpu_settings": Case({"gpu_settings_entries": [{"power_limit": "300"}]}),
    "slurm_accounting": Case(
        answers={
            "Configure | Query the rights in the database": said(
                "GRANT ALL PRIVILEGES ON `slurm_acct_db`.* TO `slurm`@`localhost`"
            ),
            "Remove | Find the database": said("slurm_acct_db"),
        },
        elsewhere={"host2": {}},
    ),
    "slurm_accounts": Case(
        {"slurm_accounts_cluster": "farm", "slurm_accounts_accounts": [{"name": "physics"}]},
        {
            "Validate | Query the settings of the controller": said(
                "AccountingStorageEnforce = associations,limits,qos,safe"
            )
        },
    ),
    "jupyterhub": Case(
        {
            "jupyterhub_public_host": "gpu1.example.org",
            "jupyterhub_iam_url": "https://iam.example.org/",
        },
        {
            "gpufarm.cluster.path_info": has("/srv/other", "/usr/bin/sbatch", "/usr/bin/unmunge"),
            "Validate | Query partitions, settings and accounts": said(
                "gpu*|gpu:a:1|notebooks\nsmall|gpu:a:1|notebooks\nalice"
            ),
            "Validate | Ask the Multi-Process Service for its options": said("-M,--multiuser-server"),
            "Validate | Look up the groups that may log in": lambda call: said(
                "".join(f"{name}:x:992:\n" for name in call.args["argv"][3:])
            ),
            "Verify | Query the hub as nodes do": {"status": 200, "json": {"version": "6.1.1"}},
            "ansible.builtin.getent": {
                "ansible_facts": {
                    "getent_group": {"jupyterhub-users": ["x", "991", "collaborative"]},
                    "getent_passwd": {"collaborative": ["x", "990", "990"]},
                }
            },
            "community.crypto.get_certificate": {"cert": Path(CERTIFICATE).read_text()},
            "Verify | Read the installed certificate": encoded(Path(CERTIFICATE).read_text()),
            "Verify | Query the hub by the notebooks' network": {"status": 200, "json": {"version": "6.1.1"}},
            "Verify | Request the login form": {"status": 200, "content": '<input name="password">'},
            "Verify | Query the version of the hub": {"status": 200, "json": {"version": "6.1.1"}},
            "Verify | Request the origin of notebooks": {
                "status": 200,
                "redirected": True,
                "json": {"version": "6.1.1"},
            },
            "Verify | Follow the login to the identity provider": {
                "status": 302,
                "location": "https://iam.example.org/authorize?client_id=client",
            },
        },
    ),
    "lustre_client": Case(
        {
            "lustre_client_file_systems": [{"source": "10.0.0.1@tcp:/home", "path": "/lustre/home"}],
            "lustre_client_apt_url": "https://mirror.example.org/lustre",
            "lustre_client_apt_key_url": "https://mirror.example.org/lustre.asc",
            "lustre_client_apt_key_fingerprint": APT_KEY_FINGERPRINT,
            "lustre_client_networks": [{"name": "tcp", "interfaces": ["eth0"]}],
        },
        LUSTRE,
    ),
    "lustre_server": Case(
        {
            "lustre_server_nids": {"host1": ["10.0.0.1@tcp"]},
            "lustre_server_mgs": {"device": "/dev/sdb", "servers": ["host1"]},
            "lustre_server_file_systems": [
                {
                    "name": "scratch",
                    "targets": [
                        {"kind": "mdt", "index": 0, "device": "/dev/sdc", "servers": ["host1"]},
                        {"kind": "ost", "index": 0, "device": "/dev/sdd", "servers": ["host1"]},
                    ],
                }
            ],
            "lustre_server_apt_url": "https://mirror.example.org/lustre",
            "lustre_server_apt_key_url": "https://mirror.example.org/lustre.asc",
            "lustre_server_apt_key_fingerprint": APT_KEY_FINGERPRINT,
            "lustre_server_networks": [{"name": "tcp", "interfaces": ["eth0"]}],
        },
        {**LUSTRE, "Verify | Query the targets": SERVED},
    ),
    "marathon": Case(
        {
            "marathon_mesos_master": "zk://zk1:2181,zk2:2181,zk3:2181/mesos",
            "marathon_zookeeper": "zk://zk1:2181,zk2:2181,zk3:2181/marathon",
            "marathon_archive_url": "https://mirror.example.org/marathon-1.11.24.tgz",
            "marathon_archive_checksum": CHECKSUM,
            "marathon_java_home": "/usr/lib/jvm/java-8",
            "marathon_libmesos": "/usr/lib/libmesos.so",
        },
        {
            "gpufarm.cluster.path_info": JAVA,
            "Install | Check that the archive contains the program": {"stat": {"exists": True}},
        },
    ),
    "marathon_app": Case(
        {
            "marathon_app_urls": ["https://master1.example.org:8443"],
            "marathon_app_mesos_urls": ["https://master1.example.org:5050"],
            "marathon_app_definition": {"id": "/ada/plots", "cpus": 2, "mem": 4096},
        }
    ),
    "mesos_agent": Case(
        {
            "mesos_agent_url": "https://mirror.example.org/mesos_1.11.0.deb",
            "mesos_agent_checksum": CHECKSUM,
            "mesos_agent_masters": ["host1"],
            "mesos_agent_zookeeper": ["zk1:2181"],
            "mesos_agent_tls": "none",
            "mesos_agent_resources": {"cpus": 4, "mem": 8192, "disk": 10000, "ports": "31000-32000"},
        },
        {
            "Validate | Inspect control groups, C library, kernel and devices": said(
                "cgroup2fs\nglibc 2.36\n6.1.0"
            ),
            "Validate | Inspect the GPUs": said("0, Enabled, GPU-0\n1, Disabled, GPU-1"),
            "gpufarm.cluster.mesos_info": cluster(),
            "gpufarm.cluster.path_info": has(*TLS_FILES),
        },
        hosts={"host1": {"ansible_host": "host1"}},
        elsewhere={"host2": {"ansible_host": "host2"}},
    ),
    "mesos_master": Case(
        {
            "mesos_master_url": "https://mirror.example.org/mesos_1.11.0.deb",
            "mesos_master_checksum": CHECKSUM,
            "mesos_master_zookeeper": ["zk1:2181"],
            "mesos_master_tls": "none",
        },
        {"gpufarm.cluster.path_info": has(*TLS_FILES)},
        elsewhere={"host2": {}},
    ),
    "benchmarks": Case(
        {
            "benchmarks_peers": ["host1", "host2"],
            "benchmarks_networks": ["192.0.2.0/24"],
            "benchmarks_folders": ["/scratch"],
        },
        answers={
            "Validate | List the addresses of both ends of links": said(
                '[{"ifname": "eth0", "addr_info": [{"local": "192.0.2.7"}]},'
                ' {"ifname": "eth1", "addr_info": [{"local": "198.51.100.7"}]}]'
            ),
            "gpufarm.cluster.path_info": has("/proc/driver/nvidia/gpus", "/srv/other"),
            "Measure | Read the versions of Open MPI of both ends": said("mpirun (Open MPI) 5.0.7\n"),
            "ansible.builtin.wait_for": {"match_groups": ["prterun-host2-7@0.0;tcp://192.0.2.7:4242:24"]},
            "gpufarm.cluster.benchmark": {
                "measured": True,
                "values": {"hpl_gflops": 1.0},
                "worse": [],
                "links": {},
            },
            "gpufarm.cluster.gpu_benchmark": {"measured": True, "values": {"hpl_gflops": 1.0}, "worse": []},
        },
        elsewhere={"host2": {}, "host3": {}},
    ),
    "mig": Case({"mig_partition_flavor": "7x 1g.10gb"}),
    "mpi": Case(
        {"mpi_process_networks": ["192.0.2.0/24"]},
        answers={
            "ansible.builtin.setup": TRIXIE,
            "Validate | List the addresses of the machine": said(
                '[{"ifname": "eth0", "addr_info": [{"local": "192.0.2.7"}]},'
                ' {"ifname": "eth1", "addr_info": [{"local": "198.51.100.7"}]}]'
            ),
        },
    ),
    "monitoring": Case(
        answers={
            "Validate | Check for Grafana": {"stat": {"exists": True}},
            "Configure | Check for services with a reader, and for readers": has(
                "/etc/systemd/system/slurmctld.service.d/gpufarm.conf",
                "/etc/mesos-master/secrets/principals/operator",
            ),
            "Verify | Query the targets of Prometheus": {
                "status": 200,
                "json": {"data": {"activeTargets": [{"labels": {"instance": "host1"}, "health": "up"}] * 2}},
            },
            "Certificates | Read the certificates of other hosts": encoded(
                "-----BEGIN CERTIFICATE-----\nhost2\n-----END CERTIFICATE-----\n"
            ),
        },
        hosts={"host1": {}},
        elsewhere={"host2": {"ansible_host": "host2"}},
    ),
    "network": Case(
        {
            "network_interfaces": [
                {"name": "bond0", "members": ["eth1", "eth2"], "addresses": ["192.0.2.7/24"]},
            ]
        },
        answers={
            "gpufarm.cluster.network_info": {
                "links": [
                    {"ifname": name, "mtu": 1500, "addr_info": []} for name in ("eth0", "eth1", "eth2")
                ],
                "connection": "198.51.100.7",
                "networkd": {"running": True, "files": {}},
                "files": {},
                "ifupdown": {},
                "networkmanager": [],
            },
            "gpufarm.cluster.network_validate": {
                "interfaces": [
                    {
                        "name": "bond0",
                        "addresses": ["192.0.2.7/24"],
                        "mtu": 1500,
                        "speed": 1000,
                        "partner": "",
                    }
                ]
            },
        },
    ),
    "notebook_environments": Case(
        {
            "notebook_environments_names": "scientific jax",
            "notebook_environments_more": [{"name": "tree", "setup": "source /srv/tree/setup.sh"}],
        }
    ),
    "nvidia_container": Case(),
    "nvidia_driver": Case(
        answers={
            "gpufarm.cluster.nvidia_driver_plan": DRIVER,
            "gpufarm.cluster.nvidia_driver_build": {
                "version": "570.133.20",
                "loaded_version": "550.163.01",
                "nouveau_loaded": False,
                "modules": [],
            },
        }
    ),
    "paas_service": Case(
        {
            "paas_service_public_host": "apps.example.org",
            "paas_service_issuers": [{"issuer": "https://iam.example.org/"}],
            "paas_service_templates": {"notebooks": {"template": "ml_infn"}},
            "paas_service_pool": {"all": {"hosts": {"gpu1": {}}}},
        },
        {
            "Install | Ask where the types of templates are": said("/opt/gpufarm-serve/collection"),
            "Key | Read the public key": said("ssh-ed25519 AAAA"),
            "Releases | Find the releases that a worker still uses": {**said(""), "rc": 1},
            "Verify | Request the version": {"status": 200, "json": {"build": {"version": VERSION}}},
        },
    ),
    "scratch": Case(
        {"scratch_path": "/scratch/areas", "scratch_quota": "1T", "scratch_quota_files": 5},
        answers={
            "Validate | Read the mounts of the machine": said(
                "21 1 8:2 / / rw - ext4 /dev/sda2 rw\n22 21 8:3 / /scratch rw - ext4 /dev/sdb1 rw,usrquota\n"
                "23 21 8:4 / /srv rw - ext4 /dev/sdc1 rw,usrquota\n"
            ),
        },
    ),
    "sssd": Case(
        {
            "sssd_servers": ["ldaps://ldap.example.org"],
            "sssd_bind_dn": "cn=reader,dc=example,dc=org",
            "sssd_bind_password": "given",
            "sssd_user_base": "ou=people,dc=example,dc=org",
            "sssd_group_base": "ou=groups,dc=example,dc=org",
        },
        answers={
            "gpufarm.cluster.sssd_directory_info": {"problems": [], "person": "ada", "groups": ["sudo"]},
            "Install | Query the version of SSSD": said("2.8.2-4+deb12u1"),
        },
    ),
    "staging": Case(
        {"staging_areas": "/scratch/areas/users", "staging_stores": [{"name": "bulk", "path": "/bulk"}]},
        answers={
            "Validate | Read the mounts of the machine": said(
                "21 1 8:2 / / rw - ext4 /dev/sda2 rw\n22 21 8:3 / /scratch rw - ext4 /dev/sdb1 rw\n"
                "23 21 8:4 / /srv rw - ext4 /dev/sdc1 rw\n24 21 0:9 / /bulk rw - lustre s:/bulk rw\n"
            ),
        },
    ),
    "shared_home": Case(
        {
            "shared_home_kind": "nfs",
            "shared_home_path": "/srv/home",
            "shared_home_source": "nfs.example.org:/export/home",
        }
    ),
    "notebook_node": Case(
        {},
        {
            "ansible.builtin.setup": TRIXIE,
            "Verify | Load the program of jobs": said("6.1.1"),
            "Remove | List the programs of notebooks": said(""),
        },
    ),
    "slurm_controller": Case(
        {"slurm_controller_nodes": ["host1"]},
        {
            "ansible.builtin.setup": TRIXIE,
            "gpufarm.cluster.slurm_machine_info": slurm_machine,
            "Configure | Read the marks of all controllers as Slurm": said("gpufarm-controller-host1"),
            "Verify | Ping the controllers": said("Slurmctld(primary) at host1 is UP"),
        },
        elsewhere={"host2": {}},
    ),
    "slurm_job": Case(
        {"slurm_job_owner": "ada", "slurm_job_name": "train", "slurm_job_command": "python3 train.py"},
        {
            "gpufarm.cluster.slurm_job": {
                "number": 17,
                "state": "waiting",
                "reason": "Resources",
                "exit_code": "",
                "stdout": "/home/ada/train-17.out",
                "stderr": "/home/ada/train-17.err",
            },
            "gpufarm.cluster.slurm_job_console": {"tasks": []},
        },
        elsewhere={"host2": {"ansible_host": "host2"}},
    ),
    "slurm_login": Case(
        {"slurm_login_controllers": ["host2"]},
        {
            "ansible.builtin.setup": TRIXIE,
            "gpufarm.cluster.slurm_machine_info": slurm_machine,
            "Verify | Query the partitions": said("gpu"),
        },
        elsewhere={"host2": {"ansible_host": "host2"}, "host3": {"ansible_host": "host3"}},
    ),
    "slurm_node": Case(
        {"slurm_node_controllers": ["host1"]},
        {
            "ansible.builtin.setup": TRIXIE,
            "gpufarm.cluster.slurm_machine_info": slurm_machine,
            "ansible.builtin.slurp": encoded("account required pam_unix.so\n"),
            "Verify | Query the controller for the node": said("idle gpu:1g.10gb:7 none"),
        },
        hosts={"host1": {"ansible_host": "host1"}},
        elsewhere={"host2": {"ansible_host": "host2"}},
    ),
    "slurm_rest": Case(
        {"slurm_rest_controllers": ["host2"]},
        {
            "ansible.builtin.setup": TRIXIE,
            "gpufarm.cluster.slurm_machine_info": slurm_machine,
            "Units | Query the units": said("\n\n".join(3 * ["ActiveState=inactive\nUnitFileState="])),
            "Validate | Read the configuration of the first controller": encoded(CONTROLLER_WITH_TOKENS),
            "Configure | List the versions of the interface": said(
                "data_parser/v0.0.42\ndata_parser/v0.0.40"
            ),
            "Verify | Get a token": said("SLURM_JWT=a.b.c"),
            "Verify | Ping the controllers over HTTPS": {
                "status": 200,
                "json": {"pings": [{"pinged": "UP"}]},
            },
            "Verify | Ping the controllers without a token": {"status": 401},
        },
        hosts={"host1": {"ansible_host": "apps.example.org"}},
        elsewhere={"host2": {"ansible_host": "host2"}, "host3": {"ansible_host": "host3"}},
    ),
    "user_accounts": Case(
        {"user_accounts_users": [{"os_user_name": "ada", "os_user_ssh_public_key": PUBLIC_KEY}]},
        {
            "Verify | Read the effective sshd settings of a user": said(
                "authorizedkeysfile /etc/ssh/gpufarm-users.d/%u\n"
                "authenticationmethods publickey\npasswordauthentication no"
            )
        },
    ),
    "zookeeper": Case(elsewhere={"host2": {}}),
}
# Other roles run with their defaults.
CASES: dict[str, Case] = {role: _CASES.get(role, Case()) for role in roles()}

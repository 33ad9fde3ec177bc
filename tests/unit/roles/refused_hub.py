"""Refusals of the roles of the hub and its users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.certificates import CERTIFICATE, EXPIRED, EXPIRED_KEY, KEY, OTHER_KEY
from harness.recording import Answer
from harness.stubs import PUBLIC_KEY, has, said
from refused import Refused


def hub(words: str, answers: Mapping[str, Answer] | None = None, /, **variables: Any) -> Refused:
    return Refused(words, {f"jupyterhub_{name}": value for name, value in variables.items()}, answers or {})


def ldap(words: str, **variables: Any) -> Refused:
    directory = {
        "url": "ldap://ldap.example.org",
        "bind_dn": "cn=hub,dc=example,dc=org",
        "bind_password": "password of the hub",
        "user_base": "ou=people,dc=example,dc=org",
        "group_base": "ou=groups,dc=example,dc=org",
        "group_filter": "(memberUid={uid})",
        "groups": ["GPU users"],
        "admin_groups": ["gpu-admins"],
        **variables,
    }
    return hub(words, login="ldap", **{f"ldap_{name}": value for name, value in directory.items()})


SHARED = {"profile": "1g.10gb", "notebooks": 4, "groups": ["course"]}


def shared(words: str, /, use_gpu: bool = True, **entry: Any) -> Refused:
    """A hub with one entry of shared slices."""
    return hub(words, use_gpu=use_gpu, shared_slices=[{**SHARED, **entry}])


QUESTIONS = "Validate | Query partitions, settings and accounts"


def told(partitions: str, settings: str = "", users: str = "alice") -> Answer:
    """The programs of a cluster, which print this."""
    answers = {"sinfo": partitions, "scontrol": settings, "sacctmgr": users}
    return lambda call: said(answers[call.args["argv"][2]])


def away(reason: str) -> Answer:
    """The programs of a cluster whose controller does not answer."""
    return {**said(""), "rc": 1, "stderr": reason}


def slurm(words: str, answer: Answer | None = None, client: bool = True, **variables: Any) -> Refused:
    """A hub with notebooks on a cluster."""
    answers: dict[str, Answer] = {QUESTIONS: answer} if answer else {}
    if not client:
        answers["gpufarm.cluster.path_info"] = has("/usr/bin/sbatch")
    chosen = {"spawner": "slurm", "login": "pam", "pam_groups": ["users"], **variables}
    return hub(words, answers, **chosen)


ACME = {
    "certificate_type": "letsencrypt-prod",
    "contact_email": "admin@example.org",
    "public_host": "hub.example.org",
}
REFUSED: dict[str, list[Refused]] = {
    "jupyterhub": [
        hub("jupyterhub_iam_url is empty", iam_url=""),
        hub(
            "Only one of jupyterhub_iam_client_id and jupyterhub_iam_client_secret is given",
            iam_client_id="made-by-hand",
        ),
        hub("are all empty, so nobody could log in", iam_groups="", iam_admin_groups=""),
        hub('jupyterhub_site_help_url is "javascript:alert(1)"; give', site_help_url="javascript:alert(1)"),
        hub('jupyterhub_site_help_url is "https:// x"; give', site_help_url="https:// x"),
        hub('jupyterhub_memory_choices is ["2 GB"]', memory_choices=["2 GB"]),
        hub("jupyterhub_cpu_choices is [2, 0]; give numbers of CPU cores above 0", cpu_choices=[2, 0]),
        hub(
            "An entry of jupyterhub_limits has a number out of range",
            limits=[{"name": "students", "servers": 0}],
        ),
        hub(
            "An entry of jupyterhub_limits has the memory 100M; give a whole number",
            limits=[{"name": "students", "memory": "100M"}],
        ),
        hub(
            "Two entries of jupyterhub_limits have the same name (a, a)",
            limits=[{"name": "a"}, {"name": "a"}],
        ),
        shared("jupyterhub_use_gpu is false, so no slice is offered", use_gpu=False),
        shared("1g.10g in jupyterhub_shared_slices is neither a MIG profile", profile="1g.10g"),
        shared(" in jupyterhub_shared_slices is neither a MIG profile", profile=""),
        shared("An entry of jupyterhub_shared_slices has notebooks 1; give", notebooks=1),
        shared("jupyterhub_shared_slices has the groups []; list at least one group", groups=[]),
        shared('has the groups ["/course"]; list at least one group', groups=["/course"]),
        shared('has the groups [""]; list at least one group', groups=[""]),
        hub(
            "asks for mps, which notebooks cannot reach with jupyterhub_spawner docker; leave mps out",
            spawner="docker",
            shared_slices=[{**SHARED, "mps": True}],
        ),
        hub(
            "cannot serve several users (its --help has no multiuser-server); install it",
            {"Validate | Ask the Multi-Process Service for its options": said("-d, --daemon")},
            shared_slices=[{**SHARED, "mps": True}],
        ),
        hub(
            "cannot start containers in notebooks with jupyterhub_spawner docker; set it to false",
            spawner="docker",
            images=[{"image": "registry.example.org/lab:1"}],
            containers=True,
        ),
        slurm("cannot start containers in notebooks with jupyterhub_spawner slurm", containers=True),
        hub(
            "the kernel of host1 gives users no namespaces (unshare: unshare failed: Operation not"
            " permitted); set user.max_user_namespaces above 0",
            {
                "Validate | Make namespaces of users and mounts without rights": {
                    "rc": 1,
                    "stderr": "unshare: unshare failed: Operation not permitted",
                }
            },
            containers=True,
        ),
        hub(
            "Two entries of jupyterhub_shared_slices have the same profile (1g.10gb, 1g.10gb)",
            shared_slices=[SHARED, SHARED],
        ),
        hub("jupyterhub_notebooks_ports is 21000; give the first and the last", notebooks_ports="21000"),
        hub("jupyterhub_notebooks_ports is 80-90; give the first and the last", notebooks_ports="80-90"),
        hub("jupyterhub_notebooks_ports is 21199-21000; give", notebooks_ports="21199-21000"),
        hub("among which is no other port of the hub (8888, 80", notebooks_ports="8800-8899"),
        hub("jupyterhub_notebooks_domain is *.example.org; give a domain", notebooks_domain="*.example.org"),
        hub("The hub itself (gpu1.example.org) must not be in it", notebooks_domain="example.org"),
        hub(
            "is not for *.nb.example.org, the names of notebooks",
            notebooks_domain="nb.example.org",
            certificate_type="provided",
            certificate_file=CERTIFICATE,
            certificate_key_file=KEY,
        ),
        hub("certifies no wildcard such as *.nb.example.org", **ACME, notebooks_domain="nb.example.org"),
        hub("the authority asks for the answer to its challenge at port 80", **ACME, http_port=0),
        hub("set jupyterhub_public_host to its full name", **{**ACME, "public_host": "10.0.0.1"}),
        hub(
            "jupyterhub_queue_patience_minutes or jupyterhub_queue_claim_minutes is not",
            queue_patience_minutes=0,
        ),
        hub("jupyterhub_queue_claim_minutes is not above 0", queue_claim_minutes=0),
        hub("jupyterhub_token_hours is 0 and jupyterhub_relogin_hours is 24; give", token_hours=0),
        hub("jupyterhub_relogin_hours is -1; give", relogin_hours=-1),
        hub("../theirs in jupyterhub_mounts is not a path", mounts=[{"source": "../theirs"}]),
        hub(
            "Two of jupyterhub_docker_subnet, jupyterhub_systemd_subnet are the same network"
            " (172.30.252.0, 172.30.252.0); give each a network of its own",
            docker_subnet="172.30.252.0/24",
        ),
        hub("jupyterhub_images is empty, so jupyterhub_spawner docker has nothing", spawner="docker"),
        hub(
            "jupyterhub_collaborative_image is empty, but notebooks are started with Docker",
            spawner="docker",
            images=[{"image": "registry.example.org/lab:1"}],
            collaborative=True,
        ),
        slurm("jupyterhub_collaborative is true, but its account is one of this machine", collaborative=True),
        slurm(
            "jupyterhub_mounts is set, but jobs of Slurm see the folders", mounts=[{"source": "/srv/other"}]
        ),
        slurm("is set, but Slurm gives out the GPUs of its nodes, by gres shard", shared_slices=[SHARED]),
        slurm('jupyterhub_slurm_partition is "gpu;x", which is no name', slurm_partition="gpu;x"),
        slurm("has no client of Slurm (sbatch or unmunge is not there); set it up", client=False),
        slurm(
            "Slurm does not answer on host1 (Unable to contact slurm controller);",
            away("Unable to contact slurm controller"),
        ),
        slurm("Slurm does not answer on host1 (no answer within a minute);", away("")),
        slurm("Slurm has no partition night; set jupyterhub_slurm_partition", slurm_partition="night"),
        slurm("Slurm has no default partition; set jupyterhub_slurm_partition", told("gpu|gpu:a30:1|x")),
        slurm(
            "No node of the partition runs notebooks (none has the feature notebooks); run the role",
            told("gpu*|gpu:a30:1|(null)\ngpu*|(null)|fast,notebooks-old\nsmall|gpu:a30:1|notebooks"),
        ),
        *(
            slurm("No node of the partition that runs notebooks has GPUs or slices with a type", told(lines))
            for lines in (
                "gpu*|gpu:4(S:0)|notebooks",
                "gpu*|gpu:4|notebooks",
                "gpu*|(null)|notebooks",
                "gpu*|(null)|fast,notebooks\ngpu*|gpu:a30:1|fast",
            )
        ),
        slurm(
            "Slurm runs jobs of declared accounts only, and no user has one; declare them with the role",
            told(
                "gpu*|gpu:a30:1|notebooks",
                "AccountingStorageEnforce = associations,limits,qos,safe",
                "root\n\n",
            ),
        ),
        hub("must both be given", certificate_type="provided"),
        hub(
            "is not the certificate of the key",
            certificate_type="provided",
            certificate_file=CERTIFICATE,
            certificate_key_file=OTHER_KEY,
        ),
        hub(
            "old.pem expired at",
            certificate_type="provided",
            certificate_file=EXPIRED,
            certificate_key_file=EXPIRED_KEY,
        ),
        ldap("jupyterhub_ldap_url is ''", url=""),
        ldap("give your directory's servers", url="ldap.example.org"),
        ldap("jupyterhub_ldap_user_base is empty", user_base=""),
        ldap("Only one of jupyterhub_ldap_bind_dn and jupyterhub_ldap_bind_password", bind_dn=""),
        ldap("is no filter", group_filter="(member=*)"),
        ldap(
            "jupyterhub_ldap_groups and jupyterhub_ldap_admin_groups are both empty",
            groups=[],
            admin_groups=[],
        ),
        hub(
            "has no group no-such-group;",
            {"Validate | Look up the groups that may log in": {**said("sudo:x:27:"), "rc": 2}},
            login="pam",
            pam_groups=["no-such-group"],
            pam_admin_groups=["sudo"],
        ),
        hub(
            "jupyterhub_pam_groups and jupyterhub_pam_admin_groups are both empty",
            login="pam",
            pam_groups=[],
            pam_admin_groups=[],
        ),
        hub(
            "nobodys of jupyterhub_file_groups is no group of",
            {
                "Validate | Look up the groups of files": {
                    "rc": 2,
                    "stdout": "mlfiles:x:1001:",
                    "stdout_lines": ["mlfiles:x:1001:"],
                    "stderr": "",
                }
            },
            file_groups={"ml-infn": "mlfiles", "ml-infn-users": "nobodys"},
        ),
        hub("/srv/nowhere of jupyterhub_mounts is not on", mounts=[{"source": "/srv/nowhere"}]),
        hub(
            "jupyterhub_backup_schedule is sometimes, which is no calendar event of systemd",
            {
                "Validate | Parse the schedule of backups": {
                    "rc": 1,
                    "stdout": "",
                    "stderr": "Failed to parse calendar specification 'sometimes': Invalid argument",
                }
            },
            backup_schedule="sometimes",
        ),
    ],
    "monitoring": [
        Refused("monitoring_servers names nobody", {"monitoring_servers": ["nobody"]}),
        Refused(
            "monitoring_machines names host1, which is this machine", {"monitoring_machines": [["host1"]]}
        ),
        Refused(
            "monitoring_hub_machines names host1, which is this machine",
            {"monitoring_hub_machines": [["host1"]]},
        ),
        Refused("'Noise', which is no alert", {"monitoring_muted_alerts": ["Noise"]}),
        Refused("monitoring_alert_mail_from is ''", {"monitoring_alert_mail_to": ["ops@example.org"]}),
        Refused(
            "The URL of entry 1 in monitoring_alert_webhooks",
            {"monitoring_alert_webhooks": [{"url": "http://chat.example.org"}]},
        ),
        Refused(
            "has no /etc/grafana/provisioning",
            {"monitoring_grafana": True},
            {"Validate | Check for Grafana": {"stat": {"exists": False}}},
        ),
    ],
    "user_accounts": [
        Refused(
            "has the option 'command' before the key",
            {
                "user_accounts_users": [
                    {"os_user_name": "cyd", "os_user_ssh_public_key": f'command="/bin/date" {PUBLIC_KEY}'}
                ]
            },
        )
    ],
}

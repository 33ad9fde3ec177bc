"""The services run, nothing is open that should be closed."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest


@pytest.mark.parametrize("name", ["jupyterhub", "jupyterhub-proxy"])
def test_services_run_now_and_after_a_reboot(host, name):
    assert host.service(name).is_running
    assert host.service(name).is_enabled


def test_only_the_proxy_is_reached_from_outside(host):
    listening = {
        entry.rpartition(":")[2]: entry for entry in host.socket.get_listening_sockets() if "tcp" in entry
    }
    assert "8888" in listening
    assert listening["8081"] == "tcp://127.0.0.1:8081"
    assert listening["8001"] == "tcp://127.0.0.1:8001"


def test_the_proxy_is_not_root(host):
    pid = host.check_output("systemctl show --property=MainPID --value jupyterhub-proxy")
    assert host.process.get(pid=pid).user != "root"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/jupyterhub/secrets/hub.env",
        "/etc/jupyterhub/secrets/proxy.env",
        "/etc/jupyterhub/secrets/oidc_client.json",
        "/etc/jupyterhub/secrets/cookie_secret",
        "/etc/jupyterhub/tls/key.pem",
        "/etc/jupyterhub/tls/ca-key.pem",
        "/var/lib/jupyterhub/jupyterhub.sqlite",
        "/var/log/jupyterhub/audit.jsonl",
    ],
)
def test_secrets_are_roots_alone(host, path):
    file = host.file(path)
    assert (file.user, file.mode & 0o077) == ("root", 0)


def test_no_secret_is_seen_in_the_process_list(host):
    secrets = host.check_output("cat /etc/jupyterhub/secrets/*.env | cut -d = -f 2").split()
    arguments = host.check_output("ps -eo args")
    assert len(secrets) == 2
    assert not [secret for secret in secrets if secret in arguments]


def test_generated_files_say_where_they_come_from(host):
    for path in ("/etc/jupyterhub/jupyterhub_config.py", "/etc/systemd/system/jupyterhub.service"):
        assert host.file(path).contains("Ansible managed")


def test_the_audit_log_is_rotated(host):
    host.run_expect([0], "logrotate --debug /etc/logrotate.d/jupyterhub")


def test_a_second_hub_of_the_machine_is_refused(host):
    code = "from gpufarm_hub.upkeep import alone; alone.on_this_machine()"
    asked = host.run(f'/opt/jupyterhub/bin/python -c "{code}"')
    pid = host.check_output("systemctl show --property=MainPID --value jupyterhub")
    assert f"The hub with process id {pid} hands out the GPU slices of this machine already" in asked.stderr


def test_the_certificate_belongs_to_the_address(host, facts):
    verify = f"openssl verify -CAfile ca.crt -verify_ip {facts['address']} cert.pem"
    assert host.check_output(f"cd /etc/jupyterhub/tls && {verify}").endswith("OK")

"""Certificates for clients, and their renewal."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import socket
import ssl
import time
from typing import Any

import httpx
import pytest

from lab.patience import PATIENCE

NAME = "hub.example.test"
OPTIONS: dict[str, Any] = {"trust_env": False, "timeout": PATIENCE}  # of httpx, which waits 5 s by default
# Makes a certificate of the same name and key of which less than a third of its time is left.
AGE = """
import datetime as dt
from pathlib import Path
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
base = "/var/lib/jupyterhub-acme/letsencrypt-prod/certificates/hub.example.test"
key = serialization.load_pem_private_key(Path(base + ".key").read_bytes(), None)
old = x509.load_pem_x509_certificate(Path(base + ".crt").read_bytes())
now = dt.datetime.now(dt.timezone.utc)
names = old.extensions.get_extension_for_class(x509.SubjectAlternativeName)
made = (x509.CertificateBuilder().subject_name(old.subject).issuer_name(old.subject)
    .public_key(key.public_key()).serial_number(1)
    .not_valid_before(now - dt.timedelta(days=80)).not_valid_after(now + dt.timedelta(days=10))
    .add_extension(names.value, False).sign(key, hashes.SHA256()))
Path(base + ".crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
"""


def shown(context: ssl.SSLContext) -> ssl.SSLSocket:
    """Return a connection to the hub."""
    plain = socket.create_connection((NAME, 443), timeout=PATIENCE)
    return context.wrap_socket(plain, server_hostname=NAME)


def test_a_client_that_knows_the_authority_trusts_the_hub(context):
    with shown(context) as connection:
        assert connection.version() == "TLSv1.3"


@pytest.mark.parametrize("version", ["tls1", "tls1_1"])
def test_old_protocols_are_refused(host, version):
    # Level 0, or the client itself would refuse.
    asked = host.run(
        f"openssl s_client -connect {NAME}:443 -{version} -cipher DEFAULT@SECLEVEL=0 < /dev/null"
    )
    assert "alert protocol version" in asked.stderr, asked.stderr


@pytest.mark.parametrize(
    "cipher",
    [
        "AES128-SHA",
        "AES256-GCM-SHA384",
        "ECDHE-ECDSA-AES128-SHA",
        "ECDHE-ECDSA-AES128-SHA256",
        "aNULL",
        "3DES",
    ],
)
def test_weak_ciphers_are_refused(host, cipher):
    asked = host.run(f"openssl s_client -connect {NAME}:443 -tls1_2 -cipher {cipher}@SECLEVEL=0 < /dev/null")
    assert asked.rc != 0


@pytest.mark.parametrize(
    "cipher",
    ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"],
)
def test_good_ciphers_are_taken(host, cipher):
    asked = host.run(f"openssl s_client -connect {NAME}:443 -tls1_2 -cipher {cipher} < /dev/null")
    assert f"Cipher is {cipher}" in asked.stdout


def test_browsers_are_told_to_use_https_only(context):
    answer = httpx.get(f"https://{NAME}/hub/login", verify=context, follow_redirects=True, **OPTIONS)
    assert answer.status_code == 200
    assert answer.headers["strict-transport-security"] == f"max-age={365 * 86400}"


def test_http_leads_to_https():
    answer = httpx.get(f"http://{NAME}/hub/login?next=%2F", **OPTIONS)
    assert (answer.status_code, answer.headers["location"]) == (302, f"https://{NAME}/hub/login?next=%2F")
    sent = httpx.post(f"http://{NAME}/hub/login", data={"password": "x"}, **OPTIONS)
    assert sent.status_code == 405


def test_the_account_that_got_the_certificate_can_do_no_more(host):
    folder = host.file("/var/lib/jupyterhub-acme/letsencrypt-prod")
    assert (folder.user, folder.mode) == ("jupyterhub-acme", 0o700)
    assert host.user("jupyterhub-acme").shell == "/usr/sbin/nologin"
    assert host.file("/etc/jupyterhub/tls/key.pem").mode == 0o600
    assert (
        "Permission denied"
        in host.run("runuser -u jupyterhub-acme -- cat /etc/jupyterhub/tls/key.pem").stderr
    )
    assert host.check_output("ls -A /var/lib/jupyterhub-acme/webroot/.well-known/acme-challenge") == ""


def test_a_certificate_is_renewed_while_connections_stay_open(host, context):
    with shown(context) as before:
        old = before.getpeercert(binary_form=True)
        host.run_expect([0], f"/opt/jupyterhub/bin/python - <<'END'\n{AGE}\nEND")
        pid = host.check_output("systemctl show --property=MainPID --value jupyterhub-proxy")
        host.check_output("systemctl start jupyterhub-certificate")
        end = time.monotonic() + PATIENCE
        new = old
        while new == old and time.monotonic() < end:
            with shown(context) as after:
                new = after.getpeercert(binary_form=True)
        assert new != old
        assert host.check_output("systemctl show --property=MainPID --value jupyterhub-proxy") == pid
        # The connection from before is still good for a request.
        before.sendall(f"GET /hub/api/ HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode())
        assert before.recv(100).startswith(b"HTTP/1.1 200")


def test_renewal_comes_by_itself(host):
    assert host.check_output("systemctl is-active jupyterhub-certificate.timer") == "active"
    assert host.service("jupyterhub-certificate.timer").is_enabled


def test_what_is_not_fit_to_be_shown_never_is(host, context):
    """A key that was lost or mixed up leaves the proxy with the certificate that it has."""
    with shown(context) as connection:
        before = connection.getpeercert(binary_form=True)
    host.check_output("cp -p /etc/jupyterhub/tls/key.pem /root/key.pem")
    try:
        host.check_output("openssl ecparam -name prime256v1 -genkey -noout -out /etc/jupyterhub/tls/key.pem")
        said = host.run("systemctl reload jupyterhub-proxy")
        assert said.rc != 0
        with shown(context) as connection:
            assert connection.getpeercert(binary_form=True) == before
    finally:
        host.check_output("cp -p /root/key.pem /etc/jupyterhub/tls/key.pem")
    host.check_output("systemctl reload jupyterhub-proxy")

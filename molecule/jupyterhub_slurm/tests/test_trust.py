"""Nobody but the hub and its proxy talks to a notebook, and they talk to no other program in its place."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import re

import pytest

# Listens with a certificate where a notebook was, and writes down what it is told.
IMPOSTER = """
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("told", self.path, self.headers, flush=True)
        self.send_response(200); self.end_headers(); self.wfile.write(b"trust me")
server = http.server.HTTPServer(("", int(sys.argv[1])), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
server.socket = context.wrap_socket(server.socket, server_side=True)
print("listening", flush=True)
server.serve_forever()
"""
# Takes certificate and key of a notebook out of the folder that only its job sees.
COPY = """
import os, shutil, socket
shutil.copy(os.environ["JUPYTERHUB_SSL_CERTFILE"], "/home/bob/of-a-notebook.crt")
shutil.copy(os.environ["JUPYTERHUB_SSL_KEYFILE"], "/home/bob/of-a-notebook.key")
print(socket.gethostname())
"""
# Prints who may open the folder of the key, and whether it is the user's.
FOLDER = """
import os
folder = os.stat(os.path.dirname(os.environ["JUPYTERHUB_SSL_KEYFILE"]))
print(oct(folder.st_mode & 0o777), folder.st_uid == os.getuid())
"""
# As a job asks the hub, with a number that somebody else's job has.
CLAIM = """
import json, subprocess, sys, urllib.request, ssl
payload = json.dumps({"job": int(sys.argv[1]), "port": 4000, "signing": ""})
munged = subprocess.run(["munge"], input=payload, text=True, capture_output=True, check=True).stdout.strip()
context = ssl._create_unverified_context()
request = urllib.request.Request(sys.argv[2], munged.encode(), method="POST")
try:
    print(urllib.request.urlopen(request, context=context).read())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


def address(host, owner):
    """Return machine address and port of a user's notebook, as the proxy knows them."""
    token = host.check_output("cut -d= -f2 /etc/jupyterhub/secrets/proxy.env")
    routes = json.loads(
        host.check_output("curl -sH %s http://127.0.0.1:8001/api/routes", f"Authorization: token {token}")
    )
    target = next(route["target"] for route in routes.values() if route.get("user") == owner)
    scheme, _slashes, place = target.partition("://")
    assert scheme == "https"
    return place.split(":")


@pytest.fixture
def node(machine, visit, host, bench):
    """Start a notebook of alice; return where it is."""
    alice = visit("alice")
    alice.spawn()
    place, port = address(host, "alice")
    name = next(entry["name"] for entry in bench["hosts"] if entry["address"] == place)
    return alice, machine(name), place, port


def test_a_notebook_answers_nobody_without_the_certificate_of_the_hub(host, node):
    _alice, there, place, port = node
    tried = there.run(f"runuser -u mallory -- curl -sSk https://{place}:{port}/user/alice/api")
    assert tried.rc != 0 and tried.stdout == ""
    ours = "--cert /etc/jupyterhub/nodes/cert.pem --key /etc/jupyterhub/nodes/key.pem"
    assert "version" in host.check_output(f"curl -sSk {ours} https://{place}:{port}/user/alice/api")


@pytest.fixture
def keys(node, host, visit, request):
    """Return a certificate and its key on the node, and who can read them."""
    _alice, there, place, _port = node
    if request.param == "of nobody":
        there.check_output(
            "cd /tmp && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
            f" -subj /CN=alice -addext subjectAltName=IP:{place} -keyout fake.key -out fake.crt"
            " && chown mallory fake.key fake.crt"
        )
        yield "/tmp/fake.crt", "/tmp/fake.key", "mallory"
        there.check_output("rm /tmp/fake.key /tmp/fake.crt")
        return
    bob, name = visit("bob"), there.check_output("hostname")
    (other,) = {"gpu1", "gpu2"} - {name}
    host.check_output("scontrol update nodename=%s state=drain reason=test", other)
    try:
        bob.spawn()
    finally:
        host.check_output("scontrol update nodename=%s state=resume", other)
    assert bob.execute(COPY).split() == [name]
    yield "/home/bob/of-a-notebook.crt", "/home/bob/of-a-notebook.key", "bob"
    there.check_output("rm /home/bob/of-a-notebook.crt /home/bob/of-a-notebook.key")


@pytest.mark.parametrize("keys", ["of nobody", "of another notebook"], indirect=True)
def test_another_program_at_the_port_of_a_notebook_is_told_nothing(host, node, keys, eventually, jobs):
    alice, there, _place, port = node
    certificate, key, user = keys
    url = alice.server_url() + "api/status"
    token = {"Authorization": "token secret"}
    assert alice._http.get(url, headers=token).status_code == 403  # by the notebook
    host.check_output("systemctl stop jupyterhub")  # which would take the route away
    try:
        host.check_output("scancel %s", jobs()["alice"])
        eventually(lambda: there.run("ss -Hltn sport = :%s", port).stdout == "")
        there.check_output(
            "systemd-run --quiet --collect --unit=imposter --property=StandardOutput=append:/tmp/told"
            " --uid=%s python3 -c %s %s %s %s",
            *(user, IMPOSTER, port, certificate, key),
        )
        eventually(lambda: there.run("grep -q listening /tmp/told").rc == 0)
        answer = alice._http.get(url, headers=token)
        assert answer.status_code == 503 and "trust me" not in answer.text
        assert "told" not in there.file("/tmp/told").content_string
    finally:
        there.run("systemctl stop imposter; rm -f /tmp/told")
        host.check_output("systemctl start jupyterhub")


def test_the_job_of_somebody_else_gets_nothing(host, machine, visit, eventually, jobs):
    # Nodes have no room for carol, so the hub waits for her job.
    host.check_output("scontrol update nodename=gpu[1-2] state=drain reason=test")
    try:
        carol = visit("carol")
        carol._api("POST", "/hub/api/users/carol/server", json={}).raise_for_status()
        eventually(lambda: "carol" in jobs("pending"))
        number = jobs("pending")["carol"]
        there, url = machine("gpu1"), "https://hub:8083/hub/api/gpufarm/job"
        claim = ["runuser -u bob -- python3 -c %s %s %s", CLAIM, number, url]
        assert there.check_output(*claim).startswith("403")
        claim[2] = "999999"
        assert there.check_output(*claim).startswith("404")
        told = there.run("printf nonsense | curl -sk --data-binary @- %s", url)
        assert '"status": 403' in told.stdout
        carol._api("DELETE", "/hub/api/users/carol/server").raise_for_status()
    finally:
        host.check_output("scontrol update nodename=gpu[1-2] state=resume")


def test_nothing_secret_is_in_what_slurm_keeps_or_shows(host, node, machine, jobs):
    alice, there, _place, _port = node
    secrets = alice.execute(
        "import os; print(os.environ['JUPYTERHUB_API_TOKEN']);"
        "print(open(os.environ['JUPYTERHUB_SSL_KEYFILE']).read().splitlines()[1])"
    ).split()
    assert len(secrets) == 2
    number = jobs()["alice"]
    shown = host.check_output("scontrol show job %s; scontrol write batch_script %s -", number, number)
    for secret in secrets:
        assert secret not in shown
        for one, folders in ((host, "/var/lib/slurm /var/log"), (there, "/var/lib/slurm /var/log /run")):
            assert one.run("grep -rqsF -- %s %s", secret, folders).rc != 0
            # Not the secret itself, or the command would find itself.
            pattern = f"[{secret[0]}]{re.escape(secret[1:])}"
            assert one.run("grep -qsaE -- %s /proc/[0-9]*/cmdline", pattern).rc != 0
    assert alice.execute(FOLDER).split() == ["0o700", "True"]


def test_keys_of_the_hub_are_roots(host):
    folder = host.file("/etc/jupyterhub/nodes")
    assert (folder.user, folder.mode) == ("root", 0o755)
    for name in ("ca-key.pem", "key.pem"):
        assert (host.file(f"{folder.path}/{name}").user, host.file(f"{folder.path}/{name}").mode) == (
            "root",
            0o600,
        )

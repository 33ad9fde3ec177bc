"""The interface as users reach it, and tokens of every kind."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import shlex
import ssl
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from testinfra.host import Host

PORT = 6820
API = "v0.0.42"


def on(machine: str, *command: str) -> str:
    """Return what a command prints on a machine of the bench."""
    done = subprocess.run(
        ["lab", "ssh", machine, "--", shlex.join(command)], capture_output=True, text=True, check=True
    )
    return done.stdout


def coded(part: bytes) -> str:
    """Return a part of a token."""
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def made(key: bytes, algorithm: str = "HS256", **claims: Any) -> str:
    """Return a token that is signed with a key; without a signature for the algorithm `none`."""
    head, body = ({"alg": algorithm, "typ": "JWT"}, claims)
    signed = ".".join(coded(json.dumps(part).encode()) for part in (head, body))
    if algorithm == "none":
        return f"{signed}."
    return f"{signed}.{coded(hmac.digest(key, signed.encode(), hashlib.sha256))}"


@dataclass
class Rest:
    """The interface."""

    address: str
    context: ssl.SSLContext

    def ask(
        self,
        path: str,
        token: str = "",
        method: str = "GET",
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """Return status and text of the answer."""
        given = {**({"X-SLURM-USER-TOKEN": token} if token else {}), **(headers or {})}
        connection = http.client.HTTPSConnection(self.address, PORT, context=self.context, timeout=90)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json", **given})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def submit(self, token: str, script: str, name: str = "job") -> tuple[int, Any]:
        """Return status and number of a job; no number if it was refused."""
        job = {
            "name": name,
            "current_working_directory": "/tmp",
            "environment": ["PATH=/usr/bin:/bin"],
            "standard_output": f"/home/alice/{name}.out",
        }
        status, text = self.ask(
            f"/slurm/{API}/job/submit", token, "POST", {"script": f"#!/bin/sh\n{script}\n", "job": job}
        )
        return status, json.loads(text).get("job_id") if status == 200 else None

    def state(self, token: str, number: int) -> str:
        """Return the state of a job; empty if the user is shown none."""
        status, text = self.ask(f"/slurm/{API}/job/{number}", token)
        jobs = json.loads(text)["jobs"] if status == 200 else []
        return jobs[0]["job_state"][0] if jobs else ""


@pytest.fixture(autouse=True)
def _only_there(host: Host) -> None:
    if host.check_output("hostname") != "rest":
        pytest.skip("another machine")


@pytest.fixture(scope="session")
def rest(bench: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Rest:
    """Return the interface, reached with the certificate that the role returns for clients."""
    path = tmp_path_factory.mktemp("rest") / "ca.crt"
    path.write_text(on("rest", "cat", "/etc/gpufarm/slurm-rest/self-signed.crt"))
    context = ssl.create_default_context(cafile=str(path))
    return Rest(next(one["address"] for one in bench["hosts"] if one["name"] == "rest"), context)


@pytest.fixture(scope="session")
def tokens() -> dict[str, str]:
    """Return a token of each user, as the user gets it."""
    return {
        user: on("ctl", "runuser", "-u", user, "--", "scontrol", "token", "lifespan=600")
        .strip()
        .removeprefix("SLURM_JWT=")
        for user in ("alice", "bob")
    }


@pytest.fixture(scope="session")
def key() -> bytes:
    """Return the key of the cluster, which nobody but root and Slurm has."""
    return on("ctl", "cat", "/etc/slurm/slurmctld-jwt.key").encode()


@pytest.fixture(scope="session")
def bad(tokens: dict[str, str], key: bytes) -> dict[str, dict[str, str]]:
    """Return headers that name nobody, by what is wrong with them."""
    now = int(time.time())
    alice: dict[str, Any] = {"iat": now, "exp": now + 600, "sun": "alice"}
    header = "X-SLURM-USER-TOKEN"
    good = tokens["alice"].split(".")
    other = coded(json.dumps({**alice, "sun": "bob"}).encode())
    return {
        "nothing": {},
        "a name only": {"X-SLURM-USER-NAME": "alice"},
        "no token": {header: "nonsense"},
        "an empty token": {header: ""},
        "dots": {header: ".."},
        "another key": {header: made(b"0" * 43, **alice)},
        "an empty key": {header: made(b"", **alice)},
        "no signature": {header: made(b"", "none", **alice)},
        "none, written otherwise": {header: made(key, "NONE", **alice)},
        "the signature left out": {header: ".".join([*good[:2], ""])},
        "another name in a signed token": {header: ".".join([good[0], other, good[2]])},
        "an algorithm with a public key": {header: made(key, "RS256", **alice)},
        "expired": {header: made(key, **{**alice, "exp": now - 1})},
        "no end": {header: made(key, iat=now, sun="alice")},
        "no user": {header: made(key, iat=now, exp=now + 600)},
        "the name of somebody else": {header: tokens["alice"], "X-SLURM-USER-NAME": "bob"},
        "the name of root": {header: tokens["alice"], "X-SLURM-USER-NAME": "root"},
        "two tokens": {header: tokens["alice"], "Authorization": f"Bearer {tokens['bob']}"},
        "a password": {"Authorization": "Basic YWxpY2U6YWxpY2U="},
    }

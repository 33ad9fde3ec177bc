# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host key of a container: read as ssh-keygen reads it, made once, and kept with the app."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._container_request import HOST_KEY
from ansible_collections.gpufarm.cluster.plugins.module_utils._ssh.host_key import (
    HostKeyProblem,
    fingerprint,
    public_key,
)
from ansible_collections.gpufarm.cluster.plugins.modules import container_host_key, marathon_app
from marathon_fakes import LOGIN, Instances, marathon, run

APP = {"id": "/ada/gpu", "cmd": "sleep 1000", "cpus": 1, "mem": 64}


def keygen(*words: str | Path) -> str:
    return subprocess.run(["ssh-keygen", *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module", params=["ed25519", "ecdsa", "rsa"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "key"
    keygen("-q", "-t", request.param, "-N", "", "-C", "a remark", "-f", path)
    return path


def test_a_key_is_read_as_ssh_keygen_reads_it(pair: Path) -> None:
    public = public_key(pair.read_text())
    assert public == " ".join(pair.with_suffix(".pub").read_text().split()[:2])
    assert fingerprint(public) == keygen("-l", "-f", pair).split()[1]


@pytest.mark.parametrize(
    "text", ["", "-----BEGIN OPENSSH PRIVATE" + " KEY-----", "YWJj", "b3BlbnNzaC1rZXktdjEA"]
)
def test_what_is_no_key_is_told(text: str) -> None:
    with pytest.raises(HostKeyProblem, match="private key"):
        public_key(text)


@pytest.fixture
def cluster() -> Iterator[Instances]:
    with marathon() as instances:
        yield instances


def test_the_key_of_an_app_is_made_once(
    monkeypatch: pytest.MonkeyPatch, cluster: Instances, tmp_path: Path
) -> None:
    user, password = LOGIN.split(":")

    def call(module: Any, check: bool = False, **arguments: Any) -> Any:
        access = {"urls": cluster.urls, "username": user, "password": password}
        return run(monkeypatch, module, check, **access, **arguments)

    first, other = (call(container_host_key, id="/ada/gpu") for _number in range(2))
    assert first["fingerprint"] != other["fingerprint"], "nobody has it yet"
    assert call(container_host_key, check=True, id="/ada/gpu")["fingerprint"] not in (
        "",
        first["fingerprint"],
    )
    assert call(marathon_app, app=APP, secret_env=first["secret_env"])["changed"]
    kept = call(container_host_key, id="/ada/gpu")
    assert kept == first and not kept["changed"]
    # It is a key that SSH's own programs take.
    path = tmp_path / "host_key"
    path.write_text(kept["secret_env"][HOST_KEY] + "\n")
    path.chmod(0o600)
    assert keygen("-y", "-f", path).strip() == kept["public_key"]
    # An app of another kind has none.
    assert call(marathon_app, app=APP)["changed"]
    assert call(container_host_key, id="/ada/gpu")["fingerprint"] != first["fingerprint"]
    call(marathon_app, app={**APP, "env": {HOST_KEY: "nonsense"}})
    damaged = call(container_host_key, id="/ada/gpu")
    assert damaged["msg"] == (
        "The variable GPUFARM_HOST_KEY of /ada/gpu is no private key in the format of OpenSSH; remove the"
        " container and ask for it again."
    )


def test_without_ssh_keygen_it_is_named(monkeypatch: pytest.MonkeyPatch, cluster: Instances) -> None:
    monkeypatch.setattr(container_host_key.AnsibleModule, "get_bin_path", lambda *_words, **_options: None)
    user, password = LOGIN.split(":")
    access = {"urls": cluster.urls, "username": user, "password": password}
    told = run(monkeypatch, container_host_key, id="/ada/gpu", **access)["msg"]
    assert told == "There is no ssh-keygen here to make a host key with; install OpenSSH's client."

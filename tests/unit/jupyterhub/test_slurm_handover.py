"""A job gets what its notebook needs when munge confirms whose it is, and nobody else gets anything."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import signal
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gpufarm_hub.slurm import handover, job
from gpufarm_hub.slurm.handover import Expected, HandoverError, JobHandler, Request
from gpufarm_hub.spawning import environments
from hypothesis import given
from hypothesis import strategies as st
from tornado.httpclient import AsyncHTTPClient, HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

GOOD = {"job": 12, "port": 41234, "signing": "-----BEGIN"}
# As unmunge of munge 0.5.16 writes it, with --keys=STATUS,UID --numeric.
UNMUNGE = """#!/bin/sh
sed 's/^MUNGE://' > $0.payload
uid=$(cut -d: -f1 $0.payload)
if [ "$uid" = bad ]; then
  echo "STATUS:          Invalid credential (8)" >&2
  exit 8
fi
printf 'STATUS:          Success (0)\\nUID:             %s\\n' "$uid" >&2
cut -d: -f2- $0.payload | tr -d '\\n' | sed 's/\\\\377/\\xff/'
"""


@pytest.fixture(autouse=True)
def unmunge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "unmunge"
    program.write_text(UNMUNGE)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


@pytest.fixture
def expected() -> Iterator[list[Request]]:
    """Wait for job 12 of user id 2001; return what it has asked with."""
    seen: list[Request] = []

    async def answer(request: Request) -> Mapping[str, Any]:
        seen.append(request)
        if request.port == 1:
            raise HandoverError("the node is not known")
        return {"environment": {"JUPYTERHUB_API_TOKEN": "secret"}}

    handover.EXPECTED[12] = Expected(2001, answer)
    yield seen
    del handover.EXPECTED[12]


class AloneHandler(JobHandler):
    """The handler without what the rest of the hub does for each request."""

    def prepare(self) -> None:
        """Ask for nobody's login."""

    def set_default_headers(self) -> None:
        """Set none."""

    def write_error(self, status_code: int, **_details: Any) -> None:
        """Show no page of the hub."""
        self.finish()

    def finish(self, chunk: Any = None) -> Any:
        """Answer without a look at the hub's database."""
        return RequestHandler.finish(self, chunk)


def post(body: str) -> HTTPResponse:
    """Send a credential to the hub as a job does."""

    async def send() -> HTTPResponse:
        handlers = [(handover.PATH, AloneHandler)]
        server = HTTPServer(Application(handlers, log_function=lambda _handler: None))
        socket, port = bind_unused_port()
        server.add_socket(socket)
        try:
            return await AsyncHTTPClient().fetch(
                f"http://127.0.0.1:{port}{handover.PATH}",
                method="POST",
                body=body,
                raise_error=False,
                request_timeout=9,
            )
        finally:
            server.stop()

    return asyncio.run(send())


def credential(uid: object, **changed: object) -> str:
    return f"MUNGE:{uid}:{json.dumps({**GOOD, **changed})}"


def test_the_job_that_is_waited_for_gets_what_it_needs(expected: list[Request]) -> None:
    answer = post(credential(2001))
    assert answer.code == 200
    assert json.loads(answer.body) == {"environment": {"JUPYTERHUB_API_TOKEN": "secret"}}
    assert expected == [Request(2001, 12, 41234, "-----BEGIN")]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (credential(2002), 403),
        (credential(0), 403),
        (credential("bad"), 403),
        (credential(2001, job=13), 404),
        (credential(2001, job="12"), 403),
        (credential(2001, job=True), 403),
        (credential(2001, port=0), 403),
        (credential(2001, port=65536), 403),
        (credential(2001, signing=None), 403),
        ("MUNGE:2001:nonsense", 403),
        ("MUNGE:2001:[]", 403),
        ("MUNGE:2001:" + "[" * 50000, 403),
        ("MUNGE:2001:\\377", 403),
        ("x" * (handover.LONGEST + 1), 413),
    ],
)
def test_everybody_else_gets_nothing(expected: list[Request], body: str, code: int) -> None:
    answer = post(body)
    assert answer.code == code
    assert b"secret" not in (answer.body or b"")
    assert expected == []


def test_a_job_asks_again_when_the_hub_cannot_answer(expected: list[Request]) -> None:
    assert post(credential(2001, port=1)).code == 503


@given(payload=st.text(max_size=60))
def test_no_payload_breaks_the_hub(payload: str) -> None:
    with contextlib.suppress(HandoverError):
        assert handover.read(2001, payload).uid == 2001


@given(owner=st.text(max_size=80), other=st.text(max_size=80))
def test_names_in_certificates_are_names_of_hosts_and_differ(owner: str, other: str) -> None:
    name = handover.name_of(owner)
    assert len(name) < 64 and name.isascii() and name.removesuffix(".notebook").isalnum()
    assert (name == handover.name_of(other)) == (owner == other)


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Run a job, of which the hub tells some things; return what its notebook server is given."""
    server = tmp_path / "jupyterhub-singleuser"
    words = '"$(umask)" "$JUPYTER_PATH" "$@"'
    server.write_text(f'#!/bin/sh\nfor word in {words}; do echo "$word"; done > $HOME/given\n')
    server.chmod(0o755)
    account = pwd.struct_passwd(("alice", "x", 2001, 2001, "", str(tmp_path), "/bin/bash"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: account)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(signal, "signal", lambda *_arguments: None)
    monkeypatch.setattr(environments, "read", partial(environments.read, tmp_path / "environments.json"))
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.chdir(tmp_path)

    def started(**told: Any) -> list[str]:
        answer = {"certificate": "", "environment": {}, "arguments": ["--port=1"], **told}
        monkeypatch.setattr(job, "ask", lambda *_arguments: answer)
        before = os.umask(0o077)
        try:
            assert job.run({"authority": ""}, tmp_path) == 0
        finally:
            os.umask(before)
        return (tmp_path / "given").read_text().splitlines()

    return started


def test_the_files_of_a_notebook_are_as_open_as_on_one_machine(start: Callable[..., list[str]]) -> None:
    assert start()[0] == "0022"


COURSE = {"name": "course", "title": "Course", "groups": ["physics"], "path": "/opt/course"}
FOR_ALL = {"name": "scientific", "title": "Scientific Python", "groups": [], "path": "/opt/scientific"}


@pytest.mark.parametrize(
    ("index", "told", "paths", "first"),
    [
        ([COURSE, FOR_ALL], {"groups": ["physics"]}, "/opt/course:/opt/scientific", "course"),
        ([COURSE, FOR_ALL], {"groups": ["chemistry"]}, "/opt/scientific", "scientific"),
        # The hub is that of the version before, while the cluster is updated.
        ([COURSE, FOR_ALL], {}, "/opt/scientific", "scientific"),
        ([], {"groups": ["physics"]}, "", ""),
        (None, {"groups": ["physics"]}, "", ""),
        ("damaged", {"groups": ["physics"]}, "", ""),
    ],
)
def test_a_notebook_has_the_environments_of_its_node_that_its_user_is_offered(
    start: Callable[..., list[str]], tmp_path: Path, index: Any, told: dict[str, Any], paths: str, first: str
) -> None:
    if index is not None:
        (tmp_path / "environments.json").write_text(json.dumps({"environments": index}))
    _umask, seen, *arguments = start(**told)
    assert (seen, arguments[0]) == (paths, "--port=1")
    assert any(word.endswith(f"default_kernel_name={first}") for word in arguments) == bool(first)
    assert len(arguments) == (3 if first else 1)


ALICE = pwd.struct_passwd(("alice", "x", 2001, 2001, "", "/home/alice", "/bin/zsh"))


def test_a_notebook_has_its_slice_and_what_prologs_of_tasks_give_to_jobs() -> None:
    own = {"CUDA_VISIBLE_DEVICES": "MIG-1", "JOB_SCRATCH": "/scratch/jobs/12", "PATH": "/bin", "HOME": "/"}
    made = job.environment(own, ALICE, {"JUPYTERHUB_API_TOKEN": "t", "LANG": "C.UTF-8"})
    assert (made["CUDA_VISIBLE_DEVICES"], made["JOB_SCRATCH"]) == ("MIG-1", "/scratch/jobs/12")
    assert (made["HOME"], made["USER"], made["SHELL"]) == ("/home/alice", "alice", "/bin/zsh")
    assert (made["JUPYTERHUB_API_TOKEN"], made["LANG"]) == ("t", "C.UTF-8")
    assert made["PATH"] == f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"


def test_what_a_notebook_starts_is_no_part_of_its_job() -> None:
    of_slurm = {"SLURM_JOB_ID": "12", "SLURM_EXPORT_ENV": "NIL", "SLURM_MEM_PER_NODE": "1024"}
    of_slurm |= {"SLURMD_NODENAME": "gpu1", "HOSTNAME": "gpu1", "ENVIRONMENT": "BATCH"}
    of_launchers = {"HYDRA_BOOTSTRAP": "slurm", "I_MPI_HYDRA_BOOTSTRAP": "slurm"}
    of_launchers |= {"OMPI_MCA_plm_slurm_args": "--external", "PRTE_MCA_plm_slurm_args": "--external"}
    of_the_cluster = {"SLURM_CONF": "/run/slurm.conf", "SLURM_MPI_TYPE": "pmix"}
    made = job.environment({**of_slurm, **of_launchers, **of_the_cluster}, ALICE, {})
    assert not {*of_slurm, *of_launchers} & made.keys()
    assert made.items() >= of_the_cluster.items()


def test_a_notebook_without_a_gpu_sees_none() -> None:
    assert job.environment({}, ALICE, {})["CUDA_VISIBLE_DEVICES"] == ""

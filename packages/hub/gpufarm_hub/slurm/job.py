# SPDX-License-Identifier: GPL-3.0-or-later
"""The program of a notebook's job: ``python -m gpufarm_hub.slurm.job``, on a node, under the user's account.

It fetches from the hub what the notebook needs (`handover`) and runs the notebook server, whose kernels are
the environments of the node (role notebook_environments). Its standard input has ``hub``, the hub's address
for nodes, and ``authority``, the certificate of the hub's authority (PEM).
"""

from __future__ import annotations

import ctypes
import json
import os
import pwd
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from gpufarm_hub.spawning import environments
from gpufarm_hub.spawning.environments import Environment

PATIENCE = 900  # seconds for which the hub may be away, or not wait for the job yet
PAUSE = 2  # seconds
TIMEOUT = 60  # seconds that munged and the hub may take to answer

UMASK = 0o022  # of the notebook, as on one machine; that of the hub, which sbatch passes on, is stricter

PR_SET_NO_NEW_PRIVS = 38  # prctl(2)

# Beginnings of variables that describe the job to programs. Users submit jobs from notebooks: by these,
# srun and MPI would start parts of the notebook's own job, without variables, and jobs inherit its memory.
OF_THE_JOB = (
    "ENVIRONMENT",
    "HOSTNAME",
    "HYDRA_",
    "I_MPI_HYDRA_",
    "OMPI_MCA_plm_slurm_",
    "PRTE_MCA_plm_slurm_",
    "SLURM",
)
# But these tell programs of Slurm where the cluster is, and srun what starts MPI.
OF_THE_CLUSTER = ("SLURM_CONF", "SLURM_MPI_TYPE")


class JobError(Exception):
    """There can be no notebook; the text is for its user, in the log of the job."""


def environment(
    own: Mapping[str, str], account: pwd.struct_passwd, told: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of the notebook.

    The job has none of the hub's (`submission.arguments`), so it is Slurm's and what prologs of tasks export.

    Args:
        own: that of the job.
        account: the user's.
        told: what the hub says.
    """
    kept = {
        name: value
        for name, value in own.items()
        if name in OF_THE_CLUSTER or not name.startswith(OF_THE_JOB)
    }
    return {
        **kept,
        "CUDA_VISIBLE_DEVICES": own.get("CUDA_VISIBLE_DEVICES", ""),
        "HOME": account.pw_dir,
        "LOGNAME": account.pw_name,
        "USER": account.pw_name,
        "SHELL": account.pw_shell or "/bin/sh",
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        **told,
    }


def kernels(groups: Sequence[str]) -> list[Environment]:
    """Return the environments of this node that are offered to members of these groups.

    A notebook starts also where it is not known which there are.
    """
    try:
        return environments.seen_by(environments.read(), groups)
    except environments.EnvironmentsError as error:
        print(f"The notebook has the Python of the hub only: {error}.", file=sys.stderr)
        return []


def free_port() -> int:
    """Return a port at which nobody listens; who takes it meanwhile has no certificate of the notebook."""
    with socket.socket() as server:
        server.bind(("", 0))
        number: int = server.getsockname()[1]
        return number


def ask(settings: Mapping[str, str], job: int, port: int, signing: str) -> dict[str, Any]:
    """Return what the hub hands over; wait for a hub that is away.

    Raises:
        JobError: it hands over nothing.
    """
    context = ssl.create_default_context(cadata=settings["authority"])
    # No proxy of the site is on the way.
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context))
    payload = json.dumps({"job": job, "port": port, "signing": signing})
    deadline = time.monotonic() + PATIENCE
    problem = ""
    while True:
        try:
            # munge takes a credential once.
            credential = subprocess.run(
                ["munge"], check=True, capture_output=True, text=True, timeout=TIMEOUT, input=payload
            ).stdout
            url = f"{settings['hub']}/hub/api/gpufarm/job"
            request = Request(url, credential.strip().encode(), method="POST")  # noqa: S310 - the hub's, https
            with opener.open(request, timeout=TIMEOUT) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except HTTPError as error:
            if error.code == 403:
                raise JobError("the hub takes this job for that of somebody else") from error
            problem = f"HTTP status {error.code}"
        except (OSError, ValueError, subprocess.SubprocessError, URLError) as error:
            problem = str(error)
        if time.monotonic() > deadline:
            raise JobError(f"the hub does not wait for this job ({problem})")
        time.sleep(PAUSE)


def run(settings: Mapping[str, str], folder: Path) -> int:
    """Run the notebook server; return its exit status.

    Args:
        settings: from the standard input.
        folder: which nobody else can read.

    Raises:
        JobError: there can be none.
    """
    account = pwd.getpwuid(os.getuid())
    try:
        os.chdir(account.pw_dir)
    except OSError as error:
        raise JobError(f"your home cannot be used on this machine ({error})") from error
    key, port = generate_private_key(SECP256R1()), free_port()
    signing = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    told = ask(settings, int(os.environ["SLURM_JOB_ID"]), port, signing.public_bytes(Encoding.PEM).decode())
    files = {
        "JUPYTERHUB_SSL_KEYFILE": key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        ).decode(),
        "JUPYTERHUB_SSL_CERTFILE": told["certificate"],
        "JUPYTERHUB_SSL_CLIENT_CA": settings["authority"],
    }
    paths = {}
    for name, text in files.items():
        path = folder / name.lower()
        path.write_text(text, encoding="ascii")
        paths[name] = str(path)
    variables = environment(os.environ, account, told["environment"])
    variables |= paths
    variables["JUPYTER_RUNTIME_DIR"] = str(folder / "runtime")  # sockets of kernels
    # While a cluster is updated, the hub may have the version before and tell no groups.
    offered = kernels(told.get("groups", []))
    variables |= environments.variables(offered)
    arguments = [*told["arguments"], *environments.arguments(next(iter(offered), None))]
    server = subprocess.Popen(
        [str(Path(sys.executable).with_name("jupyterhub-singleuser")), *arguments],
        env=variables,
        umask=UMASK,
    )
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    status = server.wait()
    return status if status >= 0 else 128 - status


def main() -> None:
    """Run the program."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        sys.exit("The kernel does not forbid this job new rights.")
    folder = Path(tempfile.mkdtemp(prefix="jupyterhub-"))
    try:
        sys.exit(run(json.load(sys.stdin), folder))
    except JobError as error:
        sys.exit(f"No notebook is started: {error}.")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

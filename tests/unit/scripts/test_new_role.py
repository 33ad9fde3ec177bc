"""A new role is written whole: what is written keeps the contracts that all roles keep."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONTRACTS = ("documentation", "every_variable", "life_of_roles", "prose", "proof", "roles", "tosca", "units")


def new_role(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, checkout / "scripts/new-role", *arguments]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("name", "title", "problem"),
    [
        ("Slurm", "Slurm", "is not a name of a role"),
        ("../slurm", "Slurm", "is not a name of a role"),
        ("slurm__node", "Slurm", "is not a name of a role"),
        ("mig", "MIG", "the role mig exists"),
        ("jupyter_hub", "Hub", "there is a type JupyterHub already"),
        ("nfs_server", "NFS: a server", "is not a title"),
        ("nfs_server", "{{ lookup('pipe', 'id') }}", "is not a title"),
        ("nfs_server", "", "is not a title"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_written(
    checkout: Path, name: str, title: str, problem: str
) -> None:
    before = (checkout / "tosca/source/types.yaml").read_text()
    done = new_role(checkout, name, title)
    assert done.returncode == 1 and problem in done.stderr
    assert (checkout / "tosca/source/types.yaml").read_text() == before


def test_a_new_role_keeps_the_contracts(checkout: Path) -> None:
    done = new_role(checkout, "nfs_server", "A server of NFS")
    assert done.returncode == 0, done.stderr
    assert "scripts/scenarios nfs_server" in done.stdout
    written = [path for path in checkout.rglob("*nfs_server*") if ".git" not in path.parts]
    assert not [path for path in written if path.is_file() and "NAME" in path.read_text()]
    subprocess.run(["git", "add", "--all"], cwd=checkout, check=True)
    contracts = [f"tests/contract/test_{name}.py" for name in CONTRACTS]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *contracts]
    command += ["-k", "nfs_server or NfsServer or every_file or every_page or up_to_date"]
    result = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-4000:]

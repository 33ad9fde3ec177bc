"""Ada gets in with her password, behind HTTPS, and her code runs as hers; nobody gets in otherwise."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import subprocess

import httpx
import pytest

from lab.visitor import Refused

WORK = """
import getpass, json, os, pathlib, socket
import iniconfig

pathlib.Path("results.txt").write_text(f"from {socket.gethostname()}")
known = [name for name in os.environ if name == "GPUFARM_PASSWORD_HASH"]
print(json.dumps([getpass.getuser(), os.getcwd(), iniconfig.__file__.split("/lib/")[0], known]))
"""


def test_a_wrong_password_is_refused(visitor, place):
    _address, path = place
    with pytest.raises(Refused) as refusal:
        visitor.login_at(path, "wrong horse battery")
    assert refusal.value.status == 401
    with pytest.raises(httpx.HTTPStatusError, match="403"):
        visitor.execute_at(path, "print(1)")


def test_nobody_gets_in_without_a_password(visitor, place):
    _address, path = place
    with pytest.raises(httpx.HTTPStatusError, match="403"):
        visitor.execute_at(path, "print(1)")


def test_her_code_runs_in_her_home_with_her_libraries(visitor, place, password):
    _address, path = place
    visitor.login_at(path, password)
    told = json.loads(visitor.execute_at(path, WORK))
    assert told == ["ada", "/home/ada", "/home/ada/.local", []]


def test_her_file_is_in_the_shared_home(host):
    assert host.file("/home/ada/results.txt").content_string == "from c2"
    assert host.file("/home/ada/results.txt").user == "ada"


def test_the_password_is_to_be_seen_nowhere(host, password):
    # c2 is where it runs
    command = ["lab", "ssh", "c2", "--", "ps -eww -o args; journalctl --boot"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "jupyter" in told and "sha512:" not in told
    told += host.check_output("ps -eww -o args; journalctl --boot; grep -rs . /home/ada/.jupyter || true")
    assert password not in told and "a password of the bench" not in told

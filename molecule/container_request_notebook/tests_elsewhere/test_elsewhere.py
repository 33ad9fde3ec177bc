"""The notebook's machine is lost: the same address and password lead to the same files on another one."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

LOOK = """
import pathlib, socket
import iniconfig

print(socket.gethostname(), pathlib.Path("results.txt").read_text())
"""


def test_her_code_runs_on_the_other_machine_with_her_files(visitor, place, password):
    _address, path = place
    visitor.login_at(path, password)
    assert visitor.execute_at(path, LOOK) == "c1 from c2"

"""Notebooks see the machine's storage, also when it is mounted after they started."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from lab.visitor import Refused

READ = "print(open('{}').read().strip())"
WHERE = """
import os
rows = [row.split(" - ") for row in open("/proc/self/mountinfo")]
print(os.path.expanduser("~"), [right.split()[0] for left, right in rows if " /lustre/home " in left])
"""
LIST = """
import os
try:
    print(os.listdir("{}"))
except OSError as error:
    print(error.strerror)
"""
WRITE = """
import os
path = os.path.expanduser('~/big')
try:
    with open(path, 'wb') as stream:
        for _ in range({}):
            stream.write(bytes(1 << 20))
            stream.flush()
    print('written')
except OSError as error:
    print(error.strerror)
finally:
    os.remove(path)
"""


def test_a_notebook_has_its_users_home_on_lustre_and_the_repositories(host, notebook):
    assert not host.file("/lustre/home/ada").exists
    ada = notebook("ada")
    assert ada.execute(WHERE) == "/lustre/home/ada ['fuse.lustre']"
    assert ada.execute(READ.format("/cvmfs/sft.cern.ch/hello")) == "Hello from sft.cern.ch"
    ada.execute("open('thesis', 'w').write('mine')")
    home = host.file("/lustre/home/ada")
    assert (home.user, oct(home.mode)) == ("ada", "0o700")
    assert host.file("/lustre/home/ada/thesis").content_string == "mine"


def test_a_notebook_sees_what_is_mounted_after_its_start(host, notebook):
    """On the machine, by root; and by the automounter, for which the notebook itself asks."""
    ada = notebook("ada")
    assert "/scratch " not in ada.execute("print(open('/proc/self/mountinfo').read())")
    host.check_output(
        "mkdir -p /scratch && mount -t lustre 10.99.0.10@tcp:/scratch /scratch && echo late > /scratch/late"
    )
    try:
        assert ada.execute(READ.format("/scratch/late")) == "late"
        assert ada.execute(READ.format("/cvmfs/cvmfs-config.cern.ch/hello")).startswith("Hello from")
    finally:
        host.check_output("umount /scratch")


@pytest.mark.parametrize(("mebibytes", "said"), [(8, "written"), (24, "Disk quota exceeded")])
def test_a_notebook_writes_as_much_as_its_user_may_have(notebook, mebibytes, said):
    assert notebook("ada").execute(WRITE.format(mebibytes)) == said


def test_a_user_cannot_read_the_home_of_another(notebook):
    notebook("ada")
    bob = notebook("bob")
    assert bob.execute(LIST.format("/lustre/home/ada")) == "Permission denied"


def test_a_home_that_hangs_is_told_and_hangs_nobody(host, notebook):
    host.check_output("lustre-fake hang /lustre/home")
    try:
        with pytest.raises(
            Refused, match="Your home cannot be used: The homes of this machine do not answer"
        ):
            notebook("bob")
    finally:
        host.check_output("lustre-fake resume /lustre/home")
    assert host.run("gpufarm-home bob").rc == 0


def test_the_files_of_others_are_found_again(host):
    assert host.check_output("planted") == ""

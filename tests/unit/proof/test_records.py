"""Files that processes open are recorded, and inputs are found among them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ansible.executor.module_common import _CachedModule
from proof.records import inputs_among
from proof.tree import Tree

OPENED = Path(__file__).parents[3] / "scripts/proof/opened.py"
PROGRAM = """\
import os, runpy, sys
runpy.run_path(sys.argv[1])
open("text").close()
open(b"bytes").close()
if os.fork() == 0:
    import module
    os._exit(0)
os.wait()
import gpufarm.cluster.plugins.filter.a as a
a.call()
import ansible.galaxy.collection.pack
open("run/ansiballz_cache/archive").close()
"""


def test_each_process_notes_what_it_opens_but_not_to_load_filters_or_to_pack(tmp_path: Path):
    filters = tmp_path / "gpufarm/cluster/plugins/filter"
    filters.mkdir(parents=True)
    (filters / "a.py").write_text("import logic\ndef call():\n    import called\n")
    packing = tmp_path / "ansible/galaxy/collection"
    packing.mkdir(parents=True)
    for package in (packing, packing.parent, packing.parent.parent):
        (package / "__init__.py").touch()
    (packing / "pack.py").write_text('open("packed").close()\n')
    for name in ("text", "bytes", "module.py", "logic.py", "called.py", "packed"):
        (tmp_path / name).touch()
    archive = tmp_path / ".work/packed-modules/digest/archive"
    archive.parent.mkdir(parents=True)
    archive.touch()
    (tmp_path / "run/ansiballz_cache").mkdir(parents=True)
    (tmp_path / "run/ansiballz_cache/archive").symlink_to(archive)
    program = tmp_path / "scripts/proof/opened.py"
    program.parent.mkdir(parents=True)
    program.write_text(OPENED.read_text())
    subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM, program],
        cwd=tmp_path,
        env=os.environ | {"PROOF_OPENED": str(tmp_path / "notes"), "PYTHONPATH": ""},
        check=True,
    )
    noted = set((tmp_path / "notes").read_text().splitlines())
    assert {
        *(str(tmp_path / name) for name in ("text", "bytes", "module.py", "called.py")),
        str(archive),
    } <= noted
    assert not {str(tmp_path / name) for name in ("logic.py", "packed")} & noted


def test_a_name_that_is_not_utf8_is_noted_and_read_like_any_other(tmp_path: Path):
    program = tmp_path / "scripts/proof/opened.py"
    program.parent.mkdir(parents=True)
    program.write_text(OPENED.read_text())
    odd = tmp_path / os.fsdecode(b"odd\xe9")
    odd.touch()
    subprocess.run(
        [sys.executable, "-c", f"import runpy; runpy.run_path({str(program)!r}); open({str(odd)!r}).close()"],
        env=os.environ | {"PROOF_OPENED": str(tmp_path / "notes"), "PYTHONPATH": ""},
        check=True,
    )
    assert os.fsencode(odd) in (tmp_path / "notes").read_bytes().splitlines()


def test_inputs_are_files_of_the_repository_by_their_real_names(tmp_path: Path):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins/one.py").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    tree = Tree({"plugins/one.py": "", "plugins/two.py": "", "plugins/filter/three.py": ""})
    noted = [
        f"{tmp_path}/link/plugins/one.py",
        f"{tmp_path}/plugins/__pycache__/two.cpython-311.pyc.4711",
        f"{tmp_path}/plugins/filter/three.py",
        f"{tmp_path}/made/by/the/job",
        "/etc/hosts",
    ]
    assert inputs_among(noted, tmp_path, tree) == ["plugins/one.py", "plugins/two.py"]


def test_an_archive_stands_for_what_is_packed_in_it(tmp_path: Path):
    tree = Tree({"plugins/modules/one.py": "", "plugins/module_utils/two.py": "", "plugins/three.py": ""})
    archive = tmp_path / ".work/packed-modules/digest/one-ZIP_DEFLATED"
    archive.parent.mkdir(parents=True)
    packed = {
        str(tmp_path / path): path for path in ("plugins/modules/one.py", "plugins/module_utils/two.py")
    }
    _CachedModule(zip_data=b"", metadata=None, source_mapping=packed).dump(str(archive))
    assert inputs_among([str(archive)], tmp_path, tree) == [
        "plugins/module_utils/two.py",
        "plugins/modules/one.py",
    ]

"""The playbook slurm_repartition waits until a node takes jobs again, as `sinfo` of Slurm tells that."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TASKS = Path(__file__).parents[3] / "playbooks" / "tasks" / "slurm_resume.yml"
# Answers of sinfo about each node, one after the other. A node of two partitions is told twice.
TOLD = {
    "n1": ["idle   "],
    "n2": ["mixed+planned   "],
    "n3": ["idle   \nidle   ", "allocated   \nallocated   "],
    "n4": ["idle+drain   ", "idle+drain   ", "idle+invalid_reg   ", "idle+reserved   \nidle+reserved   "],
}
SINFO = """#!/bin/sh
for word; do case $word in --nodes=*) node=${word#--nodes=} ;; esac; done
cd "$FAKES/$node" || exit
echo >> calls
last=$(($(wc -l < calls) - 1))
while [ ! -e "$last" ]; do last=$((last - 1)); done
cat "$last"
"""
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.include_tasks: {tasks}
      vars: {{slurm_repartition_name: {{stdout: "{{{{ inventory_hostname }}}}"}}}}
"""


def test_a_node_is_awaited_until_it_takes_jobs_and_no_longer(tmp_path: Path) -> None:
    for node, states in TOLD.items():
        (tmp_path / node).mkdir()
        for number, state in enumerate(states):
            (tmp_path / node / str(number)).write_text(f"{state}\n")
    for name, text in {"sinfo": SINFO, "scontrol": "#!/bin/sh\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "play.yml").write_text(PLAY.format(tasks=TASKS))
    here = str(tmp_path)
    known = {"FAKES": here, "PATH": f"{here}:{os.environ['PATH']}", "ANSIBLE_HOME": here}
    ansible_playbook = str(Path(sys.executable).with_name("ansible-playbook"))
    command = [ansible_playbook, "-i", ",".join(TOLD), "-c", "local"]
    done = subprocess.run(
        [*command, "-e", f"ansible_python_interpreter={sys.executable}", tmp_path / "play.yml"],
        env={**os.environ, **known},
        cwd=TASKS.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    calls = {node: len((tmp_path / node / "calls").read_text().splitlines()) for node in TOLD}
    assert calls == {"n1": 2, "n2": 2, "n3": 2, "n4": 4}

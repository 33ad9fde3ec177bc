"""Notebooks run on nodes, each with its own slice; who gets none waits and is told why."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import threading

import pytest

from lab.visitor import Refused

SLICE = "3g.40gb"
WHERE = "import os, socket; print(socket.gethostname(), os.getuid(), os.environ['CUDA_VISIBLE_DEVICES'])"
# The device nodes of slices that can be opened: "No such device" is no refusal, as the bench has no driver.
OPEN = """
import glob, errno
for path in glob.glob("/dev/nvidia-caps/nvidia-cap*"):
    try:
        open(path, "rb")
    except OSError as error:
        if error.errno == errno.EPERM:
            continue
    print(path)
"""
# Leaves a file, and prints the users of all processes that can be seen.
APART = """
import os
open("/tmp/of-a-notebook", "w").close()
print({os.stat(entry.path).st_uid for entry in os.scandir("/proc") if entry.name.isdigit()})
"""
LIBRARIES = "import sys, numpy, pandas, sklearn; print(sys.prefix)"
# Has a job ask for memory in another way than the notebook, and run one more program of Slurm.
SUBMITS = """
import subprocess
words = ["salloc", "--quiet", "--immediate=60", "--mem-per-cpu=100M", "srun", "hostname"]
print(subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120).stdout)
"""
# The rights to partition GPUs, and to watch them.
OF_NO_SLICE = {"/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia-caps/nvidia-cap2"}


class Waiting:
    """The start of a notebook that waits, in a thread of its own."""

    def __init__(self, visitor, **options):
        self.messages = []
        self.refusal = ""
        self._thread = threading.Thread(target=self._run, args=(visitor, options), daemon=True)
        self._thread.start()

    def _run(self, visitor, options):
        try:
            visitor.spawn(gpu=SLICE, progress=self.messages.append, **options)
        except Refused as error:
            self.refusal = str(error)

    def said(self, words):
        return any(words in message for message in self.messages)

    def is_over(self):
        return not self._thread.is_alive()


def test_two_users_get_a_slice_of_a_node_each_and_open_no_other(visit, eventually):
    alice, bob, carol = visit("alice"), visit("bob"), visit("carol")
    assert carol.form().free == {SLICE: 2}
    alice.spawn(gpu=SLICE)
    bob.spawn(gpu=SLICE)
    eventually(lambda: carol.form().free == {SLICE: 0})  # what the hub knows of nodes is some seconds old
    seen = [visitor.execute(WHERE).split() for visitor in (alice, bob)]
    assert {node for node, _uid, _slice in seen} == {"gpu1", "gpu2"}
    assert [uid for _node, uid, _slice in seen] == ["2001", "2002"]
    assert len({uuid for _node, _uid, uuid in seen}) == 2
    for visitor in (alice, bob):
        # Of its GPU instance and of its compute instance.
        assert len(set(visitor.execute(OPEN).split()) - OF_NO_SLICE) == 2


def test_a_notebook_has_files_and_processes_of_its_own(visit, machine):
    alice = visit("alice")
    alice.spawn()
    node, uid = alice.execute(WHERE).split()
    assert alice.execute(APART).strip() == f"{{{uid}}}"
    assert not machine(node).file("/tmp/of-a-notebook").exists


def test_a_notebook_has_the_environment_of_its_node_under_packages_of_its_user(visit):
    alice = visit("alice")
    alice.spawn()
    assert alice.execute(LIBRARIES).startswith("/home/alice/.local/share/gpufarm/environments/scientific/")


def test_users_submit_jobs_from_a_notebook_as_from_a_login_machine(visit):
    alice = visit("alice")
    alice.spawn()
    assert alice.execute(SUBMITS).strip() in ("gpu1", "gpu2")


def test_a_notebook_without_a_slice_opens_none_and_avoids_nodes_that_run_no_notebooks(
    visit, eventually, features
):
    alice, bob = visit("alice"), visit("bob")
    features("gpu1", "fast")  # the node that Slurm would take first
    eventually(lambda: alice.form().free == {SLICE: 1})
    alice.spawn()
    assert set(alice.execute(OPEN).split()) <= OF_NO_SLICE
    assert alice.execute(WHERE).split() == ["gpu2", "2001"]
    features("gpu2", "fast")
    eventually(lambda: "No machine of the cluster runs notebooks" in bob.page("/hub/spawn"))
    for node in ("gpu1", "gpu2"):
        features(node, "notebooks")
    eventually(lambda: "No machine of the cluster runs notebooks" not in bob.page("/hub/spawn"))


def test_a_third_user_waits_sees_why_and_gets_the_first_slice_that_is_free(visit, eventually, jobs):
    alice, bob, carol = visit("alice"), visit("bob"), visit("carol")
    alice.spawn(gpu=SLICE)
    bob.spawn(gpu=SLICE)
    waiting = Waiting(carol)
    eventually(lambda: waiting.said("waits in the queue of the cluster: what you chose is in use"))
    assert "carol" in jobs("pending")
    bob.stop()
    eventually(waiting.is_over)
    assert not waiting.refusal
    assert carol.execute(WHERE).split()[1] == "2003"


def test_an_administrator_sees_the_queue_and_its_reasons(host, visit, eventually, jobs):
    alice, bob, carol = visit("alice"), visit("bob"), visit("carol")
    alice.spawn(gpu=SLICE)
    bob.spawn(gpu=SLICE)
    Waiting(carol)
    eventually(lambda: "carol" in jobs("pending"))
    host.check_output("gpasswd --add mallory sudo")
    try:
        mallory, words = visit("mallory"), "waits in the queue of the cluster: what you chose is in use"
        # Slurm has no reason for the first seconds of a job.
        eventually(lambda: words in mallory.page("/hub/slices"))
        page = mallory.page("/hub/slices")
    finally:
        host.check_output("gpasswd --delete mallory sudo")
    assert "running on gpu1 until" in page and "running on gpu2 until" in page
    assert "0 of 2 free" in page


def test_a_user_who_waits_can_stop(visit, eventually, jobs):
    alice, bob, carol = visit("alice"), visit("bob"), visit("carol")
    alice.spawn(gpu=SLICE)
    bob.spawn(gpu=SLICE)
    waiting = Waiting(carol)
    eventually(lambda: "carol" in jobs("pending"))
    eventually(lambda: waiting.messages)
    carol._api("DELETE", "/hub/api/users/carol/server").raise_for_status()
    eventually(lambda: "carol" not in jobs("pending"))
    eventually(carol.settled)
    # The keeper, which looks every 30 seconds, does not take that for a restart of the hub.
    assert jobs("pending") == {}


def test_a_user_without_an_account_of_slurm_is_told(visit):
    mallory = visit("mallory")
    with pytest.raises(Refused, match="your account may not use the cluster; ask its administrator"):
        mallory.spawn(gpu=SLICE)


@pytest.mark.parametrize("gpu", ["7g.80gb", "3g.40gb:1 --uid=0", "3g.40gb,gpu:3g.40gb"])
def test_what_the_cluster_does_not_have_never_reaches_it(visit, gpu, jobs):
    alice = visit("alice")
    answer = alice._api("POST", "/hub/api/users/alice/server", json={"gpu": gpu})
    assert (answer.status_code, json.loads(answer.text)["message"][:27]) == (
        400,
        "There is no GPU slice " + gpu[:5],
    )
    assert jobs("all").get("alice") is None or "alice" not in jobs("pending,running")


def test_a_job_that_an_administrator_cancels_explains_itself(host, visit, eventually, jobs):
    alice = visit("alice")
    alice.spawn(gpu=SLICE)
    host.check_output("scancel %s", jobs()["alice"])
    eventually(lambda: not alice.running())
    words = "an administrator cancelled it; ask why before you start it again"
    eventually(lambda: words in alice.page("/hub/home"))
    alice.spawn()
    assert "an administrator cancelled it" not in alice.page("/hub/home")


def test_a_job_that_its_user_cancels_needs_no_explanation(host, visit, eventually, jobs):
    alice = visit("alice")
    alice.spawn()
    host.check_output("runuser -u alice -- scancel %s", jobs()["alice"])
    eventually(lambda: not alice.running())
    assert "Your notebook was ended" not in alice.page("/hub/home")

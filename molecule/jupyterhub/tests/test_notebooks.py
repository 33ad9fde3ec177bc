"""Users log in, get notebooks with slices of their own, and lose them when they should and only then."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest
from hub_fixtures import FORKS

from lab.visitor import ExecutionError, Refused

UNIT = "jupyterhub-notebook-{}.service"
README = Path(__file__).resolve().parents[3] / "roles" / "jupyterhub" / "README.md"


def home(visitor):
    """Return the text of the home page."""
    return unescape(visitor.page("/hub/home"))


@pytest.mark.usefixtures("one_machine")
def test_who_is_in_no_group_is_told_so(visit):
    with pytest.raises(
        Refused, match=r"in none of the groups that may use this service \(ml-infn-users, ml-infn\)"
    ) as no:
        visit("mallory")
    assert no.value.status == 403


@pytest.mark.usefixtures("one_machine")
def test_the_form_shows_what_is_free(visit):
    form = visit("alice").form()
    assert form.memory == ["1G", "2G", "800M"]
    assert form.free == {"3g.40gb": 1, "1g.10gb": 2}


def test_a_notebook_sees_its_slice_and_nothing_else(host, visit, leases):
    alice, bob = visit("alice"), visit("bob")
    alice.spawn(gpu="1g.10gb")
    bob.spawn(gpu="1g.10gb")
    held = leases()
    assert held["alice"]["uuid"] != held["bob"]["uuid"]
    for visitor, name in ((alice, "alice"), (bob, "bob")):
        slices = visitor.slices()
        assert (slices.visible, slices.given) == ([held[name]["uuid"]], held[name]["uuid"])
    nodes = json.loads(alice.execute("import glob, json; print(json.dumps(glob.glob('/dev/nvidia-caps/*')))"))
    assert len(nodes) == 2  # of its GPU instance and of its compute instance


def test_who_may_hold_two_slices_sees_both_and_no_other(visit):
    alice, bob = visit("alice"), visit("bob")
    bob.spawn(gpu="1g.10gb", slices="2")
    slices = bob.slices()
    assert len(slices.visible) == 2
    assert slices.given.split(",") == slices.visible
    assert alice.form().free == {"3g.40gb": 1, "1g.10gb": 0}
    with pytest.raises(Refused, match="You asked for 2 GPU slices and may hold 1 at once"):
        alice.spawn(gpu="1g.10gb", slices="2")


def test_without_a_slice_there_is_no_gpu(visit, leases):
    alice = visit("alice")
    alice.spawn()
    assert leases() == {}
    assert alice.execute("import glob; print(glob.glob('/dev/nvidia*'))") == "[]"
    with pytest.raises(ExecutionError, match="NVMLError"):
        alice.execute("import pynvml; pynvml.nvmlInit(); pynvml.nvmlDeviceGetHandleByIndex(0)")


def test_the_kernel_refuses_other_slices_device_nodes(host, visit, leases, facts):
    """Also to root in the notebook's control group, who does not live in the notebook's /dev."""
    alice = visit("alice")
    alice.spawn(gpu="1g.10gb")
    own, all_nodes = (
        set(),
        set(host.check_output("ls /dev/nvidia-caps").split()) - {"nvidia-cap1", "nvidia-cap2"},
    )
    group = host.check_output(f"systemctl show --property=ControlGroup --value {UNIT.format('alice')}")
    tree = "/sys/fs/cgroup/devices" if facts["cgroup"] == "v1" else "/sys/fs/cgroup"
    for node in all_nodes:
        enter = f"echo $$ > {tree}{group}/cgroup.procs"
        said = host.run(f"sh -c '{enter}; exec 3< /dev/nvidia-caps/{node}'").stderr
        if "Operation not permitted" not in said and "Permission denied" not in said:
            own.add(node)
    assert len(own) == 2


@pytest.mark.usefixtures("one_machine")
def test_all_slices_of_a_profile_are_taken(host, visit, leases):
    alice, bob = visit("alice"), visit("bob")
    alice.spawn(gpu="3g.40gb")
    assert bob.form().free == {"3g.40gb": 0, "1g.10gb": 2}
    with pytest.raises(
        Refused, match=r"Not free yet: 1 GPU slice 3g\.40gb\. You wait as number 1 of 1"
    ) as no:
        bob.spawn(gpu="3g.40gb")
    assert no.value.status == 409
    alice.stop()
    bob.spawn(gpu="3g.40gb")
    events = [
        json.loads(line) for line in host.file("/var/log/jupyterhub/audit.jsonl").content_string.splitlines()
    ]
    assert [(line["event"], line["user"]) for line in events[-4:]] == [
        ("taken", "alice"),
        ("waiting", "bob"),
        ("returned", "alice"),
        ("taken", "bob"),
    ]
    assert events[-1]["slices"] == [leases()["bob"]["uuid"]]


@pytest.mark.usefixtures("one_machine")
def test_who_is_called_and_does_not_start_loses_the_place(visit, eventually):
    alice, bob = visit("alice"), visit("bob")
    bob.spawn(gpu="3g.40gb")
    with pytest.raises(Refused, match="You wait as number 1 of 1"):
        alice.spawn(gpu="3g.40gb")
    bob.stop()
    place = "/hub/api/gpufarm/users/alice/queue/"
    assert alice._api("GET", place).json()["called"]
    assert bob.form().free == {"3g.40gb": 0, "1g.10gb": 2}
    with pytest.raises(Refused, match="You wait as number 2 of 2"):
        bob.spawn(gpu="3g.40gb")
    eventually(lambda: alice._api("GET", place).status_code == 404)
    assert "You have lost your place in the queue" in alice.page("/hub/home")
    bob.spawn(gpu="3g.40gb")


@pytest.mark.usefixtures("one_machine")
def test_the_use_of_a_slice_is_measured(host, visit, leases, eventually):
    alice = visit("alice")
    alice.spawn(gpu="1g.10gb")
    process = host.check_output(f"simgpu process start --slice {leases()['alice']['uuid']}")

    def measured():
        file = host.file("/var/lib/jupyterhub/use.json")
        notebooks = json.loads(file.content_string)["notebooks"] if file.exists else {}
        return notebooks.get("alice/", {}).get("processes") == 1

    try:
        eventually(measured)
    finally:
        host.check_output(f"simgpu process stop {process}")


@pytest.mark.usefixtures("one_machine")
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"memory": "100G"}, "The memory size 100G is not offered"),
        ({"cpus": "64"}, "The number of CPU cores 64 is not offered; choose one of 2, 0.5."),
        ({"hours": "100"}, "The number of hours 100 is not offered"),
        ({"gpu": ["1g.10gb"]}, "name of its profile"),
    ],
)
def test_the_rest_api_offers_no_more_than_the_form(visit, leases, options, sentence):
    alice = visit("alice")
    answer = alice._api("POST", "/hub/api/users/alice/server", json=options)
    assert answer.status_code == 400
    assert sentence in answer.json()["message"]
    assert leases() == {}


def test_a_notebook_that_dies_gives_its_slice_back(host, visit, leases, eventually):
    alice = visit("alice")
    alice.spawn(gpu="1g.10gb")
    host.check_output(f"systemctl kill --signal=KILL {UNIT.format('alice')}")
    eventually(lambda: leases() == {})
    assert not alice.running()
    assert "it was killed, most likely because it needed more than its 1 GiB of memory" in home(alice)
    alice.spawn()  # under the same name, of which systemd remembers nothing
    assert "was killed" not in home(alice)


def test_a_notebook_that_crashes_says_so(host, visit, eventually):
    alice = visit("alice")
    alice.spawn()
    host.check_output(f"systemctl kill --signal=SEGV --kill-whom=main {UNIT.format('alice')}")
    # The hub asks for the reason after it has seen that the notebook does not run.
    eventually(lambda: "JupyterLab crashed (signal 11)" in home(alice))
    assert not alice.running()
    unit = UNIT.format("alice")
    assert host.check_output(f"systemctl show --property=LoadState --value {unit}") == "not-found"


def test_notebook_and_lease_outlive_the_hub(host, visit, leases, eventually, hub_answers):
    alice, bob = visit("alice"), visit("bob")
    alice.spawn(gpu="3g.40gb")
    with pytest.raises(Refused, match="You wait as number 1 of 1"):
        bob.spawn(gpu="3g.40gb")
    held = leases()
    assert alice.slices().given  # logs in to the notebook, for which the hub is needed
    pid = host.check_output(f"systemctl show --property=MainPID --value {UNIT.format('alice')}")
    host.check_output("systemctl kill --signal=KILL --kill-whom=main jupyterhub")
    assert alice.slices().visible == [held["alice"]["uuid"]]  # the proxy still leads to the notebook
    eventually(hub_answers)
    host.check_output("systemctl restart jupyterhub")
    eventually(hub_answers)
    assert leases() == held
    assert host.check_output(f"systemctl show --property=MainPID --value {UNIT.format('alice')}") == pid
    assert alice.running()
    alice.stop()
    assert leases() == {}
    place = bob._api("GET", "/hub/api/gpufarm/users/bob/queue/").json()
    assert (place["position"], place["called"]) == (1, True)
    assert bob._api("DELETE", "/hub/api/gpufarm/users/bob/queue/").status_code == 204


def test_a_notebook_that_dies_while_the_hub_is_down_gives_its_slice_back(host, visit, leases, eventually):
    alice = visit("alice")
    alice.spawn(gpu="1g.10gb")
    host.check_output("systemctl stop jupyterhub")
    host.check_output(f"systemctl stop {UNIT.format('alice')}")
    assert leases()
    host.check_output("systemctl start jupyterhub")
    eventually(lambda: leases() == {})


def test_a_kernel_that_takes_too_much_memory_is_ended(visit, controllers):
    if "memory" not in controllers:
        pytest.skip("this guest has no memory controller")
    alice = visit("alice")
    alice.spawn(memory="800M")
    assert alice.execute("print(len(bytearray(50 << 20)) >> 20)") == "50"
    eater = "import subprocess as s; print(s.run(['python3', '-c', 'bytearray(1200 << 20)']).returncode)"
    assert alice.execute(eater) == "-9"
    assert alice.running()
    notice = alice._api("GET", "/user/alice/gpufarm/notice", base="/user/alice/").json()["notice"]
    assert "was killed because the notebook needed more memory than it has" in notice


def test_a_notebook_has_the_cores_that_were_chosen(host, visit):
    for fields, quota in (({}, "2s"), ({"cpus": "0.5"}, "500ms")):
        alice = visit("alice")
        alice.spawn(**fields)
        show = f"systemctl show --property=CPUQuotaPerSecUSec --value {UNIT.format('alice')}"
        assert host.check_output(show) == quota
        alice.stop()


def test_a_notebook_has_no_more_processes_than_the_limit(shell, controllers):
    if "pids" not in controllers:
        pytest.skip("this guest has no controller of processes")
    assert "Resource temporarily unavailable" in shell()(f"python3 -c '{FORKS}'")


def test_a_notebook_has_no_privileges(shell, host):
    run = shell()
    assert run("id --user --name") == "alice"
    assert "CapEff:\t0000000000000000" in run("grep -E 'CapEff|NoNewPrivs' /proc/self/status")
    assert "NoNewPrivs:\t1" in run("grep -E 'CapEff|NoNewPrivs' /proc/self/status")
    assert "cannot touch" in run("touch /opt/jupyterhub/x /etc/x /var/lib/x")
    assert "Permission denied" in run("cat /etc/jupyterhub/secrets/hub.env")
    assert "Failed to" in run("busctl status")
    assert "mknod:" in run("mknod $HOME/gpu c 195 0")
    assert run("ps -e -o user= | sort -u") == "alice"
    raw = "import socket as s; s.socket(s.AF_PACKET, s.SOCK_RAW)"
    assert "Address family not supported" in run(f"python3 -c '{raw}'")
    assert run("test -w $HOME && echo writable") == "writable"
    assert host.user("alice").shell == "/usr/sbin/nologin"
    assert host.file("/home/alice").mode == 0o700


@pytest.mark.usefixtures("one_machine")
def test_a_notebook_is_as_exposed_as_the_readme_says(host, visit):
    visit("alice").spawn(gpu="1g.10gb")
    said = host.run(f"systemd-analyze security --no-pager {UNIT.format('alice')}").stdout
    stated = re.search(r"^\| a notebook \| (\d+\.\d) \|", README.read_text(), re.MULTILINE)
    found = re.search(r"Overall exposure level for .*: (\d+\.\d)", said)
    assert found and stated and found[1] == stated[1], said


def test_what_a_notebook_writes_outside_its_home_is_bounded_and_gone_with_it(host, visit):
    alice, bob = visit("alice"), visit("bob")
    for visitor in (alice, bob):
        visitor.spawn(memory="800M")
    fill = """
import subprocess
for path in ("/tmp", "/var/tmp", "/dev/shm"):
    open(f"{path}/seen", "w").write("x")
    asked = ["fallocate", "--length", "2G", f"{path}/much"]
    print(subprocess.run(asked, capture_output=True, text=True).stderr.rpartition(": ")[2].strip())
"""
    assert alice.execute(fill).splitlines() == ["No space left on device"] * 3
    assert bob.execute("import glob; print(glob.glob('/tmp/seen') + glob.glob('/dev/shm/*'))") == "[]"
    assert host.run("ls /tmp/seen /var/tmp/seen /dev/shm/seen").stdout == ""
    segments = "import subprocess as s; print(s.run(['ipcmk', '--shmem', '4096'], stdout=s.PIPE).returncode)"
    assert alice.execute(segments) == "0"
    assert "alice" not in host.check_output("ipcs --shmems")


def test_names_of_the_machines_own_accounts_are_refused(host):
    """The bench's provider has no user of such a name, so the rule is asked itself, on the machine."""
    code = "from gpufarm_hub.people import accounts; accounts.ensure('daemon')"
    asked = host.run(f'/opt/jupyterhub/bin/python -c "{code}"')
    assert "daemon belongs to an account of this machine itself" in asked.stderr


def test_terminals_and_kernels_talk_in_private(visit, host):
    """Kernels' sockets are files in the notebook's own /tmp, not ports that every user can open."""
    alice = visit("alice")
    alice.spawn()
    code = "import glob; print(len(glob.glob('/tmp/jupyter/kernel-*-ipc-*')))"
    assert int(alice.execute(code)) >= 5
    assert not host.file("/tmp/jupyter").exists

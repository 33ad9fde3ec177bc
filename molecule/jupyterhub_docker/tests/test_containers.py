"""Notebooks in containers: slices, what they cannot reach, limits that hold, images, folders and groups."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from hub_fixtures import FORKS


@pytest.fixture(autouse=True)
def _only_there(host):
    if host.check_output("hostname") != "box12":
        pytest.skip("another machine")


CONTAINER = "jupyterhub-notebook-{}"


def look(host, name: str):
    return json.loads(host.check_output(f"docker inspect {CONTAINER.format(name)}"))[0]


def test_two_users_at_once_see_their_own_slice_and_no_other(host, visit, leases):
    alice, bob = visit("alice"), visit("bob")
    alice.spawn(gpu="1g.10gb")
    bob.spawn(gpu="1g.10gb")
    held = leases()
    assert held["alice"]["uuid"] != held["bob"]["uuid"]
    for visitor, name in ((alice, "alice"), (bob, "bob")):
        slices = visitor.slices()
        assert (slices.visible, slices.given) == ([held[name]["uuid"]], held[name]["uuid"])
    assert alice.execute("import glob; print(len(glob.glob('/dev/nvidia-caps/*')))") == "2"
    # A node of another slice, made by root beside the container, is closed by the device controller.
    pid = look(host, "alice")["State"]["Pid"]
    tree = host.check_output(f"sed -n 's/.*:devices://p' /proc/{pid}/cgroup")
    nodes = set(host.check_output("ls /dev/nvidia-caps").split()) - {"nvidia-cap1", "nvidia-cap2"}
    enter = f"echo $$ > /sys/fs/cgroup/devices{tree}/cgroup.procs"
    closed = {
        node
        for node in nodes
        if "Operation not permitted" in host.run(f"sh -c '{enter}; exec 3< /dev/nvidia-caps/{node}'").stderr
    }
    assert len(nodes - closed) == 2


def test_without_a_slice_there_is_no_gpu(shell):
    assert shell()("ls -d /dev/nvidia*").startswith("ls: cannot access")


def test_a_notebook_that_dies_gives_its_slice_back(host, visit, leases, eventually):
    alice = visit("alice")
    alice.spawn(gpu="3g.40gb")
    host.check_output(f"docker kill {CONTAINER.format('alice')}")
    eventually(lambda: leases() == {})
    assert not alice.running()
    eventually(lambda: not host.check_output("docker ps --all --quiet"))


def test_notebook_and_lease_outlive_the_hub(host, visit, leases, eventually, hub_answers):
    alice = visit("alice")
    alice.spawn(gpu="3g.40gb")
    held, started = leases(), look(host, "alice")["State"]["StartedAt"]
    host.check_output("systemctl kill --signal=KILL --kill-whom=main jupyterhub")
    eventually(hub_answers)
    assert leases() == held
    assert look(host, "alice")["State"]["StartedAt"] == started
    assert alice.running()
    alice.stop()
    assert leases() == {}


def test_a_notebook_has_no_privileges(host, shell):
    run = shell()
    assert run("id --user") == str(host.user("alice").uid)
    status = run("grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status")
    assert "CapEff:\t0000000000000000" in status and "CapBnd:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
    assert "Read-only file system" in run("touch /x /etc/x /opt/x /usr/x")
    assert "mknod:" in run("mknod $HOME/gpu c 195 0")
    assert "No such file" in run("ls /var/run/docker.sock /etc/jupyterhub /run/dbus")
    assert run("ls /home") == "alice"
    assert run("touch $HOME/kept && echo writable") == "writable"
    assert host.file("/home/alice/kept").user == "alice"


def test_no_secret_is_in_what_docker_tells(host, visit):
    visit("alice").spawn()
    told = host.check_output(f"docker inspect {CONTAINER.format('alice')}")
    assert "well-kept" not in told
    assert host.file("/etc/jupyterhub/secrets/registries.json").mode == 0o600


def test_memory_processor_processes_and_temporary_files_are_limited(host, shell, controllers, throttled):
    assert {"cpu", "memory", "pids"} <= set(controllers)
    run = shell(memory="800M")
    assert run("python3 -c 'bytearray(1200 << 20)'; echo $?").endswith("137")
    assert "No space left on device" in run("dd if=/dev/zero of=/tmp/much bs=1M count=40 2>&1")
    assert "No space left on device" in run("dd if=/dev/zero of=/var/tmp/much bs=1M count=40 2>&1")
    assert "Resource temporarily unavailable" in run(f"python3 -c '{FORKS}'")
    # To start takes more than it may have.
    assert throttled(look(host, "alice")["State"]["Pid"]) > 0


def test_notebooks_reach_the_hub_and_neither_each_other_nor_the_machine(host, visit, facts):
    alice, bob = visit("alice"), visit("bob")
    alice.spawn()
    bob.spawn()
    other = look(host, "bob")["NetworkSettings"]["Networks"]["jupyterhub"]["IPAddress"]
    ask = """
import socket
def reach(address, port):
    try:
        socket.create_connection((address, port), 3).close()
        return True
    except OSError:
        return False
print({reached})
"""
    wanted = [
        ("172.30.248.1", 8082),
        (other, 8888),
        ("172.30.248.1", 22),
        (facts["address"], 22),
        (facts["address"], 8001),
    ]
    reached = ", ".join(f"reach({address!r}, {port})" for address, port in wanted)
    said = alice.execute(ask.replace("{reached}", reached))
    assert said == "True False False False False"
    ask = f"curl --silent --output /dev/null --write-out '%{{http_code}}' --max-time 8 http://{other}:8888/"
    assert host.run(ask).stdout == "404", "root reaches it; a notebook has nothing at the root of its address"
    assert host.run(f"runuser --user nobody -- {ask}").stdout == "000"


def test_folders_of_the_site(host, visit):
    alice, bob = visit("alice"), visit("bob")
    alice.spawn()
    bob.spawn()
    host.check_output("mkdir -p /cvmfs/late && mount -t tmpfs late /cvmfs/late && touch /cvmfs/late/seen")
    try:
        assert alice.execute("import os; print(os.listdir('/cvmfs/late'))") == "['seen']"
    finally:
        host.check_output("umount /cvmfs/late")
    write = "import pathlib; pathlib.Path('{}/x').touch(); print('written')"
    assert alice.execute(write.format("/data")) == "written"
    assert host.file("/srv/ours/x").user == "alice"
    there = "import os; print(os.path.isdir('/theirs'), os.path.isdir('/srv/asked'))"
    assert (alice.execute(there), bob.execute(there)) == ("False False", "True False")
    host.check_output("touch /srv/theirs/seen")
    inside = "import os; print(os.listdir('/site/theirs'))"
    assert (alice.execute(inside), bob.execute(inside)) == ("[]", "['seen']")


def test_what_the_form_offers_and_the_choices_that_are_made(host, visit):
    alice, bob = visit("alice"), visit("bob")
    pages = [visitor._http.get(f"{visitor.hub}/hub/spawn").text for visitor in (alice, bob)]
    assert ["Administrators only" in page for page in pages] == [False, True]
    assert all(f'name="{name}"' in pages[0] for name in ("image", "own_image", "group", "mounts"))
    options = {"group": "mlfiles", "mounts": ["/srv/asked"], "own_image": "127.0.0.1:5000/bench/notebook:1"}
    assert alice._api("POST", "/hub/api/users/alice/server", json=options).status_code in (201, 202)
    list(alice._progress())
    assert alice.execute("import os; print(os.getgid(), os.path.isdir('/srv/asked'))") == "5000 True"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"image": "Else"}, "The image Else is not offered; choose one of Notebook, Bare."),
        ({"own_image": "docker.io/library/ubuntu"}, "own images must come from 127.0.0.1:5000/bench"),
        ({"own_image": "--privileged"}, "is not a name of an image"),
        ({"mounts": ["/etc"]}, "The folder /etc is not offered to you."),
        ({"group": "docker"}, "The group docker is not offered to you."),
    ],
)
def test_what_is_not_offered_is_refused(visit, options, sentence):
    alice = visit("alice")
    answer = alice._api("POST", "/hub/api/users/alice/server", json=options)
    assert answer.status_code == 400
    assert sentence in answer.json()["message"]


@pytest.mark.parametrize(
    ("image", "sentence"),
    [
        ("bare:1", "has no program jupyterhub-singleuser"),
        ("old:1", "has JupyterHub 1.5.0, but this service needs version 6"),
        ("missing:1", "could not be pulled"),
    ],
)
def test_an_image_that_cannot_be_a_notebook_is_refused_in_a_sentence(visit, leases, image, sentence):
    alice = visit("alice")
    answer = alice._api(
        "POST",
        "/hub/api/users/alice/server",
        json={"own_image": f"127.0.0.1:5000/bench/{image}", "gpu": "1g.10gb"},
    )
    said = answer.text if answer.status_code >= 400 else list(alice._progress())[-1]["message"]
    assert sentence in said
    assert leases() == {}

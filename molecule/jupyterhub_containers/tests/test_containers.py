"""Users run, build and move images in their notebooks, and their containers have the notebook's slice."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import shlex

import pytest

from lab.visitor import LIST_SLICES

BUILD = r"""
mkdir -p ~/build; cd ~/build; echo word > word
printf 'FROM box\nRUN id -u > /told\nFROM scratch\nCOPY --from=0 /told /\nCOPY word /\n' > Containerfile
podman build --quiet --tag made .
"""
# Programs of the machine in a container, and files of the simulated driver.
PYTHON = (
    "podman run --rm"
    " --volume /usr/bin:/usr/bin:ro --volume /usr/lib:/usr/lib:ro --volume /opt:/opt:ro"
    " --volume /usr/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu:ro --volume /usr/lib64:/lib64:ro"
    " --volume /var/lib/nvmlsim:/var/lib/nvmlsim:ro box /opt/jupyterhub/bin/python -c"
)


def test_a_user_runs_a_container_as_its_root(nest, host):
    run = nest()
    assert run("podman run --rm box id -u") == "0"
    assert run("podman run --rm box cat /etc/theirs") == "theirs"
    run("podman run --rm --volume $HOME:/home box sh -c 'echo done > /home/made-inside'")
    made = host.file("/home/alice/made-inside")
    assert (made.user, made.content_string) == ("alice", "done\n")


def test_images_are_kept_where_the_file_system_allows_it(nest, host, eventually):
    told = nest()("podman info --format '{{.Store.GraphDriverName}} {{.Store.GraphRoot}}' 2> /dev/null")
    driver = {"nest12": "vfs", "nest13": "overlay"}[host.check_output("hostname")]
    assert told == f"{driver} /home/alice/.local/share/containers/storage"
    assert not host.run("ls -A /home/alice | grep '^.containers-'").stdout


def test_a_user_builds_and_moves_images(nest):
    run = nest()
    run(BUILD)
    assert "localhost/made:latest" in run("podman images --format '{{.Repository}}:{{.Tag}}'")
    for target in ("oci-archive:made.tar", "dir:made.folder"):
        run(f"cd ~; rm -rf made.*; podman push --quiet made {target}")
        run("podman rmi made")
        identifier = run(f"cd ~; podman pull --quiet {target} 2> /dev/null")
        assert run(f"podman tag {identifier} made && podman image exists made && echo back") == "back"
    assert (
        run("podman run --rm --mount type=image,source=box,destination=/b box cat /b/etc/theirs") == "theirs"
    )


def test_a_container_is_entered_and_stopped_and_the_notebook_goes_on(nest):
    run = nest()
    run("podman run --detach --name waits box sh -c 'trap exit TERM; while :; do sleep 0.1; done'")
    assert "sleep 0.1" in run("podman exec waits busybox ps")
    assert "waits" in run("podman ps")
    assert run("podman stop --time 9 waits; echo rc $?").splitlines() == ["waits", "rc 0"]
    assert "waits" not in run("podman ps")
    assert run("podman rm waits; echo rc $?").splitlines()[-1] == "rc 0"
    run("podman run --detach --name deaf box sh -c 'trap true TERM; while :; do sleep 0.1; done'")
    assert run("podman rm --force --time 1 deaf 2> /dev/null; echo rc $?").splitlines()[-1] == "rc 0"


def test_two_users_see_their_own_slice_in_a_container_and_no_other(nest, leases):
    runs = {name: nest(name, gpu="1g.10gb") for name in ("alice", "bob")}
    held = {name: leases()[name]["uuid"] for name in runs}
    assert held["alice"] != held["bob"]
    for name, run in runs.items():
        visible, given = json.loads(run(f"{PYTHON} {shlex.quote(LIST_SLICES)}"))
        assert (visible, given) == ([held[name]], held[name])


def test_without_a_slice_there_is_no_gpu_in_a_container(nest):
    run = nest()
    assert "nvidia" not in run("podman run --rm box ls /dev")
    assert "no such file" in run("podman run --rm --device /dev/nvidia0 box true; true").lower()


def test_containers_end_with_their_notebook(nest, visit, host):
    run = nest()
    run("podman run --detach box sleep 907")
    pid = host.check_output("pgrep --full '^sleep 907'")
    assert "jupyterhub-notebook-alice.service" in host.check_output(f"cat /proc/{pid}/cgroup")
    visit("alice").stop()
    assert not host.run("pgrep --full '^sleep 907'").stdout
    run = nest()
    assert run("podman ps --quiet") == ""
    assert run("podman run --rm box echo again") == "again"


@pytest.mark.usefixtures("one_machine")
def test_a_user_without_room_for_settings_has_a_notebook(host, shell):
    """Podman then keeps whole copies of images, or none."""
    host.check_output("rm -rf /home/alice/.local/share/containers")
    host.check_output("chmod 0500 /home/alice")
    try:
        assert shell()("echo works") == "works"
    finally:
        host.check_output("chmod 0700 /home/alice")

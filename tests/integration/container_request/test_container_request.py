"""From a template to an app of Marathon: the deployer, the role, and fakes of Marathon and of a master."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._ssh.host_key import fingerprint, public_key
from conftest import KEY, PASSWORD, Site

ASKED = (
    "--input",
    "owner=ada",
    "--input",
    "docker_image=registry.example.org/lab:1",
    "--input",
    "num_gpus=1",
)


def test_a_notebook_from_the_template_to_its_end(site: Site) -> None:
    first = site.deploy("jupyter_container", *ASKED)
    assert first.returncode == 0, first.stderr
    assert "jupyter_endpoint: https://apps.example.org/ada/notebook/" in first.stdout
    assert "machine: gpu1" in first.stdout
    app = site.app("/ada/notebook")
    assert app is not None and (app["gpus"], app["user"], app["tasksRunning"]) == (1, "ada", 1)
    assert app["env"]["GPUFARM_PASSWORD_HASH"].startswith("sha512:")

    again = site.deploy("jupyter_container")
    assert again.returncode == 0 and "nothing changed" in again.stderr, again.stderr
    kept = site.app("/ada/notebook")
    assert kept is not None and kept["version"] == app["version"]

    for path in (site.root / "state").rglob("*"):
        if path.is_file():
            assert PASSWORD.encode() not in path.read_bytes(), path

    gone = site.gpufarm("undeploy", "jupyter_container", "--yes")
    assert gone.returncode == 0, gone.stderr
    assert site.app("/ada/notebook") is None


def test_a_container_with_ssh_tells_how_to_be_sure_of_it(site: Site) -> None:
    first = site.deploy("gpu_container", *ASKED, "--input", f"ssh_keys={KEY}")
    assert first.returncode == 0, first.stderr
    app = site.app("/ada/gpu")
    assert app is not None
    port, private = app["portDefinitions"][0]["port"], app["env"]["GPUFARM_HOST_KEY"]
    public = public_key(private)
    for line in (
        f"ssh_endpoint: ssh://ada@apps.example.org:{port}",
        f"ssh_host_key_fingerprint: {fingerprint(public)}",
        f"ssh_known_hosts: '[apps.example.org]:{port} {public}'",
    ):
        assert line.replace("'", "") in first.stdout.replace("'", ""), first.stdout
    again = site.deploy("gpu_container")
    assert again.returncode == 0 and "nothing changed" in again.stderr, again.stderr
    secret = private.split("\n")[1]
    assert secret not in first.stdout + first.stderr
    for path in (site.root / "state").rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
    assert site.gpufarm("undeploy", "gpu_container", "--yes").returncode == 0
    assert site.app("/ada/gpu") is None


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--input", "num_gpus=2"), "The quota of ada is 1 GPUs, 0 are in use, and 2 are asked for"),
        (
            ("--input", "owner=carl", "--input", "num_gpus=2"),
            "No machine of the cluster has 2 GPUs free; the most is 1",
        ),
        (("--input", "mem_size=64 GB"), "MiB of memory free; the most is 16384"),
    ],
)
def test_what_is_short_is_told_before_anything_is_submitted(
    site: Site, more: tuple[str, ...], words: str
) -> None:
    refused = site.deploy("jupyter_container", *ASKED, "--name", "short", *more)
    assert refused.returncode == 1 and words in refused.stderr, refused.stderr
    assert site.app("/ada/notebook") is None and site.app("/carl/notebook") is None
    site.gpufarm("undeploy", "short", "--yes")


def test_a_service_on_marathon(site: Site) -> None:
    words = ("owner=ada", "app_name=plots", "command=serve", "docker_image=plots:1", "instances=2")
    done = site.deploy("marathon_app", *(word for one in words for word in ("--input", one)))
    assert done.returncode == 0, done.stderr
    assert "app_id: /ada/plots" in done.stdout
    app = site.app("/ada/plots")
    assert app is not None and app["instances"] == 2
    assert site.gpufarm("undeploy", "marathon_app", "--yes").returncode == 0
    assert site.app("/ada/plots") is None


def test_a_deployment_leaves_the_service_and_job_of_another_alone(site: Site) -> None:
    """Two of one user with the same name, one of them by mistake or by a program that repeats its request."""
    service = ("owner=ada", "app_name=plots", "command=serve", "docker_image=plots:1")
    none = "", []
    job = (
        "owner=ada",
        "job_name=train",
        "command=train",
        "docker_image=x",
        "schedule=R/2030-01-01T00:00:00Z/P1D",
    )

    def known() -> tuple[str, list[str]]:
        """Version of the app, and commands of jobs."""
        version = (site.app("/ada/plots") or {}).get("version", "")
        return version, [one["command"] for one in site.jobs().values()]

    for template, words in (("marathon_app", service), ("chronos_job", job)):
        asked = [word for one in words for word in ("--input", one)]
        assert site.deploy(template, *asked).returncode == 0
        before = known()
        refused = site.deploy(template, *asked, "--input", "command=other", "--name", "second")
        assert refused.returncode == 1 and "was not made for this deployment" in refused.stderr, (
            refused.stderr
        )
        assert site.gpufarm("undeploy", "second", "--yes").returncode == 0
        assert known() == before != none
        again = site.deploy(template)
        assert again.returncode == 0 and "nothing changed" in again.stderr, again.stderr
        assert site.gpufarm("undeploy", template, "--yes").returncode == 0
        assert known() == none


def test_a_job_on_chronos(site: Site) -> None:
    words = ["owner=ada", "job_name=train", "command=train", "docker_image=registry.example.org/train:1"]
    words.append("schedule=R/2027-01-01T02:00:00Z/P1D")
    asked = [word for one in words for word in ("--input", one)]
    # The bench's Chronos is the stock one, which would drop the GPUs without a word.
    refused = site.deploy("chronos_job", *asked, "--input", "num_gpus=1")
    assert refused.returncode == 1 and "gpus" in refused.stderr, refused.stderr
    done = site.deploy("chronos_job", "--input", "num_gpus=0")
    assert done.returncode == 0, done.stderr
    assert "job_name: ada.train" in done.stdout and [*site.jobs()] == ["ada.train"]
    assert site.gpufarm("undeploy", "chronos_job", "--yes").returncode == 0
    assert site.jobs() == {}

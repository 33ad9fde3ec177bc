# SPDX-License-Identifier: GPL-3.0-or-later
"""Call Marathon and Chronos with the clients from PyPI, whose Python runs this, and print what they got.

usage: oracle.py MARATHON_URL CHRONOS_ADDRESS PASSWORD
"""

from __future__ import annotations

import json
import sys
import time

import chronos
from marathon import MarathonClient
from marathon.exceptions import ConflictError, MarathonHttpError, NotFoundError
from marathon.models import MarathonApp, MarathonGroup

ATTEMPTS = 1200  # two minutes: machines that test are busy
# Of a task of the fake, so that the deployment is there when the next request comes.
SLOW = {"FAKE_LAUNCH_SECONDS": "5"}


def settled(client: MarathonClient) -> None:
    for _attempt in range(ATTEMPTS):
        if not client.list_deployments():
            return
        time.sleep(0.1)
    raise AssertionError("a deployment goes on")


def marathon(url: str, password: str) -> dict:
    found = {}
    client = MarathonClient(url, username="marathon", password=password)
    found["ping"] = client.ping().decode()
    found["info"] = client.get_info().version
    found["leader"] = client.get_leader()["leader"]
    events = client.event_stream()
    found["first event"] = type(next(events)).__name__
    web = MarathonApp(cmd="sleep 1", cpus=1, mem=64, instances=2, labels={"a": "b"}, env=SLOW)
    app = client.create_app("/ada/web", web)
    found["created"] = [app.instances, app.labels, len(app.deployments)]
    try:
        client.scale_app("/ada/web", 3)
    except ConflictError as error:
        found["locked"] = error.status_code
    settled(client)
    found["tasks"] = len(client.list_tasks("/ada/web"))
    found["endpoints"] = len(client.list_endpoints())
    found["events"] = sorted({type(next(events)).__name__ for _number in range(6)})
    stalled = client.scale_app("/ada/web", 50)
    (deployment,) = client.list_deployments()
    found["deployment"] = deployment.id == stalled["deploymentId"]
    client.delete_deployment(deployment.id)
    settled(client)
    found["rolled back"] = client.get_app("/ada/web").instances
    versions = client.list_versions("/ada/web")
    found["version"] = client.get_version("/ada/web", versions[-1]).instances
    client.restart_app("/ada/web")
    settled(client)
    killed = client.kill_task("/ada/web", client.list_tasks("/ada/web")[0].id)
    found["killed"] = killed.app_id
    try:
        client.create_app("/ada/gpu", MarathonApp(cmd="x", gpus=0.5))
    except MarathonHttpError as error:
        found["invalid"] = error.status_code
    client.create_group(MarathonGroup(id="/ben"))
    client.create_app("/ben/one", MarathonApp(cmd="x"))
    settled(client)
    found["group"] = [app.id for app in client.list_apps(app_id="/ben")]
    client.delete_group("/ben")
    client.delete_app("/ada/web")
    settled(client)
    try:
        client.get_app("/ada/web")
    except NotFoundError as error:
        found["gone"] = error.status_code
    return found


def jobs(address: str, password: str) -> dict:
    found = {}
    client = chronos.connect(address, username="chronos", password=password)
    job = {"name": "train", "command": "true", "owner": "ada", "disabled": False, "gpus": 1, "nonsense": 2}
    found["added"] = client.add({**job, "schedule": "R/2030-01-01T00:00:00Z/P1D"})
    client.add({"name": "after", "command": "true", "owner": "", "disabled": False, "parents": ["train"]})
    (kept,) = client.search(name="train")
    found["dropped"] = [name for name in ("gpus", "nonsense") if name not in kept]
    client.run("train")
    for _attempt in range(ATTEMPTS):
        counts = {one["name"]: one["successCount"] for one in client.list()}
        if counts == {"train": 1, "after": 1}:
            break
        time.sleep(0.1)
    found["runs"] = counts
    found["graph"] = client.scheduler_graph().split("\n")[0]
    found["stat"] = client.job_stat("train")["histogram"]["count"]
    client.delete("after")
    client.delete("train")
    found["left"] = client.list()
    try:
        client.delete("train")
    except chronos.ChronosAPIError as error:
        found["unknown"] = str(error)[:30]
    return found


print(json.dumps([marathon(sys.argv[1], sys.argv[3]), jobs(sys.argv[2], sys.argv[3])]))

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fakes of Marathon and Chronos at ports of this machine, and modules run against them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args

from lab.chronos import server as chronos_server
from lab.marathon import cluster, options, server, web
from lab.marathon.store import Memory

LOGIN = "marathon:secret-of-marathon"


class Ended(Exception):
    """The module ended, with a result."""


def run(monkeypatch: pytest.MonkeyPatch, module: ModuleType, check: bool = False, **arguments: Any) -> Any:
    """Run a module in this process and return its result."""

    def end(_module: Any, **result: Any) -> None:
        raise Ended(result)

    def fail(_module: Any, **result: Any) -> None:
        raise Ended({"failed": True, **result})

    monkeypatch.setattr(basic.AnsibleModule, "exit_json", end)
    monkeypatch.setattr(basic.AnsibleModule, "fail_json", fail)
    with patch_module_args({**arguments, "_ansible_check_mode": check}), pytest.raises(Ended) as ended:
        module.main()
    return ended.value.args[0]


def late(api: Any) -> Callable[[web.Request], web.Response]:
    """Answer as an API does at the time of the request, not at that of its making."""
    return lambda request: api.answer(request)


class Instances:
    """Instances that share a state, one of which leads."""

    def __init__(self, values: Mapping[str, Any], agents: Any, count: int) -> None:
        self.store = Memory("")
        self.apis = [server.Api(self.store, "", values, agents) for _number in range(count)]
        self.web = []
        for api in self.apis:
            service = web.Service(self.store, "", late(api), redirected=("/v2/events",), credentials=LOGIN)
            listening = web.listen(service, "127.0.0.1", 0)
            api.name = f"127.0.0.1:{listening.server_port}"
            listening.RequestHandlerClass.service = service._replace(name=api.name)
            self.web.append(listening)
        self.elect(0)

    @property
    def urls(self) -> list[str]:
        return [f"http://{api.name}" for api in self.apis]

    @property
    def leader(self) -> server.Api:
        return next(api for api in self.apis if api.name == self.store.leader())

    def elect(self, number: int) -> None:
        """Make an instance lead, which reads the state anew."""
        self.apis[number].marathon = None
        self.store.name = self.apis[number].name

    def depose(self, seconds: float, number: int) -> None:
        """Have no leader for a while, then another."""
        self.store.name = ""
        threading.Timer(seconds, self.elect, [number]).start()

    def close(self) -> None:
        for listening in self.web:
            listening.shutdown()
            listening.server_close()


def lose_answer(api: Any, method: str) -> None:
    """Have the next request of a method be done, and its answer be lost, as when an instance dies."""
    whole, left = api.answer, [method]

    def answer(request: web.Request) -> web.Response:
        done = whole(request)
        if request.method in left:
            left.remove(request.method)
            return web.Response(504)
        return done

    api.answer = answer


@contextmanager
def marathon(count: int = 1, agents: Any = cluster.AGENTS, **flags: Any) -> Iterator[Instances]:
    """Run a fake of Marathon with the feature for GPUs."""
    found = {name: flag["default"] for name, flag in server.flags().items()}
    values = options.parse([], server.flags()) | {
        "master": "zk://m/mesos",
        "enable_features": "gpu_resources",
    }
    assert found.keys() == values.keys()
    instances = Instances({**values, **flags}, agents, count)
    try:
        yield instances
    finally:
        instances.close()


@contextmanager
def chronos(gpu_patch: bool) -> Iterator[chronos_server.Api]:
    """Run a fake of Chronos, whose name is `host:port`."""
    values = options.parse([], chronos_server.flags(gpu_patch))
    store = Memory("")
    api = chronos_server.Api(store, "", values, gpu_patch)
    listening = web.listen(web.Service(store, "", late(api), credentials=LOGIN), "127.0.0.1", 0)
    store.name = api.name = f"127.0.0.1:{listening.server_port}"
    listening.RequestHandlerClass.service = listening.RequestHandlerClass.service._replace(name=api.name)
    try:
        yield api
    finally:
        listening.shutdown()
        listening.server_close()

"""A scripted user of the service: signs in at the provider, picks a slice, runs Python in a notebook.

It does what a browser does (the same pages, forms, cookies and web sockets); no short cut through API tokens.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import re
import ssl
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx

from lab.channels import Channels
from lab.pages import Form, Page, parse
from lab.patience import PATIENCE

KERNEL_PROTOCOL = "5.3"  # Jupyter's messaging specification
COLOURS = re.compile(r"\x1b\[[\d;]*m")
# Prints what NVML lists in the notebook. Other users' slices are there but closed: NVML says no permission.
LIST_SLICES = """
import json, os
import pynvml as nvml

nvml.nvmlInit()
visible = []
for index in range(nvml.nvmlDeviceGetCount()):
    gpu = nvml.nvmlDeviceGetHandleByIndex(index)
    for slot in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            visible.append(nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, slot)))
        except (nvml.NVMLError_NotFound, nvml.NVMLError_NoPermission):
            pass
print(json.dumps([visible, os.environ.get("CUDA_VISIBLE_DEVICES", "")]))
"""
FREE = re.compile(r"(\d+)\s*(?:of\s*\d+\s*(?:seats\s*)?)?free")  # "1g.10gb (3 free)", "1g.10gb: 3 of 7 free"


class Refused(Exception):
    """The service said no; the message is what it tells its user.

    Attributes:
        status: the HTTP status of the page.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class ExecutionError(Exception):
    """Code in a kernel raised; the message is its traceback."""


@dataclass(frozen=True)
class Account:
    """Facts of the hub about the user who has signed in."""

    name: str
    admin: bool
    groups: list[str]


@dataclass(frozen=True)
class SpawnForm:
    """Options of the form.

    Attributes:
        memory: the choices of memory, such as "2G".
        free: how many slices of each profile are free.
    """

    memory: list[str]
    free: dict[str, int]


@dataclass(frozen=True)
class Slices:
    """GPUs as a notebook sees them.

    Attributes:
        visible: UUIDs of the MIG devices that NVML lists.
        given: value of CUDA_VISIBLE_DEVICES, "" when it is not set.
    """

    visible: list[str]
    given: str


def trust(*certificates: str) -> ssl.SSLContext:
    """A context that trusts these PEM texts beside the system's authorities; empty ones are left out."""
    context = ssl.create_default_context()
    for pem in filter(None, certificates):
        context.load_verify_locations(cadata=pem)
    return context


class Visitor:
    """One user at one hub, with cookies of their own.

    Args:
        hub: the service's address, such as "https://10.77.0.10:8888".
        context: decides which certificates are trusted, of the hub and of the provider.
        timeout: seconds that one page may take.
    """

    def __init__(self, hub: str, context: ssl.SSLContext, timeout: float = PATIENCE) -> None:
        self.hub = hub.rstrip("/")
        self._context = context
        self._http = httpx.Client(verify=context, trust_env=False, follow_redirects=True, timeout=timeout)
        self._name = self._owner = ""
        self._origins: dict[str, str] = {}  # of notebook servers, by their paths

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def login(self, username: str, password: str) -> Account:
        """Sign in through the provider and approve what the hub asks for.

        Raises:
            Refused: wrong password (401), or the hub lets this user not in (403).
        """
        response = self._http.get(f"{self.hub}/hub/oauth_login", params={"next": "/hub/home"})
        response = self._submit(response, "login", username=username, password=password)
        if parse(response.text).form("approve"):
            response = self._submit(response, "approve")
        return self._welcome(response)

    def login_here(self, username: str, password: str) -> Account:
        """Sign in with a password in the hub's own form.

        Raises:
            Refused: wrong password, or the hub lets this user not in (403), or nobody can tell (503).
        """
        page = self._http.get(f"{self.hub}/hub/login", params={"next": "/hub/home"})
        return self._welcome(self._submit(page, "", username=username, password=password))

    def _welcome(self, response: httpx.Response) -> Account:
        _accept(response)
        account = self._api("GET", "/hub/api/user").json()
        self._name = self._owner = account["name"]
        return Account(account["name"], account["admin"], account["groups"])

    def use_server_of(self, name: str) -> None:
        """From now on start, use and stop the notebook server of this user, such as one that users share."""
        self._owner = name

    def page(self, path: str) -> str:
        """Return the HTML of a page of the hub, such as "/hub/home".

        Raises:
            Refused: the hub does not show it to this user.
        """
        response = self._http.get(f"{self.hub}{path}")
        _accept(response)
        return response.text

    def form(self) -> SpawnForm:
        """Read the spawn form.

        Raises:
            Refused: there is no form, for instance because the server runs already.
        """
        form = self._spawn_form(self._http.get(f"{self.hub}/hub/spawn/{self._owner}"))
        return SpawnForm([choice.value for choice in form.choices["memory"]], free_slices(form))

    def spawn(
        self,
        memory: str = "",
        gpu: str = "",
        progress: Callable[[str], None] = lambda message: None,
        **fields: str | list[str],
    ) -> None:
        """Start the notebook server and wait until it answers.

        Args:
            memory: one of the form's choices; "" takes the one that is selected.
            gpu: a profile such as "1g.10gb"; "" for none.
            progress: called with each message that the hub shows while it starts the server.
            fields: what is put into further fields of the form, such as "group" or "mounts".

        Raises:
            Refused: the hub does not start it, or it failed; the message is the hub's.
        """
        page = self._http.get(f"{self.hub}/hub/spawn/{self._owner}")
        form = self._spawn_form(page)
        values = {**form.values, "gpu": gpu} | ({"memory": memory} if memory else {}) | fields
        # Not as multipart/form-data: httpx keeps that header on the redirected GET, which tornado refuses.
        response = self._http.post(
            page.url.join(form.action), data=values, headers={"Referer": str(page.url)}
        )
        _accept(response)
        for event in self._progress():
            progress(event["message"])
            if event.get("failed"):
                raise Refused(500, event["message"])

    def running(self) -> bool:
        """Whether the notebook server runs and is ready."""
        return bool(self._server().get("ready"))

    def settled(self) -> bool:
        """Whether the server neither starts nor ends, and no hub that was started anew looks for it."""
        return not self._server().get("pending")

    def stop(self, timeout: float = PATIENCE) -> None:
        """Stop the notebook server, if there is one, and wait until it is gone.

        A server that starts, ends or is looked for by a hub that was started anew cannot be stopped yet.

        Raises:
            TimeoutError: it was still there after ``timeout`` seconds.
        """
        end = time.monotonic() + timeout
        while server := self._server():
            if time.monotonic() > end:
                raise TimeoutError(f"the server of {self._owner} did not stop within {timeout:.0f} s")
            if not server.get("pending"):
                self._api("DELETE", f"/hub/api/users/{self._owner}/server").raise_for_status()
            time.sleep(0.2)

    def execute(self, code: str, timeout: float = PATIENCE) -> str:
        """Run Python in a new kernel of the notebook server.

        Args:
            code: what a cell would hold.
            timeout: seconds to wait for each message of the kernel.

        Returns:
            Its output, without the white space around it.

        Raises:
            ExecutionError: the code raised.
            TimeoutError: the kernel was silent for too long.
        """
        base = f"/user/{self._owner}/"
        _accept(self._sign_in(base))
        return self.execute_at(base, code, timeout)

    def login_at(self, base: str, password: str) -> None:
        """Sign in at a Jupyter server that no hub has started.

        Args:
            base: its path, such as "/ada/notebook/".
            password: its own.

        Raises:
            Refused: wrong password (401), or nobody answers there (503).
        """
        _accept(self._submit(self._http.get(f"{self.hub}{base}login"), "", password=password))

    def execute_at(self, base: str, code: str, timeout: float = PATIENCE) -> str:
        """Run Python as `execute` does, in the Jupyter server at a path.

        Args:
            base: its path, such as "/ada/notebook/".
            code: what a cell would hold.
            timeout: seconds to wait for each message of the kernel.

        Returns:
            Its output, without the white space around it.

        Raises:
            ExecutionError: the code raised.
            TimeoutError: the kernel was silent for too long.
            httpx.HTTPStatusError: it starts no kernel for this visitor.
        """
        kernel = self._api("POST", f"{base}api/kernels", base, json={})
        kernel.raise_for_status()
        identifier = kernel.json()["id"]
        try:
            with self._channels(base, identifier) as channels:
                return _run(channels, code, timeout)
        finally:
            self._api("DELETE", f"{base}api/kernels/{identifier}", base)

    def slices(self) -> Slices:
        """Ask NVML, in the notebook, which slices it can use. Raises as `execute` does."""
        visible, given = json.loads(self.execute(LIST_SLICES))
        return Slices(visible, given)

    def server_url(self) -> str:
        """Return where the notebook server answers, which is another origin than the hub's."""
        return str(httpx.URL(self.hub).join(self._server()["url"]))

    def _sign_in(self, base: str) -> httpx.Response:
        """Go to a notebook server, by way of the hub at first; it signs in its user by cookies of its own."""
        response = self._http.get(self._origins.get(base, self.hub) + base)
        if response.url.path.startswith(base):
            self._origins[base] = str(response.url.join("/")).rstrip("/")
        return response

    def _origin(self, base: str) -> str:
        if base.startswith("/user/") and base not in self._origins:
            self._sign_in(base)
        return self._origins.get(base, self.hub)

    def _submit(self, response: httpx.Response, identifier: str, **values: str) -> httpx.Response:
        form = _accept(response).form(identifier)
        if not form:
            raise Refused(response.status_code, f"no form {identifier!r} at {response.url}")
        return self._http.post(response.url.join(form.action), data={**form.values, **values})

    def _spawn_form(self, response: httpx.Response) -> Form:
        form = _accept(response).form("spawn_form")
        if not form:
            raise Refused(response.status_code, f"no spawn form for {self._owner}: the server runs already")
        return form

    def _progress(self) -> Iterator[dict[str, Any]]:
        """The hub's events (GET /users/{name}/server/progress of its API) until it is ready or failed."""
        url = f"{self.hub}/hub/api/users/{self._owner}/server/progress"
        with self._http.stream("GET", url, headers=self._headers("/hub/"), timeout=PATIENCE) as response:
            response.raise_for_status()
            for line in response.iter_lines():
                if line.startswith("data:"):
                    event = json.loads(line.removeprefix("data:"))
                    yield event
                    if event.get("ready") or event.get("failed"):
                        return

    def _server(self) -> dict[str, Any]:
        user = self._api("GET", f"/hub/api/users/{self._owner}")
        user.raise_for_status()
        return user.json()["servers"].get("", {})

    def _api(self, method: str, path: str, base: str = "/hub/", **options: Any) -> httpx.Response:
        origin = self._origin(base)
        return self._http.request(method, origin + path, headers=self._headers(base), **options)

    def _headers(self, base: str) -> dict[str, str]:
        return {"X-XSRFToken": self._xsrf(base), "Referer": self._origin(base) + base}

    def _xsrf(self, base: str) -> str:
        """The token of a notebook's pages, or that of the hub, whose cookies have a prefix."""
        cookies = self._cookies(base)
        prefixed = (value for name, value in cookies.items() if name.endswith("-_xsrf"))
        return cookies.get("_xsrf") or next(prefixed, "")

    def _cookies(self, path: str) -> dict[str, str]:
        """Cookies that a browser would send to this path; of two with one name, that for the longer path."""
        host = httpx.URL(self._origin(path)).host
        jar = [
            k
            for k in self._http.cookies.jar
            if k.domain.removesuffix(".local") == host and path.startswith(k.path)
        ]
        return {
            cookie.name: cookie.value or "" for cookie in sorted(jar, key=lambda cookie: len(cookie.path))
        }

    def _channels(self, base: str, kernel: str) -> Channels:
        cookies = self._cookies(base)
        query = httpx.QueryParams(session_id=uuid.uuid4().hex, _xsrf=self._xsrf(base))
        return Channels(
            f"{self._origin(base).replace('https', 'wss', 1)}{base}api/kernels/{kernel}/channels?{query}",
            self._context,
            {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())},
            open_timeout=PATIENCE,  # the server answers with its new kernel
        )


def free_slices(form: Form) -> dict[str, int]:
    """How many slices of each profile a spawn form calls free.

    Raises:
        ValueError: a choice of the field `gpu` does not tell.
    """
    free = {}
    for choice in form.choices.get("gpu", []):
        if choice.value:
            number = FREE.search(choice.label)
            if not number:
                raise ValueError(f"the choice {choice.label!r} does not tell how many are free")
            free[choice.value] = int(number[1])
    return free


def _accept(response: httpx.Response) -> Page:
    page = parse(response.text)
    if response.is_error:
        raise Refused(
            response.status_code, " ".join(page.messages) or f"{response.status_code} from {response.url}"
        )
    return page


def _run(channels: Channels, code: str, timeout: float) -> str:
    request = uuid.uuid4().hex
    content = {
        "code": code,
        "silent": False,
        "store_history": False,
        "user_expressions": {},
        "allow_stdin": False,
    }
    header = {"msg_id": request, "username": "", "session": uuid.uuid4().hex, "version": KERNEL_PROTOCOL}
    header["msg_type"] = "execute_request"
    message = {"header": header, "parent_header": {}, "metadata": {}, "channel": "shell", "content": content}
    channels.send(json.dumps(message))
    printed, failure = "", ""
    while True:
        reply = json.loads(channels.recv(timeout))
        if reply["parent_header"].get("msg_id") != request:
            continue
        kind, content = reply["msg_type"], reply["content"]
        if kind == "stream":
            printed += content["text"]
        elif kind == "error":
            failure = COLOURS.sub("", "\n".join(content["traceback"]))
        elif kind == "status" and content["execution_state"] == "idle":
            if failure:
                raise ExecutionError(failure)
            return printed.strip()

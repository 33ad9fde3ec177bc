# SPDX-License-Identifier: GPL-3.0-or-later
"""Have an image on this machine, and see what it holds."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from typing import Any

import docker
import requests

from .images import Image

log = logging.getLogger("gpufarm_hub")

TIMEOUT = 120  # seconds that Docker may be silent; a probe of an image on a slow disk takes some
NOT_FOUND = 127  # exit status of a program that is not there (docker-run(1), "Exit Status")

# Versions of the images that were looked into, by the images' ids.
_versions: dict[str, str] = {}


class PullError(Exception):
    """No notebook can be started from this image; the text is for the user."""


def _client() -> docker.APIClient:
    return docker.APIClient(version="auto", timeout=TIMEOUT)


def have(
    image: Image, policy: str, registries: Mapping[str, Mapping[str, str]], tell: Callable[[str], None]
) -> str:
    """Pull an image when the policy says so.

    Args:
        image: the image.
        policy: ``always``, ``if-not-present`` or ``never``.
        registries: ``username`` and ``password`` by registry.
        tell: is called with what happens, in words for the user.

    Returns:
        The id of the image that is on this machine now.

    Raises:
        PullError: it cannot be had.
    """
    try:
        with closing(_client()) as client:
            there = _id_of(client, image)
            if there and policy != "always":
                return there
            if policy == "never":
                raise PullError(
                    f"The image {image} is not on this machine, and images are not pulled here; "
                    "tell the administrator of this service."
                )
            tell(f"Pulling {image}")
            account = registries.get(image.registry)
            lines = client.pull(
                image.repository,
                tag=image.version,
                stream=True,
                decode=True,
                auth_config=dict(account) if account else None,
            )
            for words in progress(lines):
                tell(f"Pulling {image}: {words}")
            there = _id_of(client, image)
            if not there:
                raise PullError(f"The image {image} is not on this machine after it was pulled; try again.")
            return there
    except (docker.errors.DockerException, requests.RequestException) as error:
        log.error("The image %s cannot be had: %s", image, error)
        raise PullError(
            f"The image {image} could not be pulled: {getattr(error, 'explanation', None) or error!s:.200}"
        ) from error


def _id_of(client: docker.APIClient, image: Image) -> str:
    try:
        return str(client.inspect_image(str(image))["Id"])
    except docker.errors.ImageNotFound:
        return ""


def progress(lines: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Turn what Docker tells while it pulls into words, each once (Engine API, ImageCreate).

    Raises:
        PullError: Docker tells that it failed.
    """
    layers: dict[str, tuple[int, int]] = {}
    said = ""
    for line in lines:
        if "error" in line:
            raise PullError(f"The image could not be pulled: {line['error']!s:.200}")
        detail = line.get("progressDetail") or {}
        if line.get("status") == "Downloading" and detail.get("total"):
            layers[line["id"]] = (detail.get("current", 0), detail["total"])
        elif line.get("status") in ("Download complete", "Pull complete") and line.get("id") in layers:
            layers[line["id"]] = (layers[line["id"]][1],) * 2
        if not layers:
            continue
        done, total = (sum(numbers) for numbers in zip(*layers.values(), strict=True))
        words = f"{done / 2**20:.0f} of {total / 2**20:.0f} MiB"
        if words != said:
            said = words
            yield words


def hub_version_in(image: Image, identity: str, host_config: Mapping[str, Any], user: str) -> str:
    """Return the version of JupyterHub in an image.

    Args:
        image: the image.
        identity: its id; each is looked into once.
        host_config: what the container that is started for it may do, as `container.host_config` returns it.
        user: ids of the user and group that it runs as.

    Raises:
        PullError: the image has no JupyterHub, or cannot be started at all.
    """
    if identity not in _versions:
        try:
            with closing(_client()) as client:
                _versions[identity] = _probe(client, image, identity, host_config, user)
        except (docker.errors.DockerException, requests.RequestException) as error:
            log.error("The image %s cannot be started: %s", image, error)
            raise PullError(
                f"The image {image} cannot be started on this machine; choose another one, or tell the "
                "administrator of this service."
            ) from error
    return _versions[identity]


def _probe(
    client: docker.APIClient, image: Image, identity: str, host_config: Mapping[str, Any], user: str
) -> str:
    missing = PullError(
        f"The image {image} has no program jupyterhub-singleuser; choose one that is made for JupyterHub."
    )
    probe = client.create_container(
        identity,
        # Both programs are of one package, but only this one tells the package's version.
        ["sh", "-c", "command -v jupyterhub-singleuser >/dev/null || exit 127; jupyterhub --version"],
        user=user,
        host_config=client.create_host_config(**host_config),
    )["Id"]
    try:
        client.start(probe)
        status = client.wait(probe, timeout=TIMEOUT)["StatusCode"]
        said = client.logs(probe).decode(errors="replace")
    finally:
        client.remove_container(probe, force=True, v=True)
    found = re.findall(r"^\s*(\d+\.\d+[\w.+-]*)\s*$", said, re.MULTILINE)
    if status == NOT_FOUND or not found:
        log.error("The image %s has no JupyterHub: status %s, %s", image, status, said[-500:])
        raise missing
    return str(found[-1])

# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of container images, and which of them a user may start. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# The grammar of names in the Distribution project (package reference): a registry's host and port, a path of
# lower-case components, a tag, a digest. None of it can begin with "-" or hold white space.
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_NAME = re.compile(
    # As in Docker: what stands before the first "/" is a registry only if it looks like a host.
    rf"(?:(?P<registry>(?=[^/]*[.:A-Z][^/]*/|localhost/){_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?)/)?"
    rf"(?P<path>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)
LONGEST = 400  # characters: registry and path have 255 at most (the same package), then come tag and digest

DOCKER_HUB = "docker.io"


class ImageError(ValueError):
    """This image cannot be started by this user; the text is for the user."""


@dataclass(frozen=True)
class Image:
    """The name of an image, in full.

    Attributes:
        registry: host and port it is pulled from.
        path: its path there.
        tag: the tag; empty if a digest is given without one.
        digest: ``sha256:`` and 64 digits; empty for whatever the tag means at the moment.
    """

    registry: str
    path: str
    tag: str
    digest: str

    @property
    def repository(self) -> str:
        """Name of the repository for `docker pull`."""
        return f"{self.registry}/{self.path}"

    @property
    def version(self) -> str:
        """The digest, or else the tag."""
        return self.digest or self.tag

    def __str__(self) -> str:
        """Return what Docker takes."""
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.tag}"

    def is_below(self, prefix: str) -> bool:
        """Tell whether the image belongs to a registry, or a part of one, such as ``registry.example/ml``."""
        return f"{self.repository}/".startswith(f"{prefix.rstrip('/')}/")


def parse(name: str) -> Image:
    """Read a name as people write it: without registry it is Docker Hub's, without tag ``latest``.

    Raises:
        ImageError: it is not a name of an image.
    """
    found = _NAME.fullmatch(name) if len(name) <= LONGEST else None
    if not found:
        raise ImageError(
            f"{name!s:.60} is not a name of an image; write it like registry.example.org/group/image:tag."
        )
    registry, path = found["registry"] or DOCKER_HUB, found["path"]
    if registry == DOCKER_HUB and "/" not in path:
        path = f"library/{path}"
    tag = found["tag"] or ("" if found["digest"] else "latest")
    return Image(registry, path, tag, found["digest"] or "")


@dataclass(frozen=True)
class Offer:
    """An image that the site offers.

    Attributes:
        label: what users see.
        image: its name.
        groups: groups whose members see it; with none everybody does.
    """

    label: str
    image: Image
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Policy:
    """Which images can be started.

    Attributes:
        offers: those in the form; the first that a user sees is the default.
        own: registries, or parts of them, from which users may name images of their own.
        own_groups: groups whose members may; with none everybody may.
    """

    offers: tuple[Offer, ...]
    own: tuple[str, ...] = ()
    own_groups: frozenset[str] = frozenset()

    def seen_by(self, groups: Iterable[str]) -> list[Offer]:
        """Return what is offered to a member of these groups."""
        names = frozenset(groups)
        return [offer for offer in self.offers if not offer.groups or offer.groups & names]

    def own_from(self, groups: Iterable[str]) -> tuple[str, ...]:
        """Return from where a member of these groups may name own images; empty for from nowhere."""
        return self.own if not self.own_groups or self.own_groups & frozenset(groups) else ()

    def choose(self, label: object, own: object, groups: Iterable[str]) -> Image:
        """Return the image that a user's choice means.

        Args:
            label: label of an offer; empty for the first one.
            own: name of an image of the user's own; if given, it goes before the label.
            groups: the user's.

        Raises:
            ImageError: it is not offered to this user.
        """
        groups = frozenset(groups)
        if own:
            return self._own(own, groups)
        offers = self.seen_by(groups)
        if not offers:
            raise ImageError("No image is offered to your groups; ask the administrator of this service.")
        for offer in offers:
            if label in ("", offer.label):
                return offer.image
        offered = ", ".join(offer.label for offer in offers)
        raise ImageError(f"The image {label!s:.60} is not offered; choose one of {offered}.")

    def _own(self, own: object, groups: frozenset[str]) -> Image:
        allowed = self.own_from(groups)
        if not allowed:
            raise ImageError("You cannot start images of your own here; choose one that is offered.")
        if not isinstance(own, str):
            raise ImageError("The image must be given by its name.")
        image = parse(own.strip())
        if not any(image.is_below(prefix) for prefix in allowed):
            raise ImageError(
                f"Images of {image.repository:.60} cannot be started here; own images must come from "
                f"{' or '.join(allowed)}."
            )
        return image


def read(settings: Mapping[str, Any]) -> Policy:
    """Return the policy in the settings of the role.

    Raises:
        ImageError: a name is not one of an image.
    """
    return Policy(
        offers=tuple(
            Offer(
                str(entry.get("label") or entry["image"]),
                parse(entry["image"]),
                frozenset(entry.get("groups") or ()),
            )
            for entry in settings["images"]
        ),
        own=tuple(settings["own_images"]),
        own_groups=frozenset(settings["own_images_groups"]),
    )


def runs_with(version: str, hub: str) -> bool:
    """Tell whether an image's JupyterHub can talk to the hub.

    JupyterHub follows Semantic Versioning and asks for the same version on both sides; within a major version
    it only logs a difference (JupyterHub documentation, "Upgrading JupyterHub").

    Args:
        version: what ``jupyterhub-singleuser --version`` prints.
        hub: the hub's version.
    """
    return version.partition(".")[0] == hub.partition(".")[0]

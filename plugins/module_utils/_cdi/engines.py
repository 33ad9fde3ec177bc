# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Container engines and CDI: which versions read specifications, and what their configuration must say."""

from __future__ import annotations

import json
import re

# The first versions that read specifications: release notes of Docker Engine 25.0 and Podman 4.1; containerd,
# docs/cri/config.md ("enable_cdi").
OLDEST = {"containerd": (1, 7), "docker": (25, 0), "podman": (4, 1)}


class EngineProblem(ValueError):
    """An engine cannot use CDI as it is; the text is one sentence for a user."""


def version(engine: str, told: str) -> str:
    """Return the version of an engine that reads specifications.

    Args:
        engine: containerd, docker or podman.
        told: what it answers to --version.

    Raises:
        EngineProblem: when it is too old, or tells no version.
    """
    # containerd names itself by a path first, and Debian adds its own version to the one in front.
    match = re.search(r"(?<![\w/.])v?([0-9]+)\.([0-9]+)[.0-9]*", told)
    if match is None:
        raise EngineProblem(
            f"{engine} does not tell its version ('{told.strip()}'): look how it was installed."
        )
    oldest = OLDEST[engine]
    if (int(match[1]), int(match[2])) < oldest:
        raise EngineProblem(
            f"{engine} {match[0]} cannot read CDI specifications, {oldest[0]}.{oldest[1]} and later can:"
            f" update it, or do not list {engine} among the engines."
        )
    return match[0]


def docker_with_cdi(text: str) -> str:
    """Return Docker's daemon.json with CDI switched on; all else in it stays.

    Args:
        text: the file, empty when there is none.

    Raises:
        EngineProblem: when it is not what Docker reads.
    """
    try:
        found = json.loads(text) if text.strip() else {}
        features = found.setdefault("features", {})
        if features.get("cdi") is True:
            return text
        features["cdi"] = True
    except (ValueError, AttributeError, TypeError) as error:
        raise EngineProblem(f"It is no configuration of Docker ({error}): correct it.") from error
    return json.dumps(found, indent=2) + "\n"


def containerd_plugin(dump: str) -> str:
    """Return the plugin that starts containers for Kubernetes and has CDI switched off, if there is one.

    Docker's own configuration of containerd has no such plugin, and since containerd 2.0 (docs/cri/config.md)
    CDI is on unless it is switched off.

    Args:
        dump: the effective configuration, as `containerd config dump` tells it.
    """
    if re.search(
        r'^\s*disabled_plugins\s*=\s*\[[^]]*"(?:io\.containerd\.grpc\.v1\.)?cri"', dump, re.MULTILINE
    ):
        return ""
    return next((name for name, keys in _tables(dump).items() if keys.get("enable_cdi") == "false"), "")


def containerd_with_cdi(text: str, plugin: str) -> str:
    """Return containerd's config.toml with CDI switched on for the plugin; comments and all else stay.

    The result is to be read back with containerd itself (`only_the_switch_differs`), as TOML can say the same
    in more ways than are known here.

    Args:
        text: the file, empty when there is none.
        plugin: the table, as `containerd_plugin` returns it.
    """
    lines = (text or "version = 2\n").rstrip("\n").split("\n")
    here = ""
    header = None
    for number, line in enumerate(lines):
        if line.lstrip().startswith("["):
            here = _table(line)
            header = number if here == plugin else header
        elif here == plugin and re.match(r"\s*enable_cdi\s*=", line):
            lines[number] = re.sub(r"=\s*\w+", "= true", line, count=1)
            return "\n".join(lines) + "\n"
    if header is None:
        lines += ["", f"[{plugin}]", "enable_cdi = true"]
    else:
        indent = re.match(r"\s*", lines[header])
        lines.insert(header + 1, f"{indent[0] if indent else ''}  enable_cdi = true")
    return "\n".join(lines) + "\n"


def only_the_switch_differs(before: str, after: str) -> bool:
    """Whether CDI is on in the second of two dumps of containerd, and all else is the same.

    Args:
        before: `containerd config dump` of the former configuration.
        after: the same of the new one.
    """

    def rest(dump: str) -> list[str]:
        return [line for line in dump.splitlines() if not re.match(r"\s*(enable_cdi|imports)\s*=", line)]

    return not containerd_plugin(after) and rest(before) == rest(after)


def _tables(dump: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    here = ""
    for line in dump.splitlines():
        pair = re.match(r"\s*(\w+)\s*=\s*(.*)$", line)
        if line.lstrip().startswith("["):
            here = _table(line)
        elif pair:
            found.setdefault(here, {})[pair[1]] = pair[2].strip()
    return found


def _table(line: str) -> str:
    """Return the name in the header of a table, with plugins' names in double quotes."""
    match = re.match(r"\s*\[\s*(.*?)\s*\]\s*(?:#.*)?$", line)
    return re.sub(r"\s*\.\s*(?=[\"'])", ".", match[1]).replace("'", '"') if match else ""

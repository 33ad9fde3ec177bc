#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: what a package source of apt has, before a machine uses it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: apt_source_info
short_description: Tell what a package source of apt has
version_added: 0.1.0
description:
  - Reads the list of packages of a source that the machine does not use yet, and verifies its signature as
    apt does. Files of apt's are not touched; what is read goes to a folder that is removed.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
options:
  url:
    description: Address of the source.
    type: str
    required: true
  suite:
    description: Suite of the source; with a C(/) at its end it has no components.
    type: str
    required: true
  components:
    description: Components of the suite.
    type: str
    default: main
  key:
    description: Key that signs the source, in ASCII armor.
    type: str
    required: true
  names:
    description: Regular expression of the names of packages to tell about.
    type: str
    required: true
  timeout:
    description: Seconds that apt may take.
    type: float
    default: 120
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: See for which kernels a mirror has modules
  gpufarm.cluster.apt_source_info:
    url: https://mirror.example.org/lustre
    suite: bookworm
    key: "{{ lookup('file', 'lustre.asc') }}"
    names: ^lustre-client-modules-
"""

RETURN = r"""
packages:
  description: Versions, the newest first, by the name of the package.
  returned: success
  type: dict
  sample:
    lustre-client-utils: [2.15.8-1]
"""

import re
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed


def options(folder: Path) -> list[str]:
    """Return what makes apt use the files of a folder in place of the machine's."""
    settings = {
        "Dir::Etc::SourceList": folder / "source.sources",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State": folder / "state",
        "Dir::State::Status": "/dev/null",
        "Dir::Cache": folder / "cache",
        "APT::Get::List-Cleanup": "0",
        # The folder is of root, and apt would read as another user.
        "APT::Sandbox::User": "root",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def parse(text: str) -> dict[str, list[str]]:
    """Return versions by package from what ``apt-cache madison`` prints, the newest first as apt has them."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 3 and fields[1] not in found.setdefault(fields[0], []):
            found[fields[0]].append(fields[1])
    return found


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "suite": {"type": "str", "required": True},
            "components": {"type": "str", "default": "main"},
            "key": {"type": "str", "required": True, "no_log": False},
            "names": {"type": "str", "required": True},
            "timeout": {"type": "float", "default": 120},
        },
        supports_check_mode=True,
    )
    params = module.params
    with tempfile.TemporaryDirectory(prefix="gpufarm-apt-") as name:
        folder = Path(name)
        for path in ("state/lists/partial", "cache/archives/partial"):
            (folder / path).mkdir(parents=True)
        (folder / "key.asc").write_text(params["key"])
        text = f"Types: deb\nURIs: {params['url']}\nSuites: {params['suite']}\n"
        if not params["suite"].endswith("/"):
            text += f"Components: {params['components']}\n"
        (folder / "source.sources").write_text(f"{text}Signed-By: {folder / 'key.asc'}\n")
        try:
            update = timed.run(
                ["apt-get", *options(folder), "-o", "APT::Update::Error-Mode=any", "-qq", "update"],
                params["timeout"],
            )
            if update.status != 0:
                why = f"no answer within {params['timeout']:g} seconds"
                why = why if update.status is None else " ".join(update.errors.split())
                module.fail_json(msg=f"The package source {params['url']} cannot be read: {why}")
            names = timed.run(["apt-cache", *options(folder), "pkgnames"], params["timeout"])
            chosen = sorted(name for name in names.output.split() if re.search(params["names"], name))
            words = ["apt-cache", *options(folder), "madison", *chosen]
            listed = timed.run(words, params["timeout"]) if chosen else names._replace(output="")
        except OSError as error:
            module.fail_json(msg=f"apt cannot be run: {error}.")
    for done in (names, listed):
        if done.status != 0:
            module.fail_json(msg=f"apt cannot tell what it has read: {' '.join(done.errors.split())}")
    module.exit_json(changed=False, packages=parse(listed.output))


if __name__ == "__main__":
    main()

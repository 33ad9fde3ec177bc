#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: make LNet, the network of Lustre, what is declared."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lnet_configuration
short_description: Configure LNet, the network of Lustre
version_added: 0.1.0
description:
  - Compares what C(lnetctl) reports with what is declared, and changes what differs while LNet runs. The
    state of a unit is not asked, as C(lnet.service) counts as started when a mount has configured LNet
    before it.
  - Interfaces and routes that are not declared are taken away. Peers stay, as LNet finds them itself.
  - While a file system or a target of Lustre is mounted, no interface is taken away or changed.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  check_mode:
    support: full
    description: Tells what would be done, also where Lustre is not installed yet.
  diff_mode:
    support: full
    description: Shows what is declared, as it is and as it would be.
options:
  networks:
    description: The networks that the machine is in.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The network, such as V(tcp) or V(o2ib1).
        type: str
        required: true
      interfaces:
        description: Its interfaces. LNet uses several of them at once (multi-rail).
        type: list
        elements: str
        required: true
      tunables:
        description: Tunables of the interfaces by name, such as C(peer_credits) or C(conns_per_peer).
        type: dict
        default: {}
  routes:
    description: Other networks, and the gateways that they are reached by.
    type: list
    elements: dict
    default: []
    suboptions:
      network:
        description: The other network.
        type: str
        required: true
      gateway:
        description: NID of the gateway.
        type: str
        required: true
      hop:
        description: Number of hops.
        type: int
      priority:
        description: Priority; a route with a lower number goes first.
        type: int
  peers:
    description: NIDs of one machine each, for machines that discovery does not find.
    type: list
    elements: list
    default: []
  settings:
    description: Settings of LNet as a whole by name, such as C(discovery) or C(transaction_timeout).
    type: dict
    default: {}
  timeout:
    description: Seconds that each command may take.
    type: float
    default: 30
requirements:
  - PyYAML
  - lnetctl, except in check mode
seealso:
  - module: gpufarm.cluster.lustre_info
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Use two InfiniBand ports at once
  gpufarm.cluster.lnet_configuration:
    networks:
      - name: o2ib
        interfaces: [ib0, ib1]
        tunables:
          peer_credits: 32
    settings:
      discovery: 1
"""

RETURN = r"""
done:
  description: The changes, or in check mode the planned changes, in words.
  returned: success
  type: list
  elements: str
  sample: ["net del --net tcp --if eth1"]
"""

import shutil
import tempfile
import traceback
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import lnet, nid
from ansible_collections.gpufarm.cluster.plugins.module_utils._mounts import table as mount_table

try:
    import yaml
except ImportError:
    YAML_PROBLEM = traceback.format_exc()
else:
    YAML_PROBLEM = ""


# Types of mounts of targets, whose sources are block devices (mount.lustre(8), obd_mount.c).
TARGETS = ("lustre", "lustre_tgt")


class Lnetctl:
    """lnetctl, each call with a limited time."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.program = shutil.which("lnetctl") or shutil.which("lnetctl", path="/usr/sbin:/sbin")

    def run(self, words: list[str]) -> timed.Answer:
        """Run it; end the module when it does not answer in time."""
        done = timed.run([str(self.program), *words], self.module.params["timeout"])
        if done.status is None:
            self.module.fail_json(
                msg=(
                    f"'lnetctl {' '.join(words)}' did not answer within"
                    f" {self.module.params['timeout']:g} seconds; look at 'dmesg' on the machine."
                )
            )
        return done

    def current(self) -> tuple[bool, lnet.Lnet]:
        """Return whether LNet runs, and what it is."""
        nothing = lnet.Lnet({}, {}, {}, {})
        if self.program is None:
            return False, nothing
        shown = self.run(["net", "show"])
        if shown.status != 0:
            if lnet.is_down(shown.output + shown.errors):
                return False, nothing
            self.fail("net show", shown)
        export = self.run(["export"])
        if export.status != 0:
            self.fail("export", export)
        return True, lnet.reported(yaml.safe_load(export.output) or {})

    def fail(self, command: str, done: timed.Answer) -> None:
        """End the module with what a command said."""
        said = " ".join((done.errors or done.output).split())
        self.module.fail_json(msg=f"'lnetctl {command}' failed with exit status {done.status}: {said}")


def mounted() -> list[str]:
    """Return where file systems and targets of Lustre are mounted."""
    mounts = mount_table.parse(Path("/proc/self/mountinfo").read_text(errors="replace"))
    return sorted(one.path for one in mounts.values() if one.kind in TARGETS or nid.is_device(one.source))


def apply(lnetctl: Lnetctl, plan: lnet.Plan) -> None:
    """Take away, then add."""
    for words in plan.removals:
        done = lnetctl.run(words)
        if done.status != 0:
            lnetctl.fail(" ".join(words), done)
    if any(plan.additions):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(lnet.to_yaml(plan.additions))
            file.flush()
            done = lnetctl.run(["import", file.name])
        if done.status != 0:
            lnetctl.fail("import", done)


def main() -> None:
    """Run the module."""
    network = {
        "name": {"type": "str", "required": True},
        "interfaces": {"type": "list", "elements": "str", "required": True},
        "tunables": {"type": "dict", "default": {}},
    }
    route = {
        "network": {"type": "str", "required": True},
        "gateway": {"type": "str", "required": True},
        "hop": {"type": "int"},
        "priority": {"type": "int"},
    }
    module = AnsibleModule(
        argument_spec={
            "networks": {"type": "list", "elements": "dict", "required": True, "options": network},
            "routes": {"type": "list", "elements": "dict", "default": [], "options": route},
            "peers": {"type": "list", "elements": "list", "default": []},
            "settings": {"type": "dict", "default": {}},
            "timeout": {"type": "float", "default": 30},
        },
        supports_check_mode=True,
    )
    lnetctl = Lnetctl(module)
    if YAML_PROBLEM and lnetctl.program is not None:
        module.fail_json(msg=missing_required_lib("PyYAML"), exception=YAML_PROBLEM)
    params: dict[str, Any] = module.params
    routes = [{key: value for key, value in one.items() if value is not None} for one in params["routes"]]
    declaration = (params["networks"], routes, params["peers"], params["settings"])
    wrong = list(lnet.problems("", *declaration))
    if wrong:
        module.fail_json(msg=" ".join(wrong))
    wanted = lnet.declared(*declaration)
    runs, current = lnetctl.current()
    if not runs and not module.check_mode:
        module.fail_json(
            msg=(
                "LNet is not running; start the unit lnet, which loads the modules of Lustre, and see"
                " 'systemctl status lnet' and 'modinfo lnet' when that fails."
            )
        )
    plan = lnet.plan(current, wanted)
    try:
        in_use = mounted() if plan.cut else []
    except OSError as error:
        module.fail_json(msg=f"The mounts cannot be read: {error.strerror}.")
    if in_use:
        module.fail_json(
            msg=(
                f"LNet would have to take away the interface {' and '.join(plan.cut)}, and"
                f" {' and '.join(in_use)} is mounted; unmount it first, or leave the interface and its"
                " tunables as they are."
            )
        )
    before, after = lnet.shown(current, wanted), lnet.shown(wanted, wanted)
    if not plan.empty and not module.check_mode:
        apply(lnetctl, plan)
        left = lnet.plan(lnetctl.current()[1], wanted)
        if not left.empty:
            rest = " ".join((lnet.to_yaml(left.additions) or str(left.removals)).split())
            module.fail_json(
                msg=f"LNet has taken the changes and still differs from what is declared: {rest}"
            )
    done = [" ".join(words) for words in plan.removals]
    added = " ".join(lnet.to_yaml(plan.additions).split())
    module.exit_json(
        changed=not plan.empty,
        done=done + ([f"import {added}"] if added else []),
        diff={
            "before_header": "LNet",
            "after_header": "LNet",
            "before": before if not plan.empty else after,
            "after": after,
        },
    )


if __name__ == "__main__":
    main()

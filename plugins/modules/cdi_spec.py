#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the CDI specification of the GPUs of a machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cdi_spec
short_description: Describe NVIDIA GPUs and slices to container engines
version_added: 0.1.0
description:
  - Writes C(/run/cdi/nvidia.yaml), a specification of the Container Device Interface (CDI), by which Docker,
    containerd and Podman give a container a GPU or a slice of one, with the driver's libraries.
  - A GPU without MIG mode is called by its index and its UUID, such as C(nvidia.com/gpu=0); a slice by the
    indexes of GPU and slice and by its UUID, such as C(nvidia.com/gpu=0:1); all of them together
    C(nvidia.com/gpu=all). A GPU in MIG mode without slices offers nothing.
  - A container that asks for a slice gets the device nodes of that slice and no other.
  - GPUs that cannot be read, such as one that is lost, are not described. RV(unreadable) names them.
  - Another file that describes the same kind of devices is an error, as engines would mix both.
extends_documentation_fragment:
  - gpufarm.cluster.nvml
  - gpufarm.cluster.nvml.call_timeout
attributes:
  diff_mode:
    support: full
    description: Shows the specification before and after.
seealso:
  - module: gpufarm.cluster.mig_partition
  - name: Container Device Interface
    description: The specification of the file.
    link: https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md
"""

EXAMPLES = r"""
- name: Describe the GPUs to container engines
  gpufarm.cluster.cdi_spec:
"""

RETURN = r"""
devices:
  description: Names by which containers ask for devices.
  returned: success
  type: list
  elements: str
  sample: ["nvidia.com/gpu=0:0", "nvidia.com/gpu=0:1", "nvidia.com/gpu=all"]
unreadable:
  description: The GPUs that cannot be read, as in M(gpufarm.cluster.gpu_info), with a warning for each.
  returned: success
  type: list
  elements: dict
path:
  description: The file; it does not exist when there is no device.
  returned: success
  type: str
  sample: /run/cdi/nvidia.yaml
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._cdi import spec
from ansible_collections.gpufarm.cluster.plugins.module_utils._cdi.io import host
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml import gpu
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.guarded import OPTION, Guarded
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.python import use_gpu_python


def main() -> None:
    """Run the module."""
    use_gpu_python()
    module = AnsibleModule(argument_spec={**OPTION}, supports_check_mode=True)
    try:
        others = host.other_specifications()
        if others:
            module.fail_json(
                msg=(
                    f"{', '.join(map(str, others))} describe {spec.KIND} too, and container engines"
                    f" would mix them with {host.SPECIFICATION}: remove them, and what writes them, and"
                    " run again."
                )
            )
        found = Guarded(module.params["call_timeout"]).ask(host.inspect)
        survey = found.survey
        if not module.check_mode:
            host.make_nodes(survey.gpus)
        specified = host.specify(found, module.warn)
        before = host.read()
        after = spec.text(specified) if specified else ""
        if after != before and not module.check_mode:
            host.write(after)
    except gpu.GpuError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{host.SPECIFICATION} cannot be written: {error.strerror}.")
    result = {
        "changed": after != before,
        "devices": spec.device_names(specified),
        "unreadable": gpu.entries(survey.unreadable, module.warn),
        "path": str(host.SPECIFICATION),
    }
    if after != before:
        result["diff"] = {
            "before": before,
            "after": after,
            "before_header": str(host.SPECIFICATION),
            "after_header": str(host.SPECIFICATION),
        }
    module.exit_json(**result)


if __name__ == "__main__":
    main()

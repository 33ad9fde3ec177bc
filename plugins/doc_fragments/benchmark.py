# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation that the modules which measure share."""

from __future__ import annotations


class ModuleDocFragment:
    """Where results are, and when to measure."""

    DOCUMENTATION = r"""
description:
  - The first results are the baseline, with which later ones are compared.
  - Refuses to measure while a job of Slurm or another measurement runs on the machine.
attributes:
  diff_mode:
    support: none
    description: Nobody knows the values before.
options:
  results:
    description: Absolute path of the file that keeps the results, as JSON. Its folder must exist.
    type: path
    default: /var/lib/gpufarm/benchmarks/results.json
  measure:
    description: >-
      When to measure. V(missing) only what is not in the results, V(again) also what is there, and
      V(baseline) likewise, and the values become the baseline.
    type: str
    choices: [missing, again, baseline]
    default: missing
"""

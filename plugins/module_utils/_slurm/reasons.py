# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a job waits, in words of its owner. No I/O.

Sources: squeue(1), "JOB REASON CODES"; src/slurmctld/node_scheduler.c, for those with details.
"""

from __future__ import annotations

import re

# The first that fits; limits are of all that Slurm counts.
_WORDS = (
    (r"Resources", "the resources that it asks for are in use"),
    (r"Priority", "others are before it"),
    (r"Dependency", "it waits for another job"),
    (r"BeginTime", "its time has not come"),
    (r"JobHeld\w+", "it is held back"),
    (r"Licenses", "licences that it asks for are in use"),
    (
        r"Reservation|ReqNodeNotAvail,_May_be_reserved_for_other_job",
        "the resources that it asks for are reserved",
    ),
    (
        r"ReqNodeNotAvail,_Reserved_for_maintenance",
        "the machines with these resources are reserved for maintenance",
    ),
    (
        r"ReqNodeNotAvail.*|Nodes_required_for_job_are_DOWN.*",
        "the machines with these resources are out of service",
    ),
    (r"Partition(Down|Inactive)", "its partition takes no jobs at the moment"),
    (r"PartitionTimeLimit", "it asks for more time than its partition gives"),
    (r"PartitionNodeLimit", "it asks for more machines than its partition gives"),
    (r"BadConstraints", "no machine has the resources that it asks for any more"),
    (r"(Assoc|QOS)Grp\w+RunMinutes(Limit)?", "others have what may be in use at once until some of it ends"),
    (r"(Assoc|QOS)Grp\w+Minutes(Limit)?", "too few hours are left for it"),
    (r"AssocGrp\w+|(QOS)?Max\w+PerAccount", "all users of the account together have what they may have"),
    (r"QOSGrp\w+", "all users with this quality of service together have what they may have"),
    (r"AssocMaxJobsLimit|QOSMax\w+PerUser(Limit)?", "its owner has as much as one may have at once"),
    (r"(Assoc|QOS)Max\w+", "it asks for more than its account may"),
    (r"(Assoc|QOS)\w+", "its account is at its limit"),
)


def of(reason: str) -> str:
    """Return a sentence about a job that waits, with Slurm's own word, by which administrators know it.

    Args:
        reason: as scontrol tells it, with underscores for blanks.
    """
    why = next((words for names, words in _WORDS if re.fullmatch(names, reason)), "")
    return f"{why[0].upper()}{why[1:]} ({reason.replace('_', ' ')})." if why else reason

# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a notebook waits, in words of its user. No I/O."""

from __future__ import annotations

import re

from gpufarm_hub.sharing import keeping

from .queue import Job

# Of a job for which the cluster has no node any more; Slurm holds it.
GONE = "BadConstraints"
# squeue(1), JOB REASON CODES; those with a comma: src/slurmctld/node_scheduler.c.
WORDS = {
    "None": "Slurm has not looked at it yet",
    "Resources": "what you chose is in use",
    "Priority": "others are before you",
    "Reservation": "what you chose is reserved",
    "ReqNodeNotAvail, May be reserved for other job": "what you chose is reserved",
    "ReqNodeNotAvail, Reserved for maintenance": (
        "the machines that have what you chose are reserved for maintenance"
    ),
    "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions": (
        "the machines that have what you chose are out of service"
    ),
    "ReqNodeNotAvail": "the machines that have what you chose are out of service",
    "PartitionDown": "the cluster takes no jobs at the moment",
    "PartitionInactive": "the cluster takes no jobs at the moment",
    "JobHeldAdmin": "an administrator holds it back",
    "JobHeldUser": "you hold it back",
    "Licenses": "licences that it needs are in use",
    "BeginTime": "its time has not come",
    GONE: "no machine has what you chose any more",
}
# Of limits, which are of all that Slurm counts; the first that fits.
LIMITS = (
    (r"(Assoc|QOS)Grp\w+RunMinutes(Limit)?", "others have what may be in use at once until some of it ends"),
    (r"(Assoc|QOS)Grp\w+Minutes(Limit)?", "too few hours are left for it"),
    (r"AssocGrp\w+|(QOS)?Max\w+PerAccount", "all users of your account together have what they may have"),
    (r"QOSGrp\w+", "all users with your quality of service together have what they may have"),
    (r"AssocMaxJobsLimit|QOSMax\w+PerUser(Limit)?", "you have as much as you may have at once"),
    (r"(Assoc|QOS)Max\w+", "it is more than your account may choose"),
    (r"(Assoc|QOS)\w+", "your account is at its limit"),
)


def of(job: Job) -> str:
    """Return the sentence about a notebook that waits or begins.

    Args:
        job: of the notebook.
    """
    if not job.waits:
        return f"Your notebook begins on {job.node}." if job.node else "Your notebook begins."
    # Details may follow in brackets or after a comma.
    why = WORDS.get(job.reason) or WORDS.get(job.reason.split(",")[0].split("(")[0].strip())
    if why is None:
        limits = (words for names, words in LIMITS if re.fullmatch(names, job.reason))
        why = f"{next(limits, 'Slurm gives a reason')} ({job.reason})"
    start = job.start if job.reason != GONE else None
    expected = f" It is expected to begin at {keeping.in_words(start)}." if start else ""
    return f"Your notebook waits in the queue of the cluster: {why}.{expected}"


def state(job: Job) -> str:
    """Return what an administrator reads of a notebook.

    Args:
        job: of the notebook.
    """
    if job.waits:
        return of(job).removeprefix("Your notebook ")
    until = f" until {keeping.in_words(job.end)}" if job.end else ""
    return f"{job.states[-1].lower()} on {job.node}{until}"


# Words of sbatch about a job that it does not take, and the words for its user.
REFUSALS = {
    "Invalid account": "your account may not use the cluster; ask its administrator for an account of Slurm",
    "Invalid --gid": "the first group of your account has no name here; ask its administrator for one",
    "Invalid qos": "your account may not use the cluster; ask its administrator for an account of Slurm",
    "Requested node configuration is not available": "no machine of the cluster has so much; choose less",
    "Requested time limit is invalid": "the cluster does not give so much time; choose fewer hours",
    "Job violates accounting/QOS policy": "it is beyond the limits of your account; choose less",
}


def refused(text: str) -> str:
    """Return the sentence for a user whose notebook Slurm does not take.

    Args:
        text: what sbatch has said.
    """
    why = next((words for begin, words in REFUSALS.items() if begin in text), "")
    return f"The cluster does not take your notebook: {why or text.rpartition(': ')[2].strip()}."

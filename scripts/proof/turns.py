"""In which order jobs have their turn: the one that was proved longest ago goes first."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterable, Set

# Jobs that a run of CI surely gets to: of those that a change affects, and of the others where these are no
# more. Usually it gets to more; then the next run begins with some that this one has run.
AFFECTED, OTHERS = 10, 4


def by_age_of_proof(jobs: Iterable[str], landings: Iterable[Set[str]]) -> list[str]:
    """Sort jobs by the landing that last proved them, oldest first.

    No record of runs is kept, so what each of them ran is worked out: the first of the jobs that its change
    affected, and the first of the others. So jobs that no change affects have their turn one after the other,
    and those that had to be left out are the first of the next run.

    Args:
        jobs: names of jobs; at the beginning they are in the order of the alphabet.
        landings: the jobs that each landing affected, oldest landing first.
    """
    queue = sorted(jobs)
    for affected in landings:
        needed = [job for job in queue if job in affected]
        others = [job for job in queue if job not in affected] if len(needed) <= AFFECTED else []
        ran = [*others[:OTHERS], *needed[:AFFECTED]]
        queue = [*(job for job in queue if job not in ran), *ran]
    return queue

"""Roles refuse settings that cannot work, in one sentence, before anything changes on a host.

Refusals for the state of a host, such as a port that is taken, are tested in the scenarios of the roles.
"""

from __future__ import annotations

import pytest
import refused_benchmarks
import refused_cluster
import refused_dcgm
import refused_fabric
import refused_gpu
import refused_hub
import refused_modules
import refused_mpi
import refused_network
import refused_paas
import refused_scratch
import refused_slurm
import refused_sssd
import refused_staging
import refused_storage
from harness import CASES
from refused import Refused

EVERY: list[tuple[str, Refused]] = [
    (role, refused)
    for group in (
        refused_benchmarks,
        refused_cluster,
        refused_dcgm,
        refused_fabric,
        refused_gpu,
        refused_hub,
        refused_modules,
        refused_mpi,
        refused_network,
        refused_paas,
        refused_scratch,
        refused_slurm,
        refused_sssd,
        refused_staging,
        refused_storage,
    )
    for role, all_of_it in group.REFUSED.items()
    for refused in all_of_it
]
FIRST = dict(reversed(EVERY))


@pytest.mark.parametrize(("role", "refused"), EVERY, ids=[f"{role}: {one.words[:60]}" for role, one in EVERY])
def test_settings_that_cannot_work_are_refused_before_anything_changes(role: str, refused: Refused) -> None:
    case = CASES[role]
    run = case.with_answers(refused.answers).run(role, refused.variables)
    assert run.failed
    assert refused.words in run.refusal.replace("\n", " ")
    assert not [call for call in run.calls if not call.asks]


@pytest.mark.parametrize("role", sorted(FIRST))
def test_variables_of_the_caller_switch_no_refusal_off(role: str) -> None:
    """Facts, registered variables and `-e` win over variables of tasks."""
    refused = FIRST[role]
    case = CASES[role].with_answers(refused.answers)
    run = case.run(role, refused.variables, extra=dict.fromkeys(("problems", "checks", "plan"), ""))
    assert refused.words in run.refusal.replace("\n", " ")

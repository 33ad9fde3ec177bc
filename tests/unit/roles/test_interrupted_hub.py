"""In check mode the role runs a program of the hub only where an earlier run has installed it."""

from __future__ import annotations

import pytest
from harness.cases import CASES
from harness.stubs import has

PYTHON, PROGRAM = "/opt/jupyterhub/bin/python", "/opt/jupyterhub/bin/gpufarm-hub-check"


@pytest.mark.parametrize(("there", "asked"), [((), 0), ((PYTHON,), 0), ((PYTHON, PROGRAM), 1)])
def test_the_program_that_makes_certificates_is_asked_if_it_is_there(there: tuple[str, ...], asked: int):
    case = CASES["jupyterhub"].with_answers({"gpufarm.cluster.path_info": has("/srv/other", *there)})
    calls = case.run("jupyterhub", check=True).calls
    assert sum("gpufarm_hub.upkeep.authority" in call.args.get("argv", []) for call in calls) == asked

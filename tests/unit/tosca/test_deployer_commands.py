"""Commands by the words that people know from other deployers, and completed by their shells."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from deployer_site import Site


@pytest.fixture
def complete(site: Site, tmp_path: Path) -> Callable[[str], list[str]]:
    """Type a line in bash, with the completion that the command prints, and press the tabulator."""
    script = tmp_path / "completion"
    script.write_text(site.gpufarm("completion", "bash").output)

    def typed(line: str) -> list[str]:
        words = " ".join(f"'{word}'" for word in line.split(" "))
        program = (
            f"source {script}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
            'compopt() { :; }; _gpufarm_completion gpufarm; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-c", program], capture_output=True, text=True, check=True, env=site.environment()
        )
        return done.stdout.split()

    return typed


def test_commands_have_the_words_of_other_deployers(site: Site) -> None:
    assert site.deploy().status == 0
    assert site.gpufarm("ls").output == site.gpufarm("list").output == site.gpufarm("status").output
    for word in ("destroy", "delete"):
        refused = site.gpufarm(word, "notes", typed="n\n")
        assert refused.status == 1 and "notes: nothing was removed" in refused.error
    assert site.gpufarm("destroy", "notes", "--yes").status == 0
    assert site.gpufarm("ls").output.splitlines()[1:] == []


def test_a_shell_completes_commands_and_deployments(site: Site, complete: Callable[[str], list[str]]) -> None:
    assert complete("gpufarm und") == ["undeploy"]
    assert complete("gpufarm undeploy ") == []
    assert site.deploy().status == 0
    for command in ("undeploy", "status", "outputs", "resume", "history", "diff", "update", "scale"):
        assert complete(f"gpufarm {command} n") == ["notes"]
    assert complete("gpufarm status x") == []
    assert complete(f"gpufarm --state-dir {site.root} status n") == [], "of the folder that is named"

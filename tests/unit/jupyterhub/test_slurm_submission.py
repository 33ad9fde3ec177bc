"""The job of a notebook as sbatch gets it: nothing of a user is code, and nothing is secret."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

from gpufarm_hub.slurm import submission
from gpufarm_hub.slurm.submission import Order
from hypothesis import given, settings
from hypothesis import strategies as st

ORDER = Order("alice/", 2001, 2001, "/home/alice", 1.5, 2 << 30, "1g.10gb", 2, 130, "gpu")
# Arguments that a program can have at all: none holds a NUL.
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


def options(order: Order) -> dict[str, str]:
    return dict(word.partition("=")[::2] for word in submission.arguments(order)[1:])


def test_an_order_is_what_sbatch_is_told() -> None:
    told = options(ORDER)
    assert submission.arguments(ORDER)[0] == "sbatch"
    assert (told["--uid"], told["--gid"], told["--partition"]) == ("2001", "2001", "gpu")
    # Slurm gives whole cores; no notebook gets less than was chosen.
    assert (told["--cpus-per-task"], told["--mem"], told["--time"]) == ("2", "2048M", "130")
    assert told["--gres"] == "gpu:1g.10gb:2"
    assert told["--output"] == "/home/alice/.jupyterhub.log"
    assert "--no-requeue" in told and told["--export"] == "NIL"


def test_a_job_runs_on_no_node_without_the_programs_of_notebooks() -> None:
    assert options(ORDER)["--constraint"] == "notebooks"


def test_without_gpu_and_partition_there_are_no_options_for_them() -> None:
    assert not {"--gres", "--partition"} & options(replace(ORDER, gpu="", partition="")).keys()


@given(owner=TEXT, home=TEXT, gpu=TEXT, partition=TEXT)
def test_no_text_becomes_an_option_of_its_own(owner: str, home: str, gpu: str, partition: str) -> None:
    order = replace(ORDER, owner=f"{owner}/", home=f"/{home}", gpu=f"x{gpu}", partition=f"x{partition}")
    words = submission.arguments(order)
    plain = submission.arguments(ORDER)
    assert [word.partition("=")[0] for word in words] == [word.partition("=")[0] for word in plain]


@given(home=TEXT)
def test_no_home_is_a_pattern_of_names(home: str) -> None:
    log = options(replace(ORDER, home=f"/{home}"))["--output"]
    assert log.replace("%%", "").count("%") == 0


@given(user=TEXT.filter(lambda text: "/" not in text), server=TEXT)
def test_the_note_at_a_job_tells_its_hub_its_owner_and_its_order(user: str, server: str) -> None:
    order = replace(ORDER, owner=f"{user}/{server}")
    hub, other = submission.hub_of(b"ca"), submission.hub_of(b"another")
    text = submission.note(order, hub)
    assert submission.read_note(text, hub) == (order.owner, submission.mark(order))
    assert submission.read_note(text, other) is None
    assert text.isascii() and text.isprintable() and " " not in text
    assert submission.noting(12, order, hub) == ["scontrol", "update", "JobId=12", f"AdminComment={text}"]


def test_an_order_that_differs_has_another_mark() -> None:
    assert submission.mark(ORDER) != submission.mark(replace(ORDER, count=1))
    assert submission.mark(ORDER) == submission.mark(replace(ORDER))


@settings(max_examples=30)
@given(value=TEXT, word=TEXT)
def test_the_shell_runs_the_program_with_the_settings_and_nothing_else(value: str, word: str) -> None:
    echo = "import json, sys; print(json.dumps([sys.argv[1:], json.load(sys.stdin)]))"
    script = submission.script([sys.executable, "-c", echo, word], {"hub": value})
    done = subprocess.run(["sh"], input=script, text=True, capture_output=True, check=True)
    assert json.loads(done.stdout) == [[word], {"hub": value}]

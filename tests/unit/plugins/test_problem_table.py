"""Problems of all hosts are one table."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.gpufarm.cluster.plugins.module_utils._problems import table


def test_without_problems_there_is_no_table() -> None:
    assert table({"gpu01": [], "gpu02": []}) == ""


def test_each_line_of_a_message_is_a_row() -> None:
    told = table(
        {
            "gpu01": [{"role": "mig", "message": "mig_gpus is empty.\n\nmig_layout\tis wrong."}],
            "login": [{"role": "connection", "message": "It is unreachable."}],
        }
    )
    assert told.splitlines() == [
        "3 problems; nothing was changed:",
        "HOST   ROLE        PROBLEM",
        "gpu01  mig         mig_gpus is empty.",
        "gpu01  mig         mig_layout is wrong.",
        "login  connection  It is unreachable.",
    ]


def test_a_single_problem_is_one() -> None:
    assert table({"a": [{"role": "mig", "message": "No."}]}).startswith("1 problem; nothing")


def test_the_words_of_ansible_around_a_message_are_left_out() -> None:
    message = (
        "Task failed: Finalization of task args for 'ansible.builtin.assert' failed: Error while resolving "
        "value for 'that': The lookup plugin 'gpufarm.cluster.x' failed: mig_x cannot be read as int"
    )
    assert table({"a": [{"role": "mig", "message": message}]}).endswith("  mig_x cannot be read as int")

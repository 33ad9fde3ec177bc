"""The role monitoring on a server that asks machines of the inventory."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from harness.life import new, on
from harness.stubs import encoded

LOOK = "Certificates | Read the certificates of other hosts"
ASKED = {"monitoring_machines": [["host2"]]}


def certificate(text: str) -> str:
    return f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n"


def test_a_machine_that_has_a_new_certificate_is_known_by_it() -> None:
    host = new("monitoring")
    for text in ("first", "second"):
        case = on(host, "monitoring")
        answers = {**case.answers, LOOK: encoded(certificate(text))}
        done = case.with_answers(answers).run("monitoring", ASKED)
        assert not done.failed, done.refusal
        assert host.files["/etc/gpufarm/monitoring/targets/host2.pem"].content == certificate(text)
        [compared] = [call for call in done.calls if call.args.get("step") == "compare"]
        assert compared.args["alone"] is False, "with the same variables it has to look again"


def test_a_machine_cannot_admit_a_server_without_a_certificate() -> None:
    case = on(new("monitoring"), "monitoring")
    done = case.with_answers({**case.answers, LOOK: {"failed": True}}).run(
        "monitoring", {"monitoring_parts": ["node"], "monitoring_servers": ["host2"]}
    )
    assert done.failed
    assert "host2, a machine of monitoring_servers, does not answer" in str(done.refusal)

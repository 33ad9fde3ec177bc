"""What the roles of the hub and its users refuse."""

from __future__ import annotations

from typing import Any

from harness.certificates import CERTIFICATE, EXPIRED, EXPIRED_KEY, OTHER_KEY
from harness.stubs import PUBLIC_KEY
from refused import Refused


def hub(words: str, **variables: Any) -> Refused:
    return Refused(words, {f"jupyterhub_{name}": value for name, value in variables.items()})


ACME = {
    "certificate_type": "letsencrypt-prod",
    "contact_email": "admin@example.org",
    "public_host": "hub.example.org",
}
REFUSED: dict[str, list[Refused]] = {
    "jupyterhub": [
        hub("jupyterhub_iam_url is empty", iam_url=""),
        hub(
            "Only one of jupyterhub_iam_client_id and jupyterhub_iam_client_secret is given",
            iam_client_id="made-by-hand",
        ),
        hub("are all empty, so nobody could log in", iam_groups="", iam_admin_groups=""),
        hub('jupyterhub_memory_choices is ["2 GB"]', memory_choices=["2 GB"]),
        hub(
            "An entry of jupyterhub_limits has a number out of range",
            limits=[{"name": "students", "servers": 0}],
        ),
        hub(
            "An entry of jupyterhub_limits has the memory 100M; give a whole number",
            limits=[{"name": "students", "memory": "100M"}],
        ),
        hub(
            "Two entries of jupyterhub_limits have the same name (a, a)",
            limits=[{"name": "a"}, {"name": "a"}],
        ),
        hub("the authority asks for the answer to its challenge at port 80", **ACME, http_port=0),
        hub("set jupyterhub_public_host to its full name", **{**ACME, "public_host": "10.0.0.1"}),
        hub("jupyterhub_queue_patience_minutes is not above 0", queue_patience_minutes=0),
        hub("../theirs in jupyterhub_mounts is not a path", mounts=[{"source": "../theirs"}]),
        hub("must both be given", certificate_type="provided"),
        hub(
            "is not the certificate of the key",
            certificate_type="provided",
            certificate_file=CERTIFICATE,
            certificate_key_file=OTHER_KEY,
        ),
        hub(
            "old.pem expired at",
            certificate_type="provided",
            certificate_file=EXPIRED,
            certificate_key_file=EXPIRED_KEY,
        ),
    ],
    "user_accounts": [
        Refused(
            "has the option 'command' before the key",
            {
                "user_accounts_users": [
                    {"os_user_name": "cyd", "os_user_ssh_public_key": f'command="/bin/date" {PUBLIC_KEY}'}
                ]
            },
        )
    ],
}

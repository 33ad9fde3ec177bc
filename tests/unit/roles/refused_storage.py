"""What the roles that store refuse."""

from __future__ import annotations

from refused import Refused

REFUSED: dict[str, list[Refused]] = {
    "lustre_client": [
        Refused(
            "'10.99.0.300@tcp' has no valid IPv4 address",
            {"lustre_client_file_systems": [{"source": "10.99.0.300@tcp:/home", "path": "/lustre/home"}]},
        ),
        Refused(
            "did you mean flock",
            {
                "lustre_client_file_systems": [
                    {"source": "10.99.0.300@tcp:/home", "path": "/lustre/home"},
                    {"source": "10.99.0.10@tcp:/scratch", "path": "/scratch", "options": ["flok"]},
                ]
            },
        ),
    ],
    "lustre_server": [
        Refused(
            "which lustre_server_nids does not name",
            {
                "lustre_server_file_systems": [
                    {
                        "name": "toolongname",
                        "targets": [
                            {"kind": "ost", "index": 0, "device": "/srv/targets/new", "servers": ["oss9"]}
                        ],
                    }
                ]
            },
        )
    ],
    "shared_home": [
        Refused(
            words,
            {
                "shared_home_kind": "local",
                "shared_home_path": "/etc",
                "shared_home_source": "homes",
                "shared_home_options": ["nosuid", "suid"],
                "shared_home_quota": "8 M",
            },
        )
        for words in (
            "shared_home_path is /etc, which is the system's",
            "shared_home_source is 'homes'",
            "'8 M' is no size",
            "suid is not for homes",
        )
    ],
}

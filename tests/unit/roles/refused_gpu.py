"""Refusals of the roles of GPUs."""

from __future__ import annotations

from refused import NO_KEY, Refused

REFUSED: dict[str, list[Refused]] = {
    "gpu_health": [
        Refused(
            "is no number that is 0 or more: correct it. gpu_health_interval is 30; counters",
            {"gpu_health_call_timeout": -1, "gpu_health_interval": 30},
        ),
        Refused("gpu_health_interval is 7200; counters", {"gpu_health_interval": 7200}),
    ],
    "gpu_settings": [
        Refused("is no number of watts", {"gpu_settings_entries": [{"power_limit": "much"}]}),
        Refused("are no least and most clock", {"gpu_settings_entries": [{"gpu_clocks": "1410,1200"}]}),
        Refused("names no setting: add one of", {"gpu_settings_entries": [{"gpus": ["0"]}]}),
    ],
    "mig": [
        Refused("The MIG flavor 'seven slices' is not understood", {"mig_partition_flavor": "seven slices"}),
        Refused(
            "both say what GPUs are partitioned into",
            {"mig_partition_flavor": "7x 1g.10gb", "mig_layout": [{"profile": "3g.40gb"}]},
        ),
    ],
    "nvidia_container": [
        Refused("correct nvidia_container_key_url or nvidia_container_key_fingerprint", {}, NO_KEY),
    ],
    "nvidia_driver": [
        Refused("which is no version", {"nvidia_driver_version": "newest"}),
        Refused(
            "nvidia_driver_runfile_checksum is no checksum",
            {"nvidia_driver_source": "runfile", "nvidia_driver_runfile": "/srv/fake/driver.run"},
        ),
    ],
}

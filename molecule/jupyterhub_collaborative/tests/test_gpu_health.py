"""A GPU that gpufarm-health finds critical is given to nobody, until the next look finds it well."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from lab.visitor import Refused


def look(host) -> None:
    """Do as the timer does."""
    host.check_output("systemctl start gpufarm-health.service")


def test_slices_of_a_critical_gpu_are_given_to_nobody(host, visit):
    alice, bob = visit("alice"), visit("bob")
    bob.use_server_of("bob")
    if alice.running():
        alice.stop()
    look(host)
    assert alice.form().free == {"3g.40gb": 1}
    assert bob._api("GET", "/hub/api/gpufarm/slices").json()["problems"] == []
    host.check_output("simgpu set 0 temperature=95")
    try:
        look(host)
        assert "1 slice is not available." in alice.page("/hub/spawn/collaborative")
        assert alice.form().free == {}
        with pytest.raises(Refused):
            bob.spawn(gpu="1g.10gb")
        told = bob._api("GET", "/hub/api/gpufarm/slices").json()
        assert told["slices"] == [] and told["not_available"] == {"3g.40gb": 1, "1g.10gb": 2}
        assert "GPU 0 is not fit for work: temperature:" in told["problems"][0]
        assert told["health_unknown"] == ""
        # Verdicts that nobody renews count for nothing.
        host.check_output(
            'sed -i \'s/"time": [0-9.]*/"time": 1000000000/\' /run/gpufarm/health/verdicts.json'
        )
        assert alice.form().free == {"3g.40gb": 1}
        told = bob._api("GET", "/hub/api/gpufarm/slices").json()
        assert told["health_unknown"].endswith("minutes old; look at gpufarm-health.timer")
    finally:
        host.check_output("simgpu set 0 temperature=40")
        look(host)
    assert alice.form().free == {"3g.40gb": 1}

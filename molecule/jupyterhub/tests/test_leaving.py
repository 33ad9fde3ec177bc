"""Former members lose access: with the token, the notebook's cookie and the open kernel from before."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from lab.patience import PATIENCE
from lab.visitor import Refused


@pytest.mark.usefixtures("one_machine")
def test_who_left_the_groups_is_out(host, visit, leases, join, eventually, hub_answers):
    alice = visit("alice")
    token = alice._api("POST", "/hub/api/users/alice/tokens", json={}).json()["token"]
    alice.spawn(gpu="1g.10gb")
    alice.execute("")
    kernel = alice._api("POST", "/user/alice/api/kernels", "/user/alice/", json={}).json()["id"]

    server = alice.server_url()

    def by_token(url: str) -> int:
        headers = {"Authorization": f"token {token}"}
        return httpx.get(
            url, headers=headers, verify=alice._context, trust_env=False, timeout=PATIENCE
        ).status_code

    def by_cookie() -> int:
        return alice._api(
            "GET", "/user/alice/api/kernels", "/user/alice/", follow_redirects=False
        ).status_code

    me, kernels = f"{alice.hub}/hub/api/user", f"{server}api/kernels"
    assert (by_token(me), by_token(kernels), by_cookie()) == (200, 200, 200)
    with alice._channels("/user/alice/", kernel) as channels:
        join("alice", ["cms"])
        host.check_output("systemctl restart jupyterhub")  # whose first look at a user asks the provider
        eventually(hub_answers)
        eventually(lambda: leases() == {})
        assert by_token(me) == 403
        with pytest.raises(ConnectionClosed):
            while True:
                channels.recv(60)
    assert by_token(kernels) != 200 and by_cookie() != 200
    with pytest.raises(Refused):
        alice.form()
    join("alice", ["ml-infn-users"])
    assert by_token(me) == 403, "what has ended stays ended"
    back = visit("alice")
    back.spawn()
    back.stop()

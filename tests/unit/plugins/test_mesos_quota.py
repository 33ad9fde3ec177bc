# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quotas and weights: what is set, what is left alone, and what cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos import quota as quotas


def requested(**entry: Any) -> dict[str, quotas.Quota]:
    return quotas.read_request([{"role": "alice", **entry}])


def test_only_what_differs_is_set() -> None:
    request = quotas.read_request(
        [
            {"role": "alice", "limits": {"gpus": 2, "cpus": "4"}},
            {"role": "bob", "guarantees": {"cpus": 1}},
            {"role": "carol", "state": "absent"},
            {"role": "dora", "state": "absent"},
        ]
    )
    current = {"alice": quotas.Quota({}, {"cpus": 4.0, "gpus": 2.0}), "carol": quotas.Quota({"mem": 1.0}, {})}
    assert set(quotas.plan_quotas(current, request)) == {"bob", "carol"}


def test_what_is_set_is_read_back() -> None:
    request = requested(limits={"gpus": 0, "cpus": 1.5}, guarantees={"cpus": 1})
    body = quotas.quota_request(request, False)
    assert quotas.read_quotas({"status": {"configs": body["quota_configs"]}}) == request
    # a role whose quota was taken away keeps an entry
    assert quotas.read_quotas({"status": {"configs": [{"role": "alice"}]}}) == {}
    assert quotas.quota_request({"alice": quotas.NO_QUOTA}, True) == {
        "force": True,
        "quota_configs": [{"role": "alice"}],
    }


def test_a_role_that_is_not_named_keeps_its_weight() -> None:
    current = {"alice": 2.0, "bob": 3.0}
    assert quotas.plan_weights(current, {"alice": "2", "carol": 1, "dora": 1.5}) == {"dora": 1.5}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"limits": {"gpus": -1}}, "limits of -1 gpus; give a number"),
        ({"limits": {"gpus": "two"}}, "limits of two gpus; give a number"),
        ({"limits": {"a b": 1}}, "limits of 'a b', which is no resource"),
        ({"guarantees": {"cpus": 2}, "limits": {"cpus": 1}}, "is guaranteed 2 cpus, and its limit is 1"),
        ({}, "names no amount"),
        ({"role": "a/b", "limits": {"cpus": 1}}, "is nested"),
        ({"role": "-a", "limits": {"cpus": 1}}, "'-a' is no role"),
    ],
)
def test_a_quota_that_cannot_be_is_refused(entry: dict[str, Any], words: str) -> None:
    with pytest.raises(quotas.RequestError) as error:
        requested(**entry)
    assert words in str(error.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    entries = [
        {"role": "alice", "limits": {"gpus": -1, "cpus": "x"}},
        {"role": "bob", "limits": {"cpus": 1}},
        {"role": "bob", "limits": {"cpus": 2}},
        {"role": "a/b"},
    ]
    with pytest.raises(quotas.RequestError) as error:
        quotas.read_request(entries)
    for words in ("-1 gpus", "x cpus", "bob is declared twice", "a/b is nested", "a/b names no amount"):
        assert words in str(error.value)
    with pytest.raises(quotas.RequestError) as error:
        quotas.plan_weights({}, {"-a": 1, "bob": 0, "carol": None})
    for words in ("'-a' is no role", "bob is 0", "carol is None"):
        assert words in str(error.value)


def test_amounts_add_up() -> None:
    resources = [
        {"name": "cpus", "scalar": {"value": 1.5}},
        {"name": "cpus", "scalar": {"value": 2}},
        {"name": "ports", "ranges": {}},
    ]
    total = quotas.sum_of([quotas.amounts_of(resources), {"cpus": 1.0, "gpus": 2.0}])
    assert total == {"cpus": 4.5, "gpus": 2.0}
    assert quotas.left_of(total, {"cpus": 5.0, "gpus": 0.5}) == {"cpus": 0.0, "gpus": 1.5}

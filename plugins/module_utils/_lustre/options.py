# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of Lustre: options of mounts, parameters of modules, tunables, and kinds of values.

Sources: mount.lustre(8); lctl-set_param(8); Lustre Operations Manual, "Tuning a Lustre File System"; source
of Lustre: lustre/llite/llite_lib.c (ll_options), obdclass/obd_mount.c (lmd_parse), module_param().
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple


class OptionError(ValueError):
    """An option does not exist or has a wrong value; the text is a part of a sentence."""


# Options without a value, and those that mean the opposite, of which a mount may have one.
_OPPOSITES = (
    ("flock", "localflock", "noflock"),
    ("lazystatfs", "nolazystatfs"),
    ("user_xattr", "nouser_xattr"),
    ("verbose", "noverbose"),
    ("user_fid2path", "nouser_fid2path"),
    ("rw", "ro"),
    ("suid", "nosuid"),
    ("dev", "nodev"),
    ("exec", "noexec"),
    ("atime", "noatime", "relatime", "strictatime"),
    ("diratime", "nodiratime"),
    ("sync", "async"),
)
_FLAGS = frozenset(one for group in _OPPOSITES for one in group) | {"_netdev", "always_ping", "noencrypt"}
# mgssec: lustre/include/lustre_sec.h; retry: mount_lustre.c, MAX_RETRIES.
_WITH_VALUE = {
    "network": r"(tcp|o2ib|efa|kfi|gni)[0-9]{0,5}",
    "mgssec": r"null|plain|gssnull|krb5[naip]|skn|ska|ski|skpi",
    "skpath": r"/[^,\s%]+",
    "exclude": r"[-_A-Za-z0-9]+-OST[0-9a-f]{4}(:[-_A-Za-z0-9]+-OST[0-9a-f]{4})*",
    "retry": r"[0-9]|[1-9][0-9]",
}
_REFUSED = {
    "noauto": "the unit of the mount says when it is mounted; see lustre_client_automount",
    "auto": "the unit of the mount says when it is mounted; see lustre_client_automount",
    "nofail": "a mount that fails does not stop the boot anyway",
    "mgsname": "it hides from the mount table what is mounted",
    "test_dummy_encryption": "it is for Lustre's own tests",
    "remount": "nothing is mounted anew",
    "force": "nothing is forced",
}


def check_mount_options(options: Iterable[str]) -> None:
    """Check options of a client's mount.

    Raises:
        OptionError: one does not exist, has a wrong value, or contradicts another.
    """
    given = list(options)
    for option in given:
        name, equals, value = option.partition("=")
        if name in _REFUSED:
            raise OptionError(f"the option '{name}', which cannot be set: {_REFUSED[name]}")
        if name.startswith("x-systemd."):
            raise OptionError(f"the option '{name}', which is for fstab; here units of systemd mount")
        if name in _WITH_VALUE:
            if not re.fullmatch(_WITH_VALUE[name], value):
                raise OptionError(f"the option '{option}', whose value is not of its kind")
        elif equals or name not in _FLAGS:
            raise OptionError(f"the option '{option}', which does not exist{_near(name, _mount_names())}")
    for group in _OPPOSITES:
        both = [one for one in given if one in group]
        if len(set(both)) > 1:
            named = " and ".join(f"'{one}'" for one in both)
            raise OptionError(f"the options {named}, of which one excludes the other")
    names = [option.partition("=")[0] for option in given]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise OptionError(f"the option '{twice[0]}' more than once")


def _mount_names() -> Iterable[str]:
    return [*_FLAGS, *_WITH_VALUE]


def _near(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(names), 1)
    return f"; did you mean {near[0]}" if near else ""


# `!` marks what Lustre has deprecated, `=` what takes words; all others are whole numbers.
_MODULES = """
ko2iblnd: service cksum timeout nscheds conns_per_peer ntx credits peer_credits peer_credits_hiw
  peer_buffer_credits peer_timeout ipif_name= retry_count rnr_retry_count keepalive ib_mtu concurrent_sends
  use_fastreg_gaps map_on_demand! fmr_pool_size fmr_flush_trigger fmr_cache dev_failover
  require_privileged_port use_privileged_port wrq_sge tos
ksocklnd: sock_timeout credits peer_credits peer_buffer_credits peer_timeout nscheds nconnds nconnds_max
  min_reconnectms max_reconnectms eager_ack typed_conns min_bulk tx_buffer_size rx_buffer_size nagle
  round_robin keepalive keepalive_idle keepalive_count keepalive_intvl enable_csum inject_csum_error
  enable_irq_affinity nonblk_zcack zc_min_payload zc_recv zc_recv_min_nfrags conns_per_peer
  skip_mr_route_setup backoff_init backoff_max protocol tos
libcfs: libcfs_subsystem_debug= libcfs_debug= libcfs_debug_mb libcfs_subsystem_printk= libcfs_printk=
  libcfs_console_ratelimit libcfs_console_max_delay libcfs_console_min_delay libcfs_console_backoff
  libcfs_panic_on_lbug libcfs_debug_file_path= libcfs_debug_raw_pointers
lnet: accept= accept_port accept_port_bulk accept_backlog accept_timeout ip2nets=! routes=! networks=!
  rnet_htable_size use_tcp_bonding! lnet_numa_range lnet_health_sensitivity lnet_recovery_interval!
  lnet_recovery_limit lnet_max_recovery_ping_interval lnet_interfaces_max lnet_peer_discovery_disabled
  lnet_drop_asym_route lnet_transaction_timeout lnet_retry_count lnet_response_tracking lock_prim_nid
  config_on_load enable_sysctl_setup cpu_npartitions cpu_pattern= forwarding= tiny_router_buffers
  small_router_buffers large_router_buffers peer_buffer_credits auto_down check_routers_before_use
  avoid_asym_router_failure dead_router_check_interval! live_router_check_interval!
  alive_router_check_interval router_ping_timeout router_sensitivity_percentage!
ptlrpc: ldlm_num_threads ldlm_cpu_bind ldlm_cpts= ldlm_enqueue_min suppress_pings max_ptlrpcds!
  ptlrpcd_bind_policy! ptlrpcd_per_cpt_max ptlrpcd_partner_group_size ptlrpcd_cpts= send_sepol
  test_req_buffer_pressure at_min at_max at_history at_unhealthy_factor at_early_margin at_extra
obdclass: lu_cache_percent lu_cache_nr
osc: osc_reqpool_mem_max osc_idle_timeout
"""


class ModuleParameter(NamedTuple):
    """A parameter of a kernel module: whether it takes words, and whether Lustre has deprecated it."""

    words: bool
    deprecated: bool


def _modules() -> dict[str, dict[str, ModuleParameter]]:
    found: dict[str, dict[str, ModuleParameter]] = {}
    for name, texts in re.findall(r"(?m)^(\w+):((?:.*\n)(?: +.*\n)*)", _MODULES):
        found[name] = {
            text.rstrip("=!"): ModuleParameter("=" in text, text.endswith("!")) for text in texts.split()
        }
    return found


MODULES = _modules()


def check_module_parameter(module: str, name: str, value: Any) -> str:
    """Return the value of a parameter of a module as modprobe takes it.

    Raises:
        OptionError: the module or the parameter does not exist, or the value is of another kind.
    """
    if module not in MODULES:
        raise OptionError(f"the module '{module}', which has no parameters here{_near(module, MODULES)}")
    known = MODULES[module]
    if name not in known:
        raise OptionError(f"'{name}' of {module}, which does not exist{_near(name, known)}")
    if known[name].deprecated:
        raise OptionError(f"'{name}' of {module}, which Lustre has deprecated")
    text = str(int(value)) if isinstance(value, bool) else str(value)
    if not re.fullmatch(r"[^\s\"'#\\]+" if known[name].words else r"-?[0-9]+|0x[0-9a-fA-F]+", text):
        kind = "one word" if known[name].words else "a whole number"
        raise OptionError(f"'{name}' of {module} with '{text}', where {kind} belongs")
    return text


def module_problems(prefix: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with parameters by module and name, a sentence each.

    Args:
        prefix: what the names of the variables begin with, such as ``lustre_client_``.
        parameters: values by module and name.
    """
    for module, values in parameters.items():
        if not isinstance(values, Mapping):
            yield f"{prefix}module_parameters has {module} without parameters; give them by name."
            continue
        for name, value in values.items():
            try:
                check_module_parameter(str(module), str(name), value)
            except OptionError as error:
                yield f"{prefix}module_parameters has {error}."


def module_lines(parameters: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what modprobe.d(5) takes, for parameters that module_problems() has nothing against."""
    lines = []
    for module, values in sorted(parameters.items()):
        words = [f"{name}={check_module_parameter(module, name, values[name])}" for name in sorted(values)]
        lines.append(f"options {module} {' '.join(words)}\n")
    return "".join(lines)


# Tunables by kind of device: least and most, None for words. Lustre Operations Manual, "Tuning"; the source:
# lustre/include/obd.h (OBD_MAX_RIF_MAX 512), lustre/include/lustre_osc.h (OSC_MAX_DIRTY_MB_MAX 2048),
# lustre/llite/statahead.c (LL_SA_RPC_MAX).
_TUNABLES: dict[str, dict[str, tuple[int, int] | None]] = {
    "osc": {
        "max_rpcs_in_flight": (1, 512),
        "max_dirty_mb": (1, 2048),
        "max_pages_per_rpc": (1, 4096),
        "checksums": (0, 1),
        "idle_timeout": (0, 86400),
    },
    "mdc": {"max_rpcs_in_flight": (2, 512), "max_mod_rpcs_in_flight": (1, 511)},
    "llite": {
        "max_read_ahead_mb": (0, 1048576),
        "max_read_ahead_per_file_mb": (0, 1048576),
        "max_read_ahead_whole_mb": (0, 1048576),
        "max_cached_mb": (1, 16777216),
        "statahead_max": (0, 2048),
        "statahead_running_max": (0, 256),
        "checksum_pages": (0, 1),
        "lazystatfs": (0, 1),
        "xattr_cache": (0, 1),
    },
    "ldlm.namespaces": {"lru_size": (0, 2147483647), "lru_max_age": (0, 2147483647)},
    "": {
        "at_min": (0, 65535),
        "at_max": (0, 65535),
        "at_history": (0, 65535),
        "at_early_margin": (0, 65535),
        "at_extra": (0, 65535),
        "timeout": (1, 65535),
        "jobid_var": None,
        "jobid_name": None,
    },
}
_READ_ONLY = ("state", "import", "version", "health_check")


def check_tunable(name: str, value: Any) -> str:
    """Return the value of a tunable as `lctl set_param` takes it.

    Args:
        name: ``KIND.DEVICE.NAME``, where the device may have ``*``, such as ``osc.scratch-*.checksums``, or a
            global name such as ``at_max``.
        value: the value; a truth value is 1 or 0.

    Raises:
        OptionError: there is no such tunable, or the value is out of its range.
    """
    device, _dot, last = name.rpartition(".")
    kind, pattern = device, ""
    for candidate in ("ldlm.namespaces", "osc", "mdc", "llite"):
        if device.startswith(candidate + "."):
            kind, pattern = candidate, device[len(candidate) + 1 :]
    if last in _READ_ONLY:
        raise OptionError(f"'{name}', which can be read and not set")
    if kind not in _TUNABLES or last not in _TUNABLES[kind] or (kind and not pattern):
        known = [one for group in _TUNABLES.values() for one in group]
        raise OptionError(f"'{name}', which is no tunable of a client{_near(last, known)}")
    if kind and not re.fullmatch(r"[-_A-Za-z0-9*?]+", pattern):
        raise OptionError(f"'{name}', whose device has other than letters, digits, -, _, * and ?")
    limits = _TUNABLES[kind][last]
    text = str(int(value)) if isinstance(value, bool) else str(value)
    if limits is None:
        if not re.fullmatch(r"[A-Za-z0-9_.:%-]+", text):
            raise OptionError(f"'{name}' with '{text}', where one word belongs")
    elif not re.fullmatch("[0-9]+", text) or not limits[0] <= int(text) <= limits[1]:
        raise OptionError(f"'{name}' with '{text}', where a number from {limits[0]} to {limits[1]} belongs")
    return text


def check_tunables(tunables: Mapping[str, Any]) -> None:
    """Check several tunables, also against one another.

    Raises:
        OptionError: one cannot be set.
    """
    for name, value in tunables.items():
        check_tunable(name, value)
    for name, value in tunables.items():
        # lustre/obdclass/genops.c, obd_set_max_mod_rpcs_in_flight: it must be less.
        if name.endswith(".max_mod_rpcs_in_flight"):
            all_of_them = name.replace(".max_mod_rpcs", ".max_rpcs")
            most = int(tunables.get(all_of_them, 8))
            if int(value) >= most:
                raise OptionError(f"'{name}' with '{value}', which must be less than {all_of_them}, {most}")

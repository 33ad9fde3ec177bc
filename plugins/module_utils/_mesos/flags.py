# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of Mesos 1.11.0: names and types.

Source: apache/mesos 1.11.0 (04bc7ee1), src/master/flags.cpp, src/slave/flags.cpp, src/logging/flags.cpp;
m3scluster/clusterd 1.11.0-0.9.0, the same files.
"""

from __future__ import annotations

MASTER: dict[str, str] = {
    name: kind
    for kind, names in {
        "bool": (
            "authenticate_agents authenticate_frameworks authenticate_http_frameworks "
            "authenticate_http_readonly authenticate_http_readwrite filter_gpu_resources "
            "hostname_lookup initialize_driver_logging log_auto_initialize memory_profiling "
            "publish_per_framework_metrics quiet registry_strict require_agent_domain "
            "root_submissions version"
        ),
        "bytes": ("offer_constraints_re2_max_mem"),
        "double": ("allocator_agent_recovery_factor"),
        "duration": (
            "agent_ping_timeout agent_reregister_timeout allocation_interval "
            "allocator_recovery_timeout authentication_v0_timeout offer_timeout "
            "registry_fetch_timeout registry_gc_interval registry_max_agent_age "
            "registry_store_timeout zk_session_timeout"
        ),
        "int": ("logbufsecs offer_constraints_re2_max_program_size quorum"),
        "json": ("acls domain firewall_rules modules rate_limits"),
        "list": ("fair_sharing_excluded_resource_names"),
        "path": ("credentials whitelist"),
        "port": ("port"),
        "string": (
            "advertise_ip advertise_port agent_removal_rate_limit allocator authenticators "
            "authorizers cluster external_log_file framework_sorter hooks hostname "
            "http_authenticators http_framework_authenticators ip ip_discovery_command log_dir "
            "logging_level master_contender master_detector min_allocatable_resources modules_dir "
            "recovery_agent_removal_limit registry role_sorter roles webui_dir weights work_dir zk"
        ),
        "uint": (
            "max_agent_ping_timeouts max_completed_frameworks max_completed_tasks_per_framework "
            "max_executors_per_agent max_operator_event_stream_subscribers "
            "max_unreachable_tasks_per_framework registry_max_agent_count"
        ),
    }.items()
    for name in names.split()
}
# Former names of options: both names together stop the program.
MASTER_OLD_NAMES: dict[str, str] = {
    "slave_ping_timeout": "agent_ping_timeout",
    "slave_removal_rate_limit": "agent_removal_rate_limit",
    "slave_reregister_timeout": "agent_reregister_timeout",
    "authenticate_slaves": "authenticate_agents",
    "authenticate": "authenticate_frameworks",
    "authenticate_http": "authenticate_http_readwrite",
    "max_slave_ping_timeouts": "max_agent_ping_timeouts",
    "max_executors_per_slave": "max_executors_per_agent",
    "recovery_slave_removal_limit": "recovery_agent_removal_limit",
    "user_sorter": "role_sorter",
}
AGENT: dict[str, str] = {
    name: kind
    for kind, names in {
        "bool": (
            "authenticate_http_executors authenticate_http_readonly authenticate_http_readwrite "
            "cgroups_cpu_enable_pids_and_tids_count cgroups_enable_cfs cgroups_limit_swap "
            "check_agent_port_range_only disallow_sharing_agent_ipc_namespace "
            "disallow_sharing_agent_pid_namespace docker_ignore_runtime docker_kill_orphans "
            "docker_volume_chown egress_unique_flow_per_container enforce_container_disk_quota "
            "enforce_container_ports gc_non_executor_container_sandboxes hostname_lookup "
            "http_command_executor http_executor_domain_sockets initialize_driver_logging "
            "memory_profiling network_cni_metrics network_cni_root_dir_persist "
            "network_enable_snmp_statistics network_enable_socket_statistics_details "
            "network_enable_socket_statistics_summary quiet revocable_cpu_low_priority strict "
            "switch_user systemd_enable_support version xfs_kill_containers"
        ),
        "bytes": ("default_container_shm_size egress_rate_limit_per_container fetcher_cache_size"),
        "double": ("gc_disk_headroom"),
        "duration": (
            "authentication_backoff_factor authentication_timeout_max authentication_timeout_min "
            "cgroups_destroy_timeout container_disk_watch_interval container_ports_watch_interval "
            "disk_watch_interval docker_remove_delay docker_stop_timeout "
            "executor_registration_timeout executor_reregistration_retry_interval "
            "executor_reregistration_timeout executor_shutdown_grace_period fetcher_stall_timeout "
            "gc_delay http_heartbeat_interval oversubscribed_resources_interval perf_duration "
            "perf_interval qos_correction_interval_min recovery_timeout registration_backoff_factor "
            "zk_session_timeout"
        ),
        "int": ("logbufsecs"),
        "json": (
            "acls agent_features allowed_devices bounding_capabilities default_container_dns "
            "default_container_info docker_config domain effective_capabilities "
            "executor_environment_variables firewall_rules image_gc_config modules"
        ),
        "list": ("nvidia_gpu_devices"),
        "path": ("credential http_credentials jwt_secret_key"),
        "port": ("ephemeral_ports_per_container port"),
        "string": (
            "advertise_ip advertise_port agent_subsystems appc_simple_discovery_uri_prefix "
            "appc_store_dir attributes authenticatee authorizer cgroups_hierarchy "
            "cgroups_net_cls_primary_handle cgroups_net_cls_secondary_handles cgroups_root "
            "container_logger container_ports_isolated_range containerizers csi_plugin_config_dir "
            "default_role disk_profile_adaptor docker docker_mesos_image docker_registry "
            "docker_socket docker_store_dir docker_volume_checkpoint_dir domain_socket_location "
            "egress_flow_classifier_parent eth0_name external_log_file fetcher_cache_dir "
            "frameworks_home hadoop_home hooks host_path_volume_force_creation hostname "
            "http_authenticators image_providers image_provisioner_backend ip ip6 "
            "ip6_discovery_command ip_discovery_command isolation launcher launcher_dir lo_name "
            "log_dir logging_level master master_detector modules_dir network_cni_config_dir "
            "network_cni_plugins_dir perf_events qos_controller reconfiguration_policy recover "
            "resource_estimator resource_provider_config_dir resources runtime_dir sandbox_directory "
            "seccomp_config_dir seccomp_profile_name secret_resolver systemd_runtime_directory "
            "volume_gid_range work_dir xfs_project_range"
        ),
        "uint": ("max_completed_executors_per_framework"),
    }.items()
    for name in names.split()
}
# Former names of options: both names together stop the program.
AGENT_OLD_NAMES: dict[str, str] = {
    "slave_subsystems": "agent_subsystems",
    "allowed_capabilities": "effective_capabilities",
    "executor_secret_key": "jwt_secret_key",
}
# Options that clusterd adds: to both programs since 1.11.0-0.8.0, to agents since 1.11.0-0.5.0.
MASTER_CLUSTERD: dict[str, str] = {"cleanup_log_files": "int"}
AGENT_CLUSTERD: dict[str, str] = {
    **MASTER_CLUSTERD,
    **{
        name: kind
        for kind, names in {
            "bool": "ingress_isolate_existing_containers network_enable_rate_statistics",
            "bytes": (
                "egress_burst egress_ceil_limit ingress_burst ingress_ceil_limit "
                "ingress_rate_limit_per_container maximum_egress_rate_limit maximum_ingress_rate_limit "
                "minimum_egress_rate_limit minimum_ingress_rate_limit network_link_speed "
                "xfs_quota_headroom"
            ),
            "duration": "network_rate_statistics_interval network_rate_statistics_window",
            "string": "egress_rate_per_cpu ingress_rate_per_cpu",
        }.items()
        for name in names.split()
    },
}

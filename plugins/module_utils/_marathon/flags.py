# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of Marathon 1.11.24 by their kind.

Source: mesosphere/marathon, branch releases/1.11 at 9ee9f3ce: the classes `*Conf.scala`, `*Config.scala`
below src/main/scala/mesosphere/marathon, and docs/command-line-flags.md.
"""

from __future__ import annotations

from .._framework.flags import Flags

FLAGS = Flags(
    kinds={
        "int": """
            app_info_module_execution_context_size decline_offer_duration
            default_info_service_execution_context_size deployment_manager_request_timeout
            draining_seconds event_stream_max_outstanding_messages failover_timeout
            graceful_shutdown_timeout group_manager_execution_context_size
            group_manager_request_timeout group_versions_cache_size http_max_concurrent_requests
            http_port https_port instance_tracker_num_parallel_loads
            instance_tracker_num_parallel_updates instance_tracker_update_queue_size
            killBatchDuration kill_chunk_size kill_retry_timeout killsPerBatch
            launch_queue_request_timeout launch_token_refresh_interval launch_tokens
            leader_proxy_connection_timeout leader_proxy_max_open_connections
            leader_proxy_read_timeout local_port_max local_port_min max_actor_startup_time
            max_apps max_concurrent_marathon_health_checks max_instances_per_offer
            max_parallel_offers max_parallel_status_updates max_queued_offers
            max_queued_root_group_updates max_queued_status_updates max_running_deployments
            mesos_heartbeat_failure_threshold mesos_heartbeat_interval metrics_datadog_port
            metrics_datadog_transmission_interval_ms
            metrics_histogram_reservoir_highest_trackable_value
            metrics_histogram_reservoir_resetting_chunks
            metrics_histogram_reservoir_resetting_interval_ms
            metrics_histogram_reservoir_significant_digits metrics_statsd_port
            metrics_statsd_transmission_interval_ms min_mesos_offer_constraints_update_interval
            min_revive_offers_interval offer_matching_timeout on_elected_prepare_timeout
            reconciliation_initial_delay reconciliation_interval scale_apps_initial_delay
            scale_apps_interval scheduler_actions_execution_context_size
            storage_compaction_interval storage_compaction_scan_batch_size
            storage_execution_context_size task_launch_confirm_timeout task_launch_timeout
            task_lost_expunge_initial_delay task_lost_expunge_interval
            task_operation_notification_timeout task_reservation_timeout
            task_tracker_request_timeout task_update_request_timeout zk_compression_threshold
            zk_connection_timeout zk_max_concurrency zk_max_node_size zk_max_versions
            zk_operation_base_retry_sleep_ms zk_operation_max_retries zk_session_timeout
            zk_timeout
        """,
        "list": """
            deprecated_features enable_features
        """,
        "switch": """
            disable_http leader_proxy_ssl_ignore_hostname
        """,
        "text": """
            accepted_resource_roles_default_behavior access_control_allow_origin assets_path
            backup_location default_network_name env_vars_prefix executor framework_name
            gpu_scheduling_behavior hostname http_address http_credentials http_realm
            https_address internal_store_backend leader_election_backend logging_level logstash
            mesos_authentication_principal mesos_authentication_secret
            mesos_authentication_secret_file mesos_bridge_name mesos_leader_ui_url mesos_role
            mesos_user metrics_datadog_api_key metrics_datadog_host metrics_datadog_protocol
            metrics_name_prefix metrics_statsd_host new_group_enforce_role plugin_conf plugin_dir
            sentry sentry_tags ssl_keystore_password ssl_keystore_path webui_url
        """,
        "toggle": """
            checkpoint ha http_compression internal_version_caching maintenance_mode
            mesos_authentication mesos_offer_constraints metrics metrics_datadog
            metrics_histogram_reservoir_reset_periodically metrics_prometheus metrics_statsd
            store_cache suppress_offers zk_compression
        """,
        "zk": """
            master zk
        """,
    },
    choices={
        "accepted_resource_roles_default_behavior": ("any", "unreserved", "reserved"),
        "enable_features": ("vips", "task_killing", "external_volumes", "secrets", "gpu_resources"),
        "gpu_scheduling_behavior": ("restricted", "unrestricted"),
        "logging_level": ("all", "trace", "debug", "info", "warn", "error", "fatal", "off"),
        "metrics_datadog_protocol": ("udp", "api"),
        "new_group_enforce_role": ("off", "top"),
    },
    gone=(
        "default_accepted_resource_roles",
        "launch_token_count",
        "max_tasks_per_offer",
        "max_tasks_per_offer_cycle",
        "revive_offers_repetitions",
        "task_lost_expunge_gc",
        "tracing",
    ),
)

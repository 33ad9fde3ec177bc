# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of Chronos 3.0.2 by their kind.

Source: mesos/chronos at 7eff5e0e (3.0.2), SchedulerConfiguration.scala, GraphiteConfiguration.scala,
CassandraConfiguration.scala; mesosphere/chaos at 1a83bf4c, HttpConf.scala; for GPU_PATCH pull request 810 of
mesos/chronos.
"""

from __future__ import annotations

from .._framework.flags import Flags

FLAGS = Flags(
    kinds={
        "float": """
            mesos_task_cpu mesos_task_disk mesos_task_mem
        """,
        "int": """
            cassandra_port cassandra_ttl decline_offer_duration disable_after_failures
            failover_timeout failure_retry graphite_reporting_interval http_port https_port
            job_history_limit leader_max_idle_time min_revive_offers_interval
            reconciliation_interval task_epsilon zk_timeout
        """,
        "switch": """
            disable_http mail_ssl mesos_checkpoint revive_offers_for_new_jobs
        """,
        "text": """
            assets_path cassandra_consistency cassandra_contact_points cassandra_keyspace
            cassandra_password cassandra_stat_count_table cassandra_table cassandra_user
            cluster_name graphite_group_prefix graphite_host_port hostname http_address
            http_credentials http_notification_credentials http_notification_url http_realm
            https_address mail_from mail_password mail_server mail_user master mattermost_url
            mesos_authentication_principal mesos_authentication_secret_file mesos_framework_name
            mesos_role raven_dsn slack_url ssl_keystore_password ssl_keystore_path user webui_url
            zk_auth zk_hosts zk_path
        """,
        "toggle": """
            http_compression
        """,
    },
    choices={},
)

# Only builds with this patch know them.
GPU_PATCH = Flags(
    kinds={"list": "enable_features", "int": "mesos_task_gpu"},
    choices={"enable_features": ("gpu_resources",)},
)

"""Configuration of a JupyterHub with batchspawner alone, as a site would set it up; read by that hub.

The environment has what differs between benches.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import os

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - JupyterHub defines it
folder, proxy = os.environ["RUNTIME_DIRECTORY"], "/opt/jupyterhub/proxy/node_modules/configurable-http-proxy"
c.JupyterHub.bind_url = os.environ["BIND_URL"]
c.JupyterHub.hub_bind_url = c.JupyterHub.hub_connect_url = os.environ["HUB_URL"]
c.JupyterHub.db_url = f"sqlite:///{folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = f"{folder}/cookie_secret"
c.JupyterHub.authenticator_class = "pam"
c.JupyterHub.spawner_class = "batchspawner.SlurmSpawner"
c.ConfigurableHTTPProxy.command = ["/opt/jupyterhub/bin/node", f"{proxy}/bin/configurable-http-proxy"]
c.ConfigurableHTTPProxy.api_url = os.environ["PROXY_URL"]
c.ConfigurableHTTPProxy.pid_file = f"{folder}/proxy.pid"
c.Authenticator.allow_all = True
# A form, as that of the other hub, of which nothing is taken.
c.Spawner.options_form = '<input type="hidden" name="gpu" value="">'
c.Spawner.cmd = ["jupyterhub-singleuser"]
c.SlurmSpawner.req_gres = os.environ["GRES"]
# Steps of the job have nothing of the environment of its script.
c.SlurmSpawner.batchspawner_singleuser_cmd = (
    f"/usr/bin/env PATH=/opt/jupyterhub-node/bin:/usr/bin:/bin PYTHONPATH={os.environ['PYTHONPATH']}"
    " python -m batchspawner.singleuser"
)

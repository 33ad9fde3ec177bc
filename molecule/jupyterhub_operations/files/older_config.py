# SPDX-License-Identifier: GPL-3.0-or-later
"""A hub as it was before: JupyterHub 5 with the spawner of its time, at the places of the role's hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gpufarm_hub.people import accounts

settings = json.loads(Path("/etc/jupyterhub/settings.json").read_text())
iam = settings["login"]
client = json.loads(Path(iam["client_file"]).read_text())

c: Any = get_config()  # type: ignore[name-defined]  # noqa: F821
# The role's proxy looks for notebooks at the origins of their users.
ports = json.loads(Path(settings["persons_file"]).with_name("ports.json").read_text())
host = urlsplit(settings["public_url"]).hostname
origins = {name: f"{host}:{port}" for port, name in ports.items()}
c.JupyterHub.subdomain_host = f"https://{host}"
c.JupyterHub.subdomain_hook = lambda name, _domain, kind: origins[name] if kind == "user" else host
c.JupyterHub.bind_url = settings["public_url"]
c.JupyterHub.hub_bind_url = settings["hub_url"]
c.JupyterHub.db_url = f"sqlite:///{settings['state_folder']}/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = f"{settings['secrets_folder']}/cookie_secret"
c.JupyterHub.cleanup_proxy = c.JupyterHub.cleanup_servers = False
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.api_url = settings["proxy_api_url"]
c.JupyterHub.authenticator_class = "generic-oauth"
auth = c.GenericOAuthenticator
auth.client_id, auth.client_secret = client["client_id"], client["client_secret"]
auth.oauth_callback_url = f"{settings['public_url']}/hub/oauth_callback"
auth.authorize_url = iam["authorization_endpoint"]
auth.token_url = iam["token_endpoint"]
auth.userdata_url = iam["userinfo_endpoint"]
auth.http_request_kwargs = {"ca_certs": iam["ca_file"]}
auth.scope = iam["scopes"]
auth.username_claim = iam["username_claim"]
auth.allow_all = True
c.JupyterHub.spawner_class = "systemd"
spawner = c.SystemdSpawner
spawner.unit_name_template = "jupyterhub-notebook-{USERNAME}"
spawner.slice = "jupyterhub.slice"
spawner.cmd = [f"{settings['venv']}/bin/jupyterhub-singleuser"]
spawner.pre_spawn_hook = lambda it: accounts.ensure(it.user.name)
# The visitor knows a form by its name.
spawner.options_form = '<select name="memory"><option value="1G">1G</option></select>'
spawner.start_timeout = spawner.http_timeout = 120  # seconds

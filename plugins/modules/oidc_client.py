#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: a client of an OpenID provider."""

from __future__ import annotations

DOCUMENTATION = r"""
module: oidc_client
short_description: Keep a client registered with an OpenID provider
version_added: 0.1.0
description:
  - Reads the provider's discovery document from the target, so that a wrong URL, a certificate that cannot be
    verified or a firewall shows before anything is changed.
  - Registers a client by dynamic client registration (RFC 7591) and keeps it in a file on the target, or
    writes a client that was made by hand into the same file.
  - Updates the registration when it differs (RFC 7592), and registers anew when the provider has forgotten
    the client.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: full
    description: Returns the client's metadata before and after, without its secrets.
  idempotent:
    support: full
    description:
      - A second run changes nothing. A new registration token that the provider hands out is stored.
options:
  issuer:
    description:
      - The provider's issuer identifier, an https URL. A slash at the end makes no difference.
      - Needed unless O(state=absent).
    type: str
    default: ""
  ca_certificate:
    description:
      - Certificates, in PEM format, of the authorities that sign the provider's certificate.
      - If empty, those of the target's system.
    type: str
    default: ""
  path:
    description: File on the target that holds the client with its secret. It is made with mode 0600.
    type: path
    required: true
  client_name:
    description: Name of the client that the provider shows to users.
    type: str
    default: ""
  redirect_uris:
    description: Where the provider may send users back to.
    type: list
    elements: str
    default: []
  scopes:
    description: Scopes to ask for. Those that the provider says it does not know are left out.
    type: list
    elements: str
    default: [openid]
  client_id:
    description: A client that was made by hand. If empty, a client is registered.
    type: str
    default: ""
  client_secret:
    description: Secret of O(client_id).
    type: str
    default: ""
  state:
    description:
      - With V(absent), a client that was registered by this module is deleted at the provider, and the
        file is removed. A provider that does not answer is reported by a warning only.
    type: str
    choices: [present, absent]
    default: present
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Register the hub with the identity provider
  gpufarm.cluster.oidc_client:
    issuer: https://iam.example.org
    path: /etc/jupyterhub/secrets/oidc_client.json
    client_name: JupyterHub of gpu1.example.org
    redirect_uris: [https://gpu1.example.org:8888/hub/oauth_callback]
    scopes: [openid, profile, email, offline_access]

- name: Delete the hub's client
  gpufarm.cluster.oidc_client:
    issuer: https://iam.example.org
    path: /etc/jupyterhub/secrets/oidc_client.json
    state: absent
"""

RETURN = r"""
client_id:
  description: The client's identifier; empty when it is not known, as in check mode before the registration.
  returned: success
  type: str
  sample: 6b2ff0a5-5e3e-4f6e-a6b4-2d2e23f4f3a9
provider:
  description: The provider's issuer identifier and endpoints; an empty one is not there.
  returned: when O(state=present)
  type: dict
  sample:
    issuer: https://iam.example.org/
    authorization_endpoint: https://iam.example.org/authorize
    token_endpoint: https://iam.example.org/token
    userinfo_endpoint: https://iam.example.org/userinfo
    end_session_endpoint: https://iam.example.org/logout
scopes:
  description: Those of O(scopes) that the provider knows.
  returned: when O(state=present)
  type: list
  elements: str
  sample: [openid, profile]
"""

import json
import socket
import ssl
from pathlib import Path
from typing import Any, NoReturn
from urllib.error import HTTPError, URLError

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url
from ansible_collections.gpufarm.cluster.plugins.module_utils import _oidc as oidc
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.module_files import (
    replace_file,
    temporary_file,
)

TIMEOUT = 30  # seconds
# The client does not exist any more, or its token is worth nothing any more (RFC 7592, section 2.1).
FORGOTTEN = (401, 403, 404)


class Unreachable(Exception):
    """A request got no answer; the text says why."""


class OidcClient:
    """The client at the provider and in its file."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.issuer: str = module.params["issuer"]
        self.path = Path(module.params["path"])
        self.ca_path = (
            temporary_file(module, module.params["ca_certificate"])
            if module.params["ca_certificate"]
            else None
        )

    def fail(self, message: str) -> NoReturn:
        """End the module with a message."""
        self.module.fail_json(msg=message)
        raise AssertionError("fail_json returned")

    def stored(self) -> oidc.Client | None:
        """Return the client in the file, if there is one."""
        try:
            return oidc.parse_client(self.path.read_text(encoding="utf-8"), str(self.path))
        except FileNotFoundError:
            return None

    def provider(self) -> oidc.Provider:
        """Read the discovery document."""
        url = oidc.discovery_url(self.issuer)
        try:
            status, text = self.request("GET", url)
        except Unreachable as error:
            self.fail(f"The identity provider {self.issuer} cannot be used from this machine: {error}")
        if status != 200:
            self.fail(
                f"The identity provider answers {url} with HTTP status {status}; check that its URL is the"
                " issuer's."
            )
        return oidc.parse_provider(text, self.issuer)

    def register(self, provider: oidc.Provider, desired: dict[str, Any]) -> oidc.Client:
        """Register a new client."""
        status, text = self.request("POST", provider.registration_endpoint, body=desired)
        if status not in (200, 201):
            self.fail(f"{self.issuer} refused to register a client: {reason(status, text)}")
        return oidc.parse_registration(text, provider.issuer, desired)

    def read(self, client: oidc.Client) -> str | None:
        """Return what the provider knows of the client; None when it has forgotten it."""
        status, text = self.request("GET", client.registration_uri, token=client.registration_token)
        if status in FORGOTTEN:
            return None
        if status != 200:
            self.fail(
                f"{self.issuer} does not tell about its client {client.client_id}: {reason(status, text)}"
            )
        return text

    def update(self, client: oidc.Client, answer: dict[str, Any], desired: dict[str, Any]) -> oidc.Client:
        """Replace the client's metadata."""
        body = oidc.update_request(answer, desired)
        status, text = self.request(
            "PUT", client.registration_uri, token=client.registration_token, body=body
        )
        if status != 200:
            self.fail(
                f"{self.issuer} refused to update its client {client.client_id}: {reason(status, text)}"
            )
        return oidc.parse_registration(text, client.issuer, desired, client)

    def delete(self, client: oidc.Client) -> None:
        """Delete the client; that the provider is gone is no reason to fail."""
        try:
            status, text = self.request("DELETE", client.registration_uri, token=client.registration_token)
        except Unreachable as error:
            self.module.warn(f"The client {client.client_id} was not deleted at {client.issuer}: {error}")
            return
        if status != 204 and status not in FORGOTTEN:
            self.module.warn(
                f"The client {client.client_id} was not deleted at {client.issuer}: {reason(status, text)}"
            )

    def store(self, client: oidc.Client) -> None:
        """Write the file."""
        replace_file(self.module, self.path, client.render(), 0o600)

    def request(
        self, method: str, url: str, token: str = "", body: dict[str, Any] | None = None
    ) -> tuple[int, str]:
        """Send a request and return the HTTP status and the answer.

        Raises:
            Unreachable: there was no answer.
        """
        headers = {"Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body)
        try:
            response = open_url(
                url,
                method=method,
                data=data,
                headers=headers,
                ca_path=self.ca_path,
                timeout=TIMEOUT,
                use_netrc=False,
            )
            return response.getcode(), response.read().decode("utf-8", "replace")
        except HTTPError as error:
            return error.code, error.read().decode("utf-8", "replace")
        except (URLError, OSError, ValueError) as error:
            raise Unreachable(explain(error)) from error


def explain(error: Exception) -> str:
    """Say in one sentence why there was no answer, and what to do about it."""
    cause = getattr(error, "reason", error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"its TLS certificate cannot be verified ({cause.verify_message}); give the certificate of its"
            " authority."
        )
    if isinstance(cause, ssl.SSLError):
        return f"the TLS connection failed ({cause})."
    if isinstance(cause, socket.gaierror):
        return "its name cannot be resolved; check the URL and this machine's DNS."
    if isinstance(cause, (socket.timeout, TimeoutError)):
        return f"it did not answer within {TIMEOUT} seconds; check firewalls."
    return f"{getattr(cause, 'strerror', None) or cause}; check the URL and that the provider runs."


def reason(status: int, text: str) -> str:
    """Return an HTTP error as the provider explains it (RFC 7591, section 3.2.2)."""
    try:
        answer = json.loads(text)
        return f"{answer.get('error_description') or answer['error']} (HTTP status {status})"
    except (AttributeError, KeyError, ValueError):
        return f"HTTP status {status}"


def present(target: OidcClient, result: dict[str, Any]) -> None:
    """Make the client be there."""
    module = target.module
    provider = target.provider()
    scopes = provider.scopes(module.params["scopes"])
    result["scopes"] = scopes
    result["provider"] = {
        name: getattr(provider, name)
        for name in (
            "issuer",
            "authorization_endpoint",
            "token_endpoint",
            "userinfo_endpoint",
            "end_session_endpoint",
        )
    }
    stored = target.stored()
    if module.params["client_id"]:
        desired = oidc.Client(
            issuer=provider.issuer,
            client_id=module.params["client_id"],
            client_secret=module.params["client_secret"],
            requested={},
            registration_uri="",
            registration_token="",
        )
        if stored != desired:
            conclude(target, result, stored, desired, lambda: desired)
        else:
            result["client_id"] = desired.client_id
        return
    registered(target, result, stored, provider, scopes)


def registered(
    target: OidcClient,
    result: dict[str, Any],
    stored: oidc.Client | None,
    provider: oidc.Provider,
    scopes: list[str],
) -> None:
    """Make a client be registered as desired."""
    module = target.module
    if not provider.registration_endpoint:
        target.fail(
            f"{provider.issuer} registers no clients by itself; register one there and give its client_id"
            " and client_secret."
        )
    desired = oidc.metadata(module.params["client_name"], module.params["redirect_uris"], scopes)
    answer = None
    if stored and stored.managed and oidc.same_issuer(stored.issuer, provider.issuer):
        answer = target.read(stored)
    if stored is None or answer is None:
        expected = oidc.Client(provider.issuer, "", "", desired, "", "")
        conclude(target, result, stored, expected, lambda: target.register(provider, desired))
        return
    known = oidc.parse_answer(answer, provider.issuer)
    current = oidc.parse_registration(answer, provider.issuer, stored.requested, stored)
    if oidc.needs_update(current, known, desired):
        expected = oidc.Client(provider.issuer, current.client_id, "", desired, "", "")
        shown = oidc.Client(
            provider.issuer,
            current.client_id,
            "",
            {**current.requested, "redirect_uris": sorted(known.get("redirect_uris", []))},
            "",
            "",
        )
        conclude(target, result, shown, expected, lambda: target.update(current, known, desired))
        return
    if current != stored:
        target.store(current)
    result["client_id"] = current.client_id


def conclude(
    target: OidcClient,
    result: dict[str, Any],
    before: oidc.Client | None,
    expected: oidc.Client,
    make: Any,
) -> None:
    """Report a change, and make it unless in check mode; a client that is replaced is deleted."""
    result["changed"] = True
    result["diff"] = {
        "before_header": str(target.path),
        "after_header": str(target.path),
        "before": before.summary() if before else "",
        "after": expected.summary(),
    }
    result["client_id"] = expected.client_id
    if target.module.check_mode:
        return
    client = make()
    target.store(client)
    result["client_id"] = client.client_id
    if before and before.managed and before.registration_uri != client.registration_uri:
        target.delete(before)


def absent(target: OidcClient, result: dict[str, Any]) -> None:
    """Make the client be gone."""
    stored = target.stored()
    if not stored:
        return
    result["changed"] = True
    result["diff"] = {"before_header": str(target.path), "before": stored.summary(), "after": ""}
    if target.module.check_mode:
        return
    if stored.managed:
        target.delete(stored)
    target.path.unlink()


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "issuer": {"type": "str", "default": ""},
            "ca_certificate": {"type": "str", "default": ""},
            "path": {"type": "path", "required": True},
            "client_name": {"type": "str", "default": ""},
            "redirect_uris": {"type": "list", "elements": "str", "default": []},
            "scopes": {"type": "list", "elements": "str", "default": ["openid"]},
            "client_id": {"type": "str", "default": ""},
            "client_secret": {"type": "str", "default": "", "no_log": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    target = OidcClient(module)
    result: dict[str, Any] = {"changed": False, "client_id": ""}
    try:
        {"present": present, "absent": absent}[module.params["state"]](target, result)
    except Unreachable as error:
        target.fail(f"The identity provider {target.issuer} cannot be used from this machine: {error}")
    except oidc.OidcError as error:
        target.fail(str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Login by the accounts of this machine, for a machine that stands alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pamela

from . import accounts
from .accounts import AccountError
from .login import LoginDownError, PasswordLogin, Person, apply_groups

SERVICE = "jupyterhub"  # /etc/pam.d/jupyterhub, which the role writes

# Linux-PAM's _pam_types.h
NEW_PASSWORD_REQUIRED = 12  # PAM_NEW_AUTHTOK_REQD
# These say nothing about the user: PAM_SERVICE_ERR, PAM_SYSTEM_ERR, PAM_BUF_ERR, PAM_AUTHINFO_UNAVAIL,
# PAM_ABORT.
FAILURES = {3, 4, 5, 9, 26}
# While one of them is there, pam_nologin(8) refuses everybody, as before a shutdown; but nobody has left.
CLOSED = (Path("/run/nologin"), Path("/etc/nologin"))


def configure(c: Any, login: dict[str, Any]) -> None:
    """Configure the login.

    Args:
        c: the hub's configuration object.
        login: the settings' part about it.
    """
    c.JupyterHub.authenticator_class = PamLogin
    apply_groups(c.PamLogin, login["groups"], login["admin_groups"])


class PamLogin(PasswordLogin):
    """Passwords are checked by PAM; groups are the machine's own.

    No PAM session is opened: its modules would act on the hub's own process (limits, audit session, control
    group), not on the notebook, which is a unit of its own and has its limits from systemd.
    """

    source = "The machine that knows the users"

    def identify(self, name: str, password: str) -> Person | None:
        """Ask PAM, which itself delays the answer to a wrong password."""
        try:
            pamela.authenticate(name, password, service=SERVICE, check=False)
        except pamela.PAMError as error:
            self.log.warning("PAM refuses %s: %s", name, error.message)
            return None
        try:
            pamela.check_account(name, service=SERVICE)
        except pamela.PAMError as error:
            self.log.warning("PAM refuses the account of %s: %s", name, error.message)
            if error.errno == NEW_PASSWORD_REQUIRED:
                raise AccountError(
                    "Your password has expired. Change it on the machine, then sign in here again."
                ) from error
            raise AccountError(
                "Your account may not sign in at the moment: it has expired, or logins are closed. "
                "Ask the administrator of this service."
            ) from error
        return self._person(name)

    def look_up(self, name: str) -> Person | None:
        """Look at the account and its groups as they are now."""
        try:
            if not any(file.exists() for file in CLOSED):
                pamela.check_account(name, service=SERVICE)
            return self._person(name)
        except (AccountError, pamela.PAMError) as error:
            if isinstance(error, pamela.PAMError) and error.errno in FAILURES:
                raise LoginDownError(f"PAM cannot tell: {error.message}") from error
            self.log.info("%s is logged out: %s", name, error)
            return None

    @staticmethod
    def _person(name: str) -> Person:
        uid = accounts.uid_of_person(name)
        return Person(name, accounts.groups_of(name), uid, str(uid))

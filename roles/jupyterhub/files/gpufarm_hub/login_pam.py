# SPDX-License-Identifier: GPL-3.0-or-later
"""Login by the accounts of this machine, for a machine that stands alone."""

from __future__ import annotations

from typing import Any

import pamela

from . import accounts
from .accounts import AccountError
from .login import PasswordLogin, Person, apply_groups

SERVICE = "jupyterhub"  # /etc/pam.d/jupyterhub, which the role writes

# What the account says when the password is right (pam_acct_mgmt(3), values of Linux-PAM's _pam_types.h).
NEW_PASSWORD_REQUIRED, ACCOUNT_EXPIRED = 12, 13
EXPIRED = {
    NEW_PASSWORD_REQUIRED: "Your password has expired. Change it on the machine, then log in here again.",
    ACCOUNT_EXPIRED: "Your account has expired. Ask the administrator of this service.",
}


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

    def identify(self, name: str, password: str) -> Person | None:
        """Ask PAM, which itself delays the answer to a wrong password."""
        try:
            pamela.authenticate(name, password, service=SERVICE)
        except pamela.PAMError as error:
            if error.errno in EXPIRED:
                raise AccountError(EXPIRED[error.errno]) from error
            self.log.warning("PAM refuses %s: %s", name, error.message)
            return None
        return self._person(name)

    def look_up(self, name: str) -> Person | None:
        """Look at the account and its groups as they are now."""
        try:
            pamela.check_account(name, service=SERVICE)
            return self._person(name)
        except (AccountError, pamela.PAMError) as error:
            self.log.info("%s is logged out: %s", name, error)
            return None

    @staticmethod
    def _person(name: str) -> Person:
        uid = accounts.uid_of_person(name)
        return Person(name, accounts.groups_of(name), uid, str(uid))

# SPDX-License-Identifier: GPL-3.0-or-later
"""The key of the state: a file beside it, which a vault password of Ansible encrypts where there is one."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
from pathlib import Path
from typing import Any

from gpufarm import modes
from gpufarm.errors import BadInput, GpufarmError

_SEALED = b"$ANSIBLE_VAULT"  # how everything begins that Ansible has encrypted


def _vault(password: Any) -> Any:
    # importing Ansible takes longer than all other commands together, and only secrets need it
    from ansible.parsing.vault import VaultLib

    return VaultLib([("default", password)])


class Key:
    """Seals secrets and fingerprints values.

    The key is made when it is first needed. ``ansible-vault`` can encrypt, decrypt and rekey its file.
    """

    def __init__(self, path: Path, password_file: Path | None = None) -> None:
        """Say where the key is; nothing is read or written yet.

        Args:
            path: the file, in a folder that is there when the key is needed.
            password_file: has the vault password that the file is encrypted with, or is a program that
                prints it; None for a file that is not encrypted.
        """
        self.path = path
        self.password_file = password_file
        self._known = b""

    def seal(self, value: Any) -> str:
        """Encrypt a value.

        Args:
            value: anything that JSON can carry.

        Returns:
            Text as ``ansible-vault`` writes it.
        """
        return str(_vault(self._secret()).encrypt(json.dumps(value)).decode())

    def unseal(self, text: str) -> Any:
        """Decrypt a value.

        Args:
            text: what `seal` has returned.

        Returns:
            The value.

        Raises:
            AnsibleError: it was sealed with another key.
        """
        return json.loads(_vault(self._secret()).decrypt(text))

    def digest(self, value: Any) -> str:
        """Fingerprint a value that may contain secrets.

        Args:
            value: anything that JSON can carry.

        Returns:
            A keyed hash; without the key it does not help to guess the value.
        """
        text = json.dumps(value, sort_keys=True, default=str)
        return hmac.new(self._bytes(), text.encode(), hashlib.sha256).hexdigest()

    def _secret(self) -> Any:
        from ansible.parsing.vault import VaultSecret

        return VaultSecret(self._bytes())

    def _bytes(self) -> bytes:
        if not self._known:
            if not self.path.exists():
                self._make()
            try:
                self._known = self._opened(self.path.read_bytes())
            except OSError as error:
                raise GpufarmError(
                    f"{self.path}: the key of the state cannot be read: {error.strerror}"
                ) from error
        return self._known

    def _make(self) -> None:
        content = secrets.token_hex(32).encode()
        if self.password_file:
            content = _vault(self._password(self.password_file)).encrypt(content)
        fresh = self.path.with_name(f".key.{secrets.token_hex(4)}")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            if modes.shared(self.path.parent):
                os.fchmod(file.fileno(), 0o640)
        # a link, unlike a rename, fails if another run has been faster
        with contextlib.suppress(FileExistsError):
            self.path.hardlink_to(fresh)
        fresh.unlink()

    def _opened(self, content: bytes) -> bytes:
        if not content.startswith(_SEALED):
            if self.password_file:
                raise BadInput(
                    f"{self.path} is not encrypted, though a vault password is given; encrypt it with: "
                    f"ansible-vault encrypt --vault-password-file {self.password_file} {self.path}"
                )
            return content
        if self.password_file is None:
            raise BadInput(
                f"{self.path} is encrypted with a vault password; name the file that has it with "
                "--vault-password-file or in GPUFARM_VAULT_PASSWORD_FILE"
            )
        from ansible.errors import AnsibleError

        try:
            return bytes(_vault(self._password(self.password_file)).decrypt(content))
        except AnsibleError as error:
            raise BadInput(
                f"{self.path}: the vault password in {self.password_file} does not decrypt it; give the one "
                "that it was encrypted with"
            ) from error

    def _password(self, path: Path) -> Any:
        from ansible.errors import AnsibleError
        from ansible.parsing.dataloader import DataLoader
        from ansible.parsing.vault import get_file_vault_secret

        try:
            found = get_file_vault_secret(filename=str(path), loader=DataLoader())
            found.load()
        except AnsibleError as error:
            raise BadInput(f"the vault password cannot be read: {error}") from error
        return found

"""Connections to a fleet: the address of a Prometheus or of exporters, how to sign in, and where the secret is.

Secrets are read when they are needed, from the environment, a file or the keyring; a connection never holds one.
"""

import importlib
import re
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from planner.base import Spec, Stop
from planner.errors import MissingPackageError, SpecError
from planner.installation import package_command
from planner.storage import UnreadableFileError, read_regular
from planner.units import MIB
from planner.validation import HintedError

if TYPE_CHECKING:
    from planner.network import HttpClient

SignIn = Literal["none", "basic", "bearer"]
SECRET_VARIABLE: Final = "GPU_PLANNER_FLEET_SECRET"
"""Environment variable of the password or token, unless a connection names another."""
KEYRING_SERVICE: Final = "gpu-planner fleet"
"""Name under which the keyring keeps passwords and tokens; the user is the address."""

_MOST_SECRET_BYTES: Final = 65_536
_MOST_BYTES: Final = 256 * MIB
_ANSWER_SECONDS: Final = 30.0
_TOTAL_SECONDS: Final = 120.0
_SCHEMES: Final = ("http", "https")


class FleetConnection(Spec):
    """Address of Prometheus, with any prefix, or of an exporter's metrics or a saved file of them; and how to sign in.

    `secret` says where the password or token is: `env:NAME`, `file:PATH` or `keyring`.
    """

    url: str
    sign_in: SignIn = "none"
    user: str = ""
    secret: str = f"env:{SECRET_VARIABLE}"
    tenant: str = Field(default="", description="the X-Scope-OrgID of Mimir, Cortex or Loki")
    ca_file: Path | None = None

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            is_server = parts.hostname and parts.port != 0 and not re.search(r"\s", url)
            is_place = is_server if parts.scheme in _SCHEMES else url
        except ValueError:  # of a port or of brackets
            is_place = False
        if not is_place:
            raise HintedError("must be the address of a server or a file", "Write it as http://HOST:PORT.")
        return url

    @field_validator("tenant")
    @classmethod
    def _check_tenant(cls, tenant: str) -> str:
        if not (tenant.isascii() and tenant.isprintable()):
            raise HintedError("must be of printable ASCII characters", "Copy the tenant's ID from the server.")
        return tenant

    @field_validator("secret")
    @classmethod
    def _check_place(cls, secret: str) -> str:
        if not re.fullmatch(r"(env|file):.+|keyring", secret):
            raise HintedError("must say where the password or token is", "Give env:NAME, file:PATH or keyring.")
        return secret

    @property
    def is_scrape(self) -> bool:
        """Return whether the address is that of one exporter's metrics, or a file, instead of a Prometheus."""
        return not self.is_remote or urlsplit(self.url).path.rstrip("/").endswith("metrics")

    @property
    def is_remote(self) -> bool:
        """Return whether the address is that of a server instead of a file."""
        return urlsplit(self.url).scheme in _SCHEMES

    @property
    def address(self) -> str:
        """Return the host with its port, or the file's name, for labels and messages."""
        return urlsplit(self.url).netloc.rpartition("@")[2] if self.is_remote else Path(self.url).name

    def headers(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the headers that sign in, with the secret from where the connection says it is.

        Raises:
            SpecError: If the secret is missing, empty or unreadable.
            MissingPackageError: If it is in the keyring and the package keyring is not installed.
        """
        headers = {"X-Scope-OrgID": self.tenant} if self.tenant else {}
        if self.sign_in == "none":
            return headers
        secret = self._read_secret(environment)
        if self.sign_in == "bearer":
            return {**headers, "Authorization": f"Bearer {secret}"}
        pair = b64encode(f"{self.user}:{secret}".encode()).decode()
        return {**headers, "Authorization": f"Basic {pair}"}

    def client(self, environment: Mapping[str, str], stop: Stop = lambda: False) -> "HttpClient":
        """Return a client that signs in; `stop` says whether the request was cancelled.

        Raises:
            SpecError: If the address, the secret or the file of the authority is wrong.
            MissingPackageError: If the secret is in the keyring and the package keyring is not installed.
        """
        from planner.network import (
            HttpClient,
        )  # settings keep connections, and the start of the window needs no network

        parts = urlsplit(self.url)
        if "@" in parts.netloc:
            raise SpecError("url", "an address must not hold a password", "Name the user and where the secret is.")
        if parts.query or parts.fragment:
            raise SpecError("url", f"{self.url} has a query", "Give the address without ? and what follows.")
        return HttpClient(self.headers(environment), self.ca_file, _MOST_BYTES, _ANSWER_SECONDS, _TOTAL_SECONDS, stop)

    def _read_secret(self, environment: Mapping[str, str]) -> str:
        kind, _, place = self.secret.partition(":")
        if kind == "env":
            secret, where = environment.get(place, ""), f"the environment variable {place}"
        elif kind == "file":
            try:
                content = read_regular(Path(place), "secret", _MOST_SECRET_BYTES)
            except UnreadableFileError as error:
                raise SpecError("secret", f"{place} {error.reason}", error.hint) from error
            secret, where = content.decode("utf-8", "replace"), place
        else:
            secret, where = _keyring().get_password(KEYRING_SERVICE, self.url) or "", "the keyring"
        secret = secret.strip()
        if not secret or not secret.isprintable():
            problem = "has no password or token" if not secret else "has a password or token of several lines"
            raise SpecError("secret", f"{where} {problem}", "Set it, or name another place with --secret.")
        return secret


def keep_in_keyring(url: str, secret: str) -> None:
    """Keep the password or token of an address in the system's keyring.

    Raises:
        MissingPackageError: If the package keyring is not installed.
    """
    _keyring().set_password(KEYRING_SERVICE, url, secret)


def _keyring() -> Any:  # noqa: ANN401  # a module that may be missing
    try:
        return importlib.import_module("keyring")
    except ImportError as error:
        raise MissingPackageError(
            "the package keyring is not installed",
            f"Run: {package_command('keyring')}. Or put the secret into {SECRET_VARIABLE} or a file.",
        ) from error

"""A real SSH server on this machine, on a port and with keys of its own, and a client that knows only these."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from getpass import getuser
from pathlib import Path
from time import monotonic, sleep

import psutil
import pytest

from planner.monitor.supervisor.remote import RemoteAddress

SERVER = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
CLIENT = shutil.which("ssh")
_START_SECONDS = 20.0
# An hour ahead while a file is there: what asks for the time afterwards gets it from here.
_OTHER_CLOCK = "import os, time; now = time.time; time.time = lambda: now() + 3600 * os.path.exists('{}')"


class SshServer:
    """The server, and what a client needs to reach it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("host", "user", "stranger"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(words, check=True)
        shutil.copy(folder / "user.pub", folder / "authorized_keys")
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        settings = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": folder / "host",
            "AuthorizedKeysFile": folder / "authorized_keys",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "yes",
            "StrictModes": "no",
            "UsePAM": "no",
            "PidFile": folder / "pid",
        }
        (folder / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # for its own use, as its service makes it
        # It leaves this process, whose children many tests count.
        subprocess.run([SERVER, "-E", str(folder / "log"), "-f", str(folder / "sshd_config")], check=True)
        deadline = monotonic() + _START_SECONDS
        while not (pid := self._pid()):
            assert monotonic() < deadline, f"sshd did not start: {(folder / 'log').read_text()}"
            sleep(0.01)
        self.process = psutil.Process(pid)

    def _pid(self) -> int:
        """Return the number of the server's process, which it writes when it listens; 0 before."""
        path = self.folder / "pid"
        text = path.read_text() if path.exists() else ""
        return int(text) if text.endswith("\n") else 0

    def client(self, name: str = "client", key: str = "user", known: str | None = "host") -> Mapping[str, str]:
        """Return the environment in which `ssh` is the client with that key, and knows that host key."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        known_hosts = folder / "known_hosts"
        keys = "" if known is None else (self.folder / f"{known}.pub").read_text()
        known_hosts.write_text(keys and f"[127.0.0.1]:{self.port} {keys}")
        config = folder / "config"
        config.write_text(
            f"IdentityFile {self.folder / key}\nIdentitiesOnly yes\nIdentityAgent none\n"
            f"UserKnownHostsFile {known_hosts}\nGlobalKnownHostsFile /dev/null\nControlMaster no\n"
        )
        script = folder / "ssh"
        script.write_text(f'#!/bin/sh\nexec {CLIENT} -F {config} "$@"\n')
        script.chmod(0o755)
        return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}

    def address(self, program: Path | str) -> RemoteAddress:
        """Return the address of a program at this server."""
        return RemoteAddress.parse(f"ssh://{getuser()}@127.0.0.1:{self.port}{program}")

    def program(self, name: str, environment: Mapping[str, str], hour_ahead: Path | None = None) -> Path:
        """Return a `gpu-planner` that runs this checkout in `environment`; its clock is ahead while a file is there."""
        kept = {key: value for key, value in environment.items() if os.environ.get(key) != value}
        clock = "pass" if hour_ahead is None else _OTHER_CLOCK.format(hour_ahead)
        run = f"{clock}; from planner.cli.main import main; raise SystemExit(main())"
        lines = [f"export {key}='{value}'" for key, value in {**kept, "PYTHONPATH": os.getcwd()}.items()]
        return self.script(name, "\n".join([*lines, f'exec {sys.executable} -c "{run}" "$@"']))

    def script(self, name: str, text: str) -> Path:
        """Return a program that runs a shell script."""
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def connections(self) -> list[psutil.Process]:
        """Return the processes of the server that serve a connection."""
        return self.process.children()

    def close(self) -> None:
        for process in [*self.process.children(recursive=True), self.process]:
            process.kill()
        self.process.wait()


@pytest.fixture(scope="session")
def ssh_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """Give a server for all tests of a session."""
    if SERVER is None or CLIENT is None:
        pytest.skip("sshd or ssh is not installed (on Debian: apt install openssh-server)")
    server = SshServer(tmp_path_factory.mktemp("sshd"))
    yield server
    server.close()

"""The parts of a machine that every command may see, and those that it gets afresh.

Of `/etc` only what programs need to run at all: no keys, no passwords, and no tool
configuration, where people keep tokens.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agent_run.workspace.fence.spec import Entry

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC: Final = (
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/magic.mime",
    "/etc/mime.types",
    "/etc/networks",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/rpc",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
)
MACHINE: Final = ("/sys/devices/system/cpu",)
DEVICES: Final = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
)
HOME: Final = "/home/agent"
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - where the C library looks for it
PRIVATE: Final = (
    ("/tmp", "1777"),  # noqa: S108 - a mount of the fence's own
    ("/var/tmp", "1777"),  # noqa: S108
    (HOME, "0700"),
    (SHARED_MEMORY, "1777"),
)
"""Path and mode of what is made empty for each command."""


def system_entries() -> Iterator[Entry]:
    """What the root of every command holds, whatever it was granted."""
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink():
            yield ("link", name, os.fspath(path.readlink()))
        elif path.is_dir():
            yield ("ro", name, name)
    for name in (*ETC, *MACHINE):
        if Path(name).exists():
            yield ("ro", name, os.fspath(Path(name).resolve()))
    for name in DEVICES:
        yield ("dev", name, name)
    for name, mode in PRIVATE:
        yield ("private", name, mode)

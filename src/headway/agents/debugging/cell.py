"""The program that makes a sandbox and runs one command in it: standard library only, started by `sandbox`.

What runs in it sees system libraries, the interpreters it was given (all read-only) and its own copy of the repository,
on a file system in memory of bounded size. It has no network, processes, users' files or environment of the machine.
All of it ends with this program, because it is its namespace of processes that ends.

Standard input is the order (a line of JSON) and then a lifeline: when it closes, everything is killed.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
DETACH = 2
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE = 442, -100, 0x8000
READ_ONLY = struct.pack("QQQQ", 1 | 2, 0, 0, 0)  # struct mount_attr: set rdonly and nosuid
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
NOBODY = 65534
SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/localtime",
)
ONLINE = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl/certs")
DEVICES = ("null", "zero", "full", "random", "urandom")
LOOK = 0.05
"""Seconds between two looks at how much memory is used."""

Order = dict[str, Any]
libc = ctypes.CDLL(None, use_errno=True)


class CannotError(Exception):
    """The machine does not let this be isolated; says at which step."""


def called(step: str, result: int) -> None:
    """Refuse to go on where a system call failed: half a sandbox is none."""
    if result < 0:
        raise CannotError(f"{step}: {os.strerror(ctypes.get_errno())}")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount."""
    called(
        f"mount {target}", libc.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode() or None)
    )


def enter(*, network: bool) -> None:
    """Leave the machine's namespaces; a user who is not root needs one of users for that."""
    uid, gid = os.geteuid(), os.getegid()
    called("a namespace of files, processes and users", libc.unshare(NEWNS | NEWUTS | NEWIPC | NEWPID | _users(uid)))
    if uid:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    if not network:
        called("a namespace of networks", libc.unshare(NEWNET))
        raise_loopback()


def _users(uid: int) -> int:
    return NEWUSER if uid else 0


def raise_loopback() -> None:
    """Tests may speak to servers of their own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        request = struct.pack("16sh14x", b"lo", 1)  # IFF_UP
        fcntl.ioctl(one, 0x8914, request)  # SIOCSIFFLAGS


def furnish(order: Order, root: Path) -> None:
    """Build the file system that the command sees, and go into it."""
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    options = f"size={order['disk']},nr_inodes={order['files']},mode=755"
    mount("tmpfs", str(root), "tmpfs", MS_NOSUID | MS_NODEV, options)
    for name, mode in (("proc", 0o555), ("dev", 0o755), ("etc", 0o755), ("tmp", 0o1777), ("dev/shm", 0o1777)):
        (root / name).mkdir(mode=mode)
        (root / name).chmod(mode)
    for path in (*SYSTEM, *(ONLINE if order["network"] else ()), *sorted(order["readable"], key=len)):
        show(Path(path), root)
    for name in DEVICES:
        place = root / "dev" / name
        place.touch()
        mount(f"/dev/{name}", str(place), "", MS_BIND)
    for at, name in enumerate(("stdin", "stdout", "stderr")):
        (root / "dev" / name).symlink_to(f"/proc/self/fd/{at}")
    (root / "dev/fd").symlink_to("/proc/self/fd")
    (root / "etc/passwd").write_text(f"sandbox:x:{order['uid']}:{order['uid']}::/tmp:/bin/sh\n")
    mount("proc", str(root / "proc"), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    copy(order, root)
    move_into(root)


def show(path: Path, root: Path) -> None:
    """Let ``path`` be seen, read-only, where it is."""
    place = root / path.relative_to("/")
    if not path.exists() or place.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    source = path.resolve()
    if path.is_symlink() and source.is_relative_to("/usr"):
        place.symlink_to(source)
        return
    if source.is_dir():
        place.mkdir()
    else:
        place.touch()
    mount(str(source), str(place), "", MS_BIND | MS_REC)
    attributes = ctypes.create_string_buffer(READ_ONLY)
    done = libc.syscall(
        SYS_MOUNT_SETATTR, AT_FDCWD, str(place).encode(), AT_RECURSIVE, attributes, ctypes.c_size_t(len(READ_ONLY))
    )
    called(f"making {path} read-only", done)


def copy(order: Order, root: Path) -> None:
    """The repository, and what is written over it."""
    work = root / "work"
    try:
        shutil.copytree(order["copy"], work, symlinks=True)
        for name, text in order["written"].items():
            place = root / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            place.write_bytes(text.encode())
        if not os.geteuid():
            for path in (work, *work.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    except (OSError, shutil.Error) as error:
        raise CannotError(f"copying the repository into {order['disk']} bytes: {error}") from error


def move_into(root: Path) -> None:
    """Make it the root, and let go of the machine's."""
    old = root / "old"
    old.mkdir()
    called("pivot_root", libc.pivot_root(str(root).encode(), str(old).encode()))
    os.chdir("/")
    called("leaving the machine's files", libc.umount2(b"/old", DETACH))
    Path("/old").rmdir()


def become_command(order: Order) -> None:
    """Give up all rights, take on the limits, and be the command."""
    if not os.geteuid():
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        called("giving up root", -1 if os.getuid() != NOBODY else 0)
        # Processes are counted by user and namespace of users: with one of its own, none of another sandbox count.
        libc.unshare(NEWUSER)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.setsid()
    for which, most in (
        (resource.RLIMIT_AS, order["memory"]),
        (resource.RLIMIT_FSIZE, order["disk"]),
        (resource.RLIMIT_CPU, int(order["seconds"]) + 1),
        (resource.RLIMIT_NOFILE, 1024),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, order["processes"]),
    ):
        hard = resource.getrlimit(which)[1]
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (limit, limit))
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.chdir("/work")
    os.execve(order["command"][0], order["command"], order["env"])  # noqa: S606 - the command is what this is for


def watch(order: Order, command: int) -> tuple[str, int | None]:
    """Wait for the command; how it ended, and its exit code (negative: the signal) where it ended by itself."""
    ready = select.poll()
    ended = os.pidfd_open(command)
    ready.register(ended, select.POLLIN)
    ready.register(0, select.POLLIN | select.POLLHUP)
    until = time.monotonic() + order["seconds"]
    while (left := until - time.monotonic()) > 0:
        told = dict(ready.poll(1000 * min(LOOK, left)))
        if 0 in told:
            return "abandoned", None
        if ended in told:
            return "exited", os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
        if used_memory() > order["memory"]:
            return "memory", None
    return "time", None


def used_memory() -> int:
    """Bytes that the sandbox's processes hold for themselves."""
    total = 0
    for name in os.listdir("/proc"):  # noqa: PTH208 - a Path for each of many processes, twenty times a second
        if name.isdigit() and name != "1":
            with contextlib.suppress(OSError):
                resident, shared = Path(f"/proc/{name}/statm").read_text().split()[1:3]
                total += (int(resident) - int(shared)) * resource.getpagesize()
    return total


def first_process(order: Order, say: Callable[..., None]) -> None:
    """Be the first process of the namespace: with it all others end."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    try:
        furnish(order, Path(order["root"]).resolve())
        command = os.fork()
        if command == 0:
            try:
                become_command(order)
            except (OSError, ValueError, CannotError) as error:
                say(ended="refused", why=f"starting {order['command'][0]}: {error}")
            os._exit(127)
        how, code = watch(order, command)
        say(ended=how, code=code)
    except (OSError, CannotError) as error:
        say(ended="refused", why=str(error))


def main() -> None:
    """Read the order and carry it out; what came of it is a line of JSON on the descriptor that the order names."""
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = os.read(0, 65536)
        if not piece:
            return
        line += piece
    order: Order = json.loads(line)
    order["uid"] = os.geteuid() or NOBODY
    order["env"][order["report_in"]] = str(order["report"])
    os.set_inheritable(order["status"], False)  # noqa: FBT003 - the standard library's own

    def say(**words: object) -> None:
        os.write(order["status"], json.dumps(words).encode() + b"\n")

    try:
        enter(network=order["network"])
    except (OSError, CannotError) as error:
        say(ended="refused", why=str(error))
        return
    first = os.fork()
    if first == 0:
        first_process(order, say)
        os._exit(0)
    os.waitpid(first, 0)


if __name__ == "__main__":
    main()
    sys.exit(0)

"""The system calls that nothing inside a fence may make.

A list of refusals, not of permissions: a compiler or test suite uses most of the kernel,
and what is refused here is what breaks fences open or reaches past them.
"""

import struct

_EPERM, _EACCES, _ENOSYS, _EAFNOSUPPORT = 1, 13, 38, 97
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _ABOVE, _BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32 = 0x40000000

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COLUMN = {"x86_64": 0, "aarch64": 1}

_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_STREAM, _SOCK_KIND = 1, 0xF
_IPPROTO_TCP = 6
_NEW_NAMESPACES = 0x7E020000
_SET_ID_BITS = 0o6000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_MSG_FASTOPEN = 0x20000000
_ALL_PROCESSES = 0xFFFFFFFF

# Number on x86_64 and on aarch64; None where the machine has no such call.
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chmod": (90, None),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "creat": (85, None),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "listen": (50, 201),
    "lookup_dcookie": (212, 18),
    "migrate_pages": (256, 238),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open": (2, None),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sendmmsg": (307, 269),
    "sendmsg": (46, 211),
    "sendto": (44, 206),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}

# Refused only for some arguments, or only where no namespace keeps the host away.
_CONDITIONAL = frozenset(
    (
        *("chmod", "clone", "creat", "fchmod", "fchmodat", "fchmodat2", "ioctl", "kill"),
        *("listen", "mknod", "mknodat", "open", "openat", "prlimit64", "sendmmsg"),
        *("sendmsg", "sendto", "socket", "socketpair"),
    )
)
# Their flags lie in memory, where a filter cannot look; callers know how to do without.
_PRETEND_ABSENT = frozenset({"clone3", "openat2"})

_Code = list[tuple[int, int, int, int]]


def program(machine: str, *, inet: str, shared: bool) -> bytes:
    """The filter for `machine`.

    `inet` is `"any"`, `"tcp"` (outgoing streams only) or `"none"`. `shared` says that the
    host's processes and sockets are within reach, because no namespace keeps them away.
    """
    column = _COLUMN[machine]
    code: _Code = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_EQUAL, 1, 0, _AUDIT[machine]),
        _fail(_ENOSYS),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_ABOVE, 0, 1, _X32),
        _fail(_ENOSYS),
    ]
    conditions = _conditions(inet, shared=shared)
    for name, numbers in _NUMBERS.items():
        number = numbers[column]
        if number is None or (name in _CONDITIONAL and name not in conditions):
            continue
        errno = _ENOSYS if name in _PRETEND_ABSENT else _EPERM
        body = conditions.get(name, [_fail(errno)])
        code += [(_EQUAL, 0, len(body), number), *body]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def _conditions(inet: str, *, shared: bool) -> dict[str, _Code]:
    allow: _Code = [(_RETURN, 0, 0, _ALLOW)]
    checks: dict[str, _Code] = {
        "clone": _refuse_bits(0, _NEW_NAMESPACES),
        "ioctl": [
            *_refuse_value(1, _TIOCSTI)[:-1],
            *_refuse_value(1, _TIOCLINUX),
        ],
        "socket": _sockets(inet, shared=shared),
        "socketpair": [_argument(0), (_EQUAL, 1, 0, _AF_UNIX), _fail(_EAFNOSUPPORT), *allow],
    }
    # A set-id file would outlive the fence and give its owner's rights to anybody.
    for name, index in (("chmod", 1), ("creat", 1), ("fchmod", 1), ("fchmodat", 2)):
        checks[name] = _refuse_bits(index, _SET_ID_BITS)
    for name, index in (("mknod", 1), ("mknodat", 2), ("open", 2), ("openat", 3)):
        checks[name] = _refuse_created_bits(name, index)
    checks["fchmodat2"] = _refuse_bits(2, _SET_ID_BITS)
    if shared:
        checks["kill"] = _refuse_value(0, _ALL_PROCESSES)
        checks["prlimit64"] = [_argument(0), (_EQUAL, 1, 0, 0), _fail(_EPERM), *allow]
        checks["listen"] = [_fail(_EPERM)]
        # Fast open connects without a call that Landlock would see.
        for name, index in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
            checks[name] = _refuse_bits(index, _MSG_FASTOPEN)
    if shared and inet == "any":
        del checks["listen"]
    return checks


def _sockets(inet: str, *, shared: bool) -> _Code:
    allow = (_RETURN, 0, 0, _ALLOW)
    routing: _Code = [_argument(2), (_EQUAL, 0, 1, 0), allow, _fail(_EAFNOSUPPORT)]
    code: _Code = [_argument(0)]
    if not shared:
        code += [(_EQUAL, 0, 1, _AF_UNIX), allow]
    code += [(_EQUAL, 0, len(routing), _AF_NETLINK), *routing]
    if inet == "none":
        return [*code, _fail(_EACCES)]
    streams: _Code = [allow]
    if inet == "tcp":
        # Another protocol number, such as MPTCP, would pass by Landlock's check of TCP.
        streams = [
            _argument(1),
            (0x54, 0, 0, _SOCK_KIND),
            (_EQUAL, 0, 4, _SOCK_STREAM),
            _argument(2),
            (_EQUAL, 1, 0, 0),
            (_EQUAL, 0, 1, _IPPROTO_TCP),
            allow,
            _fail(_EACCES),
        ]
    return [
        *code,
        (_EQUAL, 2, 0, _AF_INET),
        (_EQUAL, 1, 0, _AF_INET6),
        _fail(_EAFNOSUPPORT),
        *streams,
    ]


def _refuse_created_bits(name: str, index: int) -> _Code:
    if name.startswith("mknod"):
        return _refuse_bits(index, _SET_ID_BITS)
    creates, temporary = 0o100, 0o20000000
    # Without O_CREAT the mode is whatever the register held.
    return [
        _argument(index - 1),
        (_BITS, 1, 0, creates | temporary),
        (_RETURN, 0, 0, _ALLOW),
        *_refuse_bits(index, _SET_ID_BITS),
    ]


def _refuse_bits(index: int, bits: int) -> _Code:
    return [_argument(index), (_BITS, 0, 1, bits), _fail(_EPERM), (_RETURN, 0, 0, _ALLOW)]


def _refuse_value(index: int, value: int) -> _Code:
    return [_argument(index), (_EQUAL, 0, 1, value), _fail(_EPERM), (_RETURN, 0, 0, _ALLOW)]


def _argument(index: int) -> tuple[int, int, int, int]:
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * index)


def _fail(errno: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _ERRNO | errno)

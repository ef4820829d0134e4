"""Programs that try to do harm from inside the sandbox. Each test fails if they succeed."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from adp.rollouts.sandbox.command import bubblewrap
from adp.rollouts.sandbox.run import SandboxLimits, run_python
from adp_schema.errors import UsageError
from tests.waiting import PATIENCE


def _works():
    try:
        return bool(bubblewrap())
    except UsageError:
        return False


pytestmark = pytest.mark.skipif(not _works(), reason="bubblewrap is not installed or cannot work")

LIMITS = SandboxLimits(seconds=300, memory_mb=256, processes=16, tmp_mb=8)


def run(code, **limits):
    return run_python(code, LIMITS.model_copy(update=limits))


def test_a_program_prints_and_its_last_value_is_shown():
    done = run("import math\nprint('a', 1)\nmath.sqrt(16)")
    assert (done.stdout, done.stderr, done.exit_code, done.stopped) == ("a 1\n4.0\n", "", 0, None)


def test_the_standard_library_is_there():
    code = "import socket, ssl, sqlite3, ctypes, json, decimal, multiprocessing, zoneinfo\nprint(1)"
    assert run(code).stdout == "1\n"


@pytest.mark.parametrize("place", ["/usr", "/etc", "/", "/dev", "/proc", "/home", "/var", "~"])
def test_it_cannot_write_outside(place, tmp_path):
    name = f"adp-attack-{os.getpid()}"
    code = f"""
import os
for target in [{place!r} + '/' + {name!r}, {str(tmp_path / name)!r}]:
    target = os.path.expanduser(target.replace('~', {str(Path.home())!r}))
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        open(target, 'w').write('x')
        print('WROTE', target)
    except OSError as error:
        print('refused', error.errno)
"""
    run(code)
    assert not os.path.lexists(Path(place).expanduser() / name)
    assert not list(tmp_path.iterdir())


def test_it_reads_no_file_of_ours(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the-secret-word")
    for path in (secret, Path.home() / ".bash_history", "/etc/passwd", "/etc/shadow"):
        done = run(f"print(open({str(path)!r}).read())")
        assert done.exit_code == 1
        assert "the-secret-word" not in done.stdout
        assert "root:" not in done.stdout


def test_it_reaches_no_server_of_this_machine():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(1)
        port = server.getsockname()[1]
        done = run(
            "import socket\n"
            f"s = socket.create_connection(('127.0.0.1', {port}), 2)\n"
            "s.sendall(b'out')\nprint('CONNECTED')"
        )
        with pytest.raises(TimeoutError):
            server.accept()
    assert "CONNECTED" not in done.stdout
    assert run("import socket\nprint(socket.if_nameindex())").stdout == "[(1, 'lo')]\n"


def test_it_reaches_no_abstract_socket():
    if not sys.platform.startswith("linux"):
        pytest.skip("abstract sockets are a thing of Linux")
    name = f"\0adp-attack-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        code = f"import socket\ns=socket.socket(socket.AF_UNIX)\ns.connect({name!r})\nprint('IN')"
        assert "IN" not in run(code).stdout


def test_memory_of_one_process_is_limited():
    done = run("x = bytearray(1 << 30)\nprint('GOT IT')")
    assert "GOT IT" not in done.stdout
    assert done.exit_code != 0


def test_memory_of_several_processes_together_is_limited():
    code = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        x = bytearray(100 << 20)
        time.sleep(120)
        os._exit(0)
time.sleep(100)
print('ALL OF THEM LIVED')
"""
    done = run(code)
    assert (done.stopped, "LIVED" in done.stdout) == ("memory", False)


SHARED_PAGE = """
import ctypes, os
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
for _ in range(20):
    place = libc.mmap(None, 50 << 20, 3, {flags}, {file}, ctypes.c_long(0))
    if place == 2**64 - 1:
        raise SystemExit(1)
    ctypes.memset(place, 1, 50 << 20)
    libc.munmap(ctypes.c_void_p(place + 4096), (50 << 20) - 4096)
"""
MEMORY_OF_NOBODY = {
    "memfd": """
import os
kept = []
for _ in range(55):
    file = os.memfd_create('x')
    os.write(file, b'x' * (7 << 20))
    kept.append(file)
""",
    "shmget": """
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
for _ in range(20):
    place = libc.shmat(libc.shmget(0, 50 << 20, 0o1600), None, 0)
    if place in (None, 2**64 - 1):
        raise SystemExit(1)
    ctypes.memset(place, 1, 50 << 20)
    libc.shmdt(ctypes.c_void_p(place))
""",
    # One page that stays mapped keeps all of it.
    "shared memory without a file": SHARED_PAGE.format(file="-1", flags="33"),
    "shared zeros": SHARED_PAGE.format(file="os.open('/dev/zero', os.O_RDWR)", flags="1"),
    "dev": """
for number in range(200):
    open(f'/dev/{number}', 'wb').write(b'x' * (5 << 20))
""",
    "shm": """
for number in range(200):
    open(f'/dev/shm/{number}', 'wb').write(b'x' * (5 << 20))
""",
    "messages": """
import ctypes
libc = ctypes.CDLL(None)
if libc.msgget(0, 0o1600) < 0:
    raise SystemExit(1)
""",
    "user namespace": """
import ctypes, os, subprocess
libc = ctypes.CDLL(None)
if libc.unshare(0x10000000):
    raise SystemExit(1)
""",
    "new process in a user namespace": """
import ctypes, os, platform
libc = ctypes.CDLL(None)
clone = {'x86_64': 56, 'aarch64': 220}[platform.machine()]
child = libc.syscall(clone, 0x10000000 | 17, None, None, None, None)
if child < 0:
    raise SystemExit(1)
if child == 0:
    os._exit(0)
""",
}


@pytest.mark.parametrize("name", MEMORY_OF_NOBODY)
def test_no_memory_is_had_that_nobody_counts(name):
    done = run(MEMORY_OF_NOBODY[name] + "\nprint('GOT IT')")
    assert "GOT IT" not in done.stdout
    assert done.exit_code != 0


def test_empty_files_are_counted():
    code = "i = 0\nwhile True:\n    open(f'/tmp/{i}', 'w').close()\n    i += 1"
    assert run(code, memory_mb=64).stopped == "memory"


def test_tmp_is_limited_and_gone_afterwards():
    code = "open('/tmp/big', 'wb').write(b'x' * (20 << 20))\nprint('WROTE')"
    assert "WROTE" not in run(code).stdout
    assert run("open('/tmp/kept', 'w').write('x')\nprint('ok')").stdout == "ok\n"
    assert run("import os\nprint(os.listdir('/tmp'))").stdout == "[]\n"
    many = "i = 0\nwhile True:\n    open(f'/tmp/{i}', 'wb').write(b'x' * 100_000)\n    i += 1"
    assert run(many).exit_code != 0


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time\ntime.sleep(3600)",
        "import signal\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\nwhile True: pass",
        "import os\nos.fork()\nos.setsid()\nimport time\ntime.sleep(3600)",
    ],
)
def test_time_is_limited(code):
    started = time.monotonic()
    assert run(code, seconds=0.7).stopped == "time"
    assert time.monotonic() - started < PATIENCE  # it would take twice that


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_is_limited(stream):
    done = run(f"import sys\nwhile True: sys.{stream}.write('x' * 1000)", output_bytes=5000)
    assert done.stopped == "output"
    assert len(done.stdout) + len(done.stderr) == 5000


def test_a_fork_bomb_is_stopped_and_nothing_of_it_is_left():
    code = """
import os, time
made = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(300)
        made += 1
        if made > 200:
            print('TOO MANY')
            break
except OSError:
    print('stopped at', made)
"""
    done = run(code)
    assert "TOO MANY" not in done.stdout
    assert 0 < int(done.stdout.rsplit(maxsplit=1)[-1]) < 16
    bomb = run("import os, threading\nwhile True:\n    os.fork()", seconds=2)
    assert bomb.stopped == "time" or bomb.exit_code != 0
    left = [process.name() for process in psutil.Process().children(recursive=True)]
    assert "bwrap" not in left


def test_threads_are_limited():
    code = """
import threading, time
made = 0
try:
    for _ in range(300):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        made += 1
except RuntimeError:
    pass
print(made)
"""
    assert int(run(code).stdout) < 16


def test_it_sees_no_other_process_and_no_environment(monkeypatch):
    monkeypatch.setenv("ADP_TEST_SECRET", "hunter2-secret")
    code = """
import os, glob
print(sorted(name for name in os.listdir('/proc') if name.isdigit()))
print(dict(os.environ))
for name in glob.glob('/proc/*/environ') + glob.glob('/proc/*/cmdline'):
    try:
        print(open(name, 'rb').read())
    except OSError:
        pass
"""
    done = run(code)
    assert "hunter2-secret" not in done.stdout + done.stderr
    assert len(done.stdout.splitlines()[0].split(",")) <= 3


def test_it_cannot_stop_other_processes():
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        code = f"""
import os, signal
for pid in [{sleeper.pid}, {os.getpid()}, -1]:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError as error:
        print('refused')
"""
        run(code)
        time.sleep(0.1)
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


def test_it_has_no_rights_and_gets_none_back():
    code = """
import os
print(os.getuid() != 0 and os.geteuid() != 0)
caps = [line for line in open('/proc/self/status') if line.startswith(('CapPrm', 'CapEff'))]
print(all(int(line.split()[1], 16) == 0 for line in caps))
for act in (lambda: os.setuid(0), lambda: os.chroot('/tmp'), lambda: os.mknod('/tmp/d', 0o60600)):
    try:
        act()
        print('ALLOWED')
    except OSError:
        pass
import resource
try:
    resource.setrlimit(resource.RLIMIT_NPROC, (1000, 1000))
    print('RAISED')
except (OSError, ValueError):
    pass
"""
    assert run(code).stdout == "True\nTrue\n"


def test_it_mounts_nothing():
    code = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.mount(b'proc', b'/tmp', b'proc', 0, None), libc.umount2(b'/usr', 2))
"""
    assert run(code).stdout == "-1 -1\n"


KEYS = """
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
add, request, control = {'x86_64': (248, 249, 250), 'aarch64': (217, 218, 219)}[platform.machine()]
"""


def test_it_reads_no_key_of_ours():
    # The key lies in a session of its own, which ends with the process that made it.
    outside = f"""{KEYS}
import sys
from adp.rollouts.sandbox.run import SandboxLimits, run_python
key = libc.syscall(control, 1, None)
if key < 0 or libc.syscall(add, b'user', b'a-name', b'secret', 6, -3) < 0:
    sys.exit(9)
print(run_python(sys.stdin.read(), SandboxLimits(seconds=300)))
"""
    inside = f"""{KEYS}
key = libc.syscall(request, b'user', b'a-name', None, 0)
found = ctypes.create_string_buffer(100)
print(key, libc.syscall(control, 11, key, found, 100, 0), found.value)
print(libc.syscall(add, b'user', b'other', b'x', 1, -4), libc.syscall(control, 0, -4, 0))
for name in ('/proc/keys', '/proc/key-users'):
    try:
        print(open(name).read())
    except OSError:
        pass
"""
    done = subprocess.run(
        [sys.executable, "-c", outside],
        input=inside,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    if done.returncode == 9:
        pytest.skip("this system has no keys")
    assert "-1 -1 b''\\n-1 -1\\n" in done.stdout, done.stderr
    assert "secret" not in done.stdout
    assert "a-name" not in done.stdout


@pytest.mark.parametrize("family", [16, 17, 31, 38, 40])  # netlink, packet, bluetooth, alg, vsock
def test_it_gets_no_socket_that_leads_out(family):
    code = f"import socket\nsocket.socket({family}, {3 if family == 17 else 2}, {family == 16:d})"
    assert "not supported by protocol" in run(code).stderr


def test_programs_of_32_bits_have_no_system_calls():
    if platform.machine() != "x86_64":
        pytest.skip("the program is written for x86_64")
    code = """
import ctypes, mmap
memory = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)
memory.write(b'\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3')  # mov eax, 20 (getpid); int 0x80; ret
ask = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
print('ANSWERED', ask())
"""
    assert "ANSWERED" not in run(code).stdout


def test_no_open_file_of_ours_is_inherited(tmp_path):
    secret = tmp_path / "open.txt"
    secret.write_text("inherited-secret")
    with secret.open() as handle:
        os.set_inheritable(handle.fileno(), True)
        code = """
import os
for number in range(3, 64):
    try:
        print(os.read(number, 100))
    except OSError:
        pass
"""
        assert "inherited-secret" not in run(code).stdout


def test_programs_beside_each_other_do_not_share_a_limit():
    code = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        time.sleep(1.5)
        os._exit(0)
print('ok')
time.sleep(1)
"""
    results = []
    threads = [threading.Thread(target=lambda: results.append(run(code))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [done.stdout for done in results] == ["ok\n"] * 4


def test_what_breaks_is_said():
    done = run("def f():\n    return 1 / 0\nf()")
    assert done.exit_code == 1
    assert 'File "code.py", line 2, in f' in done.stderr
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert run("print(").stderr.endswith("SyntaxError: '(' was never closed\n")
    assert run("import sys\nsys.exit(3)").exit_code == 3
    assert run("print('\\ud800')").exit_code == 1


def test_without_bubblewrap_it_refuses(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UsageError, match="needs bubblewrap"):
        run_python("print(1)", LIMITS)
    assert run_python("print(6 * 7)", LIMITS, unsafe=True).stdout == "42\n"

"""What a program in the sandbox can see, under each kind of interpreter that this machine has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from adp.rollouts.sandbox.command import bubblewrap
from adp_schema.errors import UsageError

try:
    bubblewrap()
    WORKS = True
except UsageError:
    WORKS = False

pytestmark = pytest.mark.skipif(not WORKS, reason="bubblewrap is not installed or cannot work")

LOOK = """
import os, json, ssl, sqlite3, ctypes, zlib, zoneinfo, subprocess, sys, importlib.util
packages = [d for d, _, names in os.walk("/")
            if os.path.basename(d) in ("site-packages", "dist-packages") and os.listdir(d)]
hidden = ["/root", "/home", "/opt", "/usr/local", "/usr/src", "/var", "/run", "/srv", "/mnt",
          "/etc/passwd", "/usr/share/doc"]
writable = []
for folder, _, _ in os.walk("/"):
    if folder.startswith(("/proc", "/dev", "/tmp")):
        continue
    try:
        open(os.path.join(folder, "adp-x"), "w").close()
        writable.append(folder)
    except OSError:
        pass
try:
    line = open("/proc/cmdline").read()
except OSError:
    line = ""
child = subprocess.run([sys.executable, "-c", "import ssl; print(6 * 7)"], capture_output=True)
print(json.dumps({
    "packages": packages, "seen": [name for name in hidden if os.path.exists(name)],
    "writable": writable, "cmdline": line, "child": child.stdout.decode() + child.stderr.decode(),
    "zone": str(zoneinfo.ZoneInfo("Europe/Berlin")), "version": list(sys.version_info[:2]),
    "found": [name for name in ("pydantic", "pip", "yaml") if importlib.util.find_spec(name)]}))
"""

EPISODE = """
import json, sys
from adp.rollouts.environments.python import KIND, PythonSettings
from adp.rollouts.turns import Call, Turn
from adp_schema.model import Task
environment = KIND.make(PythonSettings(seconds=100))
environment.reset(Task(task_id="t", instruction="Look."))
call = Call("python", json.dumps({"code": sys.argv[1]}), "c")
print(environment.step(Turn(calls=(call,))).results[0].text)
"""


def base() -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return Path(os.path.realpath(sys.base_prefix)) / "bin" / version


@pytest.fixture(params=["this one", "without a venv", "a new venv", "of the system", "moved"])
def interpreter(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The path of an interpreter, which is of the same version."""
    version = base().name
    match request.param:
        case "this one":
            return Path(sys.executable)
        case "without a venv" if base().exists():
            return base()
        case "a new venv":
            venv.create(tmp_path / "v", with_pip=False)
            return tmp_path / "v/bin" / version
        case "of the system":
            result = Path("/usr/bin") / version
            if result.exists():
                return result
        case "moved" if base().exists():
            # As an archive that was unpacked into a home or into /opt.
            library = Path(os.__file__).parent
            folder = tmp_path / "opt"
            (folder / "bin").mkdir(parents=True)
            shutil.copy2(base(), folder / "bin" / version)
            place = folder / library.parent.name / library.name
            skipped = shutil.ignore_patterns("test", "__pycache__", "*-packages", "idlelib")
            shutil.copytree(library, place, ignore=skipped)
            for shared in base().parent.parent.glob("lib/lib*.so*"):
                shutil.copy2(shared, folder / "lib" / shared.name)
            (place / "site-packages/secret").mkdir(parents=True)
            (place / "site-packages/secret/__init__.py").write_text("", encoding="utf-8")
            return folder / "bin" / version
    pytest.skip(f"this machine has no interpreter {version} {request.param}")


def look(interpreter: Path, **variables: str) -> dict[str, object]:
    """What an episode of this interpreter shows; the packages are those of this test."""
    library = str(Path(os.__file__).parent)
    ps = [p for p in sys.path if p and not p.endswith(".zip")]
    packages = os.pathsep.join(p for p in ps if p.endswith("packages") or not p.startswith(library))
    done = subprocess.run(
        [interpreter, "-c", EPISODE, LOOK], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": packages, **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown: dict[str, object] = json.loads(done.stdout)
    return shown


def check(shown: dict[str, object]) -> None:
    assert shown["packages"] == []
    assert shown["found"] == []
    assert shown["seen"] == []
    assert shown["writable"] == []
    assert shown["cmdline"] == ""
    assert shown["child"] == "42\n"
    assert shown["zone"] == "Europe/Berlin"
    assert shown["version"] == list(sys.version_info[:2])


def test_no_packages_no_homes_and_nothing_to_write(interpreter: Path) -> None:
    check(look(interpreter))


def test_with_a_home_of_python_in_the_environment() -> None:
    if os.path.realpath(sys.base_prefix) != "/usr":
        check(look(base(), PYTHONHOME=sys.base_prefix))
    else:
        check(look(base(), PYTHONHOME="/usr"))

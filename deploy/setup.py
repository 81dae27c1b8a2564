"""What `make` needs before it starts anything: a virtual environment with the requirements; a browser.

`setup.py` installs requirements.txt, `--dev` requirements-dev.txt too, `--browser` Chromium where that can
be done. What is there already is left alone. Runs on any Python 3, to tell an old one what is needed.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import List, NoReturn  # noqa: UP035 - an old Python must get as far as the check

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
LOG = os.path.join(VENV, "install.log")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")  # those that the tests look for
NO_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
STEP = re.compile(r"\[\s*(?:(\d+)/(\d+)|(\d+)%)\]")  # of ninja, of make


def install(name: str) -> None:
    """Install a requirements file, unless that was done since it changed."""
    stamp = os.path.join(VENV, name + ".sha256")
    digest = hashlib.sha256()
    for part in sorted({name, "requirements.txt"}):
        with open(os.path.join(ROOT, part), "rb") as file:
            digest.update(file.read())
    if os.path.exists(PYTHON) and _read(stamp) == digest.hexdigest():
        return
    _make_venv()
    builds = subprocess.run(
        [PYTHON, "-m", "pip", "show", "-q", "llama-cpp-python"], stderr=subprocess.DEVNULL
    )
    if builds.returncode:
        _check_compilers()
        print("Installing " + name + ". This builds llama.cpp, about 10 minutes on 2 cores.", flush=True)
    else:
        print("Installing " + name, flush=True)
    _pip(name)
    with open(stamp, "w") as file:
        file.write(digest.hexdigest())


def _make_venv() -> None:
    if os.path.exists(PYTHON) and not subprocess.call(
        [PYTHON, "-c", "import pip"], stderr=subprocess.DEVNULL
    ):
        return
    if sys.version_info < (3, 11):  # noqa: UP036
        this = ".".join(map(str, sys.version_info[:2]))
        _fail(f"Python 3.11 or newer is needed, this is {this}; try make PYTHON=python3.12")
    try:
        import ensurepip  # noqa: F401
        import venv
    except ImportError:
        _fail("Python's venv module is missing; on Debian: apt-get install python3-venv")
    _check_compilers()
    print("Making the virtual environment .venv", flush=True)
    venv.create(VENV, with_pip=True, clear=True)


def _check_compilers() -> None:
    for variable, names in (("CC", ("cc", "gcc", "clang")), ("CXX", ("c++", "g++", "clang++"))):
        if not os.environ.get(variable) and not any(map(shutil.which, names)):
            _fail("there is no C/C++ compiler, which llama.cpp needs; on Debian: apt-get install g++ make")
    if not (shutil.which("make") or shutil.which("ninja")):
        _fail("there is no make, which building llama.cpp needs; on Debian: apt-get install make")


def _pip(name: str) -> None:
    """Run pip; of its output show what it works on and how far a build is. All of it goes to a log."""
    env = dict(os.environ, CMAKE_BUILD_PARALLEL_LEVEL=os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", _cores()))
    if _amx_is_broken():
        print("  AMX does not work with this compiler or machine: building without it", flush=True)
        for variable in ("CFLAGS", "CXXFLAGS"):
            env[variable] = (env.get(variable, "") + " " + NO_AMX).strip()
    command = [PYTHON, "-m", "pip", "install", "-v", "--progress-bar", "off", "-r", name]
    pip = subprocess.Popen(
        command,
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    shown = -1
    errors: List[str] = []  # noqa: UP006
    assert pip.stdout is not None
    log = open(LOG, "w")  # noqa: SIM115
    try:
        for line in pip.stdout:
            log.write(line)
            line = line.strip()
            step = STEP.match(line)
            if step:
                done, of, percent = step.groups()
                percent = int(percent) if percent else 100 * int(done) // int(of)
                if percent // 5 != shown:
                    shown = percent // 5
                    print(f"  building: {shown * 5} %", flush=True)
            elif re.match(r"(error|fatal error|ERROR)\b|.*No space left", line):
                errors.append(line)
            elif line.startswith(("Collecting ", "Building wheel for ", "Installing collected")):
                print("  " + line.split(" (from ")[0][:100], flush=True)
        pip.wait()
    except KeyboardInterrupt:
        os.killpg(pip.pid, signal.SIGKILL)  # with the compilers that it started
        raise
    finally:
        log.close()
    if pip.returncode:
        why = errors[0] if errors else f"its exit code is {pip.returncode}"
        _fail(f"pip could not install {name}: {why} (all it said is in .venv/install.log)")


def _amx_is_broken() -> bool:
    """llama.cpp is built for what this CPU reports, and would die of what compiler or CPU get wrong."""
    if " amx_tile" not in _read("/proc/cpuinfo"):
        return False
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "try_amx")
        source = os.path.join(ROOT, "deploy", "try_amx.c")
        compiler = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), "cc")
        compiled = subprocess.run(
            [*compiler.split(), "-O3", "-mamx-tile", "-o", program, source], stderr=subprocess.DEVNULL
        )
        return compiled.returncode == 0 and subprocess.run([program]).returncode != 0


def _cores() -> str:
    return str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def browser() -> None:
    """Install Chromium as root on Debian; elsewhere the browser tests say what they need."""
    if any(map(shutil.which, BROWSERS)) or os.getuid() != 0 or not os.path.exists("/etc/debian_version"):
        return
    print("Installing Chromium for the browser tests", flush=True)
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for command in (
        ["apt-get", "update"],
        ["apt-get", "install", "-y", "--no-install-recommends", "chromium"],
    ):
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            last = done.stdout.strip().splitlines()[-1:] or ["no output"]
            _fail("{} failed: {}".format(" ".join(command), last[0]))


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _fail(why: str) -> NoReturn:
    sys.exit("make: " + why)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if "--browser" in sys.argv:
            browser()
        else:
            install("requirements.txt")
            if "--dev" in sys.argv:
                install("requirements-dev.txt")
    except KeyboardInterrupt:
        _fail("interrupted; the next make goes on from here")

# SPDX-License-Identifier: MIT
"""Boot files of Debian packages, for any architecture: downloaded with apt into tests/.cache (never
committed), found by name. Only EFI programs, kernels and kubectl are kept.

apt works on lists of its own there, so that a foreign architecture needs no change of the machine;
its sources and keys are the machine's, so what comes is signed by Debian.
"""

import fcntl
import glob
import os
import shutil
import subprocess
import tarfile
from fnmatch import fnmatch

import ownnet

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.environ.get("TEC_TEST_CACHE", os.path.join(TOP, "tests", ".cache"))
KEPT = ("*.efi", "*.efi.signed", "*.efi.stub", "*/vmlinuz-*", "*/bin/kubectl")
_fresh = set()


class Unavailable(Exception):
    """What is missing, as one sentence."""


def _run(argv, cwd=None):
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Unavailable(f"{' '.join(argv[:1] + argv[-3:])}: {said[-1] if said else 'failed'}")
    return done.stdout


def _source(home, suite):
    """Another release than the machine's, from the same archive and by the same keys."""
    path = os.path.join(home, "one.sources")
    with open(path, "w", encoding="ascii") as f:
        f.write(f"Types: deb\nURIs: http://deb.debian.org/debian\nSuites: {suite}\nComponents: main\n"
                "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n")
    return ["-o", f"Dir::Etc::sourcelist={path}", "-o", "Dir::Etc::sourceparts=-"]


def _options(arch, suite):
    """apt with lists, status and cache below CACHE."""
    home = os.path.join(CACHE, "apt", arch + (suite or ""))
    for folder in ("state/lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(home, folder), exist_ok=True)
    status = os.path.join(home, "state", "status")
    open(status, "a", encoding="ascii").close()
    values = {
        "Dir::State": os.path.join(home, "state"),
        "Dir::State::status": status,
        "Dir::Cache": os.path.join(home, "cache"),
        "APT::Architecture": arch,
        "APT::Architectures::": arch,
        "APT::Sandbox::User": "root" if os.getuid() == 0 else "",
        "Acquire::Languages": "none",
        "Acquire::Retries": "8",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
    }
    words = [word for key, value in values.items() for word in ("-o", f"{key}={value}")]
    return words + (_source(home, suite) if suite else [])


def _update(arch, suite):
    """Once per run, and only when something has to be downloaded."""
    if (arch, suite) in _fresh:
        return
    if not shutil.which("apt-get"):
        raise Unavailable("there is no apt-get here: Debian's boot files cannot be downloaded")
    _run(["apt-get", *_options(arch, suite), "-q", "update"])
    _fresh.add((arch, suite))


def _unpack(deb, root):
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as child:
        with tarfile.open(fileobj=child.stdout, mode="r|") as tar:
            for member in tar:
                if not member.isfile() or not any(fnmatch(member.name, k) for k in KEPT):
                    continue
                path = os.path.join(root, os.path.normpath("/" + member.name)[1:])
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as f:
                    shutil.copyfileobj(tar.extractfile(member), f)
    if child.returncode:
        raise Unavailable(f"{deb} is damaged")


def package(name, arch, suite=None):
    """The folder with the newest `name`'s files, of the machine's release or of `suite`. `name` may be
    a metapackage: then those of what it depends on first."""
    home = os.path.join(CACHE, "deb", arch, *([suite] if suite else []), name)
    if not os.path.exists(os.path.join(home, "done")):
        os.makedirs(CACHE, exist_ok=True)
        with open(os.path.join(CACHE, "lock"), "w", encoding="ascii") as lock, ownnet.left():
            fcntl.flock(lock, fcntl.LOCK_EX)  # other processes need the same files
            _fetch(name, arch, suite, home)
    return os.path.join(home, "root")


def _fetch(name, arch, suite, home):
    done = os.path.join(home, "done")
    if os.path.exists(done):
        return
    _update(arch, suite)
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(os.path.join(home, "root"))
    real = name
    if name.startswith("linux-image-cloud"):
        depends = _run(["apt-cache", *_options(arch, suite), "depends", "--important", name])
        real = depends.split("Depends: ")[1].split()[0]
    _run(["apt-get", *_options(arch, suite), "-q", "download", real], cwd=home)
    deb = glob.glob(os.path.join(home, "*.deb"))[0]
    _unpack(deb, os.path.join(home, "root"))
    os.unlink(deb)
    open(done, "x", encoding="ascii").close()


def find(name, arch, pattern, suite=None):
    """The one file that `pattern` (relative to the package's root) names."""
    found = glob.glob(os.path.join(package(name, arch, suite), pattern))
    if len(found) != 1:
        raise Unavailable(f"{name} for {arch} has {len(found)} files {pattern}, not 1")
    return found[0]

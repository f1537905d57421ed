# SPDX-License-Identifier: MIT
"""Container images without a registry: Debian's base images by mmdebstrap, ours by buildah from the Containerfile, and
what stands in for others. Base images and layers are kept in tests/nodes/.cache."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import time

from controlplane import TOP
from kbs import kbs_binary

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(HERE, ".cache")
TRUSTEE = "quay.io/trusted-execution-clusters/key-broker-service:v0.21.0"
PAUSE = "registry.k8s.io/pause:3.10.1"
DEBIAN = "docker.io/library/debian:12"
BUD = ["bud", "--layers", "--isolation", "chroot", "--pull-never"]
# Each change of the tree leaves ten behind, 200 MB; more than this is thrown away with all others.
MAX_LAYERS = 200
# A loaded machine builds an image in minutes; what takes longer than this will not end.
STEP_S = 1500
# A base image is made again after this: apt-get in it must find what it asks for.
BASE_DAYS = 14
_SOURCES = """\
deb http://deb.debian.org/debian bookworm main
deb http://deb.debian.org/debian bookworm-updates main
deb http://deb.debian.org/debian-security bookworm-security main
"""


def run(argv, log=None, **kw):
    out = open(log, "ab") if log else subprocess.PIPE
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False,
                              timeout=STEP_S, **kw)
    finally:
        if log:
            out.close()
    if done.returncode:
        said = done.stdout.decode(errors="replace") if not log else f"see {log}"
        raise RuntimeError(f"{' '.join(argv[:8])} ended with {done.returncode}: {said[-3000:]}")
    return "" if log else done.stdout.decode()


def storage_argv():
    return ["buildah", "--root", os.path.join(CACHE, "storage"), "--runroot", os.path.join(CACHE, "run")]


def buildah_argv():
    """In namespaces of its own: what it mounts and runs ends with it, also when it is killed."""
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *storage_argv()]


def buildah(*args, **kw):
    return run([*buildah_argv(), *args], **kw)


def buildah_log(log, *args, **kw):
    return run([*buildah_argv(), *args], log=log, **kw)


def image_id(name):
    done = subprocess.run([*buildah_argv(), "images", "--quiet", "--no-trunc", name], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


class Locked:
    """One at a time works in the cache."""

    def __enter__(self):
        os.makedirs(CACHE, exist_ok=True)
        self.file = open(os.path.join(CACHE, "lock"), "w", encoding="ascii")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


def from_scratch(name, add, *config):
    """An image of one layer. ADD: (source, target) pairs."""
    container = buildah("from", "scratch").strip().splitlines()[-1]
    try:
        for source, target in add:
            buildah("add", container, source, target)
        if config:
            buildah("config", *config, container)
        buildah("commit", "--timestamp", "0", container, name)
    finally:
        buildah("rm", container)


def remove_containers():
    """Those that a killed build left. Whoever calls this holds Locked."""
    buildah("rm", "--all")


def base(log):
    """docker.io/library/debian:12 and :12-slim."""
    remove_containers()
    if len(buildah("images", "--all", "--quiet").split()) > MAX_LAYERS:
        buildah("rmi", "--all", "--force")
    archive = os.path.join(CACHE, "debian.tar")
    fresh = os.path.exists(archive) and time.time() - os.path.getmtime(archive) < BASE_DAYS * 86400
    if fresh and image_id(DEBIAN):
        return
    if not fresh:
        new = archive + ".new"
        # As Debian's own image has it: apt asks for recommendations, keeps no packages.
        run(["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--include=ca-certificates", "bookworm",
             new, *(line for line in _SOURCES.splitlines())], log=log)
        os.replace(new, archive)
    from_scratch(DEBIAN, [(archive, "/")], "--cmd", "bash")
    buildah("tag", DEBIAN, DEBIAN + "-slim")


def pause(binary):
    if not image_id(PAUSE):
        from_scratch(PAUSE, [(binary, "/pause")], "--entrypoint", '["/pause"]')


_KBS = """\
#!/bin/sh
# Where Trustee's own program is, with its configuration file as argument: the broker of the tests.
listen=$(sed -n 's/^sockets = \\["\\(.*\\)"\\]$/\\1/p' "$2")
if [ -e /etc/tls/tls.crt ]; then
	set -- --tls-cert=/etc/tls/tls.crt --tls-key=/etc/tls/tls.key
else
	set --
fi
exec /usr/local/bin/tec-test-kbs --listen="$listen" --admin-key=/opt/trustee/keys/public.pub --trustee-quirks \\
	--signer=/opt/trustee/token/key.pem --policies=/usr/local/share/policies "$@"
"""


def trustee(operator_image, log):
    """Trustee's image: the operator's with a broker in it; a real kbs where TEC_TEST_KBS_BIN names one."""
    context = os.path.join(CACHE, "kbs")
    shutil.rmtree(context, ignore_errors=True)
    os.makedirs(context)
    real = os.environ.get("TEC_TEST_KBS_BIN")
    lines = [f"FROM {operator_image}"]
    if real:
        shutil.copy(real, os.path.join(context, "kbs"))
        # Its libraries, where the image has none.
        for line in run(["ldd", real]).splitlines():
            words = line.split()
            if "=>" in words and words[2].startswith("/") and not words[0].startswith(("libc.", "libm.", "ld-")):
                os.makedirs(os.path.join(context, "lib"), exist_ok=True)
                shutil.copy(words[2], os.path.join(context, "lib", words[0]))
                lines[1:] = ["COPY lib/ /usr/local/lib/kbs/", "ENV LD_LIBRARY_PATH=/usr/local/lib/kbs"]
    else:
        shutil.copy(kbs_binary(), os.path.join(context, "tec-test-kbs"))
        with open(os.path.join(context, "kbs"), "w", encoding="ascii") as f:
            f.write(_KBS)
        os.makedirs(os.path.join(context, "policies"))
        for policy in ("tpm", "tpm-shared", "resource", "resource-shared"):
            shutil.copy(os.path.join(TOP, "etc", f"{policy}.rego"), os.path.join(context, "policies"))
        lines += ["COPY tec-test-kbs /usr/local/bin/tec-test-kbs", "COPY policies/ /usr/local/share/policies/"]
    os.chmod(os.path.join(context, "kbs"), 0o755)
    lines += ["COPY kbs /usr/local/bin/kbs", "ENTRYPOINT []"]
    with open(os.path.join(context, "Containerfile"), "w", encoding="ascii") as f:
        f.write("\n".join(lines) + "\n")
    _same_times(context)
    buildah_log(log, *BUD, "-t", TRUSTEE, context)


def _same_times(folder):
    """Layers are found again by their files' times as well."""
    for path, folders, files in os.walk(folder):
        for name in folders + files:
            os.utime(os.path.join(path, name), (1_000_000_000, 1_000_000_000), follow_symlinks=False)


def clone(target):
    """What a clone of this tree has, changes of now included: what is built from a folder full of builds takes long."""
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    git = subprocess.run(["git", "-C", TOP, "ls-files", "-z", "--cached"], capture_output=True, check=False)
    if git.returncode == 0:
        names = [os.fsdecode(n) for n in git.stdout.split(b"\0") if n and os.path.lexists(os.path.join(TOP, os.fsdecode(n)))]
    else:  # what make dist packed
        names = [os.path.relpath(os.path.join(path, f), TOP) for path, folders, files in os.walk(TOP) for f in files
                 if not _skip(folders)]
    for name in names:
        to = os.path.join(target, name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy2(os.path.join(TOP, name), to, follow_symlinks=False)
    _same_times(target)
    return target


def _skip(folders):
    folders[:] = [f for f in folders if not f.startswith((".git", "build")) and f not in ("bin", ".cache", ".venv")
                  or f in ("build-aux",)]
    return False


def export(name, directory):
    """An OCI archive of the image, as ctr imports it; its path."""
    path = os.path.join(directory, hashlib.sha256(name.encode()).hexdigest()[:16] + ".tar")
    if os.path.exists(path):
        os.unlink(path)
    buildah("push", "--quiet", "--disable-compression", name, f"oci-archive:{path}:{name}")
    return path


def archive_digest(path):
    """sha256:… of the one manifest in an OCI archive."""
    with tarfile.open(path) as tar:
        return json.load(tar.extractfile("index.json"))["manifests"][0]["digest"]


# SPDX-License-Identifier: MIT
"""tec-compute-pcrs --image: what it fetches from a registry is what an unpacked image has, and what is
wrong on the way is said."""

import os
import tarfile
import time

import pytest

import ociimage
import ociregistry
import pcrstool
from conftest import need_registry
from ociimage import Scripted, gz, tar, tar_of, zstd
from ociregistry import BASIC, Registry
from pcrstool import GRUB, OLD_EFI, make_root, run
from test_registry import docker_config

SMALL = tar(("usr/lib/modules/1/vmlinuz", b"MZ1"), ("usr/lib/efi/x", b"y"))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return make_root(tmp_path_factory.mktemp("root"))


@pytest.fixture
def scripted():
    made = [Scripted(), Scripted()]
    yield made
    for s in made:
        s.close()


def fetch(reference, into, *options, hosts=(), timeout=60):
    hosts = [reference.split("/")[0], *hosts]
    os.makedirs(into, exist_ok=True)
    return run("fetch", reference, "--into", into, "--insecure-registry", ",".join(hosts), *options,
               timeout=timeout)


def files(into):
    found = {}
    for at, _, names in os.walk(into):
        for name in names:
            path = os.path.join(at, name)
            if os.path.islink(path):
                found[os.path.relpath(path, into)] = "->" + os.readlink(path)
            else:
                with open(path, "rb") as f:
                    found[os.path.relpath(path, into)] = f.read()
    return found


def refused(done, *words, status=1):
    assert done.returncode == status, done
    last = done.stderr.splitlines()[-1]
    assert last.startswith("tec-compute-pcrs: ") and done.stdout == "", done
    for word in words:
        assert word in last, done


# ---- the same values

def test_the_values_of_a_fetched_image_are_those_of_its_folder(registry, root, tmp_path):
    """Layers in three compressions; the second replaces the kernel, the third takes away a loader."""
    want = run("all", "-r", root, "--variants")
    assert want.returncode == 0, want
    with open(os.path.join(root, pcrstool.kernel_path()), "rb") as f:
        kernel = f.read()
    folder = os.path.dirname(pcrstool.kernel_path())
    first = tar_of(root, (f"{folder}/initramfs.img", os.urandom(3 << 20)),
                   ("usr/lib/modules/99.9/vmlinuz", b"not a kernel"))
    first = first.replace(kernel[:4096], bytes(4096))
    second = tar((f"./{pcrstool.kernel_path()}", kernel), ("usr/lib/efi", None),
                 ("usr/lib/efi/old/EFI/a/shimx64.efi", b"MZ"), form=tarfile.GNU_FORMAT)
    third = tar(("usr/lib/modules/.wh.99.9", b""), ("usr/lib/.wh.efi", b""))
    reference = ociimage.push(registry, "os", gz(first), zstd(second, "--long=24"), third)
    secure = ("--insecure-registry", registry.host)
    done = run("all", "--image", reference, "--variants", *secure, env={"TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (0, want.stdout), done
    assert "layer 2 of 3" in done.stderr
    assert not [n for n in os.listdir(tmp_path) if n.startswith("tec-")], "left behind"
    into = tmp_path / "into"
    done = fetch(reference, str(into))
    assert (done.returncode, done.stdout) == (0, reference + "\n"), done
    assert run("all", "-r", into, "--variants").stdout == want.stdout
    assert sorted(files(into)) == sorted(os.path.relpath(p, root)
                                         for p in pcrstool.files_below(root))


def test_an_image_of_ostree_has_links_to_objects(registry, root):
    """Names are hard links to files called after their content, behind a link for /lib."""
    want = run("all", "-r", root)
    objects, names = [], []
    for i, path in enumerate(pcrstool.files_below(root)):
        with open(path, "rb") as f:
            objects.append((f"sysroot/ostree/repo/objects/a{i}.file", f.read()))
        names.append((os.path.relpath(path, root).replace("usr/lib/", "lib/"),
                      f"=sysroot/ostree/repo/objects/a{i}.file"))
    reference = ociimage.push(registry, "os", gz(tar(*objects)),
                              gz(tar(("usr/lib", None), ("lib", "->usr/lib"))), gz(tar(*names)))
    done = run("all", "--image", reference, "--insecure-registry", registry.host)
    assert (done.returncode, done.stdout) == (0, want.stdout), done


def test_the_job_computes_what_an_init_container_fetched(registry, root, tmp_path):
    reference = ociimage.push(registry, "os", zstd(tar_of(root)))
    into, message = tmp_path / "image", tmp_path / "message"
    done = fetch(reference, str(into))
    assert done.returncode == 0, done
    for options in (("-r", into), ("--into", tmp_path / "again", "--insecure-registry",
                                   registry.host)):
        os.makedirs(tmp_path / "again", exist_ok=True)
        done = run("--image", reference, "--nonce", "a" * 32, "--result", message, *options)
        assert done.returncode == 0, done
        assert message.read_text().startswith(f"tec-pcrs/3 {'a' * 32} {reference[-64:]} ")


def test_a_tag_is_enough_for_a_person(scripted, tmp_path):
    reference = scripted[0].serve(gz(SMALL))
    done = fetch(f"{scripted[0].host}/a/b:stable", str(tmp_path / "x"))
    assert done.returncode == 0, done
    assert done.stdout == reference.replace("@", ":stable@") + "\n"
    assert files(tmp_path / "x") == {"usr/lib/modules/1/vmlinuz": b"MZ1", "usr/lib/efi/x": b"y"}


# ---- what a registry does

def test_a_password_and_a_ca_of_its_own(tmp_path):
    need_registry()
    os.makedirs(tmp_path / "tls")
    tls = ociregistry.make_certificate(str(tmp_path / "tls"))
    registry = Registry(str(tmp_path / "registry"), tls, password=True)
    try:
        reference = ociimage.push(registry, "a/b", gz(SMALL))
        auth = ("--registry-auth", docker_config(tmp_path / "auth", registry.host))
        ca = ("--registry-ca", tls[0])

        def go(name, *options):
            os.makedirs(tmp_path / name)
            return run("fetch", reference, "--into", tmp_path / name, *options)
        refused(go("1", *auth), "certificate")
        refused(go("2", *ca, "--registry-auth", tmp_path / "absent"), "password")
        done = go("3", *ca, *auth)
        assert done.returncode == 0, done
        assert ociregistry.PASSWORD not in done.stderr and BASIC not in done.stderr
    finally:
        registry.close()


def test_a_token_is_got_and_is_not_sent_elsewhere(scripted, tmp_path):
    registry, storage = scripted
    layer = gz(SMALL)
    reference = registry.serve(layer)
    real = dict(registry.answers)
    blob = f"/v2/a/b/blobs/{ociimage.digest_of(layer)}"

    def guarded(path):
        def answer(request):
            if request.headers.get("Authorization") != "Bearer good":
                challenge = f'Bearer realm="http://{registry.host}/token",service="s"'
                return 401, {"WWW-Authenticate": challenge}, b"no"
            if path == blob:
                return 307, {"Location": f"http://{storage.host}/data"}, b""
            return real[path]
        return answer
    registry.answers = {path: guarded(path) for path in real}
    registry.answers["/token"] = (200, {}, b'{"token":"good","expires_in":300}')
    storage.answers["/data"] = (200, {}, layer)
    refused(fetch(reference, str(tmp_path / "1")), "not listed as insecure")
    assert not storage.seen
    done = fetch(reference, str(tmp_path / "2"), hosts=[storage.host])
    assert done.returncode == 0, done
    assert storage.seen and all("Authorization" not in headers for _, headers in storage.seen)
    assert all("Range" not in headers for _, headers in registry.seen + storage.seen)


def slowly(body):
    def answer(request):
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        for i in range(len(body)):
            request.wfile.write(body[i:i + 1])
            time.sleep(0.1)
    return answer


def cut(body):
    def answer(request):
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body[:len(body) // 2])
    return answer


BAD = gz(SMALL[:-1024] + b"x" * 1024)
WRONG = [
    ("another-layer", lambda body: (200, {}, BAD + bytes(len(body) - len(BAD))
                                    if len(body) > len(BAD) else BAD[:len(body)]), 1, "layer 1 of 1"),
    ("other-bytes", lambda body: (200, {}, body[:-1] + bytes([body[-1] ^ 1])), 1, "layer 1 of 1"),
    ("longer", lambda body: (200, {}, body + b"x"), 1, "exceeds the expected"),
    ("shorter", lambda body: (200, {}, body[:-1]), 1, "layer 1 of 1"),
    ("cut-off", cut, 4, "layer 1 of 1"),
    ("slow", slowly, 4, "was not fetched within 2 s"),
    ("missing", lambda body: (404, {}, b"{}"), 1, "404"),
    ("refused", lambda body: (403, {}, b"{}"), 1, "403"),
    ("broken", lambda body: (503, {}, b"{}"), 4, "503"),
    ("challenge", lambda body: (401, {}, b""), 1, "credentials"),
    ("loop", lambda body: (302, {"Location": f"/v2/a/b/blobs/{ociimage.digest_of(body)}"}, b""), 1,
     "redirects"),
]


@pytest.mark.parametrize("how,status,words", [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_what_is_wrong_with_a_layer_is_said_and_nothing_stays(scripted, tmp_path, how, status, words):
    layer = gz(SMALL)
    reference = scripted[0].serve(layer)
    answer = how(layer)
    scripted[0].answers[f"/v2/a/b/blobs/{ociimage.digest_of(layer)}"] = answer
    refused(fetch(reference, str(tmp_path / "x"), "--timeout", "2"), words, status=status)
    assert files(tmp_path / "x") == {} and os.listdir(tmp_path / "x") == []


def test_a_wrong_digest_of_the_manifest_is_refused(scripted, tmp_path):
    reference = scripted[0].serve(gz(SMALL))
    name, digest = reference.split("@")
    other = "sha256:" + "0" * 64
    scripted[0].answers[f"/v2/a/b/manifests/{other}"] = \
        scripted[0].answers[f"/v2/a/b/manifests/{digest}"]
    refused(fetch(f"{name}@{other}", str(tmp_path / "x")), "digest")


def test_a_mirror_that_lies_is_left_for_the_registry(scripted, tmp_path):
    registry, mirror = scripted
    layers = gz(SMALL), gz(tar(("usr/lib/efi/more", b"z")))
    reference = registry.serve(*layers)
    mirror.serve(*layers)
    mirror.answers[f"/v2/a/b/blobs/{ociimage.digest_of(layers[1])}"] = \
        (200, {}, gz(tar(("usr/lib/efi/evil", b"z"))))
    done = fetch(reference, str(tmp_path / "x"), "--registry-mirror", f"{registry.host}={mirror.host}",
                 hosts=[mirror.host])
    assert done.returncode == 0 and "mirror failed" in done.stderr, done
    assert sorted(files(tmp_path / "x")) == ["usr/lib/efi/more", "usr/lib/efi/x",
                                             "usr/lib/modules/1/vmlinuz"]


# ---- hostile layers

HOSTILE = [
    ("dots", tar(("usr/../../etc/x", b"MZ")), 'a path contains ".."'),
    ("dots-in-a-link", tar(("a", "=../x")), 'a path contains ".."'),
    ("not-tar", b"x" * 2048, "not a tar archive"),
    ("half", SMALL[:700], "ends inside an entry"),
    ("below-a-file", tar(("usr/lib/efi/a", b"MZ"), ("usr/lib/efi/a/b", b"MZ")), "below a file"),
    ("link-loop", tar(("a", "->b"), ("b", "->a"), ("a/x", b"MZ")), "too many symbolic links"),
    ("nameless-whiteout", tar(("usr/.wh...", b"")), "a whiteout has no name"),
    ("not-gzip", b"\x1f\x8b\x08\x00nonsense" * 40, "gzip stream is corrupt"),
    ("half-gzip", gz(SMALL)[:-9], "stream is truncated"),
    ("gzip-and-more", gz(SMALL) + b"more", "gzip stream is"),
    ("unkept-target", tar(("x", b"no program"), ("usr/lib/modules/1/vmlinuz", "=x")),
     "not an EFI program"),
]


@pytest.mark.parametrize("layer,words", [h[1:] for h in HOSTILE], ids=[h[0] for h in HOSTILE])
def test_a_hostile_layer_is_refused(scripted, tmp_path, layer, words):
    refused(fetch(scripted[0].serve(layer), str(tmp_path / "x")), words)
    assert os.listdir(tmp_path / "x") == []


def test_links_stay_inside_and_are_made_only_where_they_are_needed(scripted, tmp_path):
    """What a link says is for whoever reads the folder as a root."""
    reference = scripted[0].serve(gz(tar(
        ("boot", None), ("boot/vmlinuz-1", b"MZkernel"), ("etc/passwd", b"MZ"), ("out", "->/etc"),
        ("out/more", b"MZ"), ("usr/lib/modules/1/vmlinuz", "->/boot/vmlinuz-1"),
        ("usr/lib/modules/2/vmlinuz", "->../../../../../../../etc/shadow"),
        ("usr/lib/modules/1/build", "->/usr/src"))))
    done = fetch(reference, str(tmp_path / "x"))
    assert done.returncode == 0, done
    assert files(tmp_path / "x") == {
        "boot/vmlinuz-1": b"MZkernel", "usr/lib/modules/1/vmlinuz": "->/boot/vmlinuz-1",
        "usr/lib/modules/2/vmlinuz": "->../../../../../../../etc/shadow"}


def test_much_that_is_not_needed_costs_no_room(scripted, tmp_path):
    """256 MiB of zeros and ten thousand links, in a few kilobytes."""
    layer = tar(("big", bytes(1 << 28)), *[(f"l/{i}", f"->{i}") for i in range(10000)],
                ("usr/lib/efi/x", b"y"))
    done = fetch(scripted[0].serve(zstd(layer, "-1")), str(tmp_path / "x"))
    assert done.returncode == 0, done
    assert files(tmp_path / "x") == {"usr/lib/efi/x": b"y"}


def test_a_folder_that_is_not_empty_is_refused(scripted, tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "old").write_text("")
    refused(fetch(scripted[0].serve(SMALL), str(tmp_path / "x")), "not empty")
    assert os.listdir(tmp_path / "x") == ["old"]


def test_the_loader_of_a_fetched_image_is_named_as_ever(registry, tmp_path):
    """From the second layer alone, by its path in the folder."""
    root = make_root(tmp_path / "root", second=GRUB)
    reference = ociimage.push(registry, "os", gz(tar(("usr", None))), gz(tar_of(root)))
    done = run("pcr4", "--image", reference, "--insecure-registry", registry.host, "--explain")
    assert done.returncode == 0 and f"{OLD_EFI}/grubx64.efi" in done.stderr, done


def test_libcurl_is_loaded_by_what_fetches_alone(scripted, tmp_path):
    """It and its libraries are a quarter of what a run costs."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libcurl.so.4").write_text("not a library")
    (tmp_path / "x").mkdir()
    env = {"LD_LIBRARY_PATH": str(tmp_path / "lib")}
    refused(run("fetch", scripted[0].serve(SMALL), "--into", tmp_path / "x", env=env),
            "cannot load the HTTP client for registries", "libcurl.so.4", "install libcurl")
    done = run("digest", pcrstool.debian(*GRUB), env=env)
    assert done.returncode == 0 and done.stderr == "", done

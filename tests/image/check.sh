#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds both images of the Containerfile twice, from this tree and from a copy of it with other times and junk in it, and
# looks at what came of it: two builds are the same bit by bit, small, without the tests and without udev, labelled, with an
# SBOM that names every package, and they run. Some ten minutes on two cores; test_image.py runs it with its base images.
# Usage: check.sh [TREE]; $BUILDAH (buildah) may have options, as another --root, where docker.io/library/debian:12 and
# :12-slim must be. Exit 0 = all true, 1 = not, 77 = cannot tell here.
set -eu
LC_ALL=C
export LC_ALL

cannot() { echo "SKIP: $*"; [ -z "${TEC_NO_SKIP-}" ] || exit 1; exit 77; }
[ "$(id -u)" -eq 0 ] || cannot "images are mounted, which needs root"
# Mounts and processes of a build that is killed end with it.
if [ -z "${CHECK_IMAGE_ALONE-}" ]; then
	CHECK_IMAGE_ALONE=1
	export CHECK_IMAGE_ALONE
	exec unshare --mount --pid --fork --kill-child --mount-proc sh "$0" "$@"
fi

tree=$(CDPATH='' cd -- "${1:-$(dirname "$0")/../..}" && pwd)
buildah=${BUILDAH:-buildah}
limit_kb=$((45 * 1024))
epoch=1700000000
work=$(mktemp -d)
containers=

b() { $buildah "$@"; }

clean_up() {
	for c in $containers; do
		b rm "$c" >/dev/null 2>&1 || :
	done
	for i in operator compute-pcrs; do
		b rmi "localhost/check-image-$i:one" "localhost/check-image-$i:two" >/dev/null 2>&1 || :
	done
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

fault() { echo "check-image: $*" >&2; exit 1; }

command -v "${buildah%% *}" >/dev/null 2>&1 || cannot "no ${buildah%% *}; next step: apt-get install buildah"
for base in debian:12 debian:12-slim; do
	b inspect --type image "docker.io/library/$base" >/dev/null 2>&1 || cannot "no image docker.io/library/$base"
done
version=$(sed -n 's/^AC_INIT(\[tec-operator\],\[\([^]]*\)\].*/\1/p' "$tree/configure.ac")
[ -n "$version" ] || fault "configure.ac has no version"

build() { # TREE TAG
	for target in compute-pcrs operator; do
		to=
		[ $target = operator ] || to="--target=$target"
		cache=--no-cache
		# The programs are compiled once per tree: the second image finds that stage.
		[ $target = compute-pcrs ] || cache=
		# shellcheck disable=SC2086
		b bud --layers $cache --isolation chroot --pull-never --timestamp "$epoch" $to \
			--build-arg "SOURCE_DATE_EPOCH=$epoch" --build-arg REVISION=r \
			-t "localhost/check-image-$target:$2" "$1" >"$work/log" 2>&1 || {
			tail -30 "$work/log" >&2
			fault "the build of $target ended with an error"
		}
	done
}

layers() { b inspect --type image --format '{{range .OCIv1.RootFS.DiffIDs}}{{.}}{{"\n"}}{{end}}' "$1"; }
id_of() { b inspect --type image --format '{{.FromImageID}}' "$1"; }
label() { b inspect --type image --format "{{index .OCIv1.Config.Labels \"org.opencontainers.image.$2\"}}" "$1"; }

build "$tree" one
mkdir "$work/copy"
(cd "$tree" && tar -cf - --exclude=./.git --exclude='./build*/*.o' --exclude=./build --exclude='./tests/*/.cache' .) |
	tar -C "$work/copy" -xmf -
mkdir -p "$work/copy/build" "$work/copy/tests/junk"
echo junk >"$work/copy/build/tec-operator"
echo junk >"$work/copy/tests/junk/more"
build "$work/copy" two

for target in compute-pcrs operator; do
	image=localhost/check-image-$target
	layers "$image:one" >"$work/one"
	layers "$image:two" >"$work/two"
	cmp -s "$work/one" "$work/two" || {
		diff "$work/one" "$work/two" >&2 || :
		fault "two builds of $target have other layers"
	}
	[ "$(id_of "$image:one")" = "$(id_of "$image:two")" ] || fault "two builds of $target have another configuration"
done

kb_in() { du -skx "$1" | cut -f1; }
mounted() { # IMAGE: sets $root
	c=$(b from --pull-never "$1")
	containers="$containers $c"
	root=$(b mount "$c")
}

mounted docker.io/library/debian:12-slim
base_kb=$(kb_in "$root")
for target in compute-pcrs operator; do
	image=localhost/check-image-$target:one
	name=tec-$target
	mounted "$image"
	more_kb=$(($(kb_in "$root") - base_kb))
	[ "$more_kb" -le "$limit_kb" ] || fault "$name is $more_kb KiB on top of its base, more than $limit_kb"
	echo "check-image: $name is $more_kb KiB on top of its base"
	for none in usr/lib/udev/hwdb.d usr/lib/udev/hwdb.bin etc/udev src build out usr/bin/gcc; do
		[ ! -e "$root/$none" ] || fault "$name has /$none"
	done
	rest=$(cd "$root" && find . -xdev \( -name 'tec-test*' -o -name '*.py' -path '*tests*' -o -path '*/var/cache/?*' -o -path '*/var/log/?*' \
		-o -path '*/var/lib/apt/lists/?*' \) | head -5)
	[ -z "$rest" ] || fault "$name has $rest"
	[ "$(label "$image" version)" = "$version" ] || fault "$name: its label version is not configure.ac's $version"
	[ "$(label "$image" revision)" = r ] || fault "$name: its label revision is not the one that was given"
	for l in title licenses source base.name; do
		[ -n "$(label "$image" $l)" ] || fault "$name has no label $l"
	done
	[ "$(b inspect --type image --format '{{.OCIv1.Config.User}}' "$image")" = 65532:65532 ] || fault "$name: another user"
	program=/usr/sbin/tec-operator
	[ $target = operator ] || program=/usr/bin/compute-pcrs
	chroot --userspec=65532:65532 "$root" $program --version | grep -q -F "$version" || fault "$name does not run"
	# By which a standalone operator computes images.
	[ $target != operator ] || chroot --userspec=65532:65532 "$root" /usr/bin/tec-compute-pcrs --version | grep -q -F "$version" ||
		fault "$name: its tec-compute-pcrs does not run"
	sbom=$root/usr/share/sbom/$name.spdx
	[ "$(sed -n 's/^SPDXVersion: //p' "$sbom")" = SPDX-2.3 ] || fault "$name: $sbom is no SPDX document"
	[ "$(sed -n 's/^Created: //p' "$sbom")" = "$(date -u -d @$epoch +%Y-%m-%dT%H:%M:%SZ)" ] || fault "$name: when was it?"
	dpkg-query --admindir="$root/var/lib/dpkg" --show --showformat '${db:Status-Status} ${Package} ${Version}\n' |
		sed -n 's/^installed //p' | sort >"$work/has"
	awk '/^PackageName: / { name = $2 } /^PackageVersion: / && name != "'"$name"'" { print name, $2 }' "$sbom" |
		sort >"$work/says"
	cmp -s "$work/has" "$work/says" || fault "$name: the SBOM does not list what dpkg does: $(diff "$work/has" "$work/says" | head -3)"
	[ -z "$(grep '^SPDXID: ' "$sbom" | sort | uniq -d)" ] || fault "$name: two entries with one SPDXID"
	! grep -q '^SPDXID: .*[^A-Za-z0-9. -]' "$sbom" || fault "$name: an SPDXID with other characters"
	echo "check-image: $name: $(wc -l <"$work/has") packages in the SBOM"
done
echo "check-image: both images are the same when built twice"

#!/bin/sh
# SPDX-License-Identifier: MIT
# make dist: refuses a version NEWS does not describe, then copies the folders that are data (EXTRA_DIST would take what
# was built and downloaded below them as well).
# Usage: dist-hook.sh SRCDIR DISTDIR VERSION
set -eu
srcdir=$1 distdir=$2 version=$3

# An entry: the line "VERSION (date)" or "VERSION", and at least one "- area: effect" before the next one.
awk -v version="$version" '
	/^[0-9]/ { on = $1 == version; if (on) found = 1 }
	on && /^- [a-z0-9-]+: / { entries++ }
	END { exit !(found && entries) }' "$srcdir/NEWS" || {
	echo "dist-hook: NEWS has no entries for version $version; next step: write them" >&2
	exit 1
}

case $distdir in
/*) ;;
*) distdir=$PWD/$distdir ;;
esac
cd "$srcdir"
for dir in .ci crd k8s tests/clients tests/data tests/demo tests/e2e tests/fuzz tests/bench tests/ignition tests/image tests/kubernetes tests/nodes tests/rego tests/tiers tests/tools tests/vm; do
	[ -d "$dir" ] || continue
	find "$dir" \( -name bin -o -name .cache -o -name .venv -o -name __pycache__ -o -name .pytest_cache -o -name .deps \) -prune \
		-o -type f ! -name '*.o' ! -name '*.log' ! -name '*.trs' -print
done | while IFS= read -r file; do
	[ -e "$distdir/$file" ] && continue
	mkdir -p "$distdir/${file%/*}"
	cp -p "$file" "$distdir/$file"
done

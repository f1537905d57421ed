#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that Debian has every package the Containerfile installs, its version, and that the build sees what Makefile.am
# compiles in. No container engine is needed:
# tests/image/check.sh builds.
# Usage: check-containerfile.sh [CONTAINERFILE]; exit 0 = all there, 1 = a package is missing, 77 = cannot tell here.
set -eu

file=${1:-${srcdir:-$(dirname "$0")/..}/Containerfile}
[ -r "$file" ] || { echo "check-containerfile: cannot read $file" >&2; exit 1; }

# The label of the images is the version of this tree.
root=$(dirname "$file")
version=$(sed -n 's/^AC_INIT(\[tec-operator\],\[\([^]]*\)\].*/\1/p' "$root/configure.ac")
if [ "$(sed -n 's/^ARG VERSION=//p' "$file" | sort -u)" != "$version" ]; then
	echo "check-containerfile: ARG VERSION in $file is not configure.ac's $version" >&2
	exit 1
fi

# Folders of the values of variables that Makefile.am gives to embed.sh.
embedded_folders() {
	awk '
	{ line = line $0; if (sub(/\\$/, " ", line)) next }
	line ~ /^[A-Z]+ = / { name = line; sub(/ .*/, "", name); sub(/^[A-Z]+ = /, "", line); value[name] = line }
	{ n = split(line, word, /[$][(]|[)]/) }
	line ~ /embed\.sh/ { for (i = 2; i <= n; i += 2) used[word[i]] }
	{ line = "" }
	END { for (name in used) print value[name] }' "$root/Makefile.am" | tr -s ' \t' '\n\n' | sed -n 's,/.*,,p' | sort -u
}
folders=$(embedded_folders)
[ -n "$folders" ] || { echo "check-containerfile: Makefile.am embeds nothing; is the script out of date?" >&2; exit 1; }
for folder in $folders include src; do
	grep -q -x -F "!$folder" "$root/.containerignore" || {
		echo "check-containerfile: programs are made of $folder/, which .containerignore keeps from the build" >&2
		exit 1
	}
done

# Words after `apt-get install` up to the end of that command (&&, or a line that does not continue), options dropped.
packages=$(awk '
	{ more = sub(/\\$/, "") }
	/apt-get install/ { sub(/.*apt-get install/, ""); on = 1 }
	on {
		if (sub(/&&.*/, ""))
			more = 0
		for (i = 1; i <= NF; i++)
			if ($i !~ /^-/)
				print $i
		on = more
	}' "$file" | sort -u)
[ -n "$packages" ] || { echo "check-containerfile: $file installs nothing; is the script out of date?" >&2; exit 1; }

# The names are Debian 12's; a machine without its package lists cannot tell. (libc6: in every list.)
command -v apt-cache >/dev/null 2>&1 || { echo "SKIP: no apt-cache here"; exit 77; }
apt-cache show libc6 >/dev/null 2>&1 || { echo "SKIP: apt has no package lists (apt-get update)"; exit 77; }
release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null || :)
[ "$release" = bookworm ] || { echo "SKIP: ${release:-this system} is not Debian 12"; exit 77; }

missing=
count=0
for p in $packages; do
	count=$((count + 1))
	apt-cache show "$p" >/dev/null 2>&1 || missing="$missing $p"
done
if [ -n "$missing" ]; then
	echo "check-containerfile: Debian has no package$missing; correct $file" >&2
	exit 1
fi
echo "check-containerfile: $count packages found"

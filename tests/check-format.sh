#!/bin/sh
# SPDX-License-Identifier: MIT
# Every C file is as clang-format writes it by .clang-format. Versions differ in what they write: Debian 12's counts.
# Usage: check-format.sh [TREE]. Exit 0 = all are, 1 = one is not, 77 = this machine has another clang-format or none.
set -eu

tree=${1:-${TOP_SRCDIR:-$(dirname "$0")/..}}
cd "$tree"
format=$(command -v clang-format-14 || command -v clang-format || :)
case $(${format:-false} --version 2>/dev/null) in
*"version 14."*) ;;
*)
	echo "check-format: needs clang-format 14: apt-get install clang-format-14"
	[ -z "${TEC_NO_SKIP-}" ] || exit 1
	exit 77
	;;
esac
find src include tests -name '.?*' -prune -o -name '*.[ch]' -print | LC_ALL=C sort | {
	files=0
	bad=0
	while read -r file; do
		files=$((files + 1))
		"$format" "$file" | cmp -s - "$file" && continue
		echo "$file: run clang-format -i $file"
		bad=$((bad + 1))
	done
	echo "check-format: $files files, $bad to be formatted"
	[ "$bad" -eq 0 ] && [ "$files" -gt 0 ]
}

#!/bin/sh
# SPDX-License-Identifier: MIT
# Every C file of the tree is named in Makefile.am: one that is not is missing in the archive, and its tests never run.
# Usage: check-listed.sh [TREE]. Exit 0 = all are named, 1 = one is not.
set -eu

tree=${1:-${TOP_SRCDIR:-$(dirname "$0")/..}}
cd "$tree"
find src include tests -name '.?*' -prune -o -name '*.[ch]' -print | LC_ALL=C sort | {
	files=0
	missing=0
	while read -r file; do
		files=$((files + 1))
		# Whole words: tests/net/test_http.c is not tests/net/test_httpd.c.
		grep -q -E "(^|[[:space:]=])$(printf '%s' "$file" | sed 's/[.]/[.]/g')([[:space:]]|\$)" Makefile.am && continue
		echo "$file is not in Makefile.am"
		missing=$((missing + 1))
	done
	echo "check-listed: $files files, $missing not in Makefile.am"
	[ "$missing" -eq 0 ] && [ "$files" -gt 0 ]
}

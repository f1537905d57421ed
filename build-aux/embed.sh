#!/bin/sh
# SPDX-License-Identifier: MIT
# Usage: embed.sh TABLE FILE...
# Prints C source with the given files as one table of this name, so that the programs contain the files of etc/ and crd/. A policy
# with one of the lines of `switches` is included twice: BASE.rego unchanged, and BASE-SUFFIX.rego with the line set to true.
set -eu
switches='pcr7_required:pcr7 once_per_boot:once'
name=$1
shift
n=0
table=

# Print standard input as one array.
embed() {
	printf 'static const char file_%d[] = {\n' $n
	od -An -v -tx1 | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'
	printf '0x00};\n'
}

echo '/* Made by build-aux/embed.sh; do not edit. */'
echo '#include "tec/render/etc.h"'
for f in "$@"; do
	embed <"$f"
	table="$table$(printf '\n\t{"%s", file_%d},' "${f##*/}" $n)"
	n=$((n + 1))
	base=${f##*/}
	for switch in $switches; do
		line=${switch%:*}
		grep -q "^$line := false\$" "$f" || continue
		sed "s/^$line := false\$/$line := true/" "$f" | embed
		table="$table$(printf '\n\t{"%s-%s.rego", file_%d},' "${base%.rego}" "${switch#*:}" $n)"
		n=$((n + 1))
	done
done
printf 'extern const struct render_etc_file %s[];\nconst struct render_etc_file %s[] = {%s\n\t{0, 0},\n};\n' "$name" "$name" "$table"

#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks every #include (and a few calls) in src/ and include/tec/ against tests/floors.txt.
# Usage: check-floors.sh [TREE]; check-floors.sh --selftest [TREE] plants faults in a copy and requires each to be named.
# Exit 0 = legal, 1 = at least one fault, each on a line of its own: FILE:LINE: what may not be.
set -eu

here=$(dirname "$0")

check() {
	(cd "$1" && find src include/tec -name '*.[ch]' | LC_ALL=C sort) >"$2"
	(cd "$1" && LC_ALL=C awk -v list="$2" -f - "$3") <<'AWK'
function fault(what) { printf "%s:%d: %s\n", file, line, what; faults++ }
function rule_error(what) { printf "%s:%d: %s\n", FILENAME, FNR, what; faults++ }

# "net/httpd*" as an anchored regular expression.
function glob(g) {
	gsub(/[.+?()\[\]{}^$|\\]/, "\\\\&", g)
	gsub(/\*/, ".*", g)
	return "^" g "$"
}

# Whether this file is one of the places of rule r.
function in_place(r,   i, n, w) {
	n = split(where[r], w, " ")
	for (i = 1; i <= n; i++)
		if (w[i] ~ /^[0-9.]+$/ ? w[i] == floor[folder] : path ~ glob(w[i]))
			return 1
	return 0
}

function may_include(from, to,   i, n, w) {
	if (from == to)
		return 1
	n = split(may[from], w, " ")
	for (i = 1; i <= n; i++)
		if (w[i] == to || (w[i] ~ /^[0-9.]+$/ && w[i] == floor[to]))
			return 1
	return 0
}

function check_ours(header,   to, i, n, w) {
	to = header
	sub(/^tec\//, "", to)
	if (to !~ /^[a-z0-9]+\/[a-z0-9_]+\.h$/) {
		fault("\"" header "\" is not tec/FOLDER/MODULE.h")
		return
	}
	sub(/\/.*/, "", to)
	if (!(to in floor))
		fault("folder " to " has no floor (" header ")")
	else if (!may_include(folder, to))
		fault(folder " may not include " to " (" header ")")
	for (i = 1; i <= denials; i++) {
		if (path !~ glob(denied_files[i]))
			continue
		n = split(denied[i], w, " ")
		while (n > 0)
			if (w[n--] == to)
				fault(denied_files[i] " may not include " to " (" header ")")
	}
}

function check_system(header,   r, i, n, w) {
	for (r = 1; r <= rules; r++) {
		if (type[r] != "system")
			continue
		n = split(names[r], w, " ")
		for (i = 1; i <= n; i++)
			if ((header == w[i] || (w[i] ~ /\/$/ && index(header, w[i]) == 1)) && !in_place(r))
				fault(folder " may not include <" header ">: only " where[r])
	}
}

# A header beside the file, or "../FOLDER_internal.h" of the folder that a file's own folder is part of.
function is_private(header) {
	if (header == "../" folder "_internal.h")
		return place ~ /^src\/[^\/]+\/[^\/]+$/ && ("src/" folder "/" folder "_internal.h") in exists
	return header !~ /\// && (place "/" header) in exists
}

function check_include(text,   header) {
	header = text
	sub(/^[ \t]*#[ \t]*include[ \t]*/, "", header)
	if (header ~ /^</) {
		sub(/^</, "", header)
		sub(/>.*/, "", header)
		if (header ~ /^tec\//)
			fault("<" header "> is ours: use quotes")
		check_system(header)
	} else if (header ~ /^"/) {
		sub(/^"/, "", header)
		sub(/".*/, "", header)
		if (header ~ /^tec\//)
			check_ours(header)
		else if (header == "config.h") {
			if (file !~ /\.c$/)
				fault("config.h belongs in .c files")
		} else if (public || !is_private(header))
			fault("\"" header "\" is neither tec/FOLDER/MODULE.h nor a private header of " place)
	} else
		fault("cannot read this #include")
	includes++
}

# text: one line of code without comments and strings.
function check_calls(text,   r, i, n, w) {
	for (r = 1; r <= rules; r++) {
		if (type[r] != "call" || in_place(r))
			continue
		n = split(names[r], w, " ")
		for (i = 1; i <= n; i++)
			if (text ~ ("(^|[^A-Za-z0-9_.>])" w[i] "[ \t]*\\("))
				fault(folder " may not call " w[i] "(): only " where[r])
	}
}

# Drops strings, character constants and comments; in_comment lives from line to line.
function code_of(text,   out, c, two, q) {
	if (!in_comment && text !~ /["'\/]/)
		return text
	out = ""
	while (text != "") {
		two = substr(text, 1, 2)
		if (in_comment) {
			if (two == "*/")
				in_comment = 0
			text = substr(text, two == "*/" ? 3 : 2)
		} else if (two == "/*") {
			in_comment = 1
			text = substr(text, 3)
		} else if (two == "//") {
			break
		} else {
			q = substr(two, 1, 1)
			text = substr(text, 2)
			if (q == "\"" || q == "'") {
				while (text != "" && (c = substr(text, 1, 1)) != q)
					text = substr(text, c == "\\" ? 3 : 2)
				text = substr(text, 2)
			}
			out = out q
		}
	}
	return out
}

/^[ \t]*(#|$)/ { next }
$1 == "folder" {
	if ($3 !~ /^[0-9]+(\.5)?$/)
		rule_error("folder NAME FLOOR [MAY...]")
	floor[$2] = $3 + 0
	may[$2] = ""
	for (i = 4; i <= NF; i++)
		may[$2] = may[$2] " " $i
	next
}
$1 == "deny" {
	denied_files[++denials] = $2
	for (i = 3; i <= NF; i++)
		denied[denials] = denied[denials] " " $i
	next
}
$1 == "system" || $1 == "call" {
	type[++rules] = $1
	for (i = 2; i <= NF && $i != ":"; i++)
		names[rules] = names[rules] " " $i
	for (i++; i <= NF; i++)
		where[rules] = where[rules] (where[rules] == "" ? "" : " ") $i
	if (where[rules] == "")
		rule_error($1 " NAME... : WHERE...")
	next
}
{ rule_error("unknown rule " $1) }

END {
	# The table itself: no arrow up, none to a whole own floor.
	for (f in floor) {
		n = split(may[f], w, " ")
		for (i = 1; i <= n; i++) {
			if (w[i] ~ /^[0-9.]+$/ ? w[i] >= floor[f] : (!(w[i] in floor) || floor[w[i]] > floor[f])) {
				printf "floors.txt: %s (floor %s) names %s\n", f, floor[f], w[i]
				faults++
			}
		}
	}
	while ((getline file < list) > 0)
		exists[file] = 1
	close(list)
	while ((getline file < list) > 0) {
		files++
		line = 0
		public = file ~ /^include\//
		path = file
		sub(/^src\/|^include\/tec\//, "", path)
		folder = path
		place = file
		sub(/\/[^\/]*$/, "", place)
		in_comment = 0
		if (!sub(/\/.*/, "", folder) || !(folder in floor)) {
			fault("folder " folder " has no floor")
			continue
		}
		while ((getline text < file) > 0) {
			line++
			if (!in_comment && text ~ /^[ \t]*#[ \t]*include/)
				check_include(text)
			else
				check_calls(code_of(text))
		}
		close(file)
	}
	if (!files || !includes) {
		print "check-floors: nothing to check"
		faults++
	}
	printf "check-floors: %d files, %d includes, %d faults\n", files, includes, faults
	exit faults > 0
}
AWK
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

selftest=no
if [ "${1-}" = --selftest ]; then
	selftest=yes
	shift
fi
tree=${1:-${TOP_SRCDIR:-$here/..}}
rules=$(CDPATH='' cd -- "$tree" && pwd)/tests/floors.txt

if [ $selftest = no ]; then
	check "$tree" "$work/list" "$rules"
	exit
fi

# A legal copy first, then one fault per file: each must be named, with its file, and nothing else.
mkdir -p "$work/tree/tests"
cp -R "$tree/src" "$work/tree/src"
mkdir -p "$work/tree/include"
cp -R "$tree/include/tec" "$work/tree/include/tec"
chmod -R u+w "$work/tree"
if ! check "$work/tree" "$work/list" "$rules" >"$work/out"; then
	cat "$work/out"
	echo "check-floors --selftest: the tree itself has faults; correct those first" >&2
	exit 1
fi
planted=0
plant() {	# FILE LINE-OF-CODE EXPECTED-TEXT
	mkdir -p "$work/tree/$(dirname "$1")"
	printf '/* a fault */\n%s\n' "$2" >"$work/tree/$1"
	printf '%s:2: %s\n' "$1" "$3" >>"$work/expected"
	planted=$((planted + 1))
}
# Legal: a comment and a string are not calls, and a side arrow is an arrow.
cat >"$work/tree/src/render/zz_legal.c" <<'EOF2'
#include "config.h"
#include "tec/model/cluster.h"
/* never getenv("X") here,
 * nor time(NULL) */
const char *text = "getenv(1) \" time(2)"; // sleep(3)
EOF2
plant src/base/zz_1.c '#include "tec/loop/loop.h"' 'base may not include loop (tec/loop/loop.h)'
plant src/pki/zz_2.c '#include "tec/kobj/key.h"' 'pki may not include kobj (tec/kobj/key.h)'
plant src/k8s/zz_3.c '#include "tec/model/machine.h"' 'k8s may not include model (tec/model/machine.h)'
plant include/tec/kbs/zz_4.h '#include "tec/k8s/watch.h"' 'kbs may not include k8s (tec/k8s/watch.h)'
plant src/ctl/zz_5.c '#include "tec/net/httpc.h"' 'ctl may not include net (tec/net/httpc.h)'
plant src/srv/zz_6.c '#include "tec/ctl/runner.h"' 'srv may not include ctl (tec/ctl/runner.h)'
plant src/net/tls_zz.c '#include <evhtp/evhtp.h>' 'net may not include <evhtp/evhtp.h>: only net/httpd*'
plant src/k8s/zz_8.c '	#  include <event2/event.h>' 'k8s may not include <event2/event.h>: only loop/* net/httpd*'
plant src/ctl/zz_9.c '#include <openssl/evp.h>' 'ctl may not include <openssl/evp.h>: only base/* pki/* jose/* net/*'
plant src/model/zz_10.c '#include <sys/socket.h>' 'model may not include <sys/socket.h>: only net/* oci/redirect.c'
plant src/caches/zz_18.c '#include "tec/render/trustee.h"' 'caches may not include render (tec/render/trustee.h)'
plant src/kobj/zz_11.c 'x = clock_wall_s();' 'kobj may not call clock_wall_s(): only 0 2 3 4 4.5 5 6 7'
plant src/srv/zz_12.c 'if (usleep (1))' 'srv may not call usleep(): only nowhere'
plant src/loop/zz_13.c '#include "../net/net_internal.h"' '"../net/net_internal.h" is neither tec/FOLDER/MODULE.h nor a private header of src/loop'
plant src/ctl/follow/zz_14.c '#include "../image/image_internal.h"' '"../image/image_internal.h" is neither tec/FOLDER/MODULE.h nor a private header of src/ctl/follow'
plant src/cmd/tool_zz.c '#include "tec/ctl/runner.h"' 'cmd/tool* may not include ctl (tec/ctl/runner.h)'
plant src/net/httpd_zz.c '#include <curl/curl.h>' 'net may not include <curl/curl.h>: only net/httpc*'
plant include/tec/k8s/zz_16.h '#include "config.h"' 'config.h belongs in .c files'
mkdir -p "$work/tree/src/attic"
echo '#include <stdio.h>' >"$work/tree/src/attic/zz_17.c"
echo 'src/attic/zz_17.c:0: folder attic has no floor' >>"$work/expected"
planted=$((planted + 1))

if check "$work/tree" "$work/list" "$rules" >"$work/out"; then
	echo "check-floors --selftest: accepted a tree with $planted faults" >&2
	exit 1
fi
grep -v '^check-floors: ' "$work/out" | LC_ALL=C sort >"$work/found"
LC_ALL=C sort -o "$work/expected" "$work/expected"
if ! diff "$work/expected" "$work/found"; then
	echo "check-floors --selftest: < was not named, > was named without reason" >&2
	exit 1
fi
echo "check-floors --selftest: $planted planted faults, each named"

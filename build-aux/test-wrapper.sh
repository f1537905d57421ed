#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs one test program; a sanitizer report of any forked worker fails it (Criterion alone does not see leaks).
log=$PWD/$(basename "$1").san
rm -f "$log".*
ASAN_OPTIONS="log_path=$log:detect_stack_use_after_return=1:$ASAN_OPTIONS"
UBSAN_OPTIONS="log_path=$log:print_stacktrace=1:$UBSAN_OPTIONS"
# Leaks are judged by their report, below.
LSAN_OPTIONS="exitcode=0:$LSAN_OPTIONS"
export ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS
# Criterion now and then loses a few bytes that it allocated itself; nothing else in a report may be of that kind. (A
# suppression by name would hide every leak, as Criterion calls the tests.)
is_criterions_own() {
	awk '/ERROR: /{ errors++; leaks += /LeakSanitizer/ } / leak of /{ n++ } / #1 .*libcriterion/{ own++ }
		END { exit !(errors == leaks && n > 0 && n == own) }' "$1"
}

start=$(date +%s%N)
"$@"
rc=$?
echo "took $((($(date +%s%N) - start) / 1000000)) ms"
for f in "$log".*; do
	[ -s "$f" ] || continue
	! is_criterions_own "$f" || continue
	cat "$f" >&2
	rc=1
done
exit $rc

/* SPDX-License-Identifier: MIT */
/*
 * Sets of characters: ranges that are added one by one, then sorted, joined and, when the set is
 * negated, turned round. Letters fold into the other case as they are added; of Unicode only the
 * two signs that fold into ASCII are known.
 */
#include "config.h"

#include "regex_internal.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"

void regex_set_add(struct regex_node *set, int32_t from, int32_t to)
{
	ARRAY_GROW(set->range, set->n_ranges);
	set->range[set->n_ranges++] = (struct regex_range){from, to};
}

void regex_set_add_folded(struct regex_node *set, int32_t from, int32_t to)
{
	regex_set_add(set, from, to);
	for (int32_t c = 'a'; c <= 'z'; c++) {
		int32_t upper = c - 'a' + 'A', other = c == 'k' ? 0x212a : c == 's' ? 0x17f : c;

		if (!((from <= c && c <= to) || (from <= upper && upper <= to) ||
			    (from <= other && other <= to)))
			continue;
		regex_set_add(set, c, c);
		regex_set_add(set, upper, upper);
		regex_set_add(set, other, other);
	}
}

static int by_from(const void *a, const void *b)
{
	const struct regex_range *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

void regex_set_finish(struct regex_node *set, bool negated)
{
	struct regex_range *out = NULL;
	size_t n = 0;
	int32_t from = 0;

	if (set->n_ranges)
		qsort(set->range, set->n_ranges, sizeof(*set->range), by_from);
	for (size_t i = 0; i < set->n_ranges; i++) {
		const struct regex_range *r = &set->range[i];

		if (!negated) {
			if (n && r->from <= out[n - 1].to + 1) {
				if (r->to > out[n - 1].to)
					out[n - 1].to = r->to;
				continue;
			}
			ARRAY_GROW(out, n);
			out[n++] = *r;
			continue;
		}
		if (r->from > from) {
			ARRAY_GROW(out, n);
			out[n++] = (struct regex_range){from, r->from - 1};
		}
		if (r->to >= from)
			from = r->to + 1;
	}
	if (negated && from <= REGEX_RUNE_MAX) {
		ARRAY_GROW(out, n);
		out[n++] = (struct regex_range){from, REGEX_RUNE_MAX};
	}
	free(set->range);
	set->range = out;
	set->n_ranges = n;
}

/* ---- characters and classes */

int32_t regex_rune(const char *s, size_t len, size_t *n)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t want = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	int32_t r = p[0];

	*n = 1;
	if (want == 1)
		return r;
	if (want == 0 || want > len || p[0] > 0xf4)
		return 0xfffd;
	r &= 0x7f >> want;
	for (size_t i = 1; i < want; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0xfffd;
		r = r << 6 | (p[i] & 0x3f);
	}
	*n = want;
	return r;
}

bool regex_is_word(int32_t r)
{
	return (r >= '0' && r <= '9') || (r >= 'A' && r <= 'Z') || (r >= 'a' && r <= 'z') ||
	       r == '_';
}

static const struct {
	const char *name;
	struct regex_range range[5];
	int n;
} classes[] = {
	{"d", {{'0', '9'}}, 1},
	{"w", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
	{"s", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}, 3},
	{"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, 3},
	{"alpha", {{'A', 'Z'}, {'a', 'z'}}, 2},
	{"ascii", {{0, 0x7f}}, 1},
	{"blank", {{'\t', '\t'}, {' ', ' '}}, 2},
	{"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}, 2},
	{"digit", {{'0', '9'}}, 1},
	{"graph", {{'!', '~'}}, 1},
	{"lower", {{'a', 'z'}}, 1},
	{"print", {{' ', '~'}}, 1},
	{"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, 4},
	{"space", {{'\t', '\r'}, {' ', ' '}}, 2},
	{"upper", {{'A', 'Z'}}, 1},
	{"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
	{"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, 3},
};

bool regex_set_add_class(
	struct regex_node *set, const char *name, size_t len, bool negated, bool fold)
{
	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		int32_t from = 0;

		if (strlen(classes[i].name) != len || memcmp(classes[i].name, name, len) != 0)
			continue;
		for (int j = 0; j < classes[i].n; j++) {
			const struct regex_range *r = &classes[i].range[j];

			if (negated) {
				if (r->from > from)
					regex_set_add(set, from, r->from - 1);
				from = r->to + 1;
			} else if (fold)
				regex_set_add_folded(set, r->from, r->to);
			else
				regex_set_add(set, r->from, r->to);
		}
		if (negated)
			regex_set_add(set, from, REGEX_RUNE_MAX);
		return true;
	}
	return false;
}

/* SPDX-License-Identifier: MIT */
/*
 * Between the parser of regular expressions (regex_parse.c), its sets of characters (regex_set.c) and
 * what runs them (regex.c).
 */
#ifndef SCHEMA_REGEX_INTERNAL_H
#define SCHEMA_REGEX_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"

#define REGEX_RUNE_MAX 0x10ffff

enum regex_kind {
	REGEX_EMPTY,
	REGEX_SET,
	REGEX_TEXT_BEGIN,
	REGEX_TEXT_END,
	REGEX_LINE_BEGIN,
	REGEX_LINE_END,
	REGEX_WORD,
	REGEX_NOT_WORD,
	REGEX_CAT,
	REGEX_ALT,
	REGEX_REPEAT, /* of left, min to max times; max -1: no end */
};

struct regex_range {
	int32_t from, to;
};

struct regex_node {
	enum regex_kind kind;
	struct regex_node *left, *right; /* in the same arena */
	struct regex_node *next;         /* of the arena's list */
	struct regex_range *range;       /* REGEX_SET; owned */
	size_t n_ranges;
	int min, max;
};

/* NULL with err. *arena owns every node that was made, also then. */
struct regex_node *regex_parse(
	const char *pattern, size_t len, struct regex_node **arena, struct err *err) MUST_CHECK;
void regex_arena_free(struct regex_node *arena);

/* regex_set.c: a REGEX_SET in the making. */
void regex_set_add(struct regex_node *set, int32_t from, int32_t to);
/* With the other case of letters; beyond ASCII only the two that fold into it. */
void regex_set_add_folded(struct regex_node *set, int32_t from, int32_t to);
/* "d", "alpha"; false: there is no such class. */
bool regex_set_add_class(
	struct regex_node *set, const char *name, size_t len, bool negated, bool fold);
/* Sorted, joined, and turned round when it is negated. */
void regex_set_finish(struct regex_node *set, bool negated);
/* The next code point; an invalid byte is U+FFFD, of length 1. */
int32_t regex_rune(const char *s, size_t len, size_t *n);
bool regex_is_word(int32_t r);

#endif

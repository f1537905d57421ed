/* SPDX-License-Identifier: MIT */
/*
 * A regular expression as a program of a few instructions, and all its threads followed at once
 * (Thompson, Pike): no text and no expression makes it go back. Only whether it matches is asked,
 * so there are no groups to remember and greedy or not is the same.
 */
#include "config.h"

#include "tec/schema/regex.h"

#include <string.h>

#include "regex_internal.h"
#include "tec/base/mem.h"

#define PROGRAM_MAX 20000

enum op { OP_SET, OP_SPLIT, OP_JUMP, OP_ASSERT, OP_MATCH };

struct instr {
	enum op op;
	enum regex_kind assertion;
	uint32_t x, y;                /* next; SPLIT: both */
	const struct regex_node *set; /* borrowed from the arena */
};

struct schema_regex {
	struct regex_node *arena; /* owned: the ranges are in it */
	struct instr *instr;      /* owned */
	uint32_t n;
};

/* ---- making the program: each node's code falls through at its end */

static int emit(struct schema_regex *r, struct instr i)
{
	if (r->n >= PROGRAM_MAX)
		return -1;
	ARRAY_GROW(r->instr, r->n);
	r->instr[r->n++] = i;
	return 0;
}

static int compile(struct schema_regex *r, const struct regex_node *n);

static int compile_alt(struct schema_regex *r, const struct regex_node *n)
{
	uint32_t split = r->n, jump;

	if (emit(r, (struct instr){.op = OP_SPLIT, .x = split + 1}) < 0 || compile(r, n->left) < 0)
		return -1;
	jump = r->n;
	if (emit(r, (struct instr){.op = OP_JUMP}) < 0)
		return -1;
	r->instr[split].y = r->n;
	if (compile(r, n->right) < 0)
		return -1;
	r->instr[jump].x = r->n;
	return 0;
}

static int compile_repeat(struct schema_regex *r, const struct regex_node *n)
{
	uint32_t split;

	/* One instruction at least, or repeats of nothing inside of repeats would take for ever. */
	if (emit(r, (struct instr){.op = OP_JUMP, .x = r->n + 1}) < 0)
		return -1;
	for (int i = 0; i < n->min; i++)
		if (compile(r, n->left) < 0)
			return -1;
	if (n->max < 0) {
		split = r->n;
		if (emit(r, (struct instr){.op = OP_SPLIT, .x = split + 1}) < 0 ||
			compile(r, n->left) < 0 ||
			emit(r, (struct instr){.op = OP_JUMP, .x = split}) < 0)
			return -1;
		r->instr[split].y = r->n;
		return 0;
	}
	for (int i = n->min; i < n->max; i++) {
		split = r->n;
		if (emit(r, (struct instr){.op = OP_SPLIT, .x = split + 1}) < 0 ||
			compile(r, n->left) < 0)
			return -1;
		r->instr[split].y = r->n;
	}
	return 0;
}

static int compile(struct schema_regex *r, const struct regex_node *n)
{
	switch (n->kind) {
	case REGEX_EMPTY:
		/* One that is repeated costs something too. */
		return emit(r, (struct instr){.op = OP_JUMP, .x = r->n + 1});
	case REGEX_SET:
		return emit(r, (struct instr){.op = OP_SET, .x = r->n + 1, .set = n});
	case REGEX_TEXT_BEGIN:
	case REGEX_TEXT_END:
	case REGEX_LINE_BEGIN:
	case REGEX_LINE_END:
	case REGEX_WORD:
	case REGEX_NOT_WORD:
		return emit(
			r, (struct instr){.op = OP_ASSERT, .x = r->n + 1, .assertion = n->kind});
	case REGEX_CAT:
		return compile(r, n->left) < 0 ? -1 : compile(r, n->right);
	case REGEX_ALT:
		return compile_alt(r, n);
	case REGEX_REPEAT:
		return compile_repeat(r, n);
	}
	return -1;
}

struct schema_regex *schema_regex_new(const char *pattern, size_t len, struct err *err)
{
	struct schema_regex *r = xcalloc(1, sizeof(*r));
	struct regex_node *n = regex_parse(pattern, len, &r->arena, err);

	if (n && (compile(r, n) < 0 || emit(r, (struct instr){.op = OP_MATCH}) < 0))
		err_set(err, ERR_INVALID, "error parsing regexp: expression too large");
	if (!n || err_is_set(err)) {
		schema_regex_free(r);
		return NULL;
	}
	return r;
}

void schema_regex_free(struct schema_regex *r)
{
	if (!r)
		return;
	regex_arena_free(r->arena);
	free(r->instr);
	free(r);
}

/* ---- running it */

struct threads { /* a sparse set of instructions */
	uint32_t *dense, *sparse, n;
};

struct run {
	const struct schema_regex *r;
	const char *s;
	size_t len, at;
	int32_t before, after; /* the code points around at; -1: the text's end */
	uint32_t *stack;       /* owned; every instruction is on it at most twice */
	uint64_t *budget;
	bool matched;
};

static bool holds(const struct run *run, enum regex_kind k)
{
	bool boundary = regex_is_word(run->before) != regex_is_word(run->after);

	switch (k) {
	case REGEX_TEXT_BEGIN:
		return run->before < 0;
	case REGEX_TEXT_END:
		return run->after < 0;
	case REGEX_LINE_BEGIN:
		return run->before < 0 || run->before == '\n';
	case REGEX_LINE_END:
		return run->after < 0 || run->after == '\n';
	case REGEX_WORD:
		return boundary;
	case REGEX_NOT_WORD:
		return !boundary;
	case REGEX_EMPTY:
	case REGEX_SET:
	case REGEX_CAT:
	case REGEX_ALT:
	case REGEX_REPEAT:
		break;
	}
	return false;
}

static void add_thread(struct run *run, struct threads *t, uint32_t pc)
{
	uint32_t depth = 0;

	run->stack[depth++] = pc;
	while (depth && *run->budget) {
		const struct instr *i;

		pc = run->stack[--depth];
		if (t->sparse[pc] < t->n && t->dense[t->sparse[pc]] == pc)
			continue;
		t->sparse[pc] = t->n;
		t->dense[t->n++] = pc;
		--*run->budget;
		i = &run->r->instr[pc];
		if (i->op == OP_MATCH)
			run->matched = true;
		if (i->op == OP_SPLIT)
			run->stack[depth++] = i->y;
		if (i->op == OP_SPLIT || i->op == OP_JUMP ||
			(i->op == OP_ASSERT && holds(run, i->assertion)))
			run->stack[depth++] = i->x;
	}
}

static bool in_set(const struct regex_node *set, int32_t c)
{
	size_t from = 0, to = set->n_ranges;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (c < set->range[mid].from)
			to = mid;
		else if (c > set->range[mid].to)
			from = mid + 1;
		else
			return true;
	}
	return false;
}

/* One code point further: current threads that take it go to next. */
static void step(struct run *run, struct threads *now, struct threads *next, size_t n)
{
	int32_t c = run->after;
	size_t ignored;

	run->before = c;
	run->at += n;
	run->after = run->at < run->len ? regex_rune(run->s + run->at, run->len - run->at, &ignored)
					: -1;
	next->n = 0;
	for (uint32_t i = 0; i < now->n && !run->matched && *run->budget; i++) {
		const struct instr *in = &run->r->instr[now->dense[i]];

		if (in->op == OP_SET && in_set(in->set, c))
			add_thread(run, next, in->x);
	}
	if (!run->matched)
		add_thread(run, next, 0); /* a match may begin anywhere */
}

bool schema_regex_match(const struct schema_regex *r, const char *s, size_t len, uint64_t *budget)
{
	uint32_t *memory = xcalloc((size_t)r->n * 6 + 2, sizeof(*memory));
	struct threads a = {memory, memory + r->n, 0},
		       b = {memory + 2 * (size_t)r->n, memory + 3 * (size_t)r->n, 0};
	struct run run = {.r = r,
		.s = s,
		.len = len,
		.before = -1,
		.after = -1,
		.stack = memory + 4 * (size_t)r->n,
		.budget = budget};
	struct threads *now = &a, *next = &b, *swap;
	size_t n = 1;

	if (len)
		run.after = regex_rune(s, len, &n);
	add_thread(&run, now, 0);
	while (!run.matched && run.at < len && *budget) {
		regex_rune(s + run.at, len - run.at, &n);
		step(&run, now, next, n);
		swap = now;
		now = next;
		next = swap;
	}
	free(memory);
	return run.matched && *budget;
}

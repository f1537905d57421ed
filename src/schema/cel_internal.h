/* SPDX-License-Identifier: MIT */
/*
 * The words of a rule (cel_lex.c), and its tree, between its parser (cel.c), its checker (cel_check.c)
 * and cel_eval.c.
 */
#ifndef SCHEMA_CEL_INTERNAL_H
#define SCHEMA_CEL_INTERNAL_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "schema_internal.h"
#include "tec/base/str.h"

enum cel_kind {
	CEL_LITERAL, /* json: null, bool, int, double, string */
	CEL_LIST,
	CEL_SELF,
	CEL_OLD,
	CEL_SELECT, /* arg[0].name */
	CEL_INDEX,  /* arg[0][arg[1]] */
	CEL_HAS,    /* arg[0] is a CEL_SELECT */
	CEL_SIZE,
	CEL_MATCHES,
	CEL_NOT,
	CEL_NEGATE,
	CEL_EQ,
	CEL_NE,
	CEL_LT,
	CEL_LE,
	CEL_GT,
	CEL_GE,
	CEL_IN,
	CEL_AND,
	CEL_OR,
	CEL_COND, /* arg[0] ? arg[1] : arg[2] */
};

struct cel_node {
	enum cel_kind kind;
	size_t at;             /* byte in the rule */
	struct cel_node **arg; /* owned array, borrowed nodes */
	size_t n_args;
	char *name;                  /* owned: of a SELECT, unescaped */
	struct json_object *literal; /* owned */
	struct schema_regex *regex;  /* owned: of a MATCHES with a literal pattern */
	struct cel_node *next;       /* of all nodes of the rule */
};

struct schema_cel {
	struct cel_node *root, *nodes;
	const struct schema_node *type; /* borrowed */
	bool uses_old;
};

enum cel_token { CEL_T_END, CEL_T_IDENT, CEL_T_INT, CEL_T_DOUBLE, CEL_T_STRING, CEL_T_OP };

struct cel_lexer {
	const char *rule, *p; /* borrowed; what is read next */
	struct err *err;
	/* The token that is next. */
	enum cel_token token;
	size_t at;
	char op[3];                 /* CEL_T_OP */
	struct strbuf text;         /* owned; CEL_T_IDENT, CEL_T_STRING */
	struct json_object *number; /* owned; CEL_T_INT, CEL_T_DOUBLE */
};

/* On to the next token; -1 with err. */
int cel_lex_next(struct cel_lexer *p) MUST_CHECK;

/* At a byte of the rule: "ERROR: <input>:1:5: what". Returns -1. */
int cel_fault(const char *rule, size_t at, struct err *err, const char *what);
/* Fields that the schema does not name, and a rule that is not a condition. */
int cel_check(const struct schema_cel *c, const char *rule, struct err *err) MUST_CHECK;

#endif

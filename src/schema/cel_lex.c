/* SPDX-License-Identifier: MIT */
/*
 * The words of a rule, one at a time, straight from its text: cel_lex_next() leaves the token in the
 * lexer. Bytes literals, unsigned numbers and what no token begins with are refused with the place.
 */
#include "config.h"

#include "cel_internal.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

static int hex_digits(struct cel_lexer *p, int n, uint32_t *out)
{
	*out = 0;
	for (int i = 0; i < n; i++, p->p++) {
		int c = (unsigned char)*p->p;

		if (!isxdigit(c))
			return -1;
		*out = *out * 16 + (uint32_t)(isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return 0;
}

static void add_rune(struct strbuf *b, uint32_t r)
{
	if (r < 0x80) {
		strbuf_addc(b, (char)r);
		return;
	}
	if (r >= 0x10000) {
		strbuf_addc(b, (char)(0xf0 | r >> 18));
		strbuf_addc(b, (char)(0x80 | (r >> 12 & 0x3f)));
	} else if (r >= 0x800)
		strbuf_addc(b, (char)(0xe0 | r >> 12));
	else
		strbuf_addc(b, (char)(0xc0 | r >> 6));
	if (r >= 0x800)
		strbuf_addc(b, (char)(0x80 | (r >> 6 & 0x3f)));
	strbuf_addc(b, (char)(0x80 | (r & 0x3f)));
}

static int lex_escape(struct cel_lexer *p)
{
	static const char from[] = "abfnrtv\\'\"`?", to[] = "\a\b\f\n\r\t\v\\'\"`?";
	const char *at;
	char c = *p->p;
	uint32_t r = 0;
	int n = c == 'x' || c == 'X' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;

	if (c && (at = strchr(from, c)) && !n) {
		p->p++;
		strbuf_addc(&p->text, to[at - from]);
		return 0;
	}
	if (n) {
		p->p++;
		if (hex_digits(p, n, &r) < 0)
			return -1;
	} else {
		for (int i = 0; i < 3; i++, p->p++) {
			if (*p->p < '0' || *p->p > (i ? '7' : '3'))
				return -1;
			r = r * 8 + (uint32_t)(*p->p - '0');
		}
	}
	if (r == 0 || r > 0x10ffff || (r >= 0xd800 && r < 0xe000))
		return -1;
	add_rune(&p->text, r);
	return 0;
}

/* p->p at the quote. */
static int lex_string(struct cel_lexer *p, bool raw)
{
	char quote[4] = {*p->p, *p->p, *p->p, '\0'};
	bool triple = strncmp(p->p, quote, 3) == 0;
	size_t n = triple ? 3 : 1;

	quote[n] = '\0';
	strbuf_reset(&p->text);
	for (p->p += n; *p->p && strncmp(p->p, quote, n) != 0;) {
		if (!triple && (*p->p == '\n' || *p->p == '\r'))
			break;
		if (*p->p != '\\' || raw) {
			strbuf_addc(&p->text, *p->p++);
			continue;
		}
		p->p++;
		if (lex_escape(p) < 0)
			return cel_fault(p->rule, (size_t)(p->p - p->rule), p->err,
				"Syntax error: unknown escape in a string");
	}
	if (strncmp(p->p, quote, n) != 0)
		return cel_fault(p->rule, p->at, p->err, "Syntax error: the string does not end");
	p->p += n;
	p->token = CEL_T_STRING;
	return 0;
}

static int lex_number(struct cel_lexer *p)
{
	char *end;
	bool hex = p->p[0] == '0' && (p->p[1] | 0x20) == 'x';
	size_t digits =
		hex ? 2 + strspn(p->p + 2, "0123456789abcdefABCDEF") : strspn(p->p, "0123456789");
	const char *rest = p->p + digits;
	bool dbl = !hex &&
		   ((*rest == '.' && isdigit((unsigned char)rest[1])) || (*rest | 0x20) == 'e');

	errno = 0;
	json_object_put(p->number);
	p->number = NULL;
	if (dbl) {
		double d = strtod(p->p, &end);

		if (!isfinite(d))
			return cel_fault(p->rule, p->at, p->err, "invalid double literal");
		p->number = json_object_new_double(d);
	} else {
		unsigned long long u = strtoull(p->p, &end, hex ? 16 : 10);

		if (errno || (hex && digits == 2))
			return cel_fault(p->rule, p->at, p->err, "invalid int literal");
		if ((*end | 0x20) == 'u')
			return cel_fault(
				p->rule, p->at, p->err, "unsigned numbers are not supported here");
		/* 2^63 only behind a minus; the parser sees to that. */
		if (u > (unsigned long long)INT64_MAX + 1)
			return cel_fault(p->rule, p->at, p->err, "invalid int literal");
		p->number = json_object_new_uint64(u);
	}
	if (isalpha((unsigned char)*end) || *end == '_')
		return cel_fault(p->rule, p->at, p->err, "Syntax error: invalid number");
	p->p = end;
	p->token = dbl ? CEL_T_DOUBLE : CEL_T_INT;
	return 0;
}

static void skip_blanks(struct cel_lexer *p)
{
	for (;;) {
		p->p += strspn(p->p, " \t\r\n\f");
		if (p->p[0] != '/' || p->p[1] != '/')
			return;
		p->p += strcspn(p->p, "\n");
	}
}

static int lex_op(struct cel_lexer *p)
{
	static const char *const two[] = {"==", "!=", "<=", ">=", "&&", "||"};

	p->token = CEL_T_OP;
	for (size_t i = 0; i < ARRAY_LEN(two); i++)
		if (strncmp(p->p, two[i], 2) == 0) {
			memcpy(p->op, two[i], 3);
			p->p += 2;
			return 0;
		}
	if (!strchr("<>!?:()[].,-+*/%{}", *p->p))
		return cel_fault(p->rule, p->at, p->err, "Syntax error: token recognition error");
	p->op[0] = *p->p++;
	p->op[1] = '\0';
	return 0;
}

int cel_lex_next(struct cel_lexer *p)
{
	size_t n;

	skip_blanks(p);
	p->at = (size_t)(p->p - p->rule);
	p->op[0] = '\0';
	if (!*p->p) {
		p->token = CEL_T_END;
		return 0;
	}
	if (strchr("'\"", *p->p))
		return lex_string(p, false);
	if ((*p->p == 'r' || *p->p == 'R') && p->p[1] && strchr("'\"", p->p[1])) {
		p->p++;
		return lex_string(p, true);
	}
	if ((*p->p == 'b' || *p->p == 'B') && p->p[1] && strchr("'\"", p->p[1]))
		return cel_fault(p->rule, p->at, p->err, "bytes are not supported here");
	if (isdigit((unsigned char)*p->p) || (*p->p == '.' && isdigit((unsigned char)p->p[1])))
		return lex_number(p);
	if (!isalpha((unsigned char)*p->p) && *p->p != '_')
		return lex_op(p);
	for (n = 1; isalnum((unsigned char)p->p[n]) || p->p[n] == '_'; n++)
		;
	strbuf_reset(&p->text);
	strbuf_add(&p->text, p->p, n);
	p->p += n;
	p->token = CEL_T_IDENT;
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/utf8.h"

Test(base_utf8, is_strict)
{
	static const struct {
		const char *s;
		bool ok;
	} t[] = {
		{"", true},
		{"plain", true},
		{"\xc2\x80", true},
		{"\xdf\xbf", true},
		{"\xe0\xa0\x80", true},
		{"\xed\x9f\xbf", true},
		{"\xee\x80\x80", true},
		{"\xf0\x90\x80\x80", true},
		{"\xf4\x8f\xbf\xbf", true},
		{"\x80", false},
		{"\xbf", false},
		{"\xc0\x80", false},         /* overlong NUL */
		{"\xc1\xbf", false},         /* overlong */
		{"\xe0\x9f\xbf", false},     /* overlong */
		{"\xed\xa0\x80", false},     /* surrogate */
		{"\xed\xbf\xbf", false},     /* surrogate */
		{"\xf0\x8f\xbf\xbf", false}, /* overlong */
		{"\xf4\x90\x80\x80", false}, /* above U+10FFFF */
		{"\xf5\x80\x80\x80", false},
		{"\xff", false},
		{"\xc2", false}, /* cut */
		{"\xe2\x82", false},
		{"\xf0\x9f\x98", false},
		{"a\xc2z", false},
		{"\xe2\x28\xa1", false},
		{"\xe2\x82\x28", false},
		{"\xf0\x9f\x28\x80", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_expect_eq(utf8_valid(t[i].s, strlen(t[i].s)), t[i].ok, "case %zu", i);
	cr_assert(utf8_valid("a\0b", 3));
	cr_assert(!utf8_valid("\xe2\x82\xac", 2)); /* the length counts, not what lies behind */
}

Test(base_utf8, is_looked_at_wherever_it_stands_in_ascii)
{
	char text[24];

	for (size_t at = 0; at + 2 <= sizeof(text); at++) {
		memset(text, 'a', sizeof(text));
		memcpy(text + at, "\xc3\xa9", 2);
		cr_assert(utf8_valid(text, sizeof(text)));
		cr_assert_not(utf8_valid(text, at + 1), "cut at %zu", at);
		text[at + 1] = 'a';
		cr_assert_not(utf8_valid(text, sizeof(text)), "%zu", at);
	}
}

Test(base_utf8, what_a_terminal_acts_on)
{
	static const struct {
		uint32_t from, to;
		bool is;
	} t[] = {
		{0x00, 0x1f, true},         /* C0 */
		{0x20, 0x7e, false},        /* ASCII */
		{0x7f, 0x9f, true},         /* DEL, C1 */
		{0xa0, 0xac, false},        /* */
		{0xad, 0xad, true},         /* soft hyphen */
		{0xae, 0x61b, false},       /* Latin to Hebrew */
		{0x61c, 0x61c, true},       /* Arabic letter mark */
		{0x61d, 0x180d, false},     /* */
		{0x180e, 0x180e, true},     /* Mongolian vowel separator */
		{0x180f, 0x200a, false},    /* and all other scripts */
		{0x200b, 0x200f, true},     /* no width; left-to-right, right-to-left mark */
		{0x2010, 0x2027, false},    /* dashes, quotation marks */
		{0x2028, 0x202e, true},     /* line ends; embeddings and overrides */
		{0x202f, 0x205f, false},    /* */
		{0x2060, 0x206f, true},     /* no width; isolates */
		{0x2070, 0xfefe, false},    /* */
		{0xfeff, 0xfeff, true},     /* byte order mark */
		{0xff00, 0xfff8, false},    /* */
		{0xfff9, 0xfffb, true},     /* interlinear annotation */
		{0xfffc, 0xdffff, false},   /* */
		{0xe0000, 0xe007f, true},   /* tags: invisible ASCII */
		{0xe0080, 0x10ffff, false}, /* */
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		for (uint32_t c = t[i].from; c <= t[i].to; c++)
			cr_assert_eq(utf8_is_control(c), t[i].is, "U+%04x", (unsigned)c);
}

Test(base_utf8, text_of_others_is_escaped)
{
	static const char *const t[][2] = {
		{"", ""},
		{"a\tb\nc", "a\tb\nc"},
		{"\x1b[2J", "\\u001b[2J"},
		{"\xc2\x9b"
		 "2J",
			"\\u009b2J"},
		{"\xd8\x9c", "\\u061c"},
		{"a\xc2\xad", "a\\u00ad"},
		{"\xf3\xa0\x81\x81", "\\udb40\\udc41"}, /* U+E0041 */
		{"\xe2\x80\x8e\xe2\x80\xae", "\\u200e\\u202e"},
		{"\x9b"
		 "2J",
			"\\ufffd2J"}, /* CSI of a terminal of eight bits */
		{"\xc0\x9b", "\\ufffd\\ufffd"},
		{"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"}, /* half of a pair */
		{"\xf0\x9f\x98", "\\ufffd\\ufffd\\ufffd"},
		{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_strbuf struct strbuf out = STRBUF_INIT;

		utf8_escape(&out, t[i][0], strlen(t[i][0]));
		cr_assert_str_eq(strbuf_str(&out), t[i][1], "row %zu", i);
	}
}

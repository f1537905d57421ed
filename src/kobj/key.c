/* SPDX-License-Identifier: MIT */
/*
 * The two RFC 1123 forms as apimachinery validates them: a label is [a-z0-9]([-a-z0-9]*[a-z0-9])?,
 * a subdomain is labels joined by dots. Only the whole subdomain has a length limit, not each label.
 */
#include "config.h"

#include "tec/kobj/key.h"

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Check the characters of one label. Upper case is refused, as Kubernetes does, although DNS
 * ignores case. */
static bool label_shape(const char *s, size_t len)
{
	if (len == 0 || !is_alnum(s[0]) || !is_alnum(s[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(s[i]) && s[i] != '-')
			return false;
	return true;
}

bool kobj_label_valid(const char *s, size_t len)
{
	return s && len <= 63 && label_shape(s, len);
}

/* The loop runs once past the end, so that the last label is checked like the others. */
bool kobj_name_valid(const char *s, size_t len)
{
	size_t start = 0;

	if (!s || len == 0 || len > KOBJ_NAME_MAX)
		return false;
	for (size_t i = 0; i <= len; i++) {
		if (i < len && s[i] != '.')
			continue;
		if (!label_shape(s + start, i - start))
			return false;
		start = i + 1;
	}
	return true;
}

/* SPDX-License-Identifier: MIT */
/* The list is one copy of the option's text, cut at the commas; the items point into it. */
#include "config.h"

#include "registries.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/oci/registry.h"

/* Parsed only to check it. */
static int check_mirror(const char *text, struct err *err)
{
	struct oci_mirror unused;

	return oci_mirror_parse(text, &unused, err);
}

/* An item of --insecure-registry. */
static int check_host(const char *text, struct err *err)
{
	if (!oci_host_valid(text, strlen(text)))
		return err_set(err, ERR_INVALID, "%s is not HOST[:PORT]", log_esc(text));
	return 0;
}

/* Spaces around an item are allowed, empty items are not. */
int registries_read(const struct conf *c, const char *name,
	int (*check)(const char *, struct err *), struct registries_list *out, struct err *err)
{
	const char *text = conf_str(c, name);
	char *rest, *item;

	if (!text || !*text)
		return 0;
	rest = out->text = xstrdup(text);
	while ((item = strsep(&rest, ","))) {
		item += strspn(item, " ");
		item[strcspn(item, " ")] = '\0';
		if (check(item, err) < 0)
			return err_wrap(err, "option --%s", name);
		ARRAY_GROW(out->items, out->n);
		out->items[out->n++] = item;
	}
	return 0;
}

int registries_mirrors(const struct conf *c, struct registries_list *out, struct err *err)
{
	return registries_read(c, "registry-mirror", check_mirror, out, err);
}

int registries_insecure(const struct conf *c, struct registries_list *out, struct err *err)
{
	return registries_read(c, "insecure-registry", check_host, out, err);
}

void registries_fini(struct registries_list *l)
{
	free(l->text);
	free(l->items);
}

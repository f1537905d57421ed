/* SPDX-License-Identifier: MIT */
/* Options about registries, which several programs have. */
#ifndef TEC_CMD_REGISTRIES_H
#define TEC_CMD_REGISTRIES_H

#include "tec/base/conf.h"

/* As GOARCH calls it: what an image's index is searched for. */
#if defined(__x86_64__)
#define REGISTRIES_ARCH "amd64"
#elif defined(__aarch64__)
#define REGISTRIES_ARCH "arm64"
#elif defined(__s390x__)
#define REGISTRIES_ARCH "s390x"
#else
#error "name this architecture as GOARCH does"
#endif

/* The texts between commas; owned. */
struct registries_list {
	char *text; /* of which items are parts */
	const char **items;
	size_t n;
};
/* --registry-mirror and --insecure-registry. */
int registries_mirrors(
	const struct conf *c, struct registries_list *out, struct err *err) MUST_CHECK;
int registries_insecure(
	const struct conf *c, struct registries_list *out, struct err *err) MUST_CHECK;
/* The items of any option that is such a list; check says what is wrong with one. */
int registries_read(const struct conf *c, const char *name,
	int (*check)(const char *item, struct err *err), struct registries_list *out,
	struct err *err) MUST_CHECK;
void registries_fini(struct registries_list *l);

#endif

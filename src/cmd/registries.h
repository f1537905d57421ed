/* SPDX-License-Identifier: MIT */
/* Options about registries, shared by several programs. */
#ifndef TEC_CMD_REGISTRIES_H
#define TEC_CMD_REGISTRIES_H

#include "tec/base/conf.h"

/* The name of this architecture in GOARCH, by which image indexes are searched. */
#if defined(__x86_64__)
#define REGISTRIES_ARCH "amd64"
#elif defined(__aarch64__)
#define REGISTRIES_ARCH "arm64"
#elif defined(__s390x__)
#define REGISTRIES_ARCH "s390x"
#else
#error "name this architecture as GOARCH does"
#endif

/* The items of a comma-separated option; owned. */
struct registries_list {
	char *text; /* the copy that items point into */
	const char **items;
	size_t n;
};
/* --registry-mirror and --insecure-registry. */
int registries_mirrors(
	const struct conf *c, struct registries_list *out, struct err *err) MUST_CHECK;
int registries_insecure(
	const struct conf *c, struct registries_list *out, struct err *err) MUST_CHECK;
/* Splits any such option; check sets *err if an item is invalid. */
int registries_read(const struct conf *c, const char *name,
	int (*check)(const char *item, struct err *err), struct registries_list *out,
	struct err *err) MUST_CHECK;
void registries_fini(struct registries_list *l);

#endif

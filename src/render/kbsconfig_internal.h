/* SPDX-License-Identifier: MIT */
/* Between kbsconfig.c (objects), kbsconfig_check.c (what is missing) and kbsconfig_mounts.c. */
#ifndef TEC_RENDER_KBSCONFIG_INTERNAL_H
#define TEC_RENDER_KBSCONFIG_INTERNAL_H

#include "render_internal.h"

#include "tec/render/kbsconfig.h"

#define KBSCONFIG_STORAGE "/opt/confidential-containers/storage"

/* NULL: not given, or there is none. */
static inline const struct model_input *kbsconfig_find(
	const struct render_kbsconfig_source *from, bool secret, const char *name)
{
	return name ? model_input(from->find(from->arg, secret, name)) : NULL;
}
const struct model_input *kbsconfig_input(const struct model_kbsconfig *c,
	const struct render_kbsconfig_source *from, enum model_kbsconfig_input i);
/* Both of a pair are given; else they do not count. */
bool kbsconfig_uses(const struct model_kbsconfig *c, enum model_kbsconfig_input i);
/* The key in which the file of this input is, of those that it may have; NULL: in none. */
const char *kbsconfig_key(const struct model_input *in, const struct model_kbsfile *f, bool legacy,
	enum model_kbsconfig_input i);
/* The next line of lines, cut at a tab; *rest is behind the tab. The caller frees. NULL: none. */
char *kbsconfig_line(const char **at, char **rest);
/* Directory below /etc of a Secret, "auth-secret"; NULL: it has none. */
const char *kbsconfig_etc_dir(enum model_kbsconfig_input i);

/* Adds volumes and mounts. kbs, as, rvps: containers; the same where there is only one. */
struct kbsconfig_pod {
	const struct model_kbsconfig *c;
	const struct render_kbsconfig_source *from;
	const struct model_kbsfile *file;
	bool legacy;
	struct json_object *volumes, *kbs, *as, *rvps; /* borrowed */
};
void kbsconfig_mounts(const struct kbsconfig_pod *p);

/* False: there is to be a guard and cannot; why says what to do. */
bool kbsconfig_guard_fits(const struct model_kbsconfig *c,
	const struct render_kbsconfig_source *from, const struct model_kbsfile *f, bool legacy,
	struct strbuf *why);
void kbsconfig_add_guard(
	const struct kbsconfig_pod *p, struct json_object *containers, const char *image);

#endif

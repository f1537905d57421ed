/* SPDX-License-Identifier: MIT */
/* Shared by kbsconfig.c (objects), kbsconfig_check.c (validation), kbsconfig_guard.c and
 * kbsconfig_mounts.c. */
#ifndef TEC_RENDER_KBSCONFIG_INTERNAL_H
#define TEC_RENDER_KBSCONFIG_INTERNAL_H

#include "render_internal.h"

#include "tec/render/kbsconfig.h"

#define KBSCONFIG_STORAGE "/opt/confidential-containers/storage"

/* The object of this name; NULL: name is NULL or the object does not exist. */
static inline const struct model_input *kbsconfig_find(
	const struct render_kbsconfig_source *from, bool secret, const char *name)
{
	return name ? model_input(from->find(from->arg, secret, name)) : NULL;
}
const struct model_input *kbsconfig_input(const struct model_kbsconfig *c,
	const struct render_kbsconfig_source *from, enum model_kbsconfig_input i);
/* Whether the input is given. Keys and certificates count only in pairs. */
bool kbsconfig_uses(const struct model_kbsconfig *c, enum model_kbsconfig_input i);
/* The key of `in` that has this input's file, out of the accepted ones; NULL: none. */
const char *kbsconfig_key(const struct model_input *in, const struct model_kbsfile *f, bool legacy,
	enum model_kbsconfig_input i);
/* The next line of a list, cut at a tab; *rest is the text after the tab. The caller frees.
 * NULL: the end. */
char *kbsconfig_line(const char **at, char **rest);
/* The directory below /etc for a Secret ("auth-secret"); NULL: none. */
const char *kbsconfig_etc_dir(enum model_kbsconfig_input i);

/* The Pod being rendered. kbs, as, rvps: its containers; equal pointers if there is only one. */
struct kbsconfig_pod {
	const struct model_kbsconfig *c;
	const struct render_kbsconfig_source *from;
	const struct model_kbsfile *file;
	bool legacy;
	struct json_object *volumes, *kbs, *as, *rvps; /* borrowed */
};
void kbsconfig_mounts(const struct kbsconfig_pod *p);

/* False: the guard is requested but cannot work; why explains what to do. */
bool kbsconfig_guard_fits(const struct model_kbsconfig *c,
	const struct render_kbsconfig_source *from, const struct model_kbsfile *f, bool legacy,
	struct strbuf *why);
void kbsconfig_add_guard(
	const struct kbsconfig_pod *p, struct json_object *containers, const char *image);

#endif

/* SPDX-License-Identifier: MIT */
/* What is remembered of an image object besides the caches: attempts and their results. There
 * are a few dozen images at most, so a list is enough. */
#include "config.h"

#include "image_internal.h"

#include "tec/base/mem.h"

void image_info_drop(struct ctl_image *c, const char *name)
{
	for (struct image_info **pp = &c->infos, *i; (i = *pp); pp = &i->next) {
		if (!str_eq(i->name, name))
			continue;
		*pp = i->next;
		model_pcrs_free(i->kept);
		image_child_free(steal_ptr(&i->child));
		free(i->name);
		free(i->uid);
		free(i);
		return;
	}
}

/* Start over: the next look that misses something begins with the first attempt. */
void image_info_rest(const struct ctl_image *c, struct image_info *i)
{
	i->label = c->kind.env->image_label ? CTL_IMAGE_LABEL_ASK : CTL_IMAGE_LABEL_NONE;
	i->tries = i->attempts = 0;
	image_child_free(steal_ptr(&i->child));
	i->nonce[0] = i->note[0] = i->problem[0] = i->result_why[0] = i->unmounted[0] = '\0';
}

/* Values that are written already stay in force; they are in the ConfigMap. */
void image_info_stop(const struct ctl_image *c, struct image_info *i, bool handed_in)
{
	image_info_rest(c, i);
	if (!i->to_write || handed_in)
		return;
	model_pcrs_free(steal_ptr(&i->kept));
	i->to_write = false;
}

/* The UID must match, too: a new object of the same name starts with no memory. */
struct image_info *image_info_find(const struct ctl_image *c, const struct kobj *o)
{
	struct image_info *i = c->infos;

	while (i && !(str_eq(i->name, o->name) && str_eq(i->uid, o->uid)))
		i = i->next;
	return i;
}

/* An entry of a former object with the same name is dropped, with its attempts. */
struct image_info *image_info_get(struct ctl_image *c, const struct kobj *o)
{
	struct image_info *i = image_info_find(c, o);

	if (i)
		return i;
	image_info_drop(c, o->name);
	i = xcalloc(1, sizeof(*i));
	i->name = xstrdup(o->name);
	i->uid = xstrdup(o->uid);
	image_info_rest(c, i);
	i->next = c->infos;
	c->infos = i;
	return i;
}

/* ---- the text of image-pcrs */

/* After any failure: the text may be outdated. */
void image_info_forget_pcrs(struct ctl_image *c)
{
	free(steal_ptr(&c->pcrs_rv));
	free(steal_ptr(&c->pcrs_text));
}

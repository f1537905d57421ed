/* SPDX-License-Identifier: MIT */
/* A holder for tests: an object whose value is a text of its own. */
#ifndef TESTS_KBS_THING_H
#define TESTS_KBS_THING_H

#include <string.h>

#include "tec/base/secret.h"
#include "tec/kobj/meta.h"

struct thing {
	struct kobj obj;
	const char *value;
};

static inline struct kobj *thing_new(const char *name, const char *value)
{
	struct kobj_pack p = KOBJ_PACK_INIT;
	struct thing t = {0};

	kobj_pack_str(&p, offsetof(struct kobj, name), name);
	kobj_pack_str(&p, offsetof(struct kobj, uid), name);
	kobj_pack_str(&p, offsetof(struct thing, value), value);
	return kobj_pack_finish(&p, &t, sizeof(t));
}

static inline struct secret *thing_render(const struct kobj *o)
{
	const char *v = ((const struct thing *)o)->value;

	return secret_new_copy(v, strlen(v));
}

#endif

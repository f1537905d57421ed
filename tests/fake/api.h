/* SPDX-License-Identifier: MIT */
/* Private to tests/fake: what transport.c and api.c share of the in-memory API. */
#ifndef TEC_TESTS_FAKE_API_H
#define TEC_TESTS_FAKE_API_H

#include "fake/transport.h"
#include "tec/store/objects.h"

struct fake_api {
	struct store_objects *objects;
	struct k8s_transport *inner;       /* to them */
	struct fake_transport *transports; /* that use it; borrowed */
	bool held;
	const struct kobj_gvk *hidden[8];
	size_t n_hidden;
	struct fake_seen *seen; /* what fake_api_get() gave out; owned */
	size_t n_seen;
};

bool fake_api_hides(const struct fake_api *api, const char *path);
/* transport.c: gives the watches what was held back. */
void fake_transport_release(struct fake_api *api);

#endif

/* SPDX-License-Identifier: MIT */
/* The objects of a store on disk, opened and closed as often as a test likes. */
#ifndef TEC_TESTS_STORE_STORE_OBJECTS_H
#define TEC_TESTS_STORE_STORE_OBJECTS_H

#include "store/store_dir.h"
#include "apireq/things.h"

static struct store_objects *s;

static inline void open_store(void)
{
	struct err err = ERR_INIT;
	struct store_db *db = store_open(NULL, &err);

	cr_assert_not_null(db, "%s", err.text);
	s = store_objects_new(db, &things, NULL);
}

static inline void close_store(void)
{
	store_objects_free(s);
	s = NULL;
}

static inline void store_objects_down(void)
{
	close_store();
	store_dir_down();
}

static inline void commit(void)
{
	struct err err = ERR_INIT;

	cr_assert_eq(store_objects_commit(s, &err), 0, "%s", err.text);
}

static inline void put(const struct store_key *k, const char *text)
{
	json_object_put(store_objects_put(s, k, json_of(text)));
}

#endif

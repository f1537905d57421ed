/* SPDX-License-Identifier: MIT */
/* The objects of a store on disk, opened and closed as often as a test likes. */
#ifndef TEC_TESTS_APISTORE_STORE_OBJECTS_H
#define TEC_TESTS_APISTORE_STORE_OBJECTS_H

#include "apistore/store_dir.h"
#include "apistore/things.h"

static struct apistore_objects *s;

static inline void open_store(void)
{
	struct err err = ERR_INIT;
	struct apistore_db *db = store_open(NULL, &err);

	cr_assert_not_null(db, "%s", err.text);
	s = apistore_objects_new(db, &things, NULL);
}

static inline void close_store(void)
{
	apistore_objects_free(s);
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

	cr_assert_eq(apistore_objects_commit(s, &err), 0, "%s", err.text);
}

static inline void put(const struct apistore_key *k, const char *text)
{
	json_object_put(apistore_objects_put(s, k, json_of(text)));
}

#endif

/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "apistore/things.h"
#include "tec/apistore/gc.h"
#include "tec/apistore/watch.h"

static struct apistore_objects *s;
static struct strbuf seen;
static unsigned ends;

static void on_line(void *arg, const char *line, size_t len)
{
	cleanup_json struct json_object *o = json_of(line);

	cr_expect_eq(line[len - 1], '\n');
	strbuf_addf(&seen, "%s %s%s;", json_get_str(o, "type"),
		json_get_str(o, "object/metadata/name") ? json_get_str(o, "object/metadata/name")
							: "",
		json_get_str(o, "object/reason") ? json_get_str(o, "object/reason") : "");
}

static void on_end(void *arg)
{
	ends++;
}

static struct apistore_watch *watch(const char *path, uint64_t rv)
{
	static const struct apistore_watch_ops ops = {on_line, on_end};
	struct apistore_target t;
	struct err err = ERR_INIT;

	cr_assert_eq(apistore_target_parse(path, &t, &err), 0);
	return apistore_watch_new(s, &t, rv, &ops, NULL);
}

static void expect_seen(const char *text)
{
	cr_expect_str_eq(strbuf_str(&seen), text);
	strbuf_reset(&seen);
	if (seen.data)
		seen.data[0] = '\0';
}

static void put(const char *collection, const char *name, const char *text)
{
	apistore_objects_put(s, collection, name, json_of(text));
}

static void up(void)
{
	s = apistore_objects_new(&things);
}

static void down(void)
{
	apistore_objects_free(s);
	strbuf_fini(&seen);
}

TestSuite(apistore_watch, .init = up, .fini = down);

Test(apistore_watch, what_was_missed_comes_first_then_each_change)
{
	struct apistore_watch *w, *other;
	uint64_t rv;

	put(THINGS, "a", "{}");
	rv = apistore_objects_rv(s);
	put(THINGS, "b", "{}");
	put(SECRETS, "s", "{}");
	json_object_put(apistore_gc_delete(s, THINGS, "a"));
	w = watch(THINGS "?watch=1", rv);
	expect_seen("ADDED b;DELETED a;");
	put(THINGS, "b", "{\"spec\":1}");
	expect_seen("MODIFIED b;");
	other = watch(SECRETS "?watch=1", apistore_objects_rv(s));
	put(SECRETS, "t", "{}");
	expect_seen("ADDED t;");
	apistore_watch_free(w);
	put(THINGS, "c", "{}");
	expect_seen("");
	apistore_watch_free(other);
}

Test(apistore_watch, selectors_hold_for_changes)
{
	struct apistore_watch *w = watch(THINGS "?labelSelector=a%3D1", 0);

	put(THINGS, "x", "{\"metadata\":{\"labels\":{\"a\":\"1\"}}}");
	put(THINGS, "y", "{\"metadata\":{\"labels\":{\"a\":\"2\"}}}");
	expect_seen("ADDED x;");
	apistore_watch_free(w);
	w = watch(THINGS "?fieldSelector=metadata.name%3Dy", 0);
	expect_seen("ADDED y;");
	apistore_watch_free(w);
}

Test(apistore_watch, a_version_before_the_history_is_expired)
{
	struct apistore_watch *w, *kept;
	uint64_t rv;

	put(THINGS, "a", "{}");
	rv = apistore_objects_rv(s);
	kept = watch(THINGS, rv);
	apistore_watch_compact(s);
	put(THINGS, "b", "{}");
	expect_seen("ADDED b;");
	w = watch(THINGS, rv);
	expect_seen("ERROR Expired;");
	cr_expect_eq(ends, 1);
	apistore_watch_free(w);
	apistore_watch_free(kept);
	w = watch(THINGS, apistore_objects_rv(s) - 1);
	expect_seen("ADDED b;");
	apistore_watch_free(w);
}

Test(apistore_watch, bookmarks_for_who_asked_and_an_end_for_all)
{
	struct apistore_watch *a = watch(THINGS "?allowWatchBookmarks=true", 1000),
			      *b = watch(THINGS, 1000);

	apistore_watch_bookmark_all(s);
	expect_seen("BOOKMARK ;");
	apistore_watch_end_all(s);
	cr_expect_eq(ends, 2);
	apistore_watch_free(a);
	apistore_watch_free(b);
}

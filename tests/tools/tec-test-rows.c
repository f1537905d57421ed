/* SPDX-License-Identifier: MIT */
/*
 * tec-test-rows DIR: what the key broker of a standalone operator holds, of a copy of its directory, as
 * tec-test-kbs shows what it holds itself (/dump): {"resources": {PATH: BASE64}, "reference_values": {NAME:
 * ENTRY}, "resource_policies": {NAME: TEXT}, "attestation_policies": {NAME: TEXT}}. Not installed.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tec/store/objects.h"
#include "tec/store/rows.h"
#include "tec/store/sealing.h"
#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"

struct dump {
	struct store_objects *objects;
	const char *table;
	struct json_object *out;
};

static struct json_object *value_of(const char *table, const void *data, size_t len)
{
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
	const struct json_limits limits = {.bytes = len + 1, .depth = 64, .tokens = 1000000};
	struct err err = ERR_INIT;

	if (str_ends(table, "/reference_value"))
		return json_parse(data, len, &limits, &err);
	if (!str_ends(table, "/repository"))
		return json_object_new_string_len(data, (int)len);
	bytes_to_b64(&b64, data, len);
	return json_object_new_string(strbuf_str(&b64));
}

static void add(void *arg, const char *name)
{
	struct dump *d = arg;
	struct err err = ERR_INIT;
	void *data = NULL;
	size_t len;

	if (store_rows_get(d->objects, d->table, name, &data, &len, &err) < 0)
		DIE("%s: %s", name, err.text);
	/* Not json_add(): a name may hold a slash. */
	json_object_object_add(d->out, name, value_of(d->table, data, len));
	free(data);
}

static void dump(struct store_objects *objects)
{
	static const struct {
		const char *table, *name;
	} tables[] = {{"broker/repository", "resources"},
		{"broker/reference_value", "reference_values"}, {"broker/kbs", "resource_policies"},
		{"broker/attestation_service_policy", "attestation_policies"}};
	cleanup_json struct json_object *all = json_obj();
	cleanup_free char *text = NULL;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		struct dump d = {objects, tables[i].table, json_obj()};

		if (store_rows_list(objects, d.table, "", add, &d, &err) < 0)
			DIE("%s: %s", d.table, err.text);
		json_add(all, tables[i].name, d.out);
	}
	text = json_text(all);
	puts(text);
}

int main(int argc, char *argv[])
{
	const struct store_sealing_conf conf = {NULL, NULL};
	static const struct store_schema schema = {.kinds = NULL};
	struct store_sealing *sealing;
	struct store_db *db;
	struct store_objects *objects;
	struct err err = ERR_INIT;

	if (argc != 2) {
		fprintf(stderr, "usage: tec-test-rows DIR\n");
		return 2;
	}
	log_setup(LOG_ERROR, LOG_TEXT);
	sealing = store_sealing_open(argv[1], &conf, STORE_SEALING_READ, &err);
	db = sealing ? store_sealing_open_db(sealing, &err) : NULL;
	if (!db) {
		fprintf(stderr, "tec-test-rows: %s\n", err.text);
		store_sealing_free(sealing);
		return 1;
	}
	objects = store_objects_new(db, &schema, NULL);
	dump(objects);
	store_objects_free(objects);
	store_sealing_free(sealing);
	metric_reset_all();
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * One object of the API server, for the extractor that the first byte chooses. It is taken or
 * refused with ERR_INVALID; what is taken has the names every cache relies on, its indexes can be
 * asked, and nothing is left when it goes. Of a Secret no string is left behind in the JSON.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/secret.h"
#include "tec/k8s/watch.h"
#include "tec/model/ak.h"
#include "tec/model/cluster.h"
#include "tec/model/configmap.h"
#include "tec/model/image.h"
#include "tec/model/job.h"
#include "tec/model/machine.h"
#include "tec/model/pod.h"
#include "tec/model/secretobj.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
	char letter;
	k8s_extract_fn extract;
	k8s_cache_index_fn index;
	unsigned n_indexes;
} kinds[] = {
	{'c', model_cluster_extract, model_cluster_index, 1},
	{'m', model_machine_extract, model_machine_index, 1},
	{'a', model_ak_extract, model_ak_index, 3},
	{'i', model_image_extract, NULL, 0},
	{'s', model_secret_extract, NULL, 0},
	{'C', model_configmap_extract, NULL, 0},
	{'J', model_job_extract, model_job_index, 1},
	{'P', model_pod_extract, model_pod_index, 1},
	{'p', model_plain_extract, NULL, 0},
};

static void ignore(enum log_level level, const char *line, void *arg)
{
}

static void assert_wiped(struct json_object *data)
{
	if (!data)
		return;
	json_object_object_foreach (data, name, value) {
		const char *s = json_object_get_string(value);
		size_t n = (size_t)json_object_get_string_len(value);

		(void)name;
		for (size_t i = 0; json_object_is_type(value, json_type_string) && i < n; i++)
			assert(s[i] == '\0');
	}
}

static void try_object(size_t k, struct json_object *o)
{
	struct err err = ERR_INIT;
	struct kobj *obj = kinds[k].extract(o, &err);

	if (kinds[k].letter == 's')
		assert_wiped(json_get_obj(o, "data"));
	if (!obj) {
		assert(err.kind == ERR_INVALID);
		return;
	}
	assert(!err_is_set(&err) && obj->refs == 1);
	assert(obj->name && *obj->name && obj->uid && *obj->uid && obj->rv && *obj->rv);
	for (unsigned i = 0; i < kinds[k].n_indexes; i++)
		(void)kinds[k].index(obj, i);
	kobj_unref(obj);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct json_object *o;
	size_t k = 0;

	log_capture(ignore, NULL);
	while (size && k < ARRAY_LEN(kinds) && kinds[k].letter != (char)data[0])
		k++;
	if (!size || k == ARRAY_LEN(kinds))
		return 0;
	o = json_parse((const char *)data + 1, size - 1, &json_limits_object, &err);
	if (o && json_object_is_type(o, json_type_object))
		try_object(k, o);
	json_object_put(o);
	assert(secret_count() == 0);
	return 0;
}

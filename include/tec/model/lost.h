/* SPDX-License-Identifier: MIT */
/*
 * Trustee servers that an administrator declared lost: an annotation of the TrustedExecutionCluster
 * with a JSON array of {"address","at","by"}. tecctl adds an entry; the operator removes it when the
 * server is in spec again and in sync. Entries without an address or with a malformed time do not
 * count. `by` is what tecctl was told, and proves nothing.
 *
 * Texts may be NULL: no annotation.
 */
#ifndef TEC_MODEL_LOST_H
#define TEC_MODEL_LOST_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#define MODEL_LOST_ANNOTATION "trusted-execution-clusters.io/lost-servers"
#define MODEL_LOST_MAX        24 /* entries that count; those after them do not */

/* ConfigMap tec-trustees: servers that the operator still waits for or writes to, an array in this
 * member. Each has "address"; and MODEL_SERVER_AWAY if spec no longer names it and it does not
 * answer. */
#define MODEL_SERVERS_CONFIGMAP "tec-trustees"
#define MODEL_SERVERS_FILE      "trustees.json"
#define MODEL_SERVER_AWAY       "away"

/* Return the entries that count, an array; the caller releases it. */
struct json_object *model_lost_list(const char *text);
/* Return the entry of this server; NULL: it is not lost. Borrowed from the list. */
struct json_object *model_lost_find(struct json_object *list, const char *address);
/* Tell whether the list has all administered ones of `servers` (spec.trusteeServers), and one at
 * least. */
bool model_lost_all(struct json_object *list, struct json_object *servers);
/* Return when the first of them was declared lost, wall clock; INT64_MAX: none is. */
int64_t model_lost_since_s(struct json_object *list);
/* Append an entry to a list. */
void model_lost_add(struct json_object *list, const char *address, int64_t at_s, const char *by);

#endif

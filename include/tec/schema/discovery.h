/* SPDX-License-Identifier: MIT */
/*
 * The discovery documents of an API with the built-in kinds and some of crd/: legacy (APIVersions,
 * APIGroupList, APIGroup, APIResourceList) and aggregated (apidiscovery.k8s.io). Pure: the caller
 * releases the results; the crds are borrowed for the call.
 */
#ifndef TEC_SCHEMA_DISCOVERY_H
#define TEC_SCHEMA_DISCOVERY_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "tec/schema/crd.h"

struct schema_served {
	struct schema_crd *const *crds;
	size_t n;
};

struct json_object *schema_discovery_versions(const char *server); /* /api; server: host:port */
struct json_object *schema_discovery_groups(const struct schema_served *s); /* /apis */
/* /apis/GROUP; NULL: not found. */
struct json_object *schema_discovery_group(const struct schema_served *s, const char *group);
/* /api/v1 and /apis/GROUP/VERSION; NULL: not found. */
struct json_object *schema_discovery_resources(
	const struct schema_served *s, const char *group, const char *version);
/* /api (core) or /apis as APIGroupDiscoveryList; version: "v2" or "v2beta1". */
struct json_object *schema_discovery_aggregated(
	const struct schema_served *s, bool core, const char *version);

/* Kind i of all, the built-in ones first; NULL: the end. */
const struct schema_kind *schema_served_at(const struct schema_served *s, size_t i);
/* Find the kind of a path, built in or of crd/; NULL: none. */
const struct schema_kind *schema_served_kind(
	const struct schema_served *s, const char *group, const char *version, const char *plural);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * status of a CustomResourceDefinition, written into the object in place with kube-apiserver's
 * conditions: NamesAccepted, Established, Terminating. now: RFC 3339. Nothing here fails; the object
 * is one that schema_crd_new() took.
 */
#ifndef TEC_SCHEMA_CRD_STATUS_H
#define TEC_SCHEMA_CRD_STATUS_H

#include <json-c/json.h>
#include <stdbool.h>

/* Gives the definition the names it asks for, unless another one of its group has them; then it
 * keeps those it had, and NamesAccepted says which name is in use. others: an array of definitions,
 * in which o itself may stand; NULL: none. */
void schema_crd_accept(struct json_object *o, struct json_object *others, const char *now);
/* A name that it asks for is another one's. */
bool schema_crd_waits(struct json_object *o);
/* It has all its names, or had them once: it is served under status.acceptedNames. */
bool schema_crd_is_served(struct json_object *o);
/* It is being deleted: its objects go first (done: they are gone). */
void schema_crd_ending(struct json_object *o, bool done, const char *now);

#endif

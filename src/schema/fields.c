/* SPDX-License-Identifier: MIT */
/*
 * Made by tests/clients (tec-test-clients protobuf-fields) from the types of Kubernetes 1.34; do not
 * edit. tests/e2e/test_clients.py compares the two.
 */
#include "config.h"

#include <stddef.h>

#include "tec/schema/fields.h"

/* clang-format off */
#define L static const struct schema_field
#define F(number, name, type) {number, name, SCHEMA_FIELD_##type, NULL}
#define M(number, name, type, of) {number, name, SCHEMA_FIELD_##type, of}
#define END {0, NULL, SCHEMA_FIELD_STRING, NULL}

L of_owner_reference[] = { F(5, "apiVersion", STRING_PTR), F(1, "kind", STRING_PTR), F(3, "name", STRING_PTR),
	F(4, "uid", STRING_PTR), F(6, "controller", BOOL_PTR), F(7, "blockOwnerDeletion", BOOL_PTR), END};
L of_managed_fields_entry[] = { F(1, "manager", STRING), F(2, "operation", STRING), F(3, "apiVersion", STRING),
	F(4, "time", TIME), F(6, "fieldsType", STRING), F(7, "fieldsV1", RAW), F(8, "subresource", STRING), END};
L of_object_meta[] = { F(1, "name", STRING), F(2, "generateName", STRING), F(3, "namespace", STRING),
	F(4, "selfLink", STRING), F(5, "uid", STRING), F(6, "resourceVersion", STRING), F(7, "generation", INT64),
	F(8, "creationTimestamp", TIME), F(9, "deletionTimestamp", TIME),
	F(10, "deletionGracePeriodSeconds", INT64_PTR), F(11, "labels", TEXT_MAP), F(12, "annotations", TEXT_MAP),
	M(13, "ownerReferences", OBJECTS, of_owner_reference), F(14, "finalizers", STRINGS),
	M(17, "managedFields", OBJECTS, of_managed_fields_entry), END};
L of_config_map[] = { M(1, "metadata", OBJECT, of_object_meta), F(4, "immutable", BOOL_PTR), F(2, "data", TEXT_MAP),
	F(3, "binaryData", BYTES_MAP), END};
L of_secret[] = { M(1, "metadata", OBJECT, of_object_meta), F(5, "immutable", BOOL_PTR), F(2, "data", BYTES_MAP),
	F(4, "stringData", TEXT_MAP), F(3, "type", STRING), END};
L of_object_reference[] = { F(1, "kind", STRING), F(2, "namespace", STRING), F(3, "name", STRING),
	F(4, "uid", STRING), F(5, "apiVersion", STRING), F(6, "resourceVersion", STRING), F(7, "fieldPath", STRING), END};
L of_local_object_reference[] = { F(1, "name", STRING), END};
L of_service_account[] = { M(1, "metadata", OBJECT, of_object_meta), M(2, "secrets", OBJECTS, of_object_reference),
	M(3, "imagePullSecrets", OBJECTS, of_local_object_reference), F(4, "automountServiceAccountToken", BOOL_PTR), END};
L of_preconditions[] = { F(1, "uid", STRING_PTR), F(2, "resourceVersion", STRING_PTR), END};
L of_delete_options[] = { F(1, "gracePeriodSeconds", INT64_PTR), M(2, "preconditions", OBJECT, of_preconditions),
	F(3, "orphanDependents", BOOL_PTR), F(4, "propagationPolicy", STRING_PTR), F(5, "dryRun", STRINGS),
	F(6, "ignoreStoreReadErrorWithClusterBreakingPotential", BOOL_PTR), END};
L of_self_subject_review[] = { M(1, "metadata", OBJECT, of_object_meta), END};
L of_bound_object_reference[] = { F(1, "kind", STRING), F(2, "apiVersion", STRING), F(3, "name", STRING),
	F(4, "uid", STRING), END};
L of_token_request_spec[] = { F(1, "audiences", STRINGS), F(4, "expirationSeconds", INT64_PTR),
	M(3, "boundObjectRef", OBJECT, of_bound_object_reference), END};
L of_token_request[] = { M(1, "metadata", OBJECT, of_object_meta), M(2, "spec", OBJECT, of_token_request_spec), END};
L of_field_selector_requirement[] = { F(1, "key", STRING_PTR), F(2, "operator", STRING_PTR), F(3, "values", STRINGS), END};
L of_field_selector_attributes[] = { F(1, "rawSelector", STRING),
	M(2, "requirements", OBJECTS, of_field_selector_requirement), END};
L of_label_selector_requirement[] = { F(1, "key", STRING_PTR), F(2, "operator", STRING_PTR), F(3, "values", STRINGS), END};
L of_label_selector_attributes[] = { F(1, "rawSelector", STRING),
	M(2, "requirements", OBJECTS, of_label_selector_requirement), END};
L of_resource_attributes[] = { F(1, "namespace", STRING), F(2, "verb", STRING), F(3, "group", STRING),
	F(4, "version", STRING), F(5, "resource", STRING), F(6, "subresource", STRING), F(7, "name", STRING),
	M(8, "fieldSelector", OBJECT, of_field_selector_attributes),
	M(9, "labelSelector", OBJECT, of_label_selector_attributes), END};
L of_non_resource_attributes[] = { F(1, "path", STRING), F(2, "verb", STRING), END};
L of_self_subject_access_review_spec[] = { M(1, "resourceAttributes", OBJECT, of_resource_attributes),
	M(2, "nonResourceAttributes", OBJECT, of_non_resource_attributes), END};
L of_self_subject_access_review[] = { M(1, "metadata", OBJECT, of_object_meta),
	M(2, "spec", OBJECT, of_self_subject_access_review_spec), END};
L of_self_subject_rules_review_spec[] = { F(1, "namespace", STRING), END};
L of_self_subject_rules_review[] = { M(1, "metadata", OBJECT, of_object_meta),
	M(2, "spec", OBJECT, of_self_subject_rules_review_spec), END};
L of_subject[] = { F(1, "kind", STRING_PTR), F(2, "apiGroup", STRING), F(3, "name", STRING_PTR),
	F(4, "namespace", STRING), END};
L of_role_ref[] = { F(1, "apiGroup", STRING_PTR), F(2, "kind", STRING_PTR), F(3, "name", STRING_PTR), END};
L of_role_binding[] = { M(1, "metadata", OBJECT, of_object_meta), M(2, "subjects", OBJECTS, of_subject),
	M(3, "roleRef", OBJECT, of_role_ref), END};
L of_event_source[] = { F(1, "component", STRING), F(2, "host", STRING), END};
L of_event_series[] = { F(1, "count", INT), F(2, "lastObservedTime", MICROTIME), END};
L of_event[] = { M(1, "metadata", OBJECT, of_object_meta), M(2, "involvedObject", OBJECT, of_object_reference),
	F(3, "reason", STRING), F(4, "message", STRING), M(5, "source", OBJECT, of_event_source),
	F(6, "firstTimestamp", TIME), F(7, "lastTimestamp", TIME), F(8, "count", INT), F(9, "type", STRING),
	F(10, "eventTime", MICROTIME), M(11, "series", OBJECT, of_event_series), F(12, "action", STRING),
	M(13, "related", OBJECT, of_object_reference), F(14, "reportingComponent", STRING_PTR),
	F(15, "reportingInstance", STRING_PTR), END};
L of_event_series_events[] = { F(1, "count", INT_PTR), F(2, "lastObservedTime", MICROTIME), END};
L of_event_events[] = { M(1, "metadata", OBJECT, of_object_meta), F(2, "eventTime", MICROTIME),
	M(3, "series", OBJECT, of_event_series_events), F(4, "reportingController", STRING),
	F(5, "reportingInstance", STRING), F(6, "action", STRING), F(7, "reason", STRING),
	M(8, "regarding", OBJECT, of_object_reference), M(9, "related", OBJECT, of_object_reference),
	F(10, "note", STRING), F(11, "type", STRING), M(12, "deprecatedSource", OBJECT, of_event_source),
	F(13, "deprecatedFirstTimestamp", TIME), F(14, "deprecatedLastTimestamp", TIME),
	F(15, "deprecatedCount", INT), END};

const struct schema_fields schema_fields_table[] = {
	{"v1", "ConfigMap", of_config_map, false},
	{"v1", "Secret", of_secret, false},
	{"v1", "ServiceAccount", of_service_account, false},
	{"v1", "DeleteOptions", of_delete_options, false},
	{"meta.k8s.io/v1", "DeleteOptions", of_delete_options, false},
	{"authentication.k8s.io/v1", "SelfSubjectReview", of_self_subject_review, false},
	{"authentication.k8s.io/v1", "TokenRequest", of_token_request, false},
	{"authorization.k8s.io/v1", "SelfSubjectAccessReview", of_self_subject_access_review, false},
	{"authorization.k8s.io/v1", "SelfSubjectRulesReview", of_self_subject_rules_review, false},
	{"rbac.authorization.k8s.io/v1", "RoleBinding", of_role_binding, false},
	{"v1", "Event", of_event, true},
	{"events.k8s.io/v1", "Event", of_event_events, true},
	{NULL, NULL, NULL, false},
};
/* clang-format on */

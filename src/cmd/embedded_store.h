/* SPDX-License-Identifier: MIT */
/* A store for the broker (broker/store.h) in sealed rows of the API's database
 * (apistore/rows.h). */
#ifndef TEC_CMD_EMBEDDED_STORE_H
#define TEC_CMD_EMBEDDED_STORE_H

#include "tec/apistore/objects.h"
#include "tec/broker/store.h"

/* The objects are borrowed. */
struct broker_store *embedded_store_new(struct apistore_objects *objects);

#endif

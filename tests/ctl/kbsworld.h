/* SPDX-License-Identifier: MIT */
/*
 * What tests of KbsConfigs share: one in-memory API, and lives of their controller on it, one after
 * the other, with that of TrusteeConfigs. A life has its own transport, caches, watches and
 * controllers, as a process has.
 */
#ifndef TEC_TESTS_CTL_KBSWORLD_H
#define TEC_TESTS_CTL_KBSWORLD_H

#include "fake/transport.h"
#include "tec/render/kbsconfig.h"

#define NS         "ns"
#define DEPLOYMENT RENDER_KBSCONFIG_DEPLOYMENT
#define TOML       "[http_server]\\ninsecure_http = true\\n"

struct kbsworld {
	struct loop *loop;
	struct fake_api *api;
	struct fake_transport *f; /* of this life */
	const char *image;        /* of Trustee, from the next life on; NULL: the default */
	unsigned dies;            /* after so many writes the next life ends; 0: it does not */
};

extern struct kbsworld t;

void kbsworld_start(void); /* with the inputs, and before the first life */
void kbsworld_stop(void);
void kbsworld_boot(void);
void kbsworld_end(void); /* of a life */
void kbsworld_run(uint64_t ms);

void kbsworld_put_inputs(void);
/* One that names all the inputs. */
void kbsworld_put(const char *name);
void kbsworld_pods_are_ready(void);

/* Of a condition; "" where there is none. */
const char *kbsworld_reason(const char *name, const char *type);
const char *kbsworld_message(const char *name, const char *type);
struct json_object *kbsworld_deployment(void); /* borrowed; NULL: there is none */
bool kbsworld_installed(void);                 /* k */
bool kbsworld_gone(void);                      /* k */
void kbsworld_until(bool (*there)(void), const char *what);
size_t kbsworld_requests(void); /* of this life; Events are for people and do not count */

#endif

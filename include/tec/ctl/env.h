/* SPDX-License-Identifier: MIT */
/*
 * The environment that all controllers share: the state they read, the transport they write
 * through, Events. All members are borrowed from cmd/operator.c and outlive every controller.
 */
#ifndef TEC_CTL_ENV_H
#define TEC_CTL_ENV_H

#include "tec/k8s/event.h"
#include "tec/k8s/kubeconfig.h"
#include "tec/k8s/transport.h"
#include "tec/kbs/transport.h"
#include "tec/loop/loop.h"
#include "tec/render/kbsconfig.h"
#include "tec/render/trustee.h"
#include "tec/caches/caches.h"

struct ctl_record;
struct ctl_follow_state;

struct ctl_kbs_place {
	const char *url;            /* "https://name:port" */
	const char *connect_to;     /* "addr:port"; NULL: as the URL says */
	const struct secret *ca;    /* PEM; NULL: plain http */
	const struct secret *admin; /* Ed25519 private key, PEM; NULL: in this process */
	bool in_process;            /* the broker of this process; the other members are unused */
};
/* value NULL: the image has no such label. All arguments are borrowed for the call. */
typedef void (*ctl_label_fn)(void *arg, const struct err *err, const char *value, size_t len);

/* Progress of a computation of an image's values, one line at a time; and its end, with a
 * message of model/pcrmsg.h or with err. */
typedef void (*ctl_said_fn)(void *arg, const char *line);
typedef void (*ctl_computed_fn)(void *arg, const struct err *err, const char *message, size_t len);

struct ctl_env {
	struct loop *loop;
	struct k8s_transport *api;
	const char *ns;
	const struct caches *caches;
	/* Reads a label of an image's configuration from its registry. NULL: not available. err: as
	 * for oci_label_get(). */
	struct op *(*image_label)(void *arg, struct op_scope *scope, const char *reference,
		const char *label, ctl_label_fn done, void *done_arg);
	void *image_label_arg;
	/* Computes an image's values; platforms: ConfigMaps by name, borrowed for the call. NULL: a
	 * Job computes them. */
	struct op *(*image_compute)(void *arg, struct op_scope *scope, const char *reference,
		const char *nonce, struct json_object *platforms, ctl_said_fn said,
		ctl_computed_fn done, void *done_arg);
	void *image_compute_arg;
	/* Returns how many requests are in flight that a Frozen operator would not make: acts and
	 * registrations. NULL: none. */
	size_t (*in_flight)(void *arg);
	void *in_flight_arg;
	const struct ctl_follow_state
		*follow; /* ctl_follow_state(); NULL: ctl/follow is not used */
	struct k8s_events *events;
	struct ctl_record *record; /* ctl/record.h; of a TrustedExecutionCluster's namespace */
	struct render_images images_ref;
	struct render_kbsconfig_images kbsconfig_images; /* of ctl/kbsconfig alone */
	/* The options of these names, for Jobs that fetch their image; NULL: not set. */
	const char *registry_mirror, *insecure_registry;
	const char *const *proxy_env; /* for these Jobs; NULL-terminated "NAME=value", or NULL */
	/* Connects to a Trustee: HTTPS from cmd, a fake in tests. Returns NULL with err set. */
	struct kbs_transport *(*kbs_connect)(
		void *arg, const struct ctl_kbs_place *place, struct err *err);
	void *kbs_connect_arg;
	/* Connects to the API server of the followed operator: HTTPS from cmd, a fake in tests. The
	 * configuration names no files and no plugin. Returns NULL with err set. */
	struct k8s_transport *(*follow_connect)(
		void *arg, struct k8s_kubeconfig *take_config, struct err *err);
	void *follow_connect_arg;
	const char *kbs_url; /* --kbs-url, address of the primary Trustee; NULL: as rendered */
	bool standalone;     /* the API has no Services and no Deployments */
	uint32_t repeat_revoked_ms; /* kbs/push.h; 0: no lease */
};

#endif

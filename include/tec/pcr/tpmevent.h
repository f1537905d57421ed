/* SPDX-License-Identifier: MIT */
/*
 * Events that firmware and boot loaders measure, in the SHA-256 bank, and the resulting PCRs (TCG
 * PC Client Platform Firmware Profile). The JSON format is that of the Rust tool: TPMEvent
 * {"name","pcr","hash","id"}, Pcr {"id","value","events"}.
 */
#ifndef TEC_PCR_TPMEVENT_H
#define TEC_PCR_TPMEVENT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/bytes.h"
#include "tec/base/err.h"

#define PCR_MAX        24
#define PCR_EVENTS_MAX 256

/* TPMEventID of the Rust tool. The order matters: pcr/combine extends PCRs in this order. */
enum pcr_event_id {
	PCR_ROOT_NODE_EVENT,
	PCR4_PLATFORM, /* not in the Rust tool: instead of the next two on some platforms */
	PCR4_EFI_CALL,
	PCR4_SEPARATOR,
	PCR4_BOOT_ENTRY_FAILED, /* not in the Rust tool */
	PCR4_SHIM,
	PCR4_FIRMWARE_UPDATE,
	PCR4_GRUB,
	PCR4_VMLINUZ,
	PCR4_UKI, /* not in the Rust tool: started without shim; with the kernel inside */
	PCR7_SECURE_BOOT,
	PCR7_PK,
	PCR7_KEK,
	PCR7_DB,
	PCR7_DBX,
	PCR7_DBT, /* this and the next one are not in the Rust tool */
	PCR7_DBR,
	PCR7_SEPARATOR,
	PCR7_SHIM_CERT,
	PCR7_MOK_SB_STATE,
	PCR7_SBAT_LEVEL,
	PCR7_GRUB_DB_CERT,
	PCR7_GRUB_VENDOR_DB_CERT,
	PCR7_GRUB_MOK_LIST_CERT,
	PCR11_LINUX,
	PCR11_LINUX_CONTENT,
	PCR11_OSREL,
	PCR11_OSREL_CONTENT,
	PCR11_CMDLINE,
	PCR11_CMDLINE_CONTENT,
	PCR11_INITRD,
	PCR11_INITRD_CONTENT,
	PCR11_UNAME,
	PCR11_UNAME_CONTENT,
	PCR11_SBAT,
	PCR11_SBAT_CONTENT,
	PCR14_MOK_LIST,
	PCR14_MOK_LIST_X,
	PCR14_MOK_SB_STATE,
	PCR14_MOK_LIST_TRUSTED,
	PCR14_NO_SHIM, /* not in the Rust tool: no shim is started, so PCR 14 stays zero */
	PCR_LAST_NODE_EVENT,
	/* Sections of unified kernel images that later stubs measure; never combined. */
	PCR11_UCODE,
	PCR11_UCODE_CONTENT,
	PCR11_SPLASH,
	PCR11_SPLASH_CONTENT,
	PCR11_DTB,
	PCR11_DTB_CONTENT,
	PCR11_PCRPKEY,
	PCR11_PCRPKEY_CONTENT,
	PCR11_PROFILE,
	PCR11_PROFILE_CONTENT,
	PCR11_DTBAUTO,
	PCR11_DTBAUTO_CONTENT,
	PCR11_HWIDS,
	PCR11_HWIDS_CONTENT,
	PCR_N_EVENT_IDS,
};
/* Groups of events that are updated together, as bits. */
#define PCR_GROUP_LINUX      2u
#define PCR_GROUP_BOOTLOADER 4u
#define PCR_GROUP_SECUREBOOT 8u
#define PCR_GROUP_MOKVARS    16u
#define PCR_GROUP_UKI        32u
unsigned pcr_event_groups(enum pcr_event_id id);
unsigned pcr_event_register(enum pcr_event_id id);   /* PCR_MAX: none */
const char *pcr_event_id_name(enum pcr_event_id id); /* "Pcr4Shim" */
/* Return PCR_N_EVENT_IDS for an unknown name. */
enum pcr_event_id pcr_event_id_parse(const char *name);

/* The TCG event types in use; in JSON "EV_EFI_ACTION" and so on. */
enum pcr_event_type {
	PCR_EV_EFI_ACTION,
	PCR_EV_SEPARATOR,
	PCR_EV_EFI_BOOT_SERVICES_APPLICATION,
	PCR_EV_EFI_VARIABLE_DRIVER_CONFIG,
	PCR_EV_EFI_VARIABLE_AUTHORITY,
	PCR_EV_IPL,
	PCR_EV_OMIT_BOOT_DEVICE_EVENTS,
	PCR_EV_NO_ACTION, /* extends nothing: Pcr14NoShim alone, with an all-zero digest */
	PCR_N_EVENT_TYPES,
};

struct pcr_event {
	enum pcr_event_id id;
	enum pcr_event_type type;
	unsigned pcr;
	uint8_t digest[SHA256_LEN];
};

/* Events in the order of measurement. Embedded; free with pcr_events_fini(). push returns false
 * beyond PCR_EVENTS_MAX. */
struct pcr_events {
	struct pcr_event *v; /* owned */
	size_t n, cap;
};
#define PCR_EVENTS_INIT                                                                            \
	{                                                                                          \
		NULL, 0, 0                                                                         \
	}
void pcr_events_fini(struct pcr_events *e);
#define cleanup_pcr_events __attribute__((cleanup(pcr_events_fini)))
bool pcr_events_push(struct pcr_events *e, enum pcr_event_id id, enum pcr_event_type type,
	unsigned pcr, const uint8_t digest[SHA256_LEN]);
/* Append all events. The caller ensures that the total is at most PCR_EVENTS_MAX. */
void pcr_events_copy(struct pcr_events *to, const struct pcr_events *from);
bool pcr_event_same(const struct pcr_event *a, const struct pcr_event *b);

/* Replace pcr with SHA-256(pcr || digest); a PCR starts as 32 zero bytes. */
void pcr_extend(uint8_t pcr[SHA256_LEN], const uint8_t digest[SHA256_LEN]);
/* Check what events from outside must not contradict: Pcr14NoShim extends nothing, all others do. */
bool pcr_event_valid(
	enum pcr_event_id id, enum pcr_event_type type, const uint8_t digest[SHA256_LEN]);

/* Compute a PCR from its events. False: there are none. */
bool pcr_events_value(const struct pcr_events *e, unsigned pcr, uint8_t out[SHA256_LEN]);

/* Return [Pcr...] in the order of first appearance, or one Pcr. The caller puts the object. */
struct json_object *pcr_events_json(const struct pcr_events *e);
struct json_object *pcr_events_one_json(const struct pcr_events *e, unsigned pcr);
/*
 * Parse [Pcr...] and append its events. Every `value` must match its events (the Rust tool never
 * compares them). Unknown members are ignored. ERR_INVALID, with `out` unchanged: an unknown event
 * name or id, a PCR above 23, a PCR that is listed twice or has no events, a hash that is not
 * lower-case SHA-256, or an event whose pcr contradicts its Pcr or its id.
 */
int pcr_events_from_json(
	struct json_object *pcrs, struct pcr_events *out, struct err *err) MUST_CHECK;
/* Parse {"pcrs":[Pcr...]}, the label org.coreos.pcrs of an image and the tool's output. Untrusted
 * input; at most 256 KiB. */
#define PCR_LABEL "org.coreos.pcrs"
int pcr_label_parse(
	const char *text, size_t len, struct pcr_events *out, struct err *err) MUST_CHECK;

#endif

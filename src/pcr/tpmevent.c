/* SPDX-License-Identifier: MIT */
/*
 * Events as values and as JSON. Parsing is strict where the Rust tool trusts its input: every value
 * is replayed from its events, an id belongs to one PCR, a PCR is listed once, and unknown names
 * are refused, so that people can read what they approve.
 */
#include "config.h"

#include "tec/pcr/tpmevent.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

/* For a label, or the entry of one image: 24 PCRs with a few events each take 40 KiB. */
static const struct json_limits label_limits = {.bytes = 256 * 1024, .depth = 8, .tokens = 16384};

static const struct {
	const char *name;
	unsigned pcr, groups;
} ids[PCR_N_EVENT_IDS] = {
	[PCR_ROOT_NODE_EVENT] = {"PcrRootNodeEvent", PCR_MAX, 0},
	[PCR4_PLATFORM] = {"Pcr4Platform", 4, 0},
	[PCR4_EFI_CALL] = {"Pcr4EfiCall", 4, 0},
	[PCR4_SEPARATOR] = {"Pcr4Separator", 4, 0},
	[PCR4_BOOT_ENTRY_FAILED] = {"Pcr4BootEntryFailed", 4, 0},
	[PCR4_SHIM] = {"Pcr4Shim", 4, PCR_GROUP_BOOTLOADER},
	[PCR4_FIRMWARE_UPDATE] = {"Pcr4FirmwareUpdate", 4, 0},
	[PCR4_GRUB] = {"Pcr4Grub", 4, PCR_GROUP_BOOTLOADER},
	[PCR4_VMLINUZ] = {"Pcr4Vmlinuz", 4, PCR_GROUP_LINUX},
	[PCR4_UKI] = {"Pcr4Uki", 4, PCR_GROUP_LINUX},
	[PCR7_SECURE_BOOT] = {"Pcr7SecureBoot", 7, PCR_GROUP_SECUREBOOT},
	[PCR7_PK] = {"Pcr7Pk", 7, PCR_GROUP_SECUREBOOT},
	[PCR7_KEK] = {"Pcr7Kek", 7, PCR_GROUP_SECUREBOOT},
	[PCR7_DB] = {"Pcr7Db", 7, PCR_GROUP_SECUREBOOT},
	[PCR7_DBX] = {"Pcr7Dbx", 7, PCR_GROUP_SECUREBOOT},
	[PCR7_DBT] = {"Pcr7Dbt", 7, PCR_GROUP_SECUREBOOT},
	[PCR7_DBR] = {"Pcr7Dbr", 7, PCR_GROUP_SECUREBOOT},
	[PCR7_SEPARATOR] = {"Pcr7Separator", 7, 0},
	[PCR7_SHIM_CERT] = {"Pcr7ShimCert", 7, PCR_GROUP_SECUREBOOT | PCR_GROUP_BOOTLOADER},
	[PCR7_MOK_SB_STATE] = {"Pcr7MokSbState", 7, PCR_GROUP_SECUREBOOT | PCR_GROUP_MOKVARS},
	[PCR7_SBAT_LEVEL] = {"Pcr7SbatLevel", 7, PCR_GROUP_SECUREBOOT | PCR_GROUP_BOOTLOADER},
	[PCR7_GRUB_DB_CERT] = {"Pcr7GrubDbCert", 7, PCR_GROUP_SECUREBOOT | PCR_GROUP_BOOTLOADER},
	[PCR7_GRUB_VENDOR_DB_CERT] = {"Pcr7GrubVendorDbCert", 7,
		PCR_GROUP_SECUREBOOT | PCR_GROUP_BOOTLOADER},
	[PCR7_GRUB_MOK_LIST_CERT] = {"Pcr7GrubMokListCert", 7,
		PCR_GROUP_SECUREBOOT | PCR_GROUP_BOOTLOADER | PCR_GROUP_MOKVARS},
	[PCR11_LINUX] = {"Pcr11Linux", 11, PCR_GROUP_UKI},
	[PCR11_LINUX_CONTENT] = {"Pcr11LinuxContent", 11, PCR_GROUP_UKI},
	[PCR11_OSREL] = {"Pcr11Osrel", 11, PCR_GROUP_UKI},
	[PCR11_OSREL_CONTENT] = {"Pcr11OsrelContent", 11, PCR_GROUP_UKI},
	[PCR11_CMDLINE] = {"Pcr11Cmdline", 11, PCR_GROUP_UKI},
	[PCR11_CMDLINE_CONTENT] = {"Pcr11CmdlineContent", 11, PCR_GROUP_UKI},
	[PCR11_INITRD] = {"Pcr11Initrd", 11, PCR_GROUP_UKI},
	[PCR11_INITRD_CONTENT] = {"Pcr11InitrdContent", 11, PCR_GROUP_UKI},
	[PCR11_UNAME] = {"Pcr11Uname", 11, PCR_GROUP_UKI},
	[PCR11_UNAME_CONTENT] = {"Pcr11UnameContent", 11, PCR_GROUP_UKI},
	[PCR11_SBAT] = {"Pcr11Sbat", 11, PCR_GROUP_UKI},
	[PCR11_SBAT_CONTENT] = {"Pcr11SbatContent", 11, PCR_GROUP_UKI},
	[PCR14_MOK_LIST] = {"Pcr14MokList", 14, PCR_GROUP_MOKVARS},
	[PCR14_MOK_LIST_X] = {"Pcr14MokListX", 14, PCR_GROUP_MOKVARS},
	[PCR14_MOK_SB_STATE] = {"Pcr14MokSbState", 14, PCR_GROUP_MOKVARS},
	[PCR14_MOK_LIST_TRUSTED] = {"Pcr14MokListTrusted", 14, PCR_GROUP_MOKVARS},
	[PCR14_NO_SHIM] = {"Pcr14NoShim", 14, PCR_GROUP_MOKVARS | PCR_GROUP_BOOTLOADER},
	[PCR_LAST_NODE_EVENT] = {"PcrLastNodeEvent", PCR_MAX, 0},
	[PCR11_UCODE] = {"Pcr11Ucode", 11, PCR_GROUP_UKI},
	[PCR11_UCODE_CONTENT] = {"Pcr11UcodeContent", 11, PCR_GROUP_UKI},
	[PCR11_SPLASH] = {"Pcr11Splash", 11, PCR_GROUP_UKI},
	[PCR11_SPLASH_CONTENT] = {"Pcr11SplashContent", 11, PCR_GROUP_UKI},
	[PCR11_DTB] = {"Pcr11Dtb", 11, PCR_GROUP_UKI},
	[PCR11_DTB_CONTENT] = {"Pcr11DtbContent", 11, PCR_GROUP_UKI},
	[PCR11_PCRPKEY] = {"Pcr11Pcrpkey", 11, PCR_GROUP_UKI},
	[PCR11_PCRPKEY_CONTENT] = {"Pcr11PcrpkeyContent", 11, PCR_GROUP_UKI},
	[PCR11_PROFILE] = {"Pcr11Profile", 11, PCR_GROUP_UKI},
	[PCR11_PROFILE_CONTENT] = {"Pcr11ProfileContent", 11, PCR_GROUP_UKI},
	[PCR11_DTBAUTO] = {"Pcr11Dtbauto", 11, PCR_GROUP_UKI},
	[PCR11_DTBAUTO_CONTENT] = {"Pcr11DtbautoContent", 11, PCR_GROUP_UKI},
	[PCR11_HWIDS] = {"Pcr11Hwids", 11, PCR_GROUP_UKI},
	[PCR11_HWIDS_CONTENT] = {"Pcr11HwidsContent", 11, PCR_GROUP_UKI},
};

static const char *const types[PCR_N_EVENT_TYPES] = {
	[PCR_EV_EFI_ACTION] = "EV_EFI_ACTION",
	[PCR_EV_SEPARATOR] = "EV_SEPARATOR",
	[PCR_EV_EFI_BOOT_SERVICES_APPLICATION] = "EV_EFI_BOOT_SERVICES_APPLICATION",
	[PCR_EV_EFI_VARIABLE_DRIVER_CONFIG] = "EV_EFI_VARIABLE_DRIVER_CONFIG",
	[PCR_EV_EFI_VARIABLE_AUTHORITY] = "EV_EFI_VARIABLE_AUTHORITY",
	[PCR_EV_IPL] = "EV_IPL",
	[PCR_EV_OMIT_BOOT_DEVICE_EVENTS] = "EV_OMIT_BOOT_DEVICE_EVENTS",
	[PCR_EV_NO_ACTION] = "EV_NO_ACTION",
};

unsigned pcr_event_groups(enum pcr_event_id id)
{
	return ids[id].groups;
}

unsigned pcr_event_register(enum pcr_event_id id)
{
	return ids[id].pcr;
}

const char *pcr_event_id_name(enum pcr_event_id id)
{
	return ids[id].name;
}

/* A linear search: names are parsed rarely, and the table is short. */
enum pcr_event_id pcr_event_id_parse(const char *name)
{
	int id = 0;

	while (id < PCR_N_EVENT_IDS && strcmp(ids[id].name, name) != 0)
		id++;
	return (enum pcr_event_id)id;
}

/* ---- lists */

void pcr_events_fini(struct pcr_events *e)
{
	free(e->v);
	*e = (struct pcr_events)PCR_EVENTS_INIT;
}

/* Refuse to grow beyond the limit: events come from labels, which are untrusted. */
bool pcr_events_push(struct pcr_events *e, enum pcr_event_id id, enum pcr_event_type type,
	unsigned pcr, const uint8_t digest[SHA256_LEN])
{
	struct pcr_event *v;

	if (e->n == PCR_EVENTS_MAX)
		return false;
	if (e->n == e->cap) {
		e->cap = e->cap ? 2 * e->cap : 16;
		e->v = xreallocarray(e->v, e->cap, sizeof(*e->v));
	}
	v = &e->v[e->n++];
	*v = (struct pcr_event){.id = id, .type = type, .pcr = pcr};
	memcpy(v->digest, digest, SHA256_LEN);
	return true;
}

void pcr_events_copy(struct pcr_events *to, const struct pcr_events *from)
{
	for (size_t i = 0; i < from->n; i++)
		if (!pcr_events_push(
			    to, from->v[i].id, from->v[i].type, from->v[i].pcr, from->v[i].digest))
			DIE("more than %d events", PCR_EVENTS_MAX);
}

bool pcr_event_same(const struct pcr_event *a, const struct pcr_event *b)
{
	return a->id == b->id && a->type == b->type && a->pcr == b->pcr &&
	       memcmp(a->digest, b->digest, SHA256_LEN) == 0;
}

void pcr_extend(uint8_t pcr[SHA256_LEN], const uint8_t digest[SHA256_LEN])
{
	uint8_t both[2 * SHA256_LEN];

	memcpy(both, pcr, SHA256_LEN);
	memcpy(both + SHA256_LEN, digest, SHA256_LEN);
	bytes_sha256(both, sizeof(both), pcr);
}

bool pcr_event_valid(
	enum pcr_event_id id, enum pcr_event_type type, const uint8_t digest[SHA256_LEN])
{
	static const uint8_t zero[SHA256_LEN];

	return (id == PCR14_NO_SHIM) == (type == PCR_EV_NO_ACTION) &&
	       (id != PCR14_NO_SHIM || memcmp(digest, zero, SHA256_LEN) == 0);
}

/* Report whether the PCR has events: without them its value is not predicted. */
bool pcr_events_value(const struct pcr_events *e, unsigned pcr, uint8_t out[SHA256_LEN])
{
	bool any = false;

	memset(out, 0, SHA256_LEN);
	for (size_t i = 0; i < e->n; i++) {
		if (e->v[i].pcr != pcr)
			continue;
		if (e->v[i].type != PCR_EV_NO_ACTION)
			pcr_extend(out, e->v[i].digest);
		any = true;
	}
	return any;
}

/* ---- JSON out */

static void add_hex(struct json_object *o, const char *name, const uint8_t digest[SHA256_LEN])
{
	char hex[SHA256_HEX_LEN + 1];

	bytes_to_hex(digest, SHA256_LEN, hex);
	json_add_str(o, name, hex);
}

/* Return one Pcr. Its value is computed, so it always matches the events. */
struct json_object *pcr_events_one_json(const struct pcr_events *e, unsigned pcr)
{
	struct json_object *o = json_obj(), *events = json_arr();
	uint8_t value[SHA256_LEN];

	pcr_events_value(e, pcr, value);
	json_add_int(o, "id", (int64_t)pcr);
	add_hex(o, "value", value);
	for (size_t i = 0; i < e->n; i++) {
		struct json_object *ev;

		if (e->v[i].pcr != pcr)
			continue;
		ev = json_add_str(json_obj(), "name", types[e->v[i].type]);
		json_add_int(ev, "pcr", (int64_t)pcr);
		add_hex(ev, "hash", e->v[i].digest);
		json_push(events, json_add_str(ev, "id", ids[e->v[i].id].name));
	}
	return json_add(o, "events", events);
}

/* Group events by PCR, in the order in which PCRs first appear. */
struct json_object *pcr_events_json(const struct pcr_events *e)
{
	struct json_object *a = json_arr();
	bool seen[PCR_MAX] = {false};

	for (size_t i = 0; i < e->n; i++) {
		if (seen[e->v[i].pcr])
			continue;
		seen[e->v[i].pcr] = true;
		json_push(a, pcr_events_one_json(e, e->v[i].pcr));
	}
	return a;
}

/* ---- JSON in */

/* Read a hex digest; bytes_from_hex() refuses capitals. */
static int read_digest(struct json_object *o, const char *member, uint8_t out[SHA256_LEN])
{
	const char *hex = json_get_str(o, member);

	return hex && strlen(hex) == SHA256_HEX_LEN ? bytes_from_hex(hex, SHA256_HEX_LEN, out) : -1;
}

/* Read one event. Its id determines the PCR, so a contradicting pcr member is refused. */
static int read_event(struct json_object *o, unsigned pcr, struct pcr_events *out, struct err *err)
{
	const char *id = json_get_str(o, "id"), *name = json_get_str(o, "name");
	enum pcr_event_id event_id = id ? pcr_event_id_parse(id) : PCR_N_EVENT_IDS;
	int type = name ? 0 : PCR_N_EVENT_TYPES;
	uint8_t digest[SHA256_LEN];

	while (type < PCR_N_EVENT_TYPES && strcmp(types[type], name) != 0)
		type++;
	if (event_id == PCR_N_EVENT_IDS || ids[event_id].pcr == PCR_MAX)
		return err_set(err, ERR_INVALID, "an event of PCR %u has an unknown id", pcr);
	if (type == PCR_N_EVENT_TYPES)
		return err_set(
			err, ERR_INVALID, "event %s has an unknown name", ids[event_id].name);
	if (json_get_int(o, "pcr", -1) != (int64_t)pcr || ids[event_id].pcr != pcr)
		return err_set(err, ERR_INVALID, "event %s does not belong to PCR %u",
			ids[event_id].name, pcr);
	if (read_digest(o, "hash", digest) < 0)
		return err_set(err, ERR_INVALID,
			"the hash of event %s is not a lower-case SHA-256 digest",
			ids[event_id].name);
	if (!pcr_event_valid(event_id, (enum pcr_event_type)type, digest))
		return err_set(
			err, ERR_INVALID, "event %s has a wrong name or hash", ids[event_id].name);
	if (!pcr_events_push(out, event_id, (enum pcr_event_type)type, pcr, digest))
		return err_set(err, ERR_INVALID, "more than %d events", PCR_EVENTS_MAX);
	return 0;
}

/* Read one PCR and replay its events: the value must result from them. */
static int read_pcr(struct json_object *o, struct pcr_events *out, struct err *err)
{
	struct json_object *events = json_get_arr(o, "events");
	int64_t pcr = json_get_int(o, "id", -1);
	uint8_t value[SHA256_LEN], replayed[SHA256_LEN];

	if (pcr < 0 || pcr >= PCR_MAX)
		return err_set(err, ERR_INVALID, "a PCR's id is missing or not within 0 to 23");
	if (pcr_events_value(out, (unsigned)pcr, replayed))
		return err_set(err, ERR_INVALID, "PCR %d is listed twice", (int)pcr);
	if (!events || json_object_array_length(events) == 0)
		return err_set(err, ERR_INVALID, "PCR %d has no events", (int)pcr);
	for (size_t i = 0; i < json_object_array_length(events); i++)
		if (read_event(json_object_array_get_idx(events, i), (unsigned)pcr, out, err) < 0)
			return -1;
	if (read_digest(o, "value", value) < 0)
		return err_set(err, ERR_INVALID,
			"the value of PCR %d is not a lower-case SHA-256 digest", (int)pcr);
	pcr_events_value(out, (unsigned)pcr, replayed);
	if (memcmp(value, replayed, SHA256_LEN) != 0)
		return err_set(err, ERR_INVALID, "the value of PCR %d does not match its events",
			(int)pcr);
	return 0;
}

/* Parse into a list of its own first, so that `out` is unchanged after an error. */
int pcr_events_from_json(struct json_object *pcrs, struct pcr_events *out, struct err *err)
{
	cleanup_pcr_events struct pcr_events read = PCR_EVENTS_INIT;

	if (!pcrs || !json_object_is_type(pcrs, json_type_array) ||
		json_object_array_length(pcrs) == 0)
		return err_set(err, ERR_INVALID, "the list of PCRs is missing or empty");
	for (size_t i = 0; i < json_object_array_length(pcrs); i++)
		if (read_pcr(json_object_array_get_idx(pcrs, i), &read, err) < 0)
			return -1;
	if (out->n + read.n > PCR_EVENTS_MAX)
		return err_set(err, ERR_INVALID, "more than %d events", PCR_EVENTS_MAX);
	pcr_events_copy(out, &read);
	return 0;
}

/* Anyone who can push an image writes this label. */
int pcr_label_parse(const char *text, size_t len, struct pcr_events *out, struct err *err)
{
	cleanup_json struct json_object *o = json_parse(text, len, &label_limits, err);

	return o ? pcr_events_from_json(json_get_arr(o, "pcrs"), out, err) : -1;
}

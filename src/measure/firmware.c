/* SPDX-License-Identifier: MIT */
/*
 * The usual events are written in the format of the file as well, so that there is one reader and
 * one way to predict. From a log, only events whose digest matches their data are taken; the digest
 * of a program cannot be checked, which is why programs have to be allowed.
 */
#include "config.h"

#include "tec/measure/firmware.h"

#include <string.h>

#include "measure_internal.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/measure/eventlog.h"
#include "tec/pcr/bootpath.h"

#define FILE_NAME  (pcr_platform_files[PCR_PLATFORM_EVENTS])
#define TEXT_MAX   120
#define ACTION     "EV_EFI_ACTION"
#define OMITTED    "EV_OMIT_BOOT_DEVICE_EVENTS"
#define SEPARATOR  "EV_SEPARATOR"
#define PROGRAM    "EV_EFI_BOOT_SERVICES_APPLICATION"
#define VARIABLE   "EV_EFI_VARIABLE_DRIVER_CONFIG"
#define FILE_NODE  0x0604 /* of a device path: type 4, subtype 6, a file in a firmware volume */
#define PATH_START 32     /* of UEFI_IMAGE_LOAD_EVENT */

static const char usual4[] = "4 " ACTION " \"" PCR_BOOT_CALLING "\"\n4 " SEPARATOR "\n";
static const char usual7[] = "7 " VARIABLE " SecureBoot\n7 " VARIABLE " PK\n7 " VARIABLE
			     " KEK\n7 " VARIABLE " db\n7 " VARIABLE " dbx\n";

/* In the order of measurement. */
static const struct {
	const char *name;
	enum pcr_platform_var file;
	enum pcr_event_id id;
} variables[] = {
	{"SecureBoot", PCR_PLATFORM_SECURE_BOOT, PCR7_SECURE_BOOT},
	{"PK", PCR_PLATFORM_PK, PCR7_PK},
	{"KEK", PCR_PLATFORM_KEK, PCR7_KEK},
	{"db", PCR_PLATFORM_DB, PCR7_DB},
	{"dbx", PCR_PLATFORM_DBX, PCR7_DBX},
	{"dbt", PCR_PLATFORM_DBT, PCR7_DBT},
	{"dbr", PCR_PLATFORM_DBR, PCR7_DBR},
};

void measure_firmware_fini(struct measure_firmware *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->v[i].label);
	*f = (struct measure_firmware){.n = 0};
}

/* ---- the file */

/* A line that is being read. */
struct line {
	const char *p, *end;
};

static bool take(struct line *l, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(l->end - l->p) < n || memcmp(l->p, word, n) != 0 ||
		(l->p + n < l->end && l->p[n] != ' '))
		return false;
	l->p += n;
	if (l->p < l->end)
		l->p++;
	return true;
}

/* Read "text" or "text\0", and hash what it stands for. */
static bool take_text(struct line *l, struct measure_firmware_event *e)
{
	size_t len = (size_t)(l->end - l->p);
	char text[TEXT_MAX + 1];
	bool nul;

	if (len < 3 || l->p[0] != '"' || l->end[-1] != '"')
		return false;
	len -= 2;
	nul = len > 2 && memcmp(l->end - 3, "\\0", 2) == 0;
	len -= nul ? 2 : 0;
	if (len > TEXT_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		text[i] = l->p[1 + i];
		if (text[i] < 0x20 || text[i] >= 0x7f || text[i] == '"' || text[i] == '\\')
			return false;
	}
	text[len] = '\0';
	bytes_sha256(text, len + nul, e->digest);
	e->label = xasprintf("%s%s", text, nul ? " (with a NUL)" : "");
	l->p = l->end;
	return true;
}

static bool take_program(struct line *l, struct measure_firmware_event *e)
{
	if ((size_t)(l->end - l->p) < SHA256_HEX_LEN ||
		bytes_from_hex(l->p, SHA256_HEX_LEN, e->digest) < 0)
		return false;
	l->p += SHA256_HEX_LEN;
	if (l->p < l->end && *l->p++ != ' ')
		return false;
	e->label = xstrdup(log_escn(l->p, (size_t)(l->end - l->p)));
	l->p = l->end;
	return true;
}

/* Variables keep their order, because mixes of images are computed in it. */
static bool take_variable(
	struct line *l, const struct measure_firmware *f, struct measure_firmware_event *e)
{
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		if (!take(l, variables[i].name))
			continue;
		e->variable = (int)variables[i].file;
		e->id = variables[i].id;
		for (size_t k = 0; k < f->n; k++)
			if (f->v[k].pcr == 7 && f->v[k].id >= e->id &&
				f->v[k].type != PCR_EV_EFI_ACTION)
				return false;
		return true;
	}
	return false;
}

/* Read one event. Its id is what it is in the usual firmware, or says that it is the platform's. */
static bool take_event(
	struct line *l, const struct measure_firmware *f, struct measure_firmware_event *e)
{
	uint8_t zero[4] = {0};

	e->variable = -1;
	e->pcr = take(l, "4") ? 4 : take(l, "7") ? 7 : 0;
	if (!e->pcr)
		return false;
	e->id = e->pcr == 4 ? PCR4_PLATFORM : PCR7_SECURE_BOOT;
	for (size_t i = 0; e->pcr == 7 && i < f->n; i++)
		if (f->v[i].pcr == 7)
			e->id = f->v[i].id;
	if (take(l, ACTION)) {
		e->type = PCR_EV_EFI_ACTION;
		return take_text(l, e);
	}
	if (take(l, SEPARATOR)) {
		e->type = PCR_EV_SEPARATOR;
		if (e->pcr == 7)
			e->id = PCR7_SEPARATOR;
		bytes_sha256(zero, sizeof(zero), e->digest);
		e->label = xstrdup("end of the firmware phase");
		return l->p == l->end;
	}
	if (e->pcr == 7 && take(l, VARIABLE)) {
		e->type = PCR_EV_EFI_VARIABLE_DRIVER_CONFIG;
		return take_variable(l, f, e) && l->p == l->end;
	}
	if (e->pcr == 4 && take(l, OMITTED)) {
		e->type = PCR_EV_OMIT_BOOT_DEVICE_EVENTS;
		return take_text(l, e);
	}
	e->type = PCR_EV_EFI_BOOT_SERVICES_APPLICATION;
	return e->pcr == 4 && take(l, PROGRAM) && take_program(l, e);
}

static int read_text(const char *text, size_t len, struct measure_firmware *f, struct err *err)
{
	const char *end = text + len;
	unsigned number = 1;

	for (const char *p = text; p < end; number++) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		struct line l = {p, eol ? eol : end};
		struct measure_firmware_event *e = &f->v[f->n], read = {.label = NULL};

		p = eol ? eol + 1 : end;
		if (f->n == MEASURE_FIRMWARE_MAX)
			return err_set(err, ERR_INVALID, "%s has more than %d lines", FILE_NAME,
				MEASURE_FIRMWARE_MAX);
		if (!take_event(&l, f, &read)) {
			free(read.label);
			return err_set(err, ERR_INVALID,
				"%s: line %u is wrong; next step: write the file with tec-compute-pcrs extract-platform",
				FILE_NAME, number);
		}
		*e = read;
		f->n++;
		if (e->type == PCR_EV_EFI_BOOT_SERVICES_APPLICATION && !f->application)
			f->application = e->label;
	}
	return 0;
}

/* Count the events of a type in one register; type PCR_N_EVENT_TYPES: all. */
static size_t count(const struct measure_firmware *f, unsigned pcr, enum pcr_event_type type)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		n += f->v[i].pcr == pcr && (type == PCR_N_EVENT_TYPES || f->v[i].type == type);
	return n;
}

/* Events without which it would be another firmware than the one that was looked at. */
static int check_whole(const struct measure_firmware *f, struct err *err)
{
	static const unsigned registers[] = {4, 7};

	for (size_t i = 0; i < ARRAY_LEN(registers); i++)
		if (count(f, registers[i], PCR_N_EVENT_TYPES) &&
			count(f, registers[i], PCR_EV_SEPARATOR) != 1)
			return err_set(err, ERR_INVALID, "%s has not one separator in PCR %u",
				FILE_NAME, registers[i]);
	if (!count(f, 7, PCR_N_EVENT_TYPES))
		return 0;
	for (int i = 0; i < PCR_PLATFORM_N_VARS; i++) {
		bool found = false;

		for (size_t k = 0; k < f->n; k++)
			found |= f->v[k].variable == i;
		if (!found)
			return err_set(err, ERR_INVALID, "%s lacks %s in PCR 7", FILE_NAME,
				variables[i].name);
	}
	return 0;
}

/* The usual firmware measures dbt and dbr if they exist. */
static void usual7_of(const struct measure_vars *vars, struct strbuf *out)
{
	strbuf_adds(out, usual7);
	if (vars && vars->found[PCR_PLATFORM_DBT])
		strbuf_adds(out, "7 " VARIABLE " dbt\n");
	if (vars && vars->found[PCR_PLATFORM_DBR])
		strbuf_adds(out, "7 " VARIABLE " dbr\n");
	strbuf_adds(out, "7 " SEPARATOR "\n");
}

/* The events of PCR 4 get the ids of the usual ones, from which the other boots are derived. */
static int read_usual4(struct measure_firmware *f, struct err *err)
{
	size_t from = f->n;

	if (read_text(usual4, strlen(usual4), f, err) < 0)
		return -1;
	f->usual4 = true;
	for (; from < f->n; from++)
		f->v[from].id =
			f->v[from].type == PCR_EV_SEPARATOR ? PCR4_SEPARATOR : PCR4_EFI_CALL;
	return 0;
}

int measure_firmware_read(
	const struct measure_vars *vars, struct measure_firmware *out, struct err *err)
{
	cleanup_strbuf struct strbuf seven = STRBUF_INIT;
	const struct strbuf *text = vars ? &vars->text[PCR_PLATFORM_EVENTS] : NULL;

	*out = (struct measure_firmware){.n = 0};
	if ((text && (read_text(strbuf_str(text), text->len, out, err) < 0 ||
			     check_whole(out, err) < 0)) ||
		(!count(out, 4, PCR_N_EVENT_TYPES) && read_usual4(out, err) < 0)) {
		measure_firmware_fini(out);
		return -1;
	}
	usual7_of(vars, &seven);
	if (count(out, 7, PCR_N_EVENT_TYPES) || read_text(seven.data, seven.len, out, err) == 0)
		return 0;
	measure_firmware_fini(out);
	return -1;
}

int measure_firmware_check(
	const struct measure_firmware *f, const struct measure_vars *vars, struct err *err)
{
	const struct strbuf *allow = vars ? &vars->text[PCR_PLATFORM_ALLOW_APPLICATIONS] : NULL;

	if (!f->application || (allow && pcr_platform_allows(strbuf_str(allow), allow->len)))
		return 0;
	return err_set(err, ERR_INVALID,
		"the firmware starts a program of its own: to accept that, add %s=" PCR_PLATFORM_ALLOWED
		" to the ConfigMap",
		pcr_platform_files[PCR_PLATFORM_ALLOW_APPLICATIONS]);
}

/* ---- a log */

/* What is collected of one register. */
struct capture {
	struct strbuf lines;
	bool over;        /* the boot loader, or the first authority, was reached */
	const char *lost; /* why the register cannot be carried; NULL: it can */
};

/* Add an event whose data is a text; the NUL at its end is measured, or it is not. */
static const char *capture_text(
	const struct eventlog_event *e, const char *type, struct strbuf *out)
{
	size_t len = e->len;
	char text[TEXT_MAX + 1] = "";
	uint8_t digest[2][SHA256_LEN];

	if (len && e->data[len - 1] == '\0')
		len--;
	if (!len || len > TEXT_MAX)
		return "a text is empty or too long";
	memcpy(text, e->data, len);
	for (size_t i = 0; i < len; i++)
		if (text[i] < 0x20 || text[i] >= 0x7f || text[i] == '"' || text[i] == '\\')
			return "a text is not printable";
	bytes_sha256(text, len, digest[0]);
	bytes_sha256(text, len + 1, digest[1]);
	for (int nul = 0; nul < 2; nul++) {
		if (memcmp(digest[nul], e->sha256, SHA256_LEN) != 0)
			continue;
		strbuf_addf(out, "%u %s \"%s%s\"\n", e->pcr, type, text, nul ? "\\0" : "");
		return NULL;
	}
	return "a text differs from what was measured";
}

static const char *capture_separator(const struct eventlog_event *e, struct strbuf *out)
{
	const uint8_t zero[4] = {0};
	uint8_t digest[SHA256_LEN];

	bytes_sha256(zero, sizeof(zero), digest);
	if (memcmp(digest, e->sha256, SHA256_LEN) != 0)
		return "a separator reports an error of the firmware";
	strbuf_addf(out, "%u " SEPARATOR "\n", e->pcr);
	return NULL;
}

bool measure_is_built_in(const uint8_t *event, size_t len)
{
	const uint8_t *p = event + PATH_START;
	size_t left = len > PATH_START ? len - PATH_START : 0;

	while (left >= 4) {
		size_t n = measure_le16(p + 2);

		if (n < 4 || n > left || p[0] == 0x7f)
			break;
		if (measure_le16(p) == FILE_NODE)
			return true;
		p += n;
		left -= n;
	}
	return false;
}

static void capture4(struct capture *c, const struct eventlog_event *e)
{
	char hex[SHA256_HEX_LEN + 1];

	if (e->type == EVENTLOG_APPLICATION && !measure_is_built_in(e->data, e->len)) {
		c->over = true;
		return;
	}
	if (e->type == EVENTLOG_APPLICATION) {
		cleanup_strbuf struct strbuf text = STRBUF_INIT;

		eventlog_describe(e, &text);
		bytes_to_hex(e->sha256, SHA256_LEN, hex);
		strbuf_addf(&c->lines, "4 " PROGRAM " %s %s\n", hex, strbuf_str(&text));
	} else if (e->type == EVENTLOG_SEPARATOR) {
		c->lost = capture_separator(e, &c->lines);
	} else if (e->type == EVENTLOG_OMITTED) {
		c->lost = capture_text(e, OMITTED, &c->lines);
	} else if (e->type != EVENTLOG_ACTION) {
		c->lost = "an event of another type precedes the boot loader";
	} else if (e->len >= strlen(PCR_BOOT_RETURNING) &&
		   memcmp(e->data, PCR_BOOT_RETURNING, strlen(PCR_BOOT_RETURNING)) == 0) {
		c->lost = "a boot entry failed first; next step: use the log of another boot";
	} else {
		c->lost = capture_text(e, ACTION, &c->lines);
	}
}

static void capture7(struct capture *c, const struct eventlog_event *e)
{
	struct efi_logged_variable v;
	size_t i = 0;

	switch (e->type) {
	case EVENTLOG_SEPARATOR:
		c->lost = capture_separator(e, &c->lines);
		break;
	case EVENTLOG_ACTION:
		c->lost = capture_text(e, ACTION, &c->lines);
		break;
	case EVENTLOG_VARIABLE:
		i = PCR_PLATFORM_N_FILES;
		if (efi_logged_variable(e->data, e->len, &v))
			i = measure_variable_of(&v);
		for (size_t k = 0; k < ARRAY_LEN(variables); k++)
			if (variables[k].file == i)
				strbuf_addf(&c->lines, "7 " VARIABLE " %s\n", variables[k].name);
		if (i == PCR_PLATFORM_N_FILES)
			c->lost = "the firmware measures a variable that is not known";
		break;
	case EVENTLOG_AUTHORITY:
		c->over = true;
		if (!strstr(strbuf_str(&c->lines), "7 " SEPARATOR))
			c->lost = "the firmware loaded a signed driver before";
		break;
	default:
		c->lost = "an event of another type precedes the boot loader";
	}
}

static int capture_all(const void *log, size_t len, struct capture c[2], struct err *err)
{
	struct eventlog_event e;
	struct eventlog l;
	int rc;

	if (eventlog_open(log, len, &l, err) < 0)
		return -1;
	while ((rc = eventlog_next(&l, &e, err)) > 0) {
		struct capture *to = &c[e.pcr == 7];

		if (e.type == EVENTLOG_NO_ACTION || (e.pcr != 4 && e.pcr != 7) || to->lost)
			continue;
		if (!to->over)
			(e.pcr == 4 ? capture4 : capture7)(to, &e);
		else if (e.pcr == 7 && e.type != EVENTLOG_AUTHORITY)
			to->lost =
				"the firmware measures more after the boot loader was authorized";
	}
	if (rc == 0 && !c[0].over && !c[0].lost)
		c[0].lost = "there is no boot loader";
	return rc;
}

/* Take a register unless it is as usual. */
static void take_capture(const struct capture *c, unsigned pcr, const char *usual,
	const char *other, struct measure_vars *out, struct strbuf *notes)
{
	struct strbuf *file = &out->text[PCR_PLATFORM_EVENTS];

	if (c->lost || !c->lines.len) {
		strbuf_addf(notes, "PCR %u: not carried, %s\n", pcr,
			c->lost ? c->lost : "it begins with the boot loader");
		return;
	}
	if (str_eq(strbuf_str(&c->lines), usual) || str_eq(strbuf_str(&c->lines), other)) {
		strbuf_addf(notes, "PCR %u: as usual\n", pcr);
		return;
	}
	out->found[PCR_PLATFORM_EVENTS] = true;
	strbuf_adds(file, strbuf_str(&c->lines));
	strbuf_addf(notes, "PCR %u: the firmware measures before the boot loader (%s):\n%s", pcr,
		FILE_NAME, strbuf_str(&c->lines));
}

/* What was taken is read again: an order or a number of events that a platform cannot have is found
 * by the reader of the file. */
int measure_firmware_from_log(const void *log, size_t len, struct measure_vars *out,
	struct strbuf *notes, struct err *err)
{
	static const char uncalled[] = "4 " SEPARATOR "\n";
	struct capture c[2] = {{.lines = STRBUF_INIT}, {.lines = STRBUF_INIT}};
	cleanup_firmware struct measure_firmware f = {.n = 0};
	cleanup_strbuf struct strbuf seven = STRBUF_INIT;
	struct err why = ERR_INIT;
	int rc = measure_vars_from_log(log, len, out, err);

	if (rc == 0)
		rc = capture_all(log, len, c, err);
	if (rc == 0) {
		usual7_of(out, &seven);
		take_capture(&c[0], 4, usual4, uncalled, out, notes);
		take_capture(&c[1], 7, strbuf_str(&seven), NULL, out, notes);
	}
	if (rc == 0 && measure_firmware_read(out, &f, &why) < 0) {
		out->found[PCR_PLATFORM_EVENTS] = false;
		strbuf_reset(&out->text[PCR_PLATFORM_EVENTS]);
		strbuf_addf(notes, "PCR 4 and 7: not carried, %s\n", why.text);
	}
	if (f.application)
		strbuf_addf(notes,
			"the firmware starts a program of its own before the boot loader; next step: if you trust it, write " PCR_PLATFORM_ALLOWED
			" to a file %s\n",
			pcr_platform_files[PCR_PLATFORM_ALLOW_APPLICATIONS]);
	strbuf_fini(&c[0].lines);
	strbuf_fini(&c[1].lines);
	return rc;
}

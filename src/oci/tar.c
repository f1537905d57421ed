/* SPDX-License-Identifier: MIT */
/*
 * Blocks of 512 bytes: a header, then content padded to full blocks. Long names are separate
 * entries before the entry they belong to. Input that readers interpret differently is refused
 * where no builder writes it: a header with a wrong checksum, negative or absurd sizes, names with
 * NUL bytes, and sparse headers that continue in further blocks.
 */
#include "config.h"

#include "tec/oci/tar.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#define BLOCK     512u
#define SIZE_MAX_ ((uint64_t)1 << 42)

enum state {
	HEAD,  /* collecting a header */
	EXTRA, /* collecting a long name or pax records */
	DATA,
	PAD,
	OVER, /* after two blocks of zeros: the rest is ignored */
};
enum extra { NO_EXTRA, LONG_PATH, LONG_TARGET, PAX };

struct oci_tar {
	const struct oci_tar_ops *ops;
	void *arg;
	enum state state;
	uint8_t head[BLOCK];
	size_t n_head;
	bool zeros;       /* the last header was a block of zeros */
	bool handing_out; /* pass the content to the caller */
	uint64_t left;    /* bytes of content to come */
	unsigned pad;     /* bytes of padding after it */
	enum extra extra; /* what `text` is */
	struct strbuf text;
	/* Set by extra entries for the next entry. NULL: not set. Owned. */
	char *path, *target;
	bool has_size, sparse;
	uint64_t size;
};

struct oci_tar *oci_tar_new(const struct oci_tar_ops *ops, void *arg)
{
	struct oci_tar *t = xcalloc(1, sizeof(*t));

	t->ops = ops;
	t->arg = arg;
	return t;
}

/* Drop what extra entries have set: it applies to one entry only. */
static void forget(struct oci_tar *t)
{
	free(t->path);
	free(t->target);
	t->path = t->target = NULL;
	t->has_size = t->sparse = false;
}

void oci_tar_free(struct oci_tar *t)
{
	if (!t)
		return;
	forget(t);
	strbuf_fini(&t->text);
	free(t);
}

/* ---- fields */

/* Read a number: octal digits between blanks and NUL bytes or, if the first bit is set, big-endian
 * binary (GNU). */
static int number(const uint8_t *p, size_t len, uint64_t *out, struct err *err)
{
	uint64_t v = 0;
	size_t i = 0;

	*out = 0;
	if (p[0] & 0x80) {
		for (i = 0; i < len; i++) {
			if (v >> 42 || (i == 0 && p[0] != 0x80))
				return err_set(
					err, ERR_INVALID, "a number in a header is out of range");
			v = v << 8 | (i ? p[i] : 0);
		}
		*out = v;
		return 0;
	}
	while (i < len && p[i] == ' ')
		i++;
	for (; i < len && p[i] >= '0' && p[i] <= '7'; i++)
		v = v << 3 | (uint64_t)(p[i] - '0');
	for (; i < len; i++)
		if (p[i] && p[i] != ' ')
			return err_set(err, ERR_INVALID, "a number in a header is not octal");
	*out = v;
	return 0;
}

/* Check the checksum, over the header with blanks in its place. Old programs added signed bytes. */
static bool sum_fits(const uint8_t head[BLOCK], uint64_t want)
{
	int64_t plain = 0, with_sign = 0;

	for (size_t i = 0; i < BLOCK; i++) {
		uint8_t b = i >= 148 && i < 156 ? ' ' : head[i];

		plain += b;
		with_sign += (int8_t)b;
	}
	return (int64_t)want == plain || (int64_t)want == with_sign;
}

static char *field(const uint8_t *p, size_t len)
{
	return xstrndup((const char *)p, strnlen((const char *)p, len));
}

/* Normalize a path in place: "./a//b/" becomes "a/b". */
static int clean_path(char *path, struct err *err)
{
	char *out = path;
	const char *at = path;

	if (strlen(path) > OCI_TAR_PATH_MAX)
		return err_set(
			err, ERR_INVALID, "a path is longer than %u bytes", OCI_TAR_PATH_MAX);
	while (*at) {
		size_t n;

		at += strspn(at, "/");
		n = strcspn(at, "/");
		if (n > OCI_TAR_NAME_MAX)
			return err_set(err, ERR_INVALID, "a name is longer than %u bytes",
				OCI_TAR_NAME_MAX);
		if (n == 2 && at[0] == '.' && at[1] == '.')
			return err_set(
				err, ERR_INVALID, "a path contains \"..\": %.100s", log_esc(at));
		if (n && !(n == 1 && at[0] == '.')) {
			if (out != path)
				*out++ = '/';
			memmove(out, at, n);
			out += n;
		}
		at += n;
	}
	*out = '\0';
	return 0;
}

/* ---- extra entries */

/* Take the pax records that matter here; an empty value removes an earlier one. */
static int take_pax(struct oci_tar *t, const char *key, size_t key_len, const char *value,
	size_t len, struct err *err)
{
	bool is_path = key_len == 4 && memcmp(key, "path", 4) == 0;
	bool is_link = key_len == 8 && memcmp(key, "linkpath", 8) == 0;
	char **to = is_path ? &t->path : is_link ? &t->target : NULL;

	if (to) {
		if (memchr(value, '\0', len))
			return err_set(err, ERR_INVALID, "a name contains a NUL byte");
		free(*to);
		*to = len ? xstrndup(value, len) : NULL;
	} else if (key_len == 4 && memcmp(key, "size", 4) == 0 && len) {
		cleanup_free char *text = xstrndup(value, len);

		if (str_to_u64(text, SIZE_MAX_, &t->size) < 0)
			return err_set(err, ERR_INVALID, "a size is not a number");
		t->has_size = true;
	} else if (key_len > 11 && memcmp(key, "GNU.sparse.", 11) == 0) {
		t->sparse = true;
	}
	return 0;
}

/* Read records of the form "LENGTH KEY=VALUE\n". LENGTH counts the whole record. */
static int read_pax(struct oci_tar *t, struct err *err)
{
	const char *at = strbuf_str(&t->text), *end = at + t->text.len;

	while (at < end) {
		const char *blank = memchr(at, ' ', (size_t)(end - at)), *equal, *record_end;
		uint64_t n = 0;

		for (const char *p = at; blank && p < blank; p++) {
			if (*p < '0' || *p > '9' || blank - at > 7)
				blank = NULL;
			else
				n = n * 10 + (uint64_t)(*p - '0');
		}
		if (!blank || n > (size_t)(end - at) || n <= (size_t)(blank + 1 - at))
			return err_set(err, ERR_INVALID, "a pax record has a wrong length");
		record_end = at + n - 1;
		equal = memchr(blank + 1, '=', (size_t)(record_end - (blank + 1)));
		if (!equal || *record_end != '\n')
			return err_set(err, ERR_INVALID, "a pax record is not terminated");
		if (take_pax(t, blank + 1, (size_t)(equal - blank - 1), equal + 1,
			    (size_t)(record_end - equal - 1), err) < 0)
			return -1;
		at = record_end + 1;
	}
	return 0;
}

/* Store a long name, or read pax records, for the next entry. */
static int take_extra(struct oci_tar *t, struct err *err)
{
	char **to = t->extra == LONG_PATH ? &t->path : &t->target;
	size_t n = strnlen(strbuf_str(&t->text), t->text.len);

	if (t->extra == PAX)
		return read_pax(t, err);
	free(*to);
	*to = n ? xstrndup(t->text.data, n) : NULL;
	return 0;
}

/* ---- entries */

/* Prepare for content of this size. Without content the next block is a header. */
static void content(struct oci_tar *t, uint64_t size, enum state s)
{
	t->left = size;
	t->pad = (unsigned)((BLOCK - size % BLOCK) % BLOCK);
	t->state = size ? s : HEAD;
}

/* Collect an extra entry in memory, within its limit. */
static int begin_extra(struct oci_tar *t, enum extra extra, uint64_t size, struct err *err)
{
	if (size > OCI_TAR_EXTRA_MAX)
		return err_set(err, ERR_INVALID,
			"a name or its pax records are larger than %u bytes", OCI_TAR_EXTRA_MAX);
	t->extra = extra;
	strbuf_reset(&t->text);
	content(t, size, EXTRA);
	return 0;
}

/* Old archives mark directories only with a slash at the end of the name. */
static enum oci_tar_type type_of(uint8_t flag, const char *path)
{
	size_t n = strlen(path);

	switch (flag) {
	case '\0':
	case '0':
	case '7': /* contiguous; obsolete */
		return n && path[n - 1] == '/' ? OCI_TAR_DIR : OCI_TAR_FILE;
	case '1':
		return OCI_TAR_HARDLINK;
	case '2':
		return OCI_TAR_SYMLINK;
	case '5':
		return OCI_TAR_DIR;
	case 'S':
		return OCI_TAR_SPARSE;
	default:
		return OCI_TAR_OTHER;
	}
}

/* Check an entry and pass it to the caller. An empty file is complete immediately. */
static int hand_out(struct oci_tar *t, enum oci_tar_type type, uint64_t size, struct err *err)
{
	struct oci_tar_entry e = {.type = type, .path = t->path, .target = t->target};

	if (clean_path(t->path, err) < 0)
		return -1;
	if ((type == OCI_TAR_HARDLINK && clean_path(t->target, err) < 0) ||
		((type == OCI_TAR_HARDLINK || type == OCI_TAR_SYMLINK) &&
			(!*t->target || strlen(t->target) > OCI_TAR_PATH_MAX)))
		return err_is_set(err) ? -1
				       : err_set(err, ERR_INVALID,
						 "a link target is empty or longer than %u bytes",
						 OCI_TAR_PATH_MAX);
	if (!*t->path && type != OCI_TAR_DIR)
		return err_set(err, ERR_INVALID, "an entry has no name");
	if (!*t->path)
		return 0;
	e.size = type == OCI_TAR_FILE ? size : 0;
	t->handing_out = type == OCI_TAR_FILE && size;
	if (t->ops->entry(t->arg, &e, err) < 0)
		return -1;
	return type == OCI_TAR_FILE && !size ? t->ops->done(t->arg, err) : 0;
}

/* Process an entry, with what extra entries before it have set. */
static int entry(struct oci_tar *t, uint8_t flag, uint64_t size, struct err *err)
{
	enum oci_tar_type type;
	int rc;

	if (t->has_size)
		size = t->size;
	/* Links, devices and directories have no content, regardless of their size field. */
	if (flag >= '1' && flag <= '6')
		size = 0;
	/* In POSIX format the path is prefix/name. */
	if (!t->path && memcmp(t->head + 257, "ustar\0", 6) == 0 && t->head[345]) {
		cleanup_free char *prefix = field(t->head + 345, 155), *name = field(t->head, 100);

		t->path = xasprintf("%s/%s", prefix, name);
	} else if (!t->path) {
		t->path = field(t->head, 100);
	}
	if (!t->target)
		t->target = field(t->head + 157, 100);
	type = type_of(flag, t->path);
	if (t->sparse && type == OCI_TAR_FILE)
		type = OCI_TAR_SPARSE;
	if (flag == 'S' && t->head[482])
		return err_set(err, ERR_INVALID, "a sparse file has too many pieces");
	/* Programs disagree about where such content ends. */
	if (type == OCI_TAR_DIR && size)
		return err_set(err, ERR_INVALID, "a directory has content");
	t->handing_out = false;
	rc = hand_out(t, type, size, err);
	forget(t);
	content(t, size, DATA);
	return rc;
}

/* Process a complete header. Two blocks of zeros end the archive. */
static int take_head(struct oci_tar *t, struct err *err)
{
	static const uint8_t zeros[BLOCK];
	uint64_t sum, size;
	uint8_t flag = t->head[156];

	t->n_head = 0;
	if (memcmp(t->head, zeros, BLOCK) == 0) {
		t->state = t->zeros ? OVER : HEAD;
		t->zeros = true;
		return 0;
	}
	if (t->zeros)
		return err_set(err, ERR_INVALID, "an entry follows a block of zeros");
	if (number(t->head + 148, 8, &sum, err) < 0)
		return err_wrap(err, "not a tar archive");
	if (!sum_fits(t->head, sum))
		return err_set(
			err, ERR_INVALID, "not a tar archive: a header has a wrong checksum");
	if (number(t->head + 124, 12, &size, err) < 0)
		return -1;
	if (size > SIZE_MAX_)
		return err_set(err, ERR_INVALID, "an entry has an impossible size");
	switch (flag) {
	case 'L':
		return begin_extra(t, LONG_PATH, size, err);
	case 'K':
		return begin_extra(t, LONG_TARGET, size, err);
	case 'x':
		return begin_extra(t, PAX, size, err);
	case 'g': /* global records: nothing in them matters here, and no runtime reads them */
		t->handing_out = false;
		content(t, size, DATA);
		return 0;
	default:
		return entry(t, flag, size, err);
	}
}

/* ---- the stream */

/* Take a piece of the content. Return the number of bytes used, or -1. */
static int64_t take_content(struct oci_tar *t, const char *data, size_t len, struct err *err)
{
	size_t n = len < t->left ? len : (size_t)t->left;

	if (t->state == EXTRA)
		strbuf_add(&t->text, data, n);
	else if (t->handing_out && t->ops->data(t->arg, data, n, err) < 0)
		return -1;
	t->left -= n;
	if (t->left)
		return (int64_t)n;
	if (t->state == EXTRA && take_extra(t, err) < 0)
		return -1;
	if (t->state == DATA && t->handing_out && t->ops->done(t->arg, err) < 0)
		return -1;
	t->state = t->pad ? PAD : HEAD;
	return (int64_t)n;
}

/* Consume input by state. Each step takes at most what its state needs. */
int oci_tar_add(struct oci_tar *t, const void *data, size_t len, struct err *err)
{
	const char *p = data;

	while (len && t->state != OVER) {
		size_t n = len;
		int64_t took;

		switch (t->state) {
		case HEAD:
			n = n < BLOCK - t->n_head ? n : BLOCK - t->n_head;
			memcpy(t->head + t->n_head, p, n);
			t->n_head += n;
			if (t->n_head == BLOCK && take_head(t, err) < 0)
				return -1;
			break;
		case EXTRA:
		case DATA:
			took = take_content(t, p, n, err);
			if (took < 0)
				return -1;
			n = (size_t)took;
			break;
		case PAD:
			n = n < t->pad ? n : t->pad;
			t->pad -= (unsigned)n;
			if (!t->pad)
				t->state = HEAD;
			break;
		case OVER:
			break;
		}
		p += n;
		len -= n;
	}
	return 0;
}

int oci_tar_end(struct oci_tar *t, struct err *err)
{
	/* Some builders omit the blocks of zeros. */
	if (t->state == OVER || (t->state == HEAD && !t->n_head && !t->path && !t->target))
		return 0;
	return err_set(err, ERR_INVALID, "the archive ends inside an entry");
}

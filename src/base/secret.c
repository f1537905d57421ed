/* SPDX-License-Identifier: MIT */
/*
 * The arena consists of slabs of 64 KiB, each divided into slots of one size class. A secret larger
 * than every class gets pages of its own. Slab bookkeeping lives on the heap, so that pages hold only
 * key material and a 16-byte head per slot. Freed slots are zeroed, and empty slabs are unmapped
 * except for one per class. Under ASan free slots are poisoned like freed memory. A failed mlock() is
 * logged once as a warning: an operator with many machines may exceed RLIMIT_MEMLOCK.
 *
 *   slab->mem:  | struct secret, bytes | struct secret, bytes | ...    slots of class_len[cls] bytes
 *   slab->next: index of the next free slot, for each free slot
 *
 * A slab is in with_room[cls] while it has a free slot, otherwise in full[cls], so an allocation never
 * searches. Freeing finds the slot by the address and the slab by the secret's head.
 */
#include "config.h"

#include "tec/base/secret.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sodium.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tec/base/log.h"

#ifdef HAVE_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   __asan_poison_memory_region(p, n)
#define UNPOISON(p, n) __asan_unpoison_memory_region(p, n)
#else
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#define SLAB_LEN   65536
#define SLOT_NONE  UINT16_MAX
#define N_CLASSES  ARRAY_LEN(class_len)
#define SECRET_TAG 0x5ec7e75a

struct slab {
	LIST_ENTRY(slab) link; /* in a list of its class; unused for a single large secret */
	uint8_t *mem;          /* owned mapping */
	size_t mem_len;
	unsigned cls;       /* N_CLASSES: a single large secret */
	uint16_t free_slot; /* head of the free list in next[]; SLOT_NONE: full */
	uint16_t n_used, n_slots;
	uint16_t next[]; /* by slot */
};
LIST_HEAD(slab_list, slab);

struct secret {
	struct slab *slab;
	uint32_t len, tag;
	uint8_t bytes[];
};

/* Slot sizes including the head; 48 fits a 32-byte key, 80 the content of a Machine's Secret. */
static const size_t class_len[] = {48, 64, 80, 128, 256, 512, 1024, 2048, 4096, 8192};

static struct {
	struct slab_list with_room[N_CLASSES], full[N_CLASSES];
	size_t count;
	bool warned;
} arena;

/* Failures are logged only: a container may forbid both calls, and the process can still run. */
void secret_process_init(void)
{
	struct rlimit none = {0, 0};

	if (sodium_init() < 0)
		DIE("cannot initialise libsodium");
	if (setrlimit(RLIMIT_CORE, &none) < 0)
		log_warn(NULL, "cannot disable core dumps", "errno=%d", errno);
#ifndef HAVE_ASAN /* the leak checker attaches to its own process */
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		log_warn(NULL, "cannot make the process undumpable", "errno=%d", errno);
#endif
}

/* Map pages that are excluded from core dumps and, if the limit permits, locked in memory. */
static void *map_pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		DIE("out of memory (%zu bytes of secret pages)", len);
	if ((madvise(p, len, MADV_DONTDUMP) < 0 || mlock(p, len) < 0) && !arena.warned) {
		arena.warned = true;
		log_warn(NULL, "cannot lock memory: secrets may be swapped out", "errno=%d", errno);
	}
	return p;
}

/* All slots are free and linked in order; fresh pages from mmap are zero. */
static struct slab *slab_new(unsigned cls, size_t slot_len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t len = cls < N_CLASSES ? SLAB_LEN : (slot_len + page - 1) / page * page;
	size_t n_slots = cls < N_CLASSES ? len / slot_len : 1;
	struct slab *s = xcalloc(1, sizeof(*s) + n_slots * sizeof(s->next[0]));

	s->mem = map_pages(len);
	s->mem_len = len;
	s->cls = cls;
	s->n_slots = (uint16_t)n_slots;
	for (size_t i = 0; i < n_slots; i++)
		s->next[i] = i + 1 < n_slots ? (uint16_t)(i + 1) : SLOT_NONE;
	POISON(s->mem, len);
	if (cls < N_CLASSES)
		LIST_INSERT_HEAD(&arena.with_room[cls], s, link);
	return s;
}

/* The slots are already zero: secret_free() wipes each of them. */
static void slab_free(struct slab *s)
{
	UNPOISON(s->mem, s->mem_len);
	munlock(s->mem, s->mem_len);
	munmap(s->mem, s->mem_len);
	free(s);
}

static size_t slot_len_of(const struct slab *s)
{
	return s->cls < N_CLASSES ? class_len[s->cls] : s->mem_len;
}

/* Take a slot with room for `room` bytes, of which `len` count; they differ for base64 text, where
 * libsodium adds a NUL. */
static struct secret *secret_alloc(size_t len, size_t room)
{
	size_t need = sizeof(struct secret) + room;
	struct slab *s;
	struct secret *secret;
	unsigned cls = 0;
	uint16_t slot;

	while (cls < N_CLASSES && class_len[cls] < need)
		cls++;
	s = cls < N_CLASSES ? LIST_FIRST(&arena.with_room[cls]) : NULL;
	if (!s)
		s = slab_new(cls, cls < N_CLASSES ? class_len[cls] : need);
	slot = s->free_slot;
	s->free_slot = s->next[slot];
	s->n_used++;
	/* Move a full slab aside, so that the head of with_room always has a slot. */
	if (s->free_slot == SLOT_NONE && cls < N_CLASSES) {
		LIST_REMOVE(s, link);
		LIST_INSERT_HEAD(&arena.full[cls], s, link);
	}
	secret = (struct secret *)(void *)(s->mem + slot * slot_len_of(s));
	UNPOISON(secret, need);
	secret->slab = s;
	secret->len = (uint32_t)len;
	secret->tag = SECRET_TAG;
	arena.count++;
	return secret;
}

struct secret *secret_new(size_t len)
{
	if (len < 1 || len > SECRET_MAX_LEN)
		DIE("invalid secret length: %zu bytes", len);
	return secret_alloc(len, len);
}

struct secret *secret_new_copy(const void *bytes, size_t len)
{
	struct secret *s = secret_new(len);

	memcpy(s->bytes, bytes, len);
	return s;
}

struct secret *secret_new_random(size_t len)
{
	struct secret *s = secret_new(len);

	bytes_random(s->bytes, len);
	return s;
}

/* The tag detects a double free or a wild pointer before anything is wiped. */
void secret_free(struct secret *secret)
{
	struct slab *s;
	size_t slot_len;
	uint16_t slot;

	if (!secret)
		return;
	if (secret->tag != SECRET_TAG)
		DIE("freeing a pointer that is not a live secret");
	s = secret->slab;
	slot_len = slot_len_of(s);
	slot = (uint16_t)((size_t)((uint8_t *)secret - s->mem) / slot_len);
	UNPOISON(secret, slot_len);
	sodium_memzero(secret, slot_len);
	POISON(secret, slot_len);
	arena.count--;
	s->n_used--;
	if (s->cls == N_CLASSES) {
		slab_free(s);
		return;
	}
	if (s->free_slot == SLOT_NONE) {
		LIST_REMOVE(s, link);
		LIST_INSERT_HEAD(&arena.with_room[s->cls], s, link);
	}
	s->next[slot] = s->free_slot;
	s->free_slot = slot;
	if (s->n_used == 0 && (LIST_FIRST(&arena.with_room[s->cls]) != s || LIST_NEXT(s, link))) {
		LIST_REMOVE(s, link);
		slab_free(s);
	}
}

size_t secret_len(const struct secret *s)
{
	return s->len;
}

uint8_t *secret_bytes(struct secret *s)
{
	return s->bytes;
}

const uint8_t *secret_peek(const struct secret *s)
{
	return s->bytes;
}

/* Constant time for equal lengths; the length of a secret is not confidential. */
bool secret_equal(const struct secret *a, const struct secret *b)
{
	return a && b && a->len == b->len && sodium_memcmp(a->bytes, b->bytes, a->len) == 0;
}

void secret_sha256(const struct secret *s, uint8_t out[SHA256_LEN])
{
	bytes_sha256(s->bytes, s->len, out);
}

void secret_hmac_sha256(
	const struct secret *s, const void *data, size_t len, uint8_t out[SHA256_LEN])
{
	unsigned int n = 0;

	if (!HMAC(EVP_sha256(), s->bytes, (int)s->len, data, len, out, &n) || n != SHA256_LEN)
		DIE("HMAC-SHA-256 of %zu bytes failed", len);
}

bool secret_same_bytes(const void *a, const void *b, size_t len)
{
	return sodium_memcmp(a, b, len) == 0;
}

/* libsodium's encoder is constant-time, unlike bytes_to_b64(). */
struct secret *secret_to_b64(const struct secret *s)
{
	size_t len = bytes_b64_len(s->len);
	struct secret *text = secret_alloc(len, len + 1);

	sodium_bin2base64(
		(char *)text->bytes, len + 1, s->bytes, s->len, sodium_base64_VARIANT_ORIGINAL);
	return text;
}

/* Decode directly into the arena, so that no plain copy exists elsewhere. The length is an upper
 * bound until the padding is known. */
struct secret *secret_from_b64(const char *text, size_t len)
{
	cleanup_secret struct secret *s = NULL;
	size_t n;

	if (len == 0 || len % 4 != 0 || len > bytes_b64_len(SECRET_MAX_LEN))
		return NULL;
	s = secret_alloc(len / 4 * 3, len / 4 * 3);
	if (bytes_from_b64_into(text, len, s->bytes, s->len, &n) < 0 || n == 0 ||
		n > SECRET_MAX_LEN)
		return NULL;
	s->len = (uint32_t)n;
	return steal_ptr(&s);
}

void secret_wipe(void *p, size_t len)
{
	if (len > 0)
		sodium_memzero(p, len);
}

/* Only the current buffer is wiped: a strbuf that grew with realloc may have left copies, so
 * reserve enough first. */
void secret_strbuf_fini(struct strbuf *b)
{
	if (b->data)
		secret_wipe(b->data, b->cap);
	strbuf_fini(b);
}

size_t secret_count(void)
{
	return arena.count;
}

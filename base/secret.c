/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Allocates and wipes memory for secrets. Blocks (header included) of 32 bytes, 64 bytes and so on
 * up to 32 KiB are cut from regions of 256 KiB. The process never unmaps a region. One list for
 * each size has the free blocks. A larger block has pages of its own, which are unmapped when it is
 * freed. Each block begins with a header that has its size. A freed block is wiped, so a free block
 * has zeros behind its header. A free block serves only requests of its size, and is never split or
 * joined. Pages whose MADV_DONTDUMP fails are still used.
 *
 * The small blocks save time: libcurl allocates buffers of about 16 KiB for each request. Mapping
 * and unmapping their pages took a quarter of the client's CPU time.
 *
 * The state (lists and region) is global because libcurl's allocation functions have no context
 * argument. A mutex protects it.
 *
 * In a build with the address, memory or thread sanitizer the blocks come from the heap and are
 * wiped too, but core dumps have them. There the sanitizer detects use after free, and its leak
 * search covers only memory that it knows. */

#include "base/secret.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define REGION_BYTES (256 * 1024UL)
#define PAGE_BYTES   4096UL
#define LOG_MIN      5U
#define LOG_MAX      15U

typedef struct Block {
        size_t size; /* in bytes, with this header */
        struct Block *next;
} Block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Block *free_blocks[LOG_MAX + 1];
static char *region;
static size_t region_left;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IN_HEAP true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
        __has_feature(memory_sanitizer)
#define IN_HEAP true
#endif
#endif
#ifndef IN_HEAP
#define IN_HEAP false
#endif

/* Maps zeroed pages that core dumps omit. Returns NULL when out of memory. */
static void *map_pages(size_t size)
{
        void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (pages == MAP_FAILED)
                return NULL;
        /* A failure is ignored: the pages work, but core dumps have them. */
        (void)madvise(pages, size, MADV_DONTDUMP);
        return pages;
}

/* Returns the binary logarithm of the block size for size bytes; LOG_MAX + 1 for a larger block. */
static unsigned find_log(size_t size)
{
        unsigned log = LOG_MIN;

        while (log <= LOG_MAX && size > (size_t)1 << log)
                log++;
        return log;
}

/* Returns a free block or cuts one from the region. The rest of an exhausted region stays unused.
 * The caller has the lock. */
static Block *take_block(unsigned log)
{
        size_t size = (size_t)1 << log;
        Block *block = free_blocks[log];

        if (block) {
                free_blocks[log] = block->next;
                return block;
        }
        if (region_left < size) {
                region = map_pages(REGION_BYTES);
                region_left = region ? REGION_BYTES : 0;
        }
        if (!region)
                return NULL;
        block = (Block *)(void *)region;
        region += size;
        region_left -= size;
        return block;
}

/* Returns a block of at least size bytes, header included, with zeros behind the header. */
static Block *get_block(size_t size)
{
        unsigned log = find_log(size);
        Block *block;

        if (IN_HEAP || log > LOG_MAX) {
                size = (size + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
                block = IN_HEAP ? calloc(1, size) : map_pages(size);
        } else {
                size = (size_t)1 << log;
                pthread_mutex_lock(&lock);
                block = take_block(log);
                pthread_mutex_unlock(&lock);
        }
        if (block)
                block->size = size;
        return block;
}

/* Limits the size, so that neither the sum with the header nor the rounding to pages wraps. */
void *secret_alloc(size_t size)
{
        Block *block;

        if (size > SIZE_MAX / 2)
                return NULL;
        block = get_block(size + sizeof(Block));
        if (!block)
                return NULL;
        block->next = NULL;
        return block + 1;
}

void *secret_alloc_array(size_t n, size_t size)
{
        size_t total;

        return __builtin_mul_overflow(n, size, &total) ? NULL : secret_alloc(total);
}

/* Returns the same memory for a size that fits; a block never shrinks. */
void *secret_resize(void *secret, size_t size)
{
        Block *block = secret ? (Block *)secret - 1 : NULL;
        void *larger;

        if (block && size <= block->size - sizeof(Block))
                return secret;
        larger = secret_alloc(size);
        if (!larger || !block)
                return larger;
        memcpy(larger, secret, block->size - sizeof(Block));
        secret_free(secret);
        return larger;
}

char *secret_join(const char *before, const char *text)
{
        size_t n = strlen(before), m = strlen(text);
        char *joined = secret_alloc(n + m + 1);

        if (!joined)
                return NULL;
        memcpy(joined, before, n);
        memcpy(joined + n, text, m + 1);
        return joined;
}

char *secret_copy(const char *text)
{
        return secret_join("", text);
}

/* Wipes the whole block and not only its used part, because only the size of the block is known. */
void *secret_free(void *secret)
{
        Block *block = secret ? (Block *)secret - 1 : NULL;

        if (!block)
                return NULL;
        explicit_bzero(secret, block->size - sizeof(Block));
        if (IN_HEAP) {
                free(block);
        } else if (block->size > (size_t)1 << LOG_MAX) {
                munmap(block, block->size);
        } else {
                unsigned log = find_log(block->size);

                pthread_mutex_lock(&lock);
                block->next = free_blocks[log];
                free_blocks[log] = block;
                pthread_mutex_unlock(&lock);
        }
        return NULL;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/secret.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/test.h"

#define SIZE_MAX_TRIED 40000
#define N_THREADS      4

static bool is_filled(const unsigned char *block, unsigned char with, size_t size)
{
        for (size_t i = 0; i < size; i++)
                if (block[i] != with)
                        return false;
        return true;
}

/* Each block has bytes of its own, aligned for any type, and zeros at first. */
static void test_sizes(void **state)
{
        void *blocks[200];
        size_t size = 0;

        for (size_t i = 0; i < ARRAY_SIZE(blocks); i++, size += SIZE_MAX_TRIED / 200) {
                blocks[i] = secret_alloc_array(size, 1);
                assert_non_null(blocks[i]);
                assert_int_equal((uintptr_t)blocks[i] % 16, 0);
                assert_true(is_filled(blocks[i], 0, size));
                memset(blocks[i], (int)i, size);
        }
        for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
                assert_true(is_filled(blocks[i], (unsigned char)i, i * (SIZE_MAX_TRIED / 200)));
        for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
                assert_null(secret_free(blocks[i]));
        /* A used block is zeroed when it is allocated again. */
        for (size = 1; size < SIZE_MAX_TRIED; size = size * 3 / 2 + 1) {
                void *block = secret_alloc_array(1, size);

                assert_true(is_filled(block, 0, size));
                secret_free(block);
        }
        assert_null(secret_free(NULL));
}

static void test_resize(void **state)
{
        char *text = secret_resize(NULL, 10);

        strcpy(text, "password");
        for (size_t size = 10; size < SIZE_MAX_TRIED; size = size * 3 / 2) {
                text = secret_resize(text, size);
                assert_string_equal(text, "password");
                memset(text + 9, 'x', size - 9);
        }
        text = secret_resize(text, 9);
        assert_string_equal(text, "password");
        secret_free(text);
}

static void test_texts(void **state)
{
        _cleanup_(secret_freep) char *copy = secret_copy("p\xc3\xa4ss"), *empty = secret_copy("");
        _cleanup_(secret_freep) char *joined = secret_join("X-Auth-Token: ", copy);

        assert_string_equal(copy, "p\xc3\xa4ss");
        assert_string_equal(empty, "");
        assert_string_equal(joined, "X-Auth-Token: p\xc3\xa4ss");
}

static void test_too_much(void **state)
{
        assert_null(secret_alloc(SIZE_MAX));
        assert_null(secret_alloc_array(SIZE_MAX / 2, 3));
}

static void *use_many(void *userdata)
{
        unsigned char mine = *(unsigned char *)userdata;
        unsigned char *blocks[50] = { NULL };

        for (size_t i = 0; i < 5000; i++) {
                size_t n = i % ARRAY_SIZE(blocks), size = 1 + i * 37 % 3000;

                if (blocks[n] && blocks[n][0] != mine)
                        return blocks[n];
                secret_free(blocks[n]);
                blocks[n] = secret_alloc(size);
                memset(blocks[n], mine, size);
        }
        for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
                secret_free(blocks[i]);
        return NULL;
}

/* libcurl allocates a buffer of 16 KiB and one byte for each answer, so its pages are kept. */
static void test_kept(void **state)
{
        long page = sysconf(_SC_PAGESIZE);
        char *buffer = secret_alloc(16 * 1024 + 1);
        void *begin = (void *)((uintptr_t)buffer & ~((uintptr_t)page - 1));

        assert_non_null(buffer);
        secret_free(buffer);
        assert_int_equal(msync(begin, (size_t)page, MS_ASYNC), 0);
}

static void test_threads(void **state)

{
        unsigned char numbers[N_THREADS];
        pthread_t threads[N_THREADS];
        void *trouble;

        for (unsigned char i = 0; i < N_THREADS; i++) {
                numbers[i] = i + 1;
                assert_int_equal(pthread_create(&threads[i], NULL, use_many, &numbers[i]), 0);
        }
        for (size_t i = 0; i < N_THREADS; i++) {
                assert_int_equal(pthread_join(threads[i], &trouble), 0);
                assert_null(trouble);
        }
}

TEST_MAIN(test_sizes, test_resize, test_texts, test_too_much, test_kept, test_threads)

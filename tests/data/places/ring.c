/*
 * A ring buffer of fixed-size messages, with a small logger on top of it that
 * keeps the last lines and writes them out when the program's done.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RING_CAPACITY 64u
#define TEXT_SIZE 120
#define ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define LOG(ring, level, ...) log_write((ring), (level), __FILE__, __LINE__, __VA_ARGS__)

#if defined(RING_TRACE) && !defined(NDEBUG)
#define TRACE(...) fprintf(stderr, "ring: " __VA_ARGS__)
#else
#define TRACE(...) ((void)0)
#endif

typedef enum { LEVEL_DEBUG, LEVEL_INFO, LEVEL_ERROR = 8 } level_t;

typedef struct message {
    time_t at;
    level_t level;
    char text[TEXT_SIZE];
} message_t;

typedef struct {
    message_t *slots;
    size_t capacity, head, count;
    void (*on_drop)(const message_t *dropped, void *context);
    void *context;
} ring_t;

static const struct {
    level_t level;
    const char *name;
} level_names[] = {
    {LEVEL_DEBUG, "debug"},
    {LEVEL_INFO, "info"},
    {.level = LEVEL_ERROR, .name = "error"},
};

static const char *level_name(level_t level)
{
    for (size_t i = 0; i < ARRAY_LENGTH(level_names); i++) {
        if (level_names[i].level == level)
            return level_names[i].name;
    }
    return "?";
}

int ring_init(ring_t *ring, size_t capacity)
{
    /* a power of two, so that the index is a mask and not a division */
    if (capacity == 0 || (capacity & (capacity - 1)) != 0)
        return -EINVAL;
    *ring = (ring_t){.slots = calloc(capacity, sizeof(*ring->slots)), .capacity = capacity};
    return ring->slots != NULL ? 0 : -ENOMEM;
}

void ring_free(ring_t *ring)
{
    free(ring->slots);
    memset(ring, 0, sizeof *ring);
}

bool ring_push(ring_t *ring, const message_t *message)
{
    size_t at = (ring->head + ring->count) & (ring->capacity - 1);
    bool full = ring->count == ring->capacity;

    if (full) {
        if (ring->on_drop)
            ring->on_drop(&ring->slots[ring->head], ring->context);
        ring->head = (ring->head + 1) & (ring->capacity - 1);
    } else {
        ring->count++;
    }
    TRACE("push at %zu%s\n", at, full ? " (full)" : "");
    ring->slots[at] = *message;
    return !full;
}

bool ring_pop(ring_t *ring, message_t *out)
{
    if (ring->count == 0)
        return false;
    memcpy(out, ring->slots + ring->head, sizeof(message_t));
    ring->head = (ring->head + 1) & (ring->capacity - 1);
    ring->count -= 1;
    return true;
}

__attribute__((format(printf, 5, 6)))
static void log_write(ring_t *ring, level_t level, const char *file, int line, const char *fmt, ...)
{
    message_t message = {.at = time(NULL), .level = level};
    int used = snprintf(message.text, sizeof(message.text), "%s:%d: ", file, line);
    va_list arguments;

    va_start(arguments, fmt);
    if (used >= 0 && (size_t)used < sizeof(message.text))
        vsnprintf(message.text + used, sizeof(message.text) - (size_t)used, fmt, arguments);
    va_end(arguments);
    ring_push(ring, &message);
}

static void count_dropped(const message_t *dropped, void *context)
{
    uint32_t *counts = (uint32_t *)context;
    counts[MIN((unsigned)dropped->level, 8u)]++;
}

int main(int argc, char **argv)
{
    ring_t ring;
    uint32_t dropped[9] = {0};
    int status = ring_init(&ring, RING_CAPACITY);

    if (status < 0) {
        fprintf(stderr, "%s: %s\n", argv[0], strerror(-status));
        return EXIT_FAILURE;
    }
    ring.on_drop = count_dropped;
    ring.context = dropped;
    for (int i = 1; i < argc; i++)
        LOG(&ring, argv[i][0] == '-' ? LEVEL_DEBUG : LEVEL_INFO, "argument %d is '%s'", i, argv[i]);

    for (message_t message; ring_pop(&ring, &message);) {
        char when[32];
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", localtime(&message.at));
        switch (message.level) {
        case LEVEL_ERROR: fputs("! ", stdout); /* fall through */
        default: printf("%s %-5s %s\n", when, level_name(message.level), message.text);
        }
    }
    printf("dropped: %u\n", dropped[LEVEL_DEBUG] + dropped[LEVEL_INFO] + dropped[LEVEL_ERROR]);
    ring_free(&ring);
    return EXIT_SUCCESS;
}

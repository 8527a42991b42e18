/* A made program in C: made KIND SECONDS VARIANT. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST 4000000
static void *kept[MOST], *pins[MOST], *cache[1000];
static long count, pinned;

static void *block(size_t size) {
  char *made = malloc(size);
  memset(made, 1, size);
  return made;
}

static double wall(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

static void busy(long n) {
  for (long each = 0; each < 40; each++) {
    long at = (n * 40 + each) % 1000;
    free(cache[at]);
    cache[at] = block(2000 + each);
  }
}

static void leak(int variant) { /* keeps 20 KiB for ever */
  size_t size = 64 << (variant % 5);
  for (size_t got = 0; got < 20480; got += size) kept[count++] = block(size);
}

static void level(double mib) {
  long wanted = (long)(mib * 1048576) / 4000;
  while (count < wanted) kept[count++] = block(4000);
  while (count > wanted) free(kept[--count]);
}

int main(int argc, char **argv) {
  const char *kind = argv[1];
  double seconds = atof(argv[2]);
  int variant = argc > 3 ? atoi(argv[3]) : 0;
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  srand(variant);
  for (long n = 1;; n++) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    double part = ((now.tv_sec - begin.tv_sec) + (now.tv_nsec - begin.tv_nsec) * 1e-9) / seconds;
    if (part > 2) return 0;
    if (!strcmp(kind, "leak")) {
      busy(n);
      leak(variant);
    } else if (!strcmp(kind, "cache")) {
      busy(n);
      level(fmin(part / 0.5, 1) * 16);
    } else if (!strcmp(kind, "warm-up")) {
      busy(n);
      level(16 * (1 - exp(-part / 0.05)));
    } else if (!strcmp(kind, "load")) {
      level(4 + 16 * (0.5 + 0.5 * sin(2 * M_PI * fmod(wall(), seconds * 10) / seconds * 1.3)));
    } else if (!strcmp(kind, "retention")) {
      if (part < 0.35)
        for (int each = 0; each < 200; each++) kept[count++] = block(800);
      else if (count) {
        pins[0] = kept[--count]; /* at the top of the heap: nothing below can be given back */
        while (count) free(kept[--count]);
      }
    } else if (!strcmp(kind, "fragmentation")) {
      /* of each block a small piece stays where it is; the next size fits into no hole */
      size_t size = 4000 + n * 16;
      for (long each = 0; each < 40000 / (long)size + 1; each++) kept[each] = block(size);
      for (long each = 0; each < 40000 / (long)size + 1; each++) pins[pinned++] = realloc(kept[each], 24);
    }
    usleep(20000);
  }
}

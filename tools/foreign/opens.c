/* tools/foreign/opens.c: see opens.h. */
#include "tools/foreign/opens.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/clock.h"

enum { FOLDERS_MOST = 65536, DEPTH_MOST = 16 };

struct opens_watch {
    int fd;
    opens_figures *figures;
    uint64_t first_ns, last_ns;
};

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool watch_one(opens_watch *o, const char *path)
{
    opens_figures *f = o->figures;
    if (f->folders >= FOLDERS_MOST) {
        snprintf(f->why, sizeof f->why, "there are more than %d folders in it", FOLDERS_MOST);
        return false;
    }
    if (inotify_add_watch(o->fd, path, IN_OPEN | IN_ONLYDIR) < 0) {
        const int why = errno;
        snprintf(f->why, sizeof f->why, "a folder in it cannot be watched: %s%s", strerror(why),
                 why == ENOSPC ? " (fs.inotify.max_user_watches)" : "");
        return false;
    }
    f->folders++;
    return true;
}

/* Links to folders are followed, as data sets are; circles end at the depth. */
static bool watch_below(opens_watch *o, const char *path, int depth)
{
    if (!watch_one(o, path)) return false;
    if (depth >= DEPTH_MOST) return true;
    DIR *folder = opendir(path);
    bool good = true;
    for (struct dirent *e; folder && good && (e = readdir(folder)) != NULL;) {
        char below[PATH_MAX];
        if (e->d_name[0] == '.' || e->d_type == DT_REG) continue;
        if ((size_t)snprintf(below, sizeof below, "%s/%s", path, e->d_name) >= sizeof below) continue;
        if (e->d_type == DT_DIR || is_folder(below)) good = watch_below(o, below, depth + 1);
    }
    if (folder) closedir(folder);
    return good;
}

opens_watch *opens_open(const char *path, opens_figures *figures)
{
    memset(figures, 0, sizeof *figures);
    if (!is_folder(path)) {
        snprintf(figures->why, sizeof figures->why, "it is no folder with a file for each sample");
        return NULL;
    }
    opens_watch *o = calloc(1, sizeof *o);
    if (!o) return NULL;
    o->figures = figures;
    o->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (o->fd < 0) snprintf(figures->why, sizeof figures->why, "inotify: %s", strerror(errno));
    if (o->fd >= 0 && watch_below(o, path, 0)) {
        opens_take(o); /* of our own looking around */
        figures->count = 0;
        figures->counted = true;
        return o;
    }
    if (o->fd >= 0) close(o->fd);
    free(o);
    return NULL;
}

int opens_fd(const opens_watch *o) { return o ? o->fd : -1; }

void opens_take(opens_watch *o)
{
    _Alignas(struct inotify_event) char buf[65536];
    uint64_t before = o ? o->figures->count : 0;
    for (ssize_t n = 1; o && n > 0;) {
        n = read(o->fd, buf, sizeof buf);
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *e = (const struct inotify_event *)(const void *)(buf + at);
            if (e->mask & IN_Q_OVERFLOW) o->figures->at_least = true;
            else if ((e->mask & IN_OPEN) && !(e->mask & IN_ISDIR) && e->len) o->figures->count++;
            at += (ssize_t)(sizeof *e + e->len);
        }
    }
    if (!o || o->figures->count == before) return;
    o->last_ns = clock_ns();
    if (before == 0) o->first_ns = o->last_ns;
    o->figures->seconds = 1e-9 * (double)(o->last_ns - o->first_ns);
}

void opens_close(opens_watch *o)
{
    if (!o) return;
    close(o->fd);
    free(o);
}

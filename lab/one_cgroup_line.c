/* Shows a program the control groups of a process as a machine with version 2 only shows them: one line, "0::PATH".

   The kernel lists every hierarchy of the machine in /proc/PID/cgroup, in a cgroup namespace too (cgroups(7)), so a host of
   the bench shows version 1 wherever this machine has it. Slurm's plugin for version 2 takes that for a hybrid and ends.
   cc -shared -fPIC -o one_cgroup_line.so one_cgroup_line.c; preload it where it is needed (ld.so(8), LD_PRELOAD). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int shown(const char *path, int flags, mode_t mode)
{
	static int (*next)(const char *, int, ...);
	if (!next)
		next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
	int whole = next(path, flags, mode);
	if (whole < 0 || fnmatch("/proc/*/cgroup", path, FNM_PATHNAME))
		return whole;
	char text[16384];
	ssize_t length = read(whole, text, sizeof text - 1);
	text[length > 0 ? length : 0] = '\0';
	char *line = strstr(text, "\n0::");
	line = line ? line + 1 : text;
	int file = memfd_create("cgroup", MFD_CLOEXEC);
	if (file < 0 || write(file, line, strcspn(line, "\n") + 1) < 0 || lseek(file, 0, SEEK_SET) != 0) {
		close(file);
		lseek(whole, 0, SEEK_SET);
		return whole;
	}
	close(whole);
	return file;
}

static int with_mode(const char *path, int flags, va_list more)
{
	return shown(path, flags, flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0);
}

#define SHOWN(name)                              \
	int name(const char *path, int flags, ...)   \
	{                                            \
		va_list more;                            \
		va_start(more, flags);                   \
		int file = with_mode(path, flags, more); \
		va_end(more);                            \
		return file;                             \
	}

SHOWN(open)
SHOWN(open64)

int __open_2(const char *path, int flags) { return shown(path, flags, 0); }
int __open64_2(const char *path, int flags) { return shown(path, flags, 0); }

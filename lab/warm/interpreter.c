/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Stands as a host's Python for Ansible. It hands a call to the warm interpreter's daemon (daemon.py) and
 * ends as the call ends. A call that the daemon does not take runs in the host's own Python.
 *
 * The daemon gets the three standard file descriptors; it reads all else about this process in /proc.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"
#define DAEMON "/run/lab-warm/daemon.py"
/* An abstract name (unix(7)): it leaves no file and is gone with the daemon. */
#define NAME "\0lab-warm"

static int daemon_socket = -1;

static void run_plain(char **arguments) {
  arguments[0] = PYTHON;
  execv(PYTHON, arguments);
  perror(PYTHON);
  exit(127);
}

static int reach_daemon(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  socklen_t length = offsetof(struct sockaddr_un, sun_path) + sizeof(NAME) - 1;
  memcpy(address.sun_path, NAME, sizeof(NAME) - 1);
  daemon_socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return daemon_socket >= 0 && connect(daemon_socket, (struct sockaddr *)&address, length) == 0;
}

/* The daemon answers with one byte when it takes the call, and hangs up otherwise. */
static int daemon_takes_it(void) {
  char byte = 0;
  struct iovec data = {&byte, 1};
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(3 * sizeof(int))];
  } control = {0};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
  control.header.cmsg_level = SOL_SOCKET;
  control.header.cmsg_type = SCM_RIGHTS;
  control.header.cmsg_len = CMSG_LEN(3 * sizeof(int));
  memcpy(CMSG_DATA(&control.header), (int[]){0, 1, 2}, 3 * sizeof(int));
  return sendmsg(daemon_socket, &message, MSG_NOSIGNAL) == 1 && read(daemon_socket, &byte, 1) == 1;
}

/* Two forks, so that the daemon is no child of the call that happened to start it. */
static void start_daemon(void) {
  pid_t child = fork();
  if (child > 0)
    waitpid(child, NULL, 0);
  if (child)
    return;
  setsid();
  int ends[2];
  if (fork() || chdir("/") || pipe(ends))
    _exit(0);
  /* Python looks once what its standard streams are: pipes, as those of calls. Nobody reads them. */
  dup2(ends[0], 0);
  dup2(ends[1], 1);
  dup2(ends[1], 2);
  close(ends[0]);
  close(ends[1]);
  execl(PYTHON, PYTHON, DAEMON, (char *)NULL);
  _exit(127);
}

static void forward(int number) {
  char byte = number;
  send(daemon_socket, &byte, 1, MSG_NOSIGNAL);
}

static void forward_signals(void) {
  const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM};
  struct sigaction before, action = {.sa_handler = forward, .sa_flags = SA_RESTART};
  for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
    if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
      sigaction(numbers[i], &action, NULL);
}

static int end_as_the_call_ends(void) {
  int status;
  if (read(daemon_socket, &status, sizeof(status)) != sizeof(status)) {
    fprintf(stderr, "%s: the process that watched this call has ended: run it again\n", DAEMON);
    return 125;
  }
  if (WIFSIGNALED(status)) {
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  return WEXITSTATUS(status);
}

int main(int count, char **arguments) {
  /* Pipelined modules come on standard input; the daemon is root's and has no terminal. */
  if (count != 1 || getuid() != 0 || geteuid() != 0 || isatty(0))
    run_plain(arguments);
  if (!reach_daemon() || !daemon_takes_it()) {
    start_daemon();
    run_plain(arguments);
  }
  forward_signals();
  return end_as_the_call_ends();
}

#!/bin/sh
# usage: try.sh PATH TESTS...   in a sandbox, in the repository; the file with the mistake is standard input
#
# Runs pytest with TESTS, which are words with a line for each call of it. Status 40: no test noticed the mistake;
# 41: one did; 42: the test that failed also fails without the mistake. Programs that set up the sandbox end with none
# of these.
set -u
path=$1
shift
cp -p "$path" /tmp/right
cat > "$path"
for words; do
  # Words are separated by tabs, as names of tests have blanks.
  IFS='	'
  # shellcheck disable=SC2086
  pytest -x -q -o cache_dir=/tmp/failed --disable-warnings $words
  status=$?
  unset IFS
  case $status in 0 | 5) continue ;; esac
  # The time of the right file is another one than that of the wrong one, so no compiled one is taken for it.
  cp -p /tmp/right "$path"
  IFS='	'
  # shellcheck disable=SC2086
  pytest -x -q --last-failed -o cache_dir=/tmp/failed --disable-warnings $words
  status=$?
  case $status in 0 | 5) exit 41 ;; esac
  exit 42
done
exit 40

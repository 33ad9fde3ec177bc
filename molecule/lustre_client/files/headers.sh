#!/bin/sh
# Make what modules are built with for a kernel: KERNEL [works|fails]. Modinfo reads these modules; they cannot be loaded.
set -eu
build=/lib/modules/$1/build
mkdir -p "$build/include"
case ${2:-works} in
fails)
    printf 'default:\n\t@echo "lnet.c:1: error: implicit declaration" >&2; exit 1\nclean:\n' > "$build/Makefile"
    ;;
works)
    cat > "$build/Makefile" << END
default:
	for name in lnet lustre ksocklnd ko2iblnd; do \\
	  version=\$\$(sed -n 's/MODULE_VERSION("\\(.*\\)");/\\1/p' \$(M)/\$\$name.c); \\
	  printf "version=%s\\\\0name=%s\\\\0vermagic=$1 SMP \\\\0" \$\$version \$\$name > \$(M)/modinfo; \\
	  objcopy -I binary -O elf64-x86-64 --rename-section .data=.modinfo \$(M)/modinfo \$(M)/\$\$name.ko; \\
	done
clean:
END
    ;;
esac

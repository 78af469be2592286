package main

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapProgram unmaps the pages of the program from this process. The start touches most of them, once, and the kernel maps
// sixteen for each that is touched; a belfry that is idle uses a fifth. They stay in the kernel's cache of files, and are mapped
// again without a read when they are used. A debugger has changed some, so with one they all stay.
func unmapProgram() {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil || !strings.Contains(string(status), "\nTracerPid:\t0\n") {
		return
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for _, m := range unwritable(string(maps), program) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED) // at worst, they stay
	}
}

// mapping is a part of the memory of a process.
type mapping struct{ start, end uintptr }

// unwritable returns the mappings of a file, in the form of /proc/self/maps, that are never written: what is written to others
// would be lost.
func unwritable(maps, file string) []mapping {
	var found []mapping
	for line := range strings.Lines(maps) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 6) // addresses, permissions, offset, device, inode, path
		if len(fields) < 6 || strings.TrimLeft(fields[5], " ") != file || len(fields[1]) != 4 || fields[1][0] != 'r' || fields[1][1] != '-' {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err == nil && err2 == nil && start < end {
			found = append(found, mapping{uintptr(start), uintptr(end)})
		}
	}
	return found
}
